package dispatch

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

// opener is a fake whose rooms have threads.
type opener struct{ *fake }

func (o opener) Opened(p chat.Post, ref string) chat.Thread {
	t := p.Thread
	if t.Root == "" {
		t.Root = ref
	}
	return t
}

// A post opens a thread, also if it was made by an attempt that nobody knows the
// outcome of; what is said there is the conversation's.
func TestPostsOpenThreads(t *testing.T) {
	t.Parallel()
	for name, found := range map[string]bool{"sent": false, "found": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(w *world) {
				var made []chat.Post
				w.chat.send = func(_ context.Context, p chat.Post) (string, error) {
					made = append(made, p)
					if found && len(made) == 1 {
						return "", refused(channels.Unknown, 0)
					}
					return "100", nil
				}
				w.chat.find = func(context.Context, chat.Post) (string, error) { return "100", nil }
				w.run()
				for _, id := range []string{"first", "second"} {
					w.deliver(event(id, chat.Mention, thread("r", "1")))
					w.pass(10 * time.Second)
				}
				var got []chat.Thread
				for _, p := range made {
					got = append(got, p.Thread)
				}
				if d := cmp.Diff([]chat.Thread{thread("place", ""), thread("place", "100")}, got); d != "" {
					t.Errorf("posts stand (-want +got):\n%s", d)
				}
				reply := event("reply", chat.Message, thread("place", "100"))
				reply.Topic = "thread"
				w.deliver(reply)
				a, err := w.store.Event(w.Context(), "fake", "reply")
				if err != nil || a.Conversation != state.ConversationID("a", thread("r", "1")) {
					t.Errorf("the reply is admitted as %+v, %v", a, err)
				}
			}, func(o *Options) {
				o.Channels = []channels.Channel{opener{o.Channels[0].(*fake)}}
				store := o.Store
				o.Engine = engineFunc(func(ctx, _ context.Context, l state.Lease) error {
					p := chat.Post{Key: fmt.Sprint(l.Epoch), Thread: thread("place", ""), Text: "words", Open: true}
					_, err := store.Commit(ctx, l, state.Batch{Taken: 1 << 40, Posts: []chat.Post{p}, Release: true})
					return err
				})
			})
		})
	}
}

func TestWhere(t *testing.T) {
	t.Parallel()
	room := thread("place", "")
	where := Where([]Route{
		{On: []string{"fake.bill"}, PostTo: room}, {On: []string{"fake.bill", "fake.mention"}}, {On: []string{"fake.thread"}, PostTo: room},
	})
	for name, c := range map[string]struct {
		topic  string
		at     chat.Thread
		want   chat.Thread
		opened bool
	}{
		"a route that posts elsewhere": {"bill", thread("r", "1"), room, true},
		"one that does not":            {"mention", thread("r", "1"), thread("r", "1"), false},
		"said where answers go":        {"thread", thread("place", "7"), thread("place", "7"), false},
		"no route":                     {"other", thread("r", "1"), thread("r", "1"), false},
	} {
		e := event("e", chat.Message, c.at)
		e.Topic = c.topic
		if at, open := where(e); at != c.want || open != c.opened {
			t.Errorf("%s: answered in %s, opened %v; want %s, %v", name, at, open, c.want, c.opened)
		}
	}
	command := event("e", chat.Command, thread("r", "1"))
	command.Topic = "command"
	if at, open := where(command); at != command.Thread || !open {
		t.Errorf("a command: answered in %s, opened %v", at, open)
	}
}
