package dispatch

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

// A socketed fake has a socket whose connections a test plays.
type socketed struct {
	*fake
	listen func(ctx context.Context, n int, take channels.Take) error
	n      int
}

func (s *socketed) Listen(ctx context.Context, take channels.Take) error {
	s.called("listen", chat.Post{})
	s.n++
	return s.listen(ctx, s.n, take)
}

func withSocket(listen func(ctx context.Context, n int, take channels.Take) error) func(*Options) {
	return func(o *Options) {
		o.Channels = []channels.Channel{&socketed{fake: o.Channels[0].(*fake), listen: listen}}
	}
}

func TestSocketIsConnectedAgain(t *testing.T) {
	var refused error
	bubble(t, func(w *world) {
		w.run()
		w.pass(5 * time.Minute)
		calls := w.chat.made()
		if len(calls) != 4 {
			t.Fatalf("connected %d times, want 4: %v", len(calls), calls)
		}
		if d := calls[1].At; d <= 0 || d > time.Second {
			t.Errorf("second attempt after %v, want under 1 s", d)
		}
		// The third held for two minutes: no back-off is left from before.
		if d := calls[3].At - calls[2].At - 2*time.Minute; d <= 0 || d > time.Second {
			t.Errorf("after a connection that held, the next came after %v, want under 1 s", d)
		}
		v, err := w.store.Find(w.Context(), thread("room", "1"))
		if err != nil || v.Inbox+int(v.Seq) == 0 && refused != nil {
			t.Errorf("the event that came by the socket is not there: %v, %v", err, refused)
		}
	}, withSocket(func(ctx context.Context, n int, take channels.Take) error {
		switch n {
		case 1:
			return errors.New("cut")
		case 2:
			panic("a frame that nobody expected")
		case 3:
			refused = take(ctx, channels.Inbound{Events: []chat.Event{event("by socket", chat.Mention, thread("room", "1"))}})
			time.Sleep(2 * time.Minute)
			return errors.New("cut")
		}
		<-ctx.Done()
		return ctx.Err()
	}))
}

func TestSocketRefusedForGoodIsLeft(t *testing.T) {
	bubble(t, func(w *world) {
		w.run()
		w.pass(time.Hour)
		if n := len(w.chat.made()); n != 1 {
			t.Errorf("connected %d times, want once", n)
		}
	}, withSocket(func(context.Context, int, channels.Take) error {
		return fmt.Errorf("token: %w", channels.ErrFatal)
	}))
}

func TestSocketFrameIsNotTakenWithoutStore(t *testing.T) {
	got := make(chan error, 1)
	bubble(t, func(w *world) {
		w.store.admit = func(context.Context, []state.Admit) ([]state.Admission, error) { return nil, errors.New("disk full") }
		w.run()
		if err := <-got; err == nil {
			t.Error("a frame whose event is not stored may be acknowledged")
		}
	}, withSocket(func(ctx context.Context, _ int, take channels.Take) error {
		got <- take(ctx, channels.Inbound{Events: []chat.Event{event("e", chat.Mention, thread("room", "1"))}})
		<-ctx.Done()
		return ctx.Err()
	}))
}

func TestPostHasTheHandleOfItsEvent(t *testing.T) {
	for _, tt := range []struct {
		name  string
		after time.Duration
		want  string
	}{{"while it lasts", 0, "tok"}, {"when it has ended", 20 * time.Minute, ""}} {
		t.Run(tt.name, func(t *testing.T) {
			var got chat.Post
			bubble(t, func(w *world) {
				w.chat.limits.Handles = true
				w.chat.send = func(_ context.Context, p chat.Post) (string, error) {
					got = p
					return "ref", nil
				}
				e := event("e", chat.Command, thread("room", "1"))
				e.Ref, e.Handle = "i1", chat.Handle{Secret: "tok", Until: time.Now().Add(15 * time.Minute)}
				if _, err := w.gw.admit(w.Context(), []chat.Event{e}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(tt.after)
				w.run()
				w.pass(time.Minute)
				if got.Handle.Secret != tt.want {
					t.Errorf("posted with handle %q, want %q", got.Handle.Secret, tt.want)
				}
				w.pass(time.Hour)
				if vs, err := w.store.ListValues(w.Context(), handleSpace("fake"), "", 10); err != nil || len(vs) != 0 {
					t.Errorf("%d handles are kept after their end (%v)", len(vs), err)
				}
			}, func(o *Options) {
				st := o.Store
				o.Engine = engineFunc(func(ctx, _ context.Context, l state.Lease) error {
					v, err := st.Load(ctx, l.Conversation.ID, 0)
					if err != nil {
						return err
					}
					in := v.Inbox[0]
					_, err = st.Commit(ctx, l, state.Batch{Release: true, Taken: in.Seq, Posts: []chat.Post{{
						Key: "k", Thread: in.Event.Thread, Text: "answer", ReplyTo: "i1",
					}}})
					return err
				})
			})
		})
	}
}
