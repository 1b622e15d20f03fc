package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"

	fakeslack "github.com/heddlehq/heddle/fakes/slack"
)

// sockets N: waits until the program holds N connections to Slack.
func cmdSockets(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 1, "sockets N")
	w, ctx := in(ts)
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	w.sockets(ctx, ts, func(open []int) bool { return len(open) == n })
}

func (w *world) sockets(ctx context.Context, ts *testscript.TestScript, want func([]int) bool) {
	if _, err := w.slack.WaitSockets(ctx, want); err != nil {
		ts.Fatalf("%v: %s", err, w.log)
	}
	if wrong := w.slack.Wrong(); len(wrong) > 0 {
		ts.Fatalf("Slack was sent %v", wrong)
	}
}

// socket refresh|cut|silent: what becomes of the oldest connection; with
// refresh, waits until it was replaced, and cuts it then.
func cmdSocket(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 1, "socket refresh|cut")
	w, ctx := in(ts)
	open := w.slack.Sockets()
	if len(open) == 0 {
		ts.Fatalf("no socket is open: %s", w.log)
	}
	if args[0] == "refresh" {
		ts.Check(w.slack.Disconnect(open[0], "refresh_requested"))
		w.sockets(ctx, ts, func(now []int) bool { return len(now) > len(open) })
	}
	w.slack.Close(open[0])
}

// by-socket NAME TEXT [USER] [THREAD]: a mention that comes by a socket and must
// be acknowledged.
func cmdBySocket(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, "by-socket NAME TEXT [USER] [THREAD]")
	w, ctx := in(ts)
	w.heard[args[0]] = w.slack.Mention(w.said(ts, args))
	w.push(ctx, ts, w.heard[args[0]])
}

// by-socket-again NAME: the same delivery in another envelope.
func cmdBySocketAgain(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 1, "by-socket-again NAME")
	w, ctx := in(ts)
	w.push(ctx, ts, w.heard[args[0]])
}

func (w *world) push(ctx context.Context, ts *testscript.TestScript, d fakeslack.Delivery) {
	id, err := w.slack.Push(d)
	ts.Check(err)
	if _, err := w.slack.Acked(ctx, id); err != nil {
		ts.Fatalf("%v: %s", err, w.log)
	}
}

// send delivers by HTTP, or by a socket.
func (w *world) send(ctx context.Context, ts *testscript.TestScript, how string, d fakeslack.Delivery) {
	switch how {
	case "http":
		w.deliver(ts, d, http.StatusOK)
	case "socket":
		w.push(ctx, ts, d)
	default:
		ts.Fatalf("by %q: want http or socket", how)
	}
}

// slash http|socket NAME CHANNEL TEXT [USER]: the command /agent.
func cmdSlash(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 4, "slash http|socket NAME CHANNEL TEXT [USER]")
	w, ctx := in(ts)
	user := "U0ANNA"
	if len(args) > 4 {
		user = args[4]
	}
	w.heard[args[1]] = w.slack.Command(args[2], user, "/agent", args[3])
	w.send(ctx, ts, args[0], w.heard[args[1]])
}

// click http|socket MESSAGE TYPE VALUE [USER]: a button below a message, or a
// shortcut on it.
func cmdClick(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 4, "click http|socket MESSAGE TYPE VALUE [USER]")
	w, ctx := in(ts)
	c := fakeslack.Click{Type: args[2], Channel: "C0GENERAL", User: "U0ANNA", TS: w.heard[args[1]].TS, Action: "press", Value: args[3]}
	if len(args) > 4 {
		c.User = args[4]
	}
	w.send(ctx, ts, args[0], w.slack.Interact(c))
}

// last NAME: names the last post, so that people can answer it.
func cmdLast(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 1, "last NAME")
	w, _ := in(ts)
	posts := w.slack.Posts()
	if len(posts) == 0 {
		ts.Fatalf("no post: %s", w.log)
	}
	w.heard[args[0]] = fakeslack.Delivery{TS: posts[len(posts)-1].TS}
}

// whispered N [PATTERN]: waits until N messages were shown to one person only; the
// last matches.
func cmdWhispered(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 1, "whispered N [PATTERN]")
	w, ctx := in(ts)
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	all, err := w.slack.WaitWhispers(ctx, n)
	if err != nil || len(all) != n {
		ts.Fatalf("%v, %v: %s", all, err, w.log)
	}
	if len(args) > 1 && !regexp.MustCompile(args[1]).MatchString(all[n-1].Text) {
		ts.Fatalf("the last whisper is %q", all[n-1].Text)
	}
}

// install STATUS: somebody installs the app in the workspace, in a browser.
func cmdInstall(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 1, "install STATUS")
	w, ctx := in(ts)
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	get := func(at string, cookies []*http.Cookie) *http.Response {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
		ts.Check(err)
		for _, c := range cookies {
			req.AddCookie(c)
		}
		res, err := browser.Do(req)
		ts.Check(err)
		ts.Check(res.Body.Close())
		return res
	}
	begun := get(w.front+"/slack/install", nil)
	to, err := url.Parse(begun.Header.Get("Location"))
	ts.Check(err)
	back := url.Values{"state": {to.Query().Get("state")}, "code": {w.slack.Agree()}}
	if res := get(w.front+"/slack/oauth?"+back.Encode(), begun.Cookies()); strconv.Itoa(res.StatusCode) != args[0] {
		ts.Fatalf("status %d, want %s: %s", res.StatusCode, args[0], w.log)
	}
}

// unheard NAME TEXT [USER] [THREAD]: a mention that nobody delivers.
func cmdUnheard(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, "unheard NAME TEXT [USER] [THREAD]")
	w, _ := in(ts)
	w.heard[args[0]] = w.slack.Mention(w.said(ts, args))
}

// storm-mention NAME N: N mentions that are the message NAME, under other event
// ids, at once.
func cmdStormMention(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, "storm-mention NAME N")
	w, _ := in(ts)
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	words := w.words[args[0]]
	words.TS = w.heard[args[0]].TS
	var wg sync.WaitGroup
	for range n {
		d := w.slack.Mention(words)
		wg.Go(func() {
			if status, err := w.post(d); err != nil || status != http.StatusOK {
				panic("a delivery of the storm failed")
			}
		})
	}
	wg.Wait()
}

// tampered NAME TEXT: the delivery NAME again, signed, with another text.
func cmdTampered(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, "tampered NAME TEXT")
	w, _ := in(ts)
	was, err := json.Marshal(w.words[args[0]].Text)
	ts.Check(err)
	body := bytes.ReplaceAll(w.heard[args[0]].Body, was[1:len(was)-1], []byte(args[1]))
	if bytes.Equal(body, w.heard[args[0]].Body) {
		ts.Fatalf("nothing changed")
	}
	d := w.slack.Sign(body)
	w.deliver(ts, d, http.StatusOK)
}
