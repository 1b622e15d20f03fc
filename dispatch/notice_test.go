package dispatch

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

// A notice is tried five times: replies are lost with and without a message
// behind them, the provider refuses. Its key makes it one message in the room.
func TestOneMessageAfterFiveTries(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		w.chat.limits = channels.Limits{SettleAfter: time.Second}
		room, tries := map[string]int{}, 0
		w.chat.send = func(_ context.Context, p chat.Post) (string, error) {
			tries++
			switch tries {
			case 1, 3:
				return "", refused(channels.Unknown, 0) // and nothing was made
			case 2, 4:
				return "", refused(channels.NotMade, 0)
			}
			room[p.Key]++
			return "", refused(channels.Unknown, 0) // the reply is lost
		}
		w.chat.find = func(_ context.Context, p chat.Post) (string, error) {
			if room[p.Key] > 0 {
				return "there", nil
			}
			return "", nil
		}
		w.queue(thread("r", "1"), "the payment failed")
		key := w.posts(thread("r", "1"))[0].Post.Key
		w.run()
		w.pass(time.Hour)
		if d := cmp.Diff(map[string]int{key: 1}, room); d != "" || tries != 5 {
			t.Errorf("%d tries; messages by key (-want +got):\n%s", tries, d)
		}
		if p := w.posts(thread("r", "1"))[0]; p.State != state.Sent || p.Ref != "there" {
			t.Errorf("the post is %s, ref %q", p.State, p.Ref)
		}
	})
}
