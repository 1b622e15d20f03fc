package main

import (
	"context"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// soon DURATION N [PATTERN ...]: the N-th post is made within a time from now,
// and matches.
func cmdSoon(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, "soon DURATION N [PATTERN ...]")
	w, ctx := in(ts)
	d, err := time.ParseDuration(args[0])
	ts.Check(err)
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	posts, err := w.slack.WaitPosts(ctx, n)
	if err != nil {
		ts.Fatalf("post %d was not made within %v: %s", n, d, w.log)
	}
	lastPost(ts, posts[:n], args[2:])
}
