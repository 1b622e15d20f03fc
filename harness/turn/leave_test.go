package turn

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model/scripted"
	"github.com/heddlehq/heddle/state"
)

// Who says stop while nothing is under way, or unfollow, is left alone: what was
// said after it is passed over, until the next mention.
func TestLeave(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"stop", "Unfollow!"} {
		w := newWorld(t, plain(), scripted.Say("one"), scripted.Say("two"))
		w.ask("U1", "hello")
		w.say("U1", word)
		w.say("U2", "among ourselves")
		w.run()
		follow := func(id string) state.Status {
			e := chat.Event{ID: id, Thread: thread, Kind: chat.Message, Topic: "thread", Text: "x", Author: chat.Author{ID: "U1"}}
			out, err := w.store.Admit(t.Context(), []state.Admit{{Event: e, Follow: true}})
			if err != nil {
				t.Fatal(err)
			}
			return out[0].Status
		}
		if s := follow("a"); s != state.Ignored {
			t.Errorf("%s: what is said then has status %d, want it ignored", word, s)
		}
		w.event(chat.Event{ID: "m", Thread: thread, Kind: chat.Mention, Topic: "mention", Text: "back", Author: chat.Author{ID: "U1"}}, false)
		w.run()
		if s := follow("b"); s != state.Admitted {
			t.Errorf("%s: what is said after the next mention has status %d, want it admitted", word, s)
		}
		if d := cmp.Diff([]string{"one", lineLeft, "two"}, w.posts()); d != "" {
			t.Errorf("%s: posts (-want +got):\n%s", word, d)
		}
		c := of[record.Controlled](w.records())
		if len(c) != 1 || c[0].Topic != chat.Leave || strings.Contains(transcript(w.request(-1)), "among ourselves") {
			t.Errorf("%s: %+v", word, c)
		}
		if p := of[record.Passed](w.records()); len(p) != 1 || p[0].Reason != state.NotFollowed {
			t.Errorf("%s: passed over %+v", word, p)
		}
	}
}

// Who may be answered and speaks to somebody else ends the following, silently;
// a stranger does not.
func TestDepart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain(), scripted.Say("one"), scripted.Say("two"))
	w.opts.Talk = chat.Member
	w.restart()
	w.roles["U1"], w.roles["U9"] = chat.Member, chat.Outsider
	aside := func(id, author string) {
		w.event(chat.Event{
			ID: id, Thread: thread, Kind: chat.Message, Topic: "thread", Text: "@U2 what do you say?",
			Author: chat.Author{ID: author}, Facts: map[string]string{chat.Addressed: "U2"},
		}, false)
		w.run()
	}
	follow := func(id string) state.Status {
		e := chat.Event{ID: id, Thread: thread, Kind: chat.Message, Topic: "thread", Text: "x", Author: chat.Author{ID: "U1"}}
		out, err := w.store.Admit(t.Context(), []state.Admit{{Event: e, Follow: true, Quiet: true}})
		if err != nil {
			t.Fatal(err)
		}
		return out[0].Status
	}
	w.ask("U1", "hello")
	aside("stranger", "U9")
	if s := follow("a"); s != state.Admitted {
		t.Errorf("a stranger has ended the following: status %d", s)
	}
	aside("member", "U1")
	if s := follow("b"); s != state.Ignored {
		t.Errorf("what is said after a member spoke to somebody else has status %d, want it ignored", s)
	}
	var why []string
	for _, p := range of[record.Passed](w.records()) {
		why = append(why, p.Event+": "+p.Reason)
	}
	if d := cmp.Diff([]string{"stranger: role below talk"}, why); d != "" {
		t.Errorf("passed over (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"one"}, w.posts()); d != "" {
		t.Errorf("posts (-want +got):\n%s", d)
	}
}

// In a direct message there is nothing to leave, and a program's text is a text.
func TestNothingToLeave(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain(), scripted.Say("stop what?"))
	w.event(chat.Event{ID: "m", Thread: thread, Kind: chat.Message, Topic: "dm", Text: "stop", Author: chat.Author{ID: "U1"}}, false)
	w.run()
	if d := cmp.Diff([]string{"stop what?"}, w.posts()); d != "" {
		t.Error(d)
	}
}

// Bots may talk to each other for so long; a person lets them go on.
func TestBotTurns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain(), scripted.Say("1"), scripted.Say("2"), scripted.Say("3"), scripted.Say("person"), scripted.Say("4"))
	n := 0
	bot := func() {
		n++
		e := chat.Event{ID: strings.Repeat("b", n), Thread: thread, Kind: chat.Mention, Topic: "mention", Text: "go", Author: chat.Author{ID: "B1", Bot: true}}
		w.event(e, false)
		w.run()
	}
	for range 5 {
		bot()
	}
	w.restart()
	bot()
	w.ask("U1", "hello")
	bot()
	if d := cmp.Diff([]string{"1", "2", "3", "person", "4"}, w.posts()); d != "" {
		t.Errorf("posts (-want +got):\n%s", d)
	}
	if p := of[record.Passed](w.records()); len(p) != 3 {
		t.Errorf("passed over %+v, want three", p)
	}
}
