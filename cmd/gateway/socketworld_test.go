package main

import (
	"context"
	"strconv"

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
