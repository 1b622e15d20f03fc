package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	fakediscord "github.com/heddlehq/heddle/fakes/discord"
)

// discordWorld is the fake Discord of a script.
type discordWorld struct {
	*fakediscord.Server
	http  bool              // interactions come over HTTP
	ids   map[string]string // of what was said
	asked map[string]fakediscord.Delivery

	mu     sync.Mutex
	faults map[string][]fakediscord.Fault
}

func (d *discordWorld) hook(c fakediscord.Call) fakediscord.Fault {
	d.mu.Lock()
	defer d.mu.Unlock()
	q := d.faults[c.Method]
	if len(q) == 0 {
		return fakediscord.Fault{}
	}
	d.faults[c.Method] = q[1:]
	return q[0]
}

// discord VERB ...: a fake Discord.
//
//	on [http]: starts it and sets the program's environment; interactions come over HTTP
//	connected N: the program is connected, for the N-th time at least
//	mention NAME TEXT [PLACE]: somebody mentions the bot; PLACE is general, dm, or the thread of an earlier NAME
//	say NAME TEXT PLACE: somebody says something
//	edit NAME TEXT, react NAME MARK: somebody changes a message of general; a message has the bot's mark
//	stranger NAME TEXT: somebody who is nobody here mentions the bot
//	ask NAME TEXT [PLACE]: somebody calls /agent ask; over HTTP the answer must be one that Discord takes
//	again NAME: the same interaction once more
//	raw STATUS FILE [HOW]: a body through the front door, as the command raw does
//	posts N [PATTERN]: waits until all is done; there are N posts, none is double, and the last one matches
//	at NAME: the last post stands in the thread of NAME
//	in ACCOUNT: the last post is in a guild, or @me
//	via WAY: the last post was made in that way
//	fault METHOD KIND [CODE]: what the next call of a method gets: hang, stall, cut, lose, or a status
//	await METHOD N: waits until a method was called N times
//	close CODE: ends the connection; 0 cuts it
func cmdDiscord(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 1, "discord VERB ...")
	w, ctx := in(ts)
	if args[0] == "on" {
		w.startDiscord(ts, len(args) > 1)
		return
	}
	d := w.discord
	if d == nil {
		ts.Fatalf("discord is not on")
	}
	rest := append(args[1:], "", "", "")
	switch args[0] {
	case "connected":
		n, _ := strconv.Atoi(rest[0])
		ts.Check(d.Wait(ctx, func() bool { opened, _, _ := d.Links(); return opened >= n }))
		ts.Check(d.WaitReady(ctx))
	case "mention":
		d.ids[rest[0]] = d.Mention(fakediscord.Words{Text: rest[1], Channel: d.place(rest[2])})
	case "stranger":
		d.ids[rest[0]] = d.Mention(fakediscord.Words{Text: rest[1], User: "300000000000000002"})
	case "say":
		d.ids[rest[0]] = d.Say(fakediscord.Words{Text: rest[1], Channel: d.place(rest[2])})
	case "edit":
		ts.Check(d.Edit(fakediscord.General, d.ids[rest[0]], rest[1]))
	case "react":
		ts.Check(d.Wait(ctx, func() bool { return d.marked(d.ids[rest[0]], rest[1]) }))
	case "ask":
		if !d.http {
			d.AskHere(fakediscord.Words{Text: rest[1], Channel: d.place(rest[2])})
			return
		}
		d.asked[rest[0]] = d.Ask(fakediscord.Words{Text: rest[1], Channel: d.place(rest[2])})
		ts.Check(d.Reply(d.asked[rest[0]], []byte(w.interaction(ts, d.asked[rest[0]], http.StatusOK))))
	case "again":
		w.interaction(ts, d.asked[rest[0]], http.StatusOK)
	case "raw":
		want, _ := strconv.Atoi(rest[0])
		w.interaction(ts, d.signed([]byte(ts.ReadFile(rest[1])), rest[2]), want)
	case "posts":
		w.discordPosts(ts, rest[0], args[2:])
	case "at", "via", "in":
		posts := d.Posts()
		p := posts[len(posts)-1]
		if got := map[string]string{"at": p.Thread.Root, "via": p.Via, "in": p.Thread.Account}[args[0]]; got != d.place(rest[0]) {
			ts.Fatalf("the last post has %q: %+v", got, p)
		}
	case "fault":
		f := fakediscord.Fault{Hang: rest[1] == "hang", Stall: rest[1] == "stall", Cut: rest[1] == "cut", Lose: rest[1] == "lose", RetryAfter: 0.2}
		f.Status, _ = strconv.Atoi(rest[1])
		f.Code, _ = strconv.Atoi(rest[2])
		d.mu.Lock()
		d.faults[rest[0]] = append(d.faults[rest[0]], f)
		d.mu.Unlock()
	case "await":
		n, _ := strconv.Atoi(rest[1])
		ts.Check(d.Wait(ctx, func() bool { return d.Calls(rest[0]) >= n }))
	case "close":
		code, _ := strconv.Atoi(rest[0])
		d.Close(code)
	default:
		ts.Fatalf("discord %s: no such verb", args[0])
	}
}

func (w *world) startDiscord(ts *testscript.TestScript, overHTTP bool) {
	d := &discordWorld{http: overHTTP, ids: map[string]string{}, asked: map[string]fakediscord.Delivery{}, faults: map[string][]fakediscord.Fault{}}
	d.Server = fakediscord.New(fakediscord.Options{Token: "canary-discord-token", Hook: d.hook, Users: []fakediscord.User{
		{ID: "300000000000000001", Name: "anna", Roles: []string{"500000000000000001"}}, {ID: "300000000000000002", Name: "ben"},
	}})
	w.discord = d
	api := httptest.NewServer(d)
	ts.Defer(func() {
		api.CloseClientConnections()
		api.Close()
	})
	ts.Setenv("DISCORD_BOT_TOKEN", "canary-discord-token")
	ts.Setenv("DISCORD_API_URL", api.URL+"/api/v10")
	if overHTTP {
		ts.Setenv("DISCORD_APPLICATION_ID", d.Options().App)
		ts.Setenv("DISCORD_PUBLIC_KEY", d.PublicKey())
	}
}

// place is a channel: a thread has the id of the message that it was opened from.
func (d *discordWorld) place(name string) string {
	switch name {
	case "", "general":
		return fakediscord.General
	case "dm":
		return fakediscord.DM
	}
	if id, ok := d.ids[name]; ok {
		return id
	}
	return name
}

func (d *discordWorld) marked(id, mark string) bool {
	for _, m := range d.Messages(fakediscord.General) {
		if m.ID == id && len(m.Reactions) == 1 {
			return strings.HasSuffix(m.Reactions[0], " "+mark)
		}
	}
	return false
}

// signed is a body signed in the way that how names.
func (d *discordWorld) signed(body []byte, how string) fakediscord.Delivery {
	o := d.Options()
	switch how {
	case "stale":
		o.Clock = func() time.Time { return time.Now().Add(-10 * time.Minute) }
	case "other-key":
		o.Seed = "another"
	}
	x := fakediscord.New(o).Sign(body)
	sig := x.Header.Get("X-Signature-Ed25519")
	switch how {
	case "unsigned":
		x.Header.Del("X-Signature-Ed25519")
	case "zero":
		x.Header.Set("X-Signature-Ed25519", strings.Repeat("0", 128))
	case "short":
		x.Header.Set("X-Signature-Ed25519", sig[2:])
	case "no-hex":
		x.Header.Set("X-Signature-Ed25519", "zz"+sig[2:])
	case "double":
		x.Header.Add("X-Signature-Ed25519", sig)
	case "later":
		x.Header.Set("X-Signature-Timestamp", "0"+x.Header.Get("X-Signature-Timestamp"))
	case "type":
		x.Header.Set("Content-Type", "text/plain")
	case "big":
		x.Body = make([]byte, 3<<20)
	}
	return x
}

func (w *world) interaction(ts *testscript.TestScript, d fakediscord.Delivery, want int) string {
	req, err := d.Request(w.front + "/discord/interactions")
	ts.Check(err)
	res, err := http.DefaultClient.Do(req)
	ts.Check(err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	ts.Check(err)
	text := string(body)
	if res.StatusCode != want {
		ts.Fatalf("status %d, want %d: %s", res.StatusCode, want, w.log)
	}
	if want/100 != 2 && strings.TrimSpace(text) != http.StatusText(want) {
		ts.Fatalf("the answer says more than its status: %q", text)
	}
	return text
}

func (w *world) discordPosts(ts *testscript.TestScript, n string, patterns []string) {
	_, ctx := in(ts)
	want, err := strconv.Atoi(n)
	ts.Check(err)
	if _, err := w.discord.WaitPosts(ctx, want); err != nil {
		ts.Fatalf("%v: %s", err, w.log)
	}
	w.quiet(ctx, ts)
	posts := w.discord.Posts()
	if len(posts) != want {
		ts.Fatalf("%d posts, want %d: %+v", len(posts), want, posts)
	}
	for _, p := range posts {
		if len(p.Notified) > 0 {
			ts.Fatalf("somebody was notified: %+v", p)
		}
	}
	for _, p := range patterns {
		if last := posts[want-1].Text; !regexp.MustCompile(p).MatchString(last) {
			ts.Fatalf("the last post is %q, want a match of %q", last, p)
		}
	}
}
