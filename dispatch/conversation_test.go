package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

// What one conversation sends to another is admitted there once, however often
// the store fails before, while or after it does so.
func TestConversationsReachEachOther(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		to := thread("other", "1")
		e := event("dispatch/1", chat.Message, to)
		e.Author = chat.Author{ID: "c1", Account: chat.ConversationAccount}
		text := func(e chat.Event) string {
			b, err := json.Marshal(state.Admit{Event: e, Agent: "a"})
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		nowhere := e
		nowhere.Thread = chat.Thread{}
		own := chat.Thread{Channel: chat.ToConversation, Account: "c1"}
		w.hear("r")
		l, err := w.store.Claim(t.Context(), "test", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.store.Commit(t.Context(), l, state.Batch{Taken: 1, Release: true, Posts: []chat.Post{
			{Key: "1", Thread: own, Text: text(e)}, {Key: "2", Thread: own, Text: "{"}, {Key: "3", Thread: own, Text: text(nowhere)}, {Key: "4", Thread: own, Text: text(e)},
		}}); err != nil {
			t.Fatal(err)
		}
		var heard []chat.Event
		w.gw.Engine = engineFunc(func(ctx, _ context.Context, l state.Lease) error {
			v, err := w.store.Load(ctx, l.Conversation.ID, 0)
			for _, in := range v.Inbox {
				heard = append(heard, in.Event)
			}
			return errors.Join(err, w.settle(ctx, l))
		})
		tries := 0
		w.store.admit = func(ctx context.Context, in []state.Admit) ([]state.Admission, error) {
			tries++
			switch tries {
			case 1:
				return nil, errors.New("disk full")
			case 2:
				if _, err := w.store.Store.Admit(ctx, in); err != nil {
					t.Error(err)
				}
				return nil, errors.New("answer lost")
			case 3:
				<-ctx.Done() // nobody knows what became of it
				return nil, ctx.Err()
			}
			return w.store.Store.Admit(ctx, in)
		}
		w.run()
		w.pass(5 * time.Minute)
		if d := cmp.Diff([]chat.Event{e}, heard); d != "" {
			t.Errorf("heard (-want +got):\n%s", d)
		}
		if d := cmp.Diff([]state.PostState{state.Sent, state.Dead, state.Dead, state.Sent}, states(w.posts(thread("r", "1")))); d != "" {
			t.Errorf("posts (-want +got):\n%s", d)
		}
		if tries != 5 {
			t.Errorf("%d tries, want 4 of the first post and 1 of the last", tries)
		}
	})
}

// A post whose claim ran out is made again: it is known to be harmless.
func TestDoubtfulDispatchIsMadeAgain(t *testing.T) {
	t.Parallel()
	c := conversations{}
	if ref, err := c.Find(t.Context(), chat.Post{}, time.Time{}); ref != "" || err != nil {
		t.Errorf("found %q, %v", ref, err)
	}
	if got := c.Compose("as it is"); len(got) != 1 || got[0] != "as it is" || c.Limits().SettleAfter != 0 {
		t.Errorf("composed %q", got)
	}
}
