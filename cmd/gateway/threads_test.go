package main

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	fakeslack "github.com/heddlehq/heddle/fakes/slack"
)

// under NAME N TEXT USER: a message in the thread of the N-th post.
func cmdUnder(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 4, "under NAME N TEXT USER")
	w, ctx := in(ts)
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	posts, err := w.slack.WaitPosts(ctx, n)
	ts.Check(err)
	p := posts[n-1]
	w.heard[args[0]] = w.slack.Message(fakeslack.Words{Channel: p.Channel, User: args[3], Text: args[2], Thread: p.Thread.Root})
	w.deliver(ts, w.heard[args[0]], http.StatusOK)
}

// said NAME TEXT USER: a message of the room that names nobody.
func cmdSaid(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 3, "said NAME TEXT USER")
	w, _ := in(ts)
	w.heard[args[0]] = w.slack.Message(w.said(ts, args))
	w.deliver(ts, w.heard[args[0]], http.StatusOK)
}

// take-back NAME: somebody deletes a message.
func cmdTakeBack(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 1, "take-back NAME")
	w, _ := in(ts)
	d, err := w.slack.Delete("C0GENERAL", w.heard[args[0]].TS)
	ts.Check(err)
	w.deliver(ts, d, http.StatusOK)
}

// marked NAME [REACTION]: waits until the message has this reaction of the bot and no other.
func cmdMarked(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 1, "marked NAME [REACTION]")
	w, ctx := in(ts)
	for {
		got := w.slack.Reactions("C0GENERAL", w.heard[args[0]].TS)
		if slices.Equal(got, args[1:]) {
			return
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			ts.Fatalf("the message has the reactions %v, want %v", got, args[1:])
		}
	}
}

// stands N M|ROOM: the N-th post stands in the thread of the M-th, or begins one in a room.
func cmdStands(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, "stands N M|ROOM")
	w, ctx := in(ts)
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	posts, err := w.slack.WaitPosts(ctx, n)
	ts.Check(err)
	p := posts[n-1]
	want := args[1] + "/" + p.TS
	if m, err := strconv.Atoi(args[1]); err == nil {
		want = posts[m-1].Thread.Key()
	}
	if got := p.Thread.Key(); got != want {
		ts.Fatalf("post %d stands in %s, want %s", n, got, want)
	}
}
