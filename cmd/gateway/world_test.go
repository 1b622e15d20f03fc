package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"github.com/heddlehq/heddle/fakes/llm"
	fakeslack "github.com/heddlehq/heddle/fakes/slack"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model/script"
	"github.com/heddlehq/heddle/state"
	"github.com/heddlehq/heddle/state/sqlite"
)

// patience bounds every wait of a script; nothing waits that long unless it is broken.
const patience = 30 * time.Second

// world is what surrounds the program in one script.
type world struct {
	slack   *fakeslack.Workspace
	api     *httptest.Server // of Slack
	llm     *httptest.Server
	model   atomic.Pointer[llm.Server]
	pace    time.Duration // of the model's words
	player  *script.Player
	heard   map[string]fakeslack.Delivery
	words   map[string]fakeslack.Words
	files   []fakeslack.File // of the next message
	cmd     *exec.Cmd
	exited  chan struct{} // closed when cmd has ended and been waited for
	log     *gatewayLog
	front   string // address of the program
	guarded *guarded
	stripe  *stripeWorld
	discord *discordWorld
	github  *githubWorld
	admin   string // and of its admin listener

	mu     sync.Mutex
	faults map[string][]fakeslack.Fault
	called map[string]chan struct{} // closed at the next call of a method that has a fault
}

type worldKey struct{}

// adminToken opens the program's API.
const adminToken = "canary-admin-token-0123456789"

func setupWorld(env *testscript.Env) error {
	w := &world{heard: map[string]fakeslack.Delivery{}, words: map[string]fakeslack.Words{}, faults: map[string][]fakeslack.Fault{}, called: map[string]chan struct{}{}}
	w.slack = fakeslack.New(fakeslack.Options{Hook: w.hook, ClientID: "1.2", ClientSecret: "canary-client-secret", Rotate: true, Users: []fakeslack.User{
		{ID: "U0ANNA", Name: "anna"}, {ID: "U0BEN", Name: "ben"}, {ID: "U0GUEST", Name: "guest", Restricted: true},
	}, Channels: []fakeslack.Channel{{ID: "C0GENERAL"}, {ID: "C0BILLING"}, {ID: "C0FAR", Absent: true}, {ID: "D0PERSON", Kind: "im"}}})
	w.api = httptest.NewServer(w.slack)
	w.llm = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { w.model.Load().ServeHTTP(rw, r) }))
	remote := httptest.NewServer(mcpHandler("remote"))
	program, err := os.Executable()
	if err != nil {
		return err
	}
	w.guarded = newGuarded()
	env.Defer(func() {
		w.guarded.CloseClientConnections()
		w.guarded.Close()
		remote.CloseClientConnections()
		remote.Close()
	})
	env.Defer(func() {
		if w.cmd != nil {
			_ = w.cmd.Process.Kill()
			<-w.exited
		}
		w.api.CloseClientConnections()
		w.llm.CloseClientConnections()
		w.api.Close()
		w.llm.Close()
	})
	env.Values[worldKey{}] = w
	o := w.slack.Options()
	for k, v := range map[string]string{
		"HEDDLE_LISTEN": "127.0.0.1:0", "HEDDLE_ADMIN_LISTEN": "127.0.0.1:0", "HEDDLE_ADMIN_TOKEN": adminToken, "HEDDLE_STATE": "sqlite:" + filepath.Join(env.WorkDir, "heddle.db"),
		"SLACK_BOT_TOKEN": o.BotToken, "SLACK_SIGNING_SECRET": o.SigningSecret, "SLACK_API_URL": w.api.URL + "/api/",
		"OPENAI_API_KEY": "sk-canary-openai", "OPENAI_BASE_URL": w.llm.URL + "/v1",
		"MCP_PROGRAM": program, "MCP_URL": remote.URL, "MCP_ROLE": "docs", "MCP_GUARDED": w.guarded.URL,
	} {
		env.Setenv(k, v)
	}
	return w.play("when \"\"\nsay: you said {user}")
}

func (w *world) play(text string) error {
	s, err := script.Parse(text)
	if err != nil {
		return err
	}
	w.player = script.NewPlayer(s)
	w.model.Store(llm.New(llm.Options{Script: w.player, Key: "sk-canary-openai", Pace: w.pace}))
	return nil
}

// hook hands out the faults that the script asked for, in order.
func (w *world) hook(c fakeslack.Call) fakeslack.Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ch := w.called[c.Method]; ch != nil {
		close(ch)
		delete(w.called, c.Method)
	}
	q := w.faults[c.Method]
	if len(q) == 0 {
		return fakeslack.Fault{}
	}
	w.faults[c.Method] = q[1:]
	return q[0]
}

func in(ts *testscript.TestScript) (*world, context.Context) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	ts.Defer(cancel)
	return ts.Value(worldKey{}).(*world), ctx
}

func need(ts *testscript.TestScript, neg bool, args []string, n int, usage string) {
	if neg || len(args) < n {
		ts.Fatalf("usage: %s", usage)
	}
}

// model FILE: what the fake model says.
func cmdModel(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 1, "model FILE [PACE]")
	w, _ := in(ts)
	if w.pace = 0; len(args) > 1 {
		pace, err := time.ParseDuration(args[1])
		ts.Check(err)
		w.pace = pace
	}
	ts.Check(w.play(ts.ReadFile(args[0])))
}

// gatewayLog keeps the program's log and tells its address.
type gatewayLog struct {
	mu    sync.Mutex
	buf   bytes.Buffer
	ready chan [2]string // address, and of the admin listener
	once  sync.Once
}

func (l *gatewayLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf.Write(p)
	for line := range bytes.Lines(p) {
		var r struct{ Msg, Listen, Admin string }
		if json.Unmarshal(line, &r) == nil && r.Msg == "gateway ready" {
			l.once.Do(func() { l.ready <- [2]string{r.Listen, r.Admin} })
		}
	}
	return len(p), nil
}

func (l *gatewayLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// start: runs the program until it is ready.
func cmdStart(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 0, "start [ARG ...]")
	w, ctx := in(ts)
	if w.cmd != nil {
		select {
		case <-w.exited:
		default:
			ts.Fatalf("the gateway is running already")
		}
	}
	w.log = &gatewayLog{ready: make(chan [2]string, 1)}
	path, err := exec.LookPath("gateway")
	ts.Check(err)
	w.cmd = exec.Command(path, append(args, "run")...)
	w.cmd.Dir = ts.Getenv("WORK")
	w.cmd.Env = w.environ(ts)
	w.cmd.Stderr = w.log
	ts.Check(w.cmd.Start())
	w.exited = make(chan struct{})
	go func(cmd *exec.Cmd, exited chan struct{}) { _ = cmd.Wait(); close(exited) }(w.cmd, w.exited)
	select {
	case at := <-w.log.ready:
		w.front, w.admin = "http://"+at[0], "http://"+at[1]
		ts.Setenv("ADMIN", w.admin)
		ts.Setenv("FRONT", w.front)
	case <-w.exited:
		ts.Fatalf("the gateway ended: %s", w.log)
	case <-ctx.Done():
		ts.Fatalf("the gateway is not ready: %s", w.log)
	}
}

// environ is what the program sees of the script's environment.
func (w *world) environ(ts *testscript.TestScript) (env []string) {
	for _, k := range []string{
		"PATH", "HOME", "TMPDIR", "HEDDLE_LISTEN", "HEDDLE_ADMIN_LISTEN", "HEDDLE_ADMIN_TOKEN", "HEDDLE_STATE", "HEDDLE_CONFIG", "HEDDLE_LOG_LEVEL",
		"SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "SLACK_CLIENT_ID", "SLACK_CLIENT_SECRET", "SLACK_SIGNING_SECRET", "SLACK_API_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL",
		"DISCORD_BOT_TOKEN", "DISCORD_APPLICATION_ID", "DISCORD_PUBLIC_KEY", "DISCORD_API_URL", "STRIPE_API_KEY", "STRIPE_WEBHOOK_SECRET", "STRIPE_API_URL",
		"GITHUB_APP_ID", "GITHUB_APP_PRIVATE_KEY_FILE", "GITHUB_WEBHOOK_SECRET", "GITHUB_API_URL", "GITHUB_WRITE_EVERY", "GITHUB_TOKEN", "GITHUB_SETUP_TOKEN",
		"MCP_PROGRAM", "MCP_URL", "MCP_ROLE", "MCP_KEY", "MCP_GUARDED", "HEDDLE_SECRET_KEY_FILE",
	} {
		if v := ts.Getenv(k); v != "" {
			env = append(env, k+"="+v)
		}
	}
	return env
}

// end signals the program, waits for its end and returns its exit code, -1 for a kill.
func (w *world) end(ctx context.Context, ts *testscript.TestScript, sig os.Signal) int {
	if err := w.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		ts.Fatalf("signal: %v", err)
	}
	select {
	case <-w.exited:
		return w.cmd.ProcessState.ExitCode()
	case <-ctx.Done():
		ts.Fatalf("the gateway did not end: %s", w.log)
		return 0
	}
}

// kill9: SIGKILL.
func cmdKill(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 0, "kill9")
	w, ctx := in(ts)
	w.end(ctx, ts, os.Kill)
}

// term CODE [async]: SIGTERM; the program must end with the code.
func cmdTerm(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 1, "term CODE|async")
	w, ctx := in(ts)
	if args[0] == "async" {
		ts.Check(w.cmd.Process.Signal(syscall.SIGTERM))
		return
	}
	if code := w.end(ctx, ts, syscall.SIGTERM); strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s: %s", code, args[0], w.log)
	}
}

// ended CODE: waits for the end of a program that was told to end.
func cmdEnded(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 1, "ended CODE")
	w, ctx := in(ts)
	if code := w.end(ctx, ts, syscall.Signal(0)); strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s: %s", code, args[0], w.log)
	}
}

// mention NAME TEXT [USER] [THREAD]: somebody mentions the bot; the gateway
// must answer 200. THREAD is the name of an earlier message.
func cmdMention(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, "mention NAME TEXT [USER] [THREAD]")
	w, _ := in(ts)
	w.heard[args[0]] = w.slack.Mention(w.said(ts, args))
	w.deliver(ts, w.heard[args[0]], http.StatusOK)
}

// refused STATUS NAME TEXT: a mention that the gateway cannot take.
func cmdRefused(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 3, "refused STATUS NAME TEXT")
	w, _ := in(ts)
	status, err := strconv.Atoi(args[0])
	ts.Check(err)
	w.heard[args[1]] = w.slack.Mention(w.said(ts, args[1:]))
	w.deliver(ts, w.heard[args[1]], status)
}

// reply NAME TEXT USER THREAD: a message in a thread that does not name the bot.
func cmdReply(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 4, "reply NAME TEXT USER THREAD")
	w, _ := in(ts)
	w.heard[args[0]] = w.slack.Message(w.said(ts, args))
	w.deliver(ts, w.heard[args[0]], http.StatusOK)
}

func (w *world) said(ts *testscript.TestScript, args []string) fakeslack.Words {
	s := fakeslack.Words{User: "U0ANNA", Text: args[1], Files: w.attached()}
	if len(args) > 2 {
		s.User = args[2]
	}
	if len(args) > 3 {
		d, ok := w.heard[args[3]]
		if !ok {
			ts.Fatalf("no message %q", args[3])
		}
		s.Thread = d.TS
	}
	w.words[args[0]] = s
	return s
}

// edit NAME TEXT: somebody changes a message.
func cmdEdit(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, "edit NAME TEXT")
	w, _ := in(ts)
	d, err := w.slack.Edit("C0GENERAL", w.heard[args[0]].TS, args[1])
	ts.Check(err)
	w.deliver(ts, d, http.StatusOK)
}

// again NAME [STATUS]: the same delivery once more, as a retry.
func cmdAgain(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 1, "again NAME [STATUS]")
	w, _ := in(ts)
	want := http.StatusOK
	if len(args) > 1 {
		want, _ = strconv.Atoi(args[1])
	}
	w.deliver(ts, w.slack.Again(w.heard[args[0]], 1, "http_timeout"), want)
}

// storm NAME N: N deliveries of a message at once, half of them as the message
// event of the same message.
func cmdStorm(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, "storm NAME N")
	w, _ := in(ts)
	n, _ := strconv.Atoi(args[1])
	s := w.words[args[0]]
	s.TS = w.heard[args[0]].TS
	var wg sync.WaitGroup
	for i := range n {
		d := w.slack.Again(w.heard[args[0]], i+1, "http_timeout")
		if i%2 == 1 {
			d = w.slack.Message(s)
		}
		wg.Go(func() {
			if status, err := w.post(d); err != nil || status != http.StatusOK {
				ts.Logf("delivery %d: %d %v", i, status, err)
				panic("a delivery of the storm failed")
			}
		})
	}
	wg.Wait()
}

func (w *world) post(d fakeslack.Delivery) (int, error) {
	req, err := d.Request(w.front + "/slack/" + d.Route)
	if err != nil {
		return 0, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, err
}

func (w *world) deliver(ts *testscript.TestScript, d fakeslack.Delivery, want int) {
	status, err := w.post(d)
	ts.Check(err)
	if status != want {
		ts.Fatalf("status %d, want %d: %s", status, want, w.log)
	}
}

// raw STATUS FILE [HOW]: a body through the front door, signed well, or in the
// way that HOW names. The answer must have the status and, without 200, say
// nothing of the reason.
func cmdRaw(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, "raw STATUS FILE [unsigned|wrong|stale|future|double|type|get|big|encoded|other-secret]")
	w, _ := in(ts)
	how := ""
	if len(args) > 2 {
		how = args[2]
	}
	body := []byte(ts.ReadFile(args[1]))
	if how == "big" {
		body = append(body, bytes.Repeat([]byte(" "), 5<<20)...)
	}
	res, text := w.raw(ts, body, how)
	if strconv.Itoa(res.StatusCode) != args[0] {
		ts.Fatalf("status %d, want %s: %s", res.StatusCode, args[0], w.log)
	}
	if res.StatusCode != http.StatusOK && strings.TrimSpace(text) != http.StatusText(res.StatusCode) {
		ts.Fatalf("the answer says more than its status: %q", text)
	}
}

func (w *world) raw(ts *testscript.TestScript, body []byte, how string) (*http.Response, string) {
	signer := w.slack
	o := w.slack.Options()
	switch how {
	case "stale":
		o.Clock = func() time.Time { return time.Now().Add(-301 * time.Second) }
		signer = fakeslack.New(o)
	case "future":
		o.Clock = func() time.Time { return time.Now().Add(310 * time.Second) }
		signer = fakeslack.New(o)
	case "other-secret":
		o.SigningSecret = "another-secret"
		signer = fakeslack.New(o)
	}
	req, err := signer.Sign(body).Request(w.front + "/slack/events")
	ts.Check(err)
	switch how {
	case "unsigned":
		req.Header.Del("X-Slack-Signature")
	case "wrong":
		sig := req.Header.Get("X-Slack-Signature")
		req.Header.Set("X-Slack-Signature", sig[:len(sig)-1]+string("10"[sig[len(sig)-1]&1]))
	case "double":
		req.Header.Add("X-Slack-Signature", req.Header.Get("X-Slack-Signature"))
	case "type":
		req.Header.Set("Content-Type", "text/plain")
	case "encoded":
		req.Header.Set("Content-Encoding", "gzip")
	case "get":
		req.Method, req.Body, req.ContentLength = http.MethodGet, nil, 0
	case "", "big", "stale", "future", "other-secret":
	default:
		ts.Fatalf("unknown way %q", how)
	}
	res, err := http.DefaultClient.Do(req)
	ts.Check(err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	ts.Check(err)
	return res, string(text)
}

// posts N [PATTERN ...]: waits until all is done; exactly N posts must have
// been made, none of them twice, and the last must match the patterns.
func cmdPosts(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 1, "posts N [PATTERN ...]")
	w, ctx := in(ts)
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	if _, err := w.slack.WaitPosts(ctx, n); err != nil {
		ts.Fatalf("%v: %s", err, w.log)
	}
	w.quiet(ctx, ts)
	posts := w.slack.Posts()
	if len(posts) != n {
		ts.Fatalf("%d posts, want %d: %v", len(posts), n, posts)
	}
	keys := map[string]bool{}
	for _, p := range posts {
		if p.Key == "" || keys[p.Key] {
			ts.Fatalf("post key %q is empty or was used twice", p.Key)
		}
		keys[p.Key] = true
	}
	lastPost(ts, posts, args[1:])
}

func lastPost(ts *testscript.TestScript, posts []fakeslack.Post, patterns []string) {
	for _, pattern := range patterns {
		if last := posts[len(posts)-1].Text; !regexp.MustCompile(pattern).MatchString(last) {
			ts.Fatalf("the last post is %q, want a match of %q", last, pattern)
		}
	}
}

// posted N [PATTERN ...]: waits for the N-th post, which must match the
// patterns. The turn may go on, or wait.
func cmdPosted(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 1, "posted N [PATTERN ...]")
	w, ctx := in(ts)
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	posts, err := w.slack.WaitPosts(ctx, n)
	if err != nil {
		ts.Fatalf("%v: %s", err, w.log)
	}
	lastPost(ts, posts[:n], args[1:])
}

// fault METHOD KIND [ARG]: what the next call of a Slack method gets: hang,
// stall, cut, lose, or a status with its Retry-After, or an error code.
func cmdFault(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, "fault METHOD hang|stall|cut|lose|status CODE [RETRY-AFTER]|code CODE")
	w, _ := in(ts)
	var f fakeslack.Fault
	switch args[1] {
	case "hang":
		f.Hang = true
	case "stall": // the call is done and its answer never comes
		f.Stall = true
	case "cut":
		f.Cut = true
	case "lose":
		f.Lose = true
	case "status":
		f.Status, _ = strconv.Atoi(args[2])
		if len(args) > 3 {
			f.RetryAfter = args[3]
		}
	case "code":
		f.Code = args[2]
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults[args[0]] = append(w.faults[args[0]], f)
	w.called[args[0]] = make(chan struct{})
}

// await-call METHOD: waits for the call that gets the fault.
func cmdAwaitCall(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 1, "await-call METHOD")
	w, ctx := in(ts)
	w.mu.Lock()
	ch := w.called[args[0]]
	w.mu.Unlock()
	if ch == nil {
		return
	}
	select {
	case <-ch:
	case <-ctx.Done():
		ts.Fatalf("%s was not called: %s", args[0], w.log)
	}
}

// await-model: waits until a conversation is at a wait of the model's script.
func cmdAwaitModel(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 0, "await-model")
	w, ctx := in(ts)
	if err := w.player.Await(ctx); err != nil {
		ts.Fatalf("the model was not asked: %v: %s", err, w.log)
	}
}

// release-model: lets it go on.
func cmdReleaseModel(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 0, "release-model")
	w, ctx := in(ts)
	ts.Check(w.player.Release(ctx))
}

// requests N [PATTERN ...]: the model was asked N times; the body of the last request matches.
func cmdRequests(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 1, "requests N [PATTERN ...]")
	w, _ := in(ts)
	all := w.model.Load().Requests()
	if strconv.Itoa(len(all)) != args[0] {
		ts.Fatalf("%d model requests, want %s", len(all), args[0])
	}
	for _, r := range all {
		if r.Refused != "" {
			ts.Fatalf("a request was refused: %s\n%s", r.Refused, r.Body)
		}
	}
	for _, pattern := range args[1:] {
		if !regexp.MustCompile(pattern).Match(all[len(all)-1].Body) {
			ts.Fatalf("the last request does not match %q:\n%s", pattern, all[len(all)-1].Body)
		}
	}
}

// look reads the store beside the program.
func (w *world) look(ctx context.Context, ts *testscript.TestScript, f func(state.Store) bool) {
	path := strings.TrimPrefix(ts.Getenv("HEDDLE_STATE"), "sqlite:")
	for {
		st, err := sqlite.Open(ctx, path, sqlite.Options{ReadOnly: true})
		if err == nil {
			done := f(st)
			ts.Check(st.Close())
			if done {
				return
			}
		}
		select {
		case <-ctx.Done():
			ts.Fatalf("waited in vain: %v: %s", err, w.log)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// quiet: waits until no conversation and no post has anything left to do.
func cmdQuiet(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 0, "quiet")
	w, ctx := in(ts)
	w.quiet(ctx, ts)
}

func (w *world) quiet(ctx context.Context, ts *testscript.TestScript) {
	w.look(ctx, ts, func(st state.Store) bool {
		all, err := st.Conversations(ctx, time.Time{}, 1000)
		ts.Check(err)
		for _, c := range all {
			v, err := st.Load(ctx, c.ID, 0)
			ts.Check(err)
			var f record.Fold
			ts.Check(f.Add(v.Records))
			for _, e := range v.Inbox {
				if !e.Quiet {
					return false
				}
			}
			posts, err := st.Posts(ctx, c.ID)
			ts.Check(err)
			for _, p := range posts {
				if p.State != state.Sent && p.State != state.Dead {
					return false
				}
			}
			if f.Turn != nil {
				return false
			}
		}
		return true
	})
}

// await-record PATTERN: waits until a record of any conversation matches, as
// "kind data".
func cmdAwaitRecord(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 1, "await-record PATTERN")
	w, ctx := in(ts)
	re := regexp.MustCompile(args[0])
	w.look(ctx, ts, func(st state.Store) bool {
		all, err := st.Conversations(ctx, time.Time{}, 1000)
		ts.Check(err)
		for _, c := range all {
			v, err := st.Load(ctx, c.ID, 0)
			ts.Check(err)
			for _, r := range v.Records {
				if re.MatchString(fmt.Sprintf("%s %s", r.Kind, r.Data)) {
					return true
				}
			}
		}
		return false
	})
}

// status PATH CODE: what the public listener answers; waits until it does.
func cmdStatus(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, "status PATH CODE")
	w, ctx := in(ts)
	for {
		res, err := http.Get(w.front + args[0])
		ts.Check(err)
		_ = res.Body.Close()
		if strconv.Itoa(res.StatusCode) == args[1] {
			return
		}
		select {
		case <-ctx.Done():
			ts.Fatalf("%s answers %d, want %s", args[0], res.StatusCode, args[1])
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// limit-writes on|off: the program may write no more to files, as on a full disk.
func cmdLimitWrites(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 1, "limit-writes on|off")
	w, _ := in(ts)
	var old unix.Rlimit
	ts.Check(unix.Prlimit(w.cmd.Process.Pid, unix.RLIMIT_FSIZE, nil, &old))
	old.Cur = old.Max
	if args[0] == "on" {
		old.Cur = 1
	}
	ts.Check(unix.Prlimit(w.cmd.Process.Pid, unix.RLIMIT_FSIZE, &old, nil))
}

// logged [!] PATTERN: the program's log matches, or with "! logged" does not.
func cmdLogged(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: [!] logged PATTERN")
	}
	w, _ := in(ts)
	if regexp.MustCompile(args[0]).MatchString(w.log.String()) == neg {
		ts.Fatalf("log (must match: %v) %q: %s", !neg, args[0], w.log)
	}
}

// logged-soon PATTERN: waits until the log matches.
func cmdLoggedSoon(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 1, "logged-soon PATTERN")
	w, ctx := in(ts)
	re := regexp.MustCompile(args[0])
	for !re.MatchString(w.log.String()) {
		select {
		case <-ctx.Done():
			ts.Fatalf("log never matched %q: %s", args[0], w.log)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
