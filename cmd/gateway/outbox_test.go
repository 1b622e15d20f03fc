package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/client"
	"github.com/heddlehq/heddle/state"
)

// deadOutbox is one in which all posts are dead.
type deadOutbox struct{ posts []client.Post }

func (o *deadOutbox) Outbox(context.Context, int) ([]client.Post, error) {
	return slices.Clone(o.posts), nil
}

// Retry queues a post and all parts that died with it.
func (o *deadOutbox) Retry(_ context.Context, _, key string) error {
	n := len(o.posts)
	o.posts = slices.DeleteFunc(o.posts, func(p client.Post) bool { return p.Key == key || p.Reason == state.Holed })
	if len(o.posts) == n {
		return state.ErrNotFound
	}
	return nil
}

func (o *deadOutbox) Drop(context.Context, string, string) error { return state.ErrNotFound }

func (o *deadOutbox) Close() error { return nil }

// The parts of an answer that died with its first are queued again with it, which
// is no failure; what is not there is one.
func TestRetryOfParts(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		keys []string
		drop bool
		said string
		ok   bool
	}{
		"all":             {nil, false, "k/0  queued again\nk/1  queued again\n", true},
		"each":            {[]string{"k/0", "k/1"}, false, "k/0  queued again\nk/1  queued again\n", true},
		"what is unknown": {[]string{"k/2"}, false, "k/2  no such post, or its state does not allow it\n", false},
		"a dead one":      {[]string{"k/1"}, true, "k/1  no such post, or its state does not allow it\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := os.Create(filepath.Join(t.TempDir(), "out"))
			if err != nil {
				t.Fatal(err)
			}
			o := &deadOutbox{[]client.Post{
				{Conversation: "c", Key: "k/0", State: "dead", Reason: "channel_not_found"},
				{Conversation: "c", Key: "k/1", State: "dead", Reason: state.Holed},
				{Conversation: "c", Key: "d", State: "dead", Reason: state.Dropped},
			}}
			all, done, do := state.Dead, "queued again", o.Retry
			if tt.drop {
				all, done, do = "", "dropped", o.Drop
			}
			err = revise(t.Context(), env{stdout: out}, o, tt.keys, all, done, do)
			said, rerr := os.ReadFile(out.Name())
			if d := cmp.Diff(tt.said, string(said)); d != "" || (err == nil) != tt.ok || rerr != nil {
				t.Errorf("%v, %v, said (-want +got):\n%s", err, rerr, d)
			}
		})
	}
}
