package statetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

func testAdmit(t *testing.T, h Harness) {
	id := state.ConversationID("assistant", thread(1))
	same := func(a state.Admit, same string) state.Admit { a.Event.Same = same; return a }
	ignored := func(a state.Admit) state.Admit { a.Ignored = "boring"; return a }
	follow := func(a state.Admit) state.Admit { a.Follow, a.Agent = true, ""; return a }
	other := ask(1, "a")
	other.Event.Text = "something else"
	elsewhere := ask(1, "a")
	elsewhere.Event.Thread.Channel = "discord"
	admitted := state.Admission{Status: state.Admitted, Conversation: id, Seq: 1}
	second := state.Admission{Status: state.Admitted, Conversation: id, Seq: 2}
	repeat := state.Admission{Status: state.Duplicate, Conversation: id, Seq: 1}
	boring := state.Admission{Status: state.Ignored, Reason: "boring"}
	for name, c := range map[string]struct {
		in   []state.Admit
		want []state.Admission
	}{
		"the same twice":           {[]state.Admit{ask(1, "a"), ask(1, "a")}, []state.Admission{admitted, repeat}},
		"an id with other content": {[]state.Admit{ask(1, "a"), other}, []state.Admission{admitted, {Status: state.Duplicate, Conversation: id, Seq: 1, Conflict: true}}},
		"an id in two channels": {[]state.Admit{ask(1, "a"), elsewhere}, []state.Admission{
			admitted, {Status: state.Admitted, Conversation: state.ConversationID("assistant", elsewhere.Event.Thread), Seq: 1},
		}},
		"one act under two ids": {[]state.Admit{same(ask(1, "a"), "s"), same(ask(1, "b"), "s")}, []state.Admission{admitted, repeat}},
		"two acts":              {[]state.Admit{same(ask(1, "a"), "s"), same(ask(1, "b"), "r")}, []state.Admission{admitted, second}},
		"no second identity":    {[]state.Admit{ask(1, "a"), ask(1, "b")}, []state.Admission{admitted, second}},
		"an id that is another's second identity": {[]state.Admit{same(ask(1, "a"), "b"), ask(1, "b")}, []state.Admission{admitted, second}},
		"ignored, then the act": {
			[]state.Admit{ignored(same(ask(1, "a"), "s")), same(ask(1, "b"), "s"), same(ask(1, "a"), "s")},
			[]state.Admission{boring, admitted, {Status: state.Duplicate, Reason: "boring"}},
		},
		"the act, then ignored": {[]state.Admit{same(ask(1, "b"), "s"), ignored(same(ask(1, "a"), "s"))}, []state.Admission{admitted, repeat}},
		"ignored twice":         {[]state.Admit{ignored(ask(1, "a")), ignored(ask(1, "a"))}, []state.Admission{boring, {Status: state.Duplicate, Reason: "boring"}}},
		"followed too early": {
			[]state.Admit{follow(same(ask(1, "a"), "s")), same(ask(1, "b"), "s"), follow(ask(1, "c"))},
			[]state.Admission{{Status: state.Ignored, Reason: state.NotFollowed}, admitted, second},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, h)
			k.same("admissions of one call", k.admit(c.in...), c.want)
			k = newKit(t, h)
			var got []state.Admission
			for _, a := range c.in {
				k.advance(time.Second)
				got = append(got, k.admit(a)...)
			}
			k.same("admissions of a call each", got, c.want)
			want, have := 0, 0
			for _, a := range c.want {
				if a.Status == state.Admitted {
					want++
				}
			}
			all, err := k.Conversations(k.ctx, time.Time{}, 9)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range all {
				have += c.Inbox
			}
			k.same("events in all inboxes", have, want)
		})
	}
}

func testAdmitWhole(t *testing.T, h Harness) {
	k := newKit(t, h)
	long := ask(2, "b")
	long.Event.Thread.Root = fmt.Sprintf("%0600d", 1)
	for name, bad := range map[string]state.Admit{
		"no id":      ask(2, ""),
		"no agent":   {Event: event(2, "b")},
		"no channel": {Event: chat.Event{ID: "b", Thread: chat.Thread{Account: "T01"}}, Agent: "assistant"},
		"no account": {Event: chat.Event{ID: "b", Thread: chat.Thread{Channel: "slack"}}, Agent: "assistant"},
		"long key":   long,
	} {
		if _, err := k.Admit(k.ctx, []state.Admit{ask(1, "a"), bad, ask(3, "c")}); err == nil {
			t.Errorf("%s: admitted", name)
		}
	}
	k.same("conversations", k.dump()["conversations"], []state.Conversation(nil))
	k.same("the good one", k.admit(ask(1, "a"))[0].Status, state.Admitted)
	k.same("no events", k.admit(), []state.Admission{})
}

// testAdmitRaces admits the same acts from many goroutines: under one id, and
// as mention and message under two, where the message is ignored or follows.
func testAdmitRaces(t *testing.T, h Harness) {
	k := newKit(t, h)
	const acts, tries = 12, 4
	admitted := make([]int, acts)
	var mu sync.Mutex
	var all sync.WaitGroup
	for act := range acts {
		for try := range 3 * tries {
			mention := ask(act, fmt.Sprintf("mention %d", act))
			message := ask(act, fmt.Sprintf("message %d", act))
			mention.Event.Same, message.Event.Same = fmt.Sprintf("act %d", act), fmt.Sprintf("act %d", act)
			message.Follow = act%2 == 0
			if !message.Follow {
				message.Ignored = "boring"
			}
			all.Go(func() {
				a := [][]state.Admit{{mention}, {message}, {message, mention}}[try%3]
				out, err := k.Admit(k.ctx, a)
				if err != nil {
					t.Errorf("admit: %v", err)
				}
				mu.Lock()
				defer mu.Unlock()
				for _, o := range out {
					if o.Status == state.Admitted {
						admitted[act]++
					}
				}
			})
		}
	}
	all.Wait()
	for act, n := range admitted {
		v := k.load(state.ConversationID("assistant", thread(act)))
		if n != 1 || len(v.Inbox) != 1 || v.Conversation.Inbox != 1 {
			t.Errorf("act %d was admitted %d times, %d in the inbox; want 1", act, n, len(v.Inbox))
		}
	}
}

func testEventRoundTrip(t *testing.T, h Harness) {
	k := newKit(t, h)
	e := chat.Event{
		ID: "Ev1", Same: "T01/C02/1721.0001", Kind: chat.Message, Topic: "thread", Ref: "1721.0001",
		Thread: chat.Thread{Channel: "slack", Account: "T/0%1", Room: "", Root: "ä b/../c"},
		Author: chat.Author{ID: "U1", Account: "T02", Name: "Ann \"A\" <b>", Bot: true},
		Text:   "line\nline \u2028 \x00 <&> 🧵", Files: []chat.File{{ID: "F1", Name: "x.txt", MediaType: "text/plain", Bytes: 1 << 40}},
		Facts: map[string]string{"issue": "42", "": "x"}, At: start.Add(123 * time.Nanosecond),
	}
	bare := chat.Event{ID: "Ev2", Thread: e.Thread, Facts: map[string]string{}}
	k.admit(state.Admit{Event: e, Agent: "assistant"}, state.Admit{Event: bare, Agent: "assistant", Quiet: true})
	v := k.load(state.ConversationID("assistant", e.Thread))
	bare.Facts = nil
	k.same("inbox", v.Inbox, []state.Entry{{Seq: 1, At: start, Event: e}, {Seq: 2, At: start, Quiet: true, Event: bare}})
	if v.Inbox[1].Event.Facts != nil {
		t.Errorf("empty facts came back as %#v, want nil", v.Inbox[1].Event.Facts)
	}
	k.same("thread", v.Conversation.Thread, e.Thread)
	if at := v.Inbox[0].At; at.Location() != time.UTC {
		t.Errorf("time is in %v, want UTC", at.Location())
	}
}

func testDedupeFor(t *testing.T, h Harness) {
	k := newKit(t, h)
	a := ask(1, "a")
	a.Event.Same = "s"
	k.admit(a)
	k.advance(state.DedupeFor - time.Microsecond)
	k.same("just in time", k.admit(a)[0].Status, state.Duplicate)
	k.advance(time.Microsecond)
	_, err := k.Event(k.ctx, "slack", "a")
	k.fails("asking for a forgotten event", err, state.ErrNotFound)
	b := ask(1, "b")
	b.Event.Same = "s"
	k.same("the act again", k.admit(b)[0].Status, state.Admitted)
	k.same("the id again", k.admit(ask(1, "a"))[0].Status, state.Admitted)
	for i := range 300 {
		k.admit(ask(2, fmt.Sprint(i)))
		k.advance(state.DedupeFor / 100)
	}
	k.same("a repeat after pruning", k.admit(ask(2, "250"))[0].Status, state.Duplicate)
	k.same("a forgotten one after pruning", k.admit(ask(2, "150"))[0].Status, state.Admitted)
}

func testOneConversation(t *testing.T, h Harness) {
	k := newKit(t, h)
	first := k.admit(ask(1, "a"))[0]
	other := ask(1, "b")
	other.Agent = "billing"
	k.advance(time.Second)
	first.Seq = 2
	k.same("another agent's event", k.admit(other)[0], first)
	c, err := k.Find(k.ctx, thread(1))
	if err != nil {
		t.Fatal(err)
	}
	want := state.Conversation{
		ID: state.ConversationID("assistant", thread(1)), Agent: "assistant", Thread: thread(1), Inbox: 2,
		CreatedAt: start, UpdatedAt: start.Add(time.Second),
	}
	k.same("conversation", c, want)
	k.same("conversation in its view", k.load(first.Conversation).Conversation, want)
	_, err = k.Find(k.ctx, thread(2))
	k.fails("finding what is not", err, state.ErrNotFound)
	_, err = k.Load(k.ctx, state.ConversationID("billing", thread(1)), 0)
	k.fails("loading what is not", err, state.ErrNotFound)
}
