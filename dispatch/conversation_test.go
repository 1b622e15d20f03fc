package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/turn"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/scripted"
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
	if got := c.Compose("as it is", chat.Member); len(got) != 1 || got[0] != "as it is" || c.Limits().SettleAfter != 0 {
		t.Errorf("composed %q", got)
	}
}

// An agent in one thread wakes the one of another thread, which answers there,
// through the engine, the outbox and the inbox as they are.
func TestAgentsWakeEachOther(t *testing.T) {
	t.Parallel()
	to := thread("team", "1")
	agent := func(c *harness.Context) string {
		harness.UseModel(c, "scripted/m")
		d := harness.UseDispatch(c)
		harness.UseTurnFinish(c, "tell", func(_ context.Context, call *harness.Call, answer string) (string, error) {
			if c.Thread() == to {
				return "", nil
			}
			return "", d.Send(call, to, "Somebody asked: "+answer)
		})
		return "Trust: " + c.Trust().String()
	}
	p := scripted.New(scripted.Say("the plan"), scripted.Say("noted"))
	names, err := model.NewNames([]model.Provider{p}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	bubble(t, func(w *world) {
		w.hear("asker")
		w.run()
		w.pass(10 * time.Second)
		got := append(w.posts(thread("asker", "1")), w.posts(to)...)
		var texts []string
		for _, p := range got {
			if p.Post.Thread.Channel != chat.ToConversation {
				texts = append(texts, p.Post.Thread.Room+": "+p.Post.Text)
			}
		}
		if d := cmp.Diff([]string{"asker: the plan", "team: noted"}, texts); d != "" {
			t.Errorf("posts (-want +got):\n%s", d)
		}
		if r := p.Requests()[1]; r.System != "Trust: member" || !strings.Contains(r.Messages[0].Parts[0].Text, "Somebody asked: the plan") {
			t.Errorf("the team's agent saw %s, %+v", r.System, r.Messages)
		}
	}, func(o *Options) {
		e, err := turn.New(turn.Options{
			Log: o.Store, Agents: map[string]harness.Agent{"a": agent}, Models: names,
			Role:    func(context.Context, chat.Thread, chat.Author) (chat.Role, error) { return chat.Member, nil },
			Compose: func(_ chat.Thread, markdown string, _ chat.Role) ([]string, bool) { return []string{markdown}, false }, Clock: time.Now, Logger: o.Logger,
		})
		if err != nil {
			t.Fatal(err)
		}
		o.Engine = e
	})
}
