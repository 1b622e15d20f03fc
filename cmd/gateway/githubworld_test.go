package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	fakegithub "github.com/heddlehq/heddle/fakes/github"
	"github.com/heddlehq/heddle/state"
)

// githubWorld is the fake GitHub of a script.
type githubWorld struct {
	*fakegithub.Hub
	sent map[string]fakegithub.Delivery

	mu     sync.Mutex
	faults map[string][]fakegithub.Fault
	called map[string]chan struct{} // closed at the next call that has a fault
}

func (g *githubWorld) hook(c fakegithub.Call) fakegithub.Fault {
	g.mu.Lock()
	defer g.mu.Unlock()
	if ch := g.called[c.Name]; ch != nil {
		close(ch)
		delete(g.called, c.Name)
	}
	q := g.faults[c.Name]
	if len(q) == 0 {
		return fakegithub.Fault{}
	}
	g.faults[c.Name] = q[1:]
	return q[0]
}

// github VERB ...: a fake GitHub.
//
//	on: starts it and sets the program's environment, as an App
//	say NAME TEXT [USER] [KIND] [NUMBER] [ROOT]: a comment; ROOT names the review or discussion comment that is replied to, "new" begins a review thread
//	do NAME ACTION [TEXT] [USER] [KIND] [NUMBER] [LABEL]: something done to an issue, pull request or discussion
//	edit NAME TEXT, delete NAME: of a comment
//	again NAME [STATUS], replay NAME, form NAME: a delivery once more, under another GUID, as a form
//	clash NAME TEXT: another comment under the GUID of a delivery
//	storm NAME N TEXT [USER] [KIND] [NUMBER]: a comment that is delivered N times at once, half of them under other GUIDs
//	missed NAME TEXT: a comment whose delivery failed, as GitHub has noted
//	redelivered: what the program has asked for again comes
//	fault CALL stall|cut|lose|STATUS [RETRY-AFTER], await-call CALL
//	heard: waits until the program has noted that it listens
//	reactions NAME REACTION ...: waits until these stand at what was said
//	raw STATUS EVENT FILE [HOW]: a body through the front door, as the command raw does
//	posts N [PATTERN ...]: as the command posts does
func cmdGitHub(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 1, "github on|say|do|edit|delete|again|replay|form|missed|redelivered|fault|await-call|raw|posts|heard|reactions ...")
	w, ctx := in(ts)
	if args[0] == "on" {
		w.startGitHub(ts)
		return
	}
	g := w.github
	if g == nil {
		ts.Fatalf("github is not on")
	}
	rest := append(args[1:], "", "", "", "", "", "", "")
	ok := func(d fakegithub.Delivery) { g.deliver(ts, w, d, http.StatusOK) }
	name := rest[0]
	switch args[0] {
	case "say":
		words := githubWords(rest[2:])
		words.Text = rest[1]
		if root := rest[5]; root != "" {
			words.Review, words.Root = words.Kind == "pr", g.sent[root].ID
		}
		g.sent[name] = g.Say(words)
		ok(g.sent[name])
	case "do":
		words := githubWords(rest[3:])
		words.Text = rest[2]
		more := map[string]any{}
		if rest[6] != "" {
			more["label"] = map[string]any{"id": 1, "name": rest[6]}
		}
		g.sent[name] = g.Do(rest[1], words, more)
		ok(g.sent[name])
	case "edit":
		d, err := g.Edit(g.sent[name].NodeID, rest[1], 77)
		ts.Check(err)
		ok(d)
	case "delete":
		d, err := g.Delete(g.sent[name].NodeID, 77)
		ts.Check(err)
		ok(d)
	case "again":
		want := http.StatusOK
		if rest[1] != "" {
			want, _ = strconv.Atoi(rest[1])
		}
		g.deliver(ts, w, g.sent[name], want)
	case "replay":
		ok(g.Replay(g.sent[name]))
	case "form":
		ok(g.Form(g.sent[name]))
	case "clash":
		d := g.Say(fakegithub.Words{Text: rest[1]})
		d.Header.Set("X-GitHub-Delivery", g.sent[name].GUID)
		ok(d)
	case "storm":
		n, _ := strconv.Atoi(rest[1])
		words := githubWords(rest[3:])
		words.Text = rest[2]
		g.sent[name] = g.Say(words)
		g.storm(ts, w, name, n)
	case "missed":
		words := githubWords(rest[2:])
		words.Text = rest[1]
		g.sent[name] = g.Say(words)
		g.Tried(g.sent[name], http.StatusBadGateway)
	case "redelivered":
		for _, d := range g.Redelivered() {
			ok(d)
		}
	case "fault":
		g.fault(rest[0], rest[1], rest[2])
	case "await-call":
		g.mu.Lock()
		ch := g.called[name]
		g.mu.Unlock()
		if ch != nil {
			select {
			case <-ch:
			case <-ctx.Done():
				ts.Fatalf("%s was not called: %s", name, w.log)
			}
		}
	case "raw":
		g.raw(ts, w, rest[0], rest[1], []byte(ts.ReadFile(rest[2])), rest[3])
	case "posts":
		n, err := strconv.Atoi(rest[0])
		ts.Check(err)
		if _, err := g.WaitPosts(ctx, n); err != nil {
			ts.Fatalf("%v: %s", err, w.log)
		}
		w.quiet(ctx, ts)
		g.checkPosts(ts, n, args[2:])
	case "heard":
		w.look(ctx, ts, func(st state.Store) bool {
			at, err := st.Value(ctx, "listening", "github")
			return err == nil && at != nil
		})
	case "reactions":
		for want := fmt.Sprint(args[2:]); fmt.Sprint(g.Reactions(g.sent[name].NodeID)) != want; {
			select {
			case <-time.After(10 * time.Millisecond):
			case <-ctx.Done():
				ts.Fatalf("reactions %v, want %v: %s", g.Reactions(g.sent[name].NodeID), want, w.log)
			}
		}
	default:
		ts.Fatalf("github %s: no such verb", args[0])
	}
}

// startGitHub begins with an App that is installed on fake/repo.
func (w *world) startGitHub(ts *testscript.TestScript) {
	g := &githubWorld{sent: map[string]fakegithub.Delivery{}, faults: map[string][]fakegithub.Fault{}, called: map[string]chan struct{}{}}
	g.Hub = fakegithub.New(fakegithub.Options{Hook: g.hook, Secret: "canary-webhook", Users: []fakegithub.User{
		{ID: 77, Login: "anna", Permission: "write"}, {ID: 78, Login: "stranger", Permission: "read"}, {ID: 9, Login: "dependabot[bot]", Bot: true},
	}})
	w.github = g
	api := httptest.NewServer(g)
	ts.Defer(func() {
		api.CloseClientConnections()
		api.Close()
	})
	key := filepath.Join(ts.Getenv("WORK"), "app.pem")
	ts.Check(os.WriteFile(key, []byte(g.PrivateKey()), 0o600))
	for k, v := range map[string]string{
		"GITHUB_APP_ID": "7", "GITHUB_APP_PRIVATE_KEY_FILE": key, "GITHUB_WEBHOOK_SECRET": "canary-webhook", "GITHUB_API_URL": api.URL, "GITHUB_WRITE_EVERY": "20ms",
	} {
		ts.Setenv(k, v)
	}
}

// githubWords are USER KIND NUMBER.
func githubWords(args []string) (w fakegithub.Words) {
	w.User, _ = strconv.ParseInt(args[0], 10, 64)
	w.Kind = args[1]
	w.Number, _ = strconv.Atoi(args[2])
	return w
}

func (g *githubWorld) storm(ts *testscript.TestScript, w *world, name string, n int) {
	var wg sync.WaitGroup
	for i := range n {
		d := g.sent[name]
		if i%2 == 1 {
			d = g.Replay(d)
		}
		wg.Go(func() {
			req, err := d.Request(w.front + "/github/webhook")
			if err == nil {
				var res *http.Response
				if res, err = http.DefaultClient.Do(req); err == nil {
					_ = res.Body.Close()
				}
				if err == nil && res.StatusCode == http.StatusOK {
					return
				}
			}
			ts.Logf("delivery %d: %v", i, err)
			panic("a delivery of the storm failed")
		})
	}
	wg.Wait()
}

func (g *githubWorld) fault(call, kind, after string) {
	var f fakegithub.Fault
	switch kind {
	case "stall":
		f.Stall = true
	case "cut":
		f.Cut = true
	case "lose":
		f.Lose = true
	default:
		f.Status, _ = strconv.Atoi(kind)
		if after != "" {
			f.Header = http.Header{"Retry-After": {after}}
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.faults[call] = append(g.faults[call], f)
	g.called[call] = make(chan struct{})
}

func (g *githubWorld) deliver(ts *testscript.TestScript, w *world, d fakegithub.Delivery, want int) {
	req, err := d.Request(w.front + "/github/webhook")
	ts.Check(err)
	if status, text := answer(ts, req); status != want {
		ts.Fatalf("status %d (%s), want %d: %s", status, text, want, w.log)
	}
}

// raw sends a body in the way that how names; an answer without 200 must say nothing of the reason.
func (g *githubWorld) raw(ts *testscript.TestScript, w *world, want, event string, body []byte, how string) {
	if how == "big" {
		body = append(body, bytes.Repeat([]byte(" "), 30<<20)...)
	}
	d := g.Sign(event, body)
	switch how {
	case "unsigned":
		d.Header.Del("X-Hub-Signature-256")
	case "wrong":
		d.Header.Set("X-Hub-Signature-256", fakegithub.Signature("another-secret", body))
	case "double":
		d.Header.Add("X-Hub-Signature-256", d.Header.Get("X-Hub-Signature-256"))
	case "type":
		d.Header.Set("Content-Type", "text/plain")
	case "other-app":
		d.Header.Set("X-GitHub-Hook-Installation-Target-ID", "8")
	case "no-guid":
		d.Header.Del("X-GitHub-Delivery")
	case "", "big":
	default:
		ts.Fatalf("unknown way %q", how)
	}
	req, err := d.Request(w.front + "/github/webhook")
	ts.Check(err)
	status, text := answer(ts, req)
	if strconv.Itoa(status) != want {
		ts.Fatalf("status %d, want %s: %s", status, want, w.log)
	}
	if status != http.StatusOK && text != http.StatusText(status) {
		ts.Fatalf("the answer says more than its status: %q", text)
	}
}

func (g *githubWorld) checkPosts(ts *testscript.TestScript, n int, patterns []string) {
	posts, keys := g.Posts(), map[string]bool{}
	if len(posts) != n {
		ts.Fatalf("%d posts, want %d: %v", len(posts), n, posts)
	}
	for _, p := range posts {
		if p.Key == "" || keys[p.Key] {
			ts.Fatalf("post key %q is empty or was used twice", p.Key)
		}
		keys[p.Key] = true
	}
	for _, pattern := range patterns {
		p := posts[n-1]
		if last := p.Thread.Key() + " " + p.Text; !regexp.MustCompile(pattern).MatchString(last) {
			ts.Fatalf("the last post is %q, want a match of %q", last, pattern)
		}
	}
}
