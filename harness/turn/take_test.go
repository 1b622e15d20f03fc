package turn

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/scripted"
	"github.com/heddlehq/heddle/state"
)

// A message that comes while a tool runs joins at the next step, after the
// results; one that comes during the last answer starts the next turn.
func TestMessageJoinsAtTheNextStep(t *testing.T) {
	t.Parallel()
	var w *world
	said := func(who, text string, next scripted.Step) scripted.Step {
		return func(ctx context.Context, r model.Request) (model.Response, error) {
			w.say(who, text)
			return next(ctx, r)
		}
	}
	w = newWorld(t, plain(act("look", func(context.Context, *harness.Call) (string, error) { w.say("U2", "me too"); return "seen", nil })),
		call("look"), said("U3", "and me", scripted.Say("for you both")), scripted.Say("for you"))
	w.ask("U1", "first")
	if got := trace(w.records()); got != "heard rendered said did:done heard rendered said settled:answered heard rendered said settled:answered" {
		t.Errorf("the log is %s", got)
	}
	heard := of[record.Heard](w.records())
	if heard[0].Turn != heard[1].Turn || heard[1].Turn == heard[2].Turn {
		t.Errorf("turns %s, %s, %s", heard[0].Turn, heard[1].Turn, heard[2].Turn)
	}
	if got := transcript(w.request(1)); !strings.HasSuffix(got, "[results] seen\n[user] <heard from=\"U2\" role=\"member\">\nme too\n</heard>\n") {
		t.Errorf("the second request ends in\n%s", got)
	}
	if d := cmp.Diff([]string{"for you both", "for you"}, w.posts()); d != "" {
		t.Errorf("posts (-want +got):\n%s", d)
	}
}

// Many people at once and several workers: turns of a conversation never
// interleave, and every message is taken once.
func TestTurnsNeverInterleave(t *testing.T) {
	t.Parallel()
	w := worldOf(t, plain(act("look", func(context.Context, *harness.Call) (string, error) { return "seen", nil })),
		scripted.Play(func(ctx context.Context, r model.Request) (model.Response, error) {
			if r.Messages[len(r.Messages)-1].Role == "results" {
				return scripted.Say("ok")(ctx, r)
			}
			return call("look")(ctx, r)
		}, 0))
	const people, each = 4, 25
	var talk, work sync.WaitGroup
	quiet := make(chan struct{})
	for p := range people {
		talk.Go(func() {
			for i := range each {
				w.say(fmt.Sprint("U", p), fmt.Sprint("message ", i))
			}
		})
	}
	for range 3 {
		work.Go(func() {
			for {
				err := w.try()
				if err != nil && err != state.ErrNone {
					t.Error(err)
					return
				}
				select {
				case <-quiet:
					if err == state.ErrNone {
						return
					}
				default:
				}
			}
		})
	}
	talk.Wait()
	close(quiet)
	work.Wait()
	w.run()
	open, heard := "", map[string]int{}
	for i, b := range w.records() {
		switch b := b.(type) {
		case record.Heard:
			heard[b.Event.ID]++
			if open == "" {
				open = b.Turn
			}
			if b.Turn != open {
				t.Fatalf("record %d: heard for turn %s inside turn %s", i, b.Turn, open)
			}
		case record.Said:
			if b.Turn != open {
				t.Fatalf("record %d: said in turn %s inside turn %s", i, b.Turn, open)
			}
		case record.Settled:
			if b.Turn != open {
				t.Fatalf("record %d: settled %s inside turn %s", i, b.Turn, open)
			}
			open = ""
		}
	}
	if open != "" || len(heard) != people*each {
		t.Errorf("turn %q is open, %d messages were heard, want %d", open, len(heard), people*each)
	}
	for id, n := range heard {
		if n != 1 {
			t.Errorf("%s was heard %d times", id, n)
		}
	}
}

// Who is below the role that is talked to is passed over: no turn, no text in
// the log, none in the context.
func TestBelowTalkIsPassedOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain(), scripted.Say("hello"), scripted.Say("again"))
	w.engine.Talk = chat.Member
	w.setRole("U9", chat.Outsider)
	w.ask("U9", "the stranger's words")
	if got := trace(w.records()); got != "passed" || len(w.posts()) != 0 {
		t.Errorf("the log is %s, posts %v", got, w.posts())
	}
	w.say("U1", "hi")
	w.say("U9", "the stranger's words")
	w.run()
	w.ask("U1", "hi")
	if got := trace(w.records()); got != "passed heard passed rendered said settled:answered heard rendered said settled:answered" {
		t.Errorf("the log is %s", got)
	}
	if all := fmt.Sprint(w.records()) + transcript(w.request(-1)); strings.Contains(all, "stranger's") {
		t.Errorf("the words are in %s", all)
	}
	want := record.Passed{Event: "E1", Author: chat.Author{ID: "U9"}, Reason: "role below talk"}
	if d := cmp.Diff(want, of[record.Passed](w.records())[0]); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got := of[record.Rendered](w.records()); got[1].Trust != chat.Member {
		t.Errorf("who is not heard lowered the trust to %s", got[1].Trust)
	}
}

// A machine without identity is answered, and trusted as a stranger is.
func TestMachineIsAnsweredAsAStranger(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain(), scripted.Say("seen"), scripted.Say("ok"))
	w.engine.Talk = chat.Admin
	w.setRole("", chat.Admin) // whatever a look-up would say
	w.setRole("U1", chat.Admin)
	w.event(chat.Event{ID: "N1", Thread: thread, Kind: chat.Notice, Topic: "invoice.payment_failed", Text: "in_1"}, false)
	w.run()
	w.ask("U1", "what is it?")
	got := of[record.Rendered](w.records())
	if len(got) != 2 || got[0].Trust != chat.Outsider || got[1].Trust != chat.Outsider || of[record.Heard](w.records())[0].Role != chat.Outsider {
		t.Errorf("the log is %s with %+v", trace(w.records()), got)
	}
}

// A bot with an id is somebody like any other.
func TestBotIsLookedUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain())
	w.engine.Talk = chat.Member
	w.setRole("B1", chat.Outsider)
	w.event(chat.Event{ID: "B", Thread: thread, Kind: chat.Message, Author: chat.Author{ID: "B1", Bot: true}, Text: "beep"}, false)
	w.run()
	if got := trace(w.records()); got != "passed" {
		t.Errorf("the log is %s", got)
	}
}

// An edit starts nothing; it is read with the next message.
func TestQuietEventsAreReadLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain(), scripted.Say("ok"), scripted.Say("I see"))
	w.ask("U1", "at four")
	w.admit("U1", "at five", thread, true)
	w.run()
	if n := len(w.model.Requests()); n != 1 {
		t.Fatalf("an edit made a request")
	}
	w.ask("U1", "see my edit?")
	if got := transcript(w.request(1)); strings.Index(got, "at five") < strings.Index(got, "ok") || strings.Index(got, "at five") > strings.Index(got, "see my edit?") {
		t.Errorf("the second request is\n%s", got)
	}
	if got := of[record.Settled](w.records()); len(got) != 2 {
		t.Errorf("%d turns, want 2", len(got))
	}
}

// An edit by somebody that comes with a message that is not answered is kept as context.
func TestQuietEventBesideAPassedOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain(), scripted.Say("ok"))
	w.engine.Talk = chat.Member
	w.setRole("U9", chat.Outsider)
	w.admit("U1", "an edit", thread, true)
	w.say("U9", "spam")
	w.run()
	if got := trace(w.records()); got != "heard passed" || of[record.Heard](w.records())[0].Turn != "" || len(w.posts()) != 0 {
		t.Errorf("the log is %s", got)
	}
	w.ask("U1", "hi")
	if got := transcript(w.request(0)); !strings.Contains(got, "an edit") || strings.Contains(got, "spam") {
		t.Errorf("the request is\n%s", got)
	}
}

// A person whose role cannot be looked up waits, and so does what came after;
// asked for again, they are answered in order. Who cannot be looked up for long
// is told, and nothing of the text is kept.
func TestRoleThatIsNotKnown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		blind int
		want  []string
	}{"once": {1, []string{"hello"}}, "for long": {1000, []string{lineRole, lineRole}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, plain(), scripted.Say("hello"))
			w.opts.Talk = chat.Member
			var told []string
			w.opts.Refused = func(_ chat.Event, line string) { told = append(told, line) }
			w.restart()
			w.blind = c.blind
			w.say("U1", "my words")
			w.say("U2", "and mine")
			w.run()
			if got := w.posts(); len(got) != 0 || len(w.records()) != 0 {
				t.Fatalf("posts %q, records %+v: want nothing yet", got, w.records())
			}
			for range 30 {
				w.pass(roleWait)
				w.run()
			}
			if d := cmp.Diff(c.want, append(w.posts(), told...)); d != "" {
				t.Errorf("posts and what only they are told (-want +got):\n%s", d)
			}
			all := fmt.Sprintf("%+v", w.records())
			if kept := strings.Contains(all, "my words"); kept != (name == "once") {
				t.Errorf("the words were kept: %t", kept)
			}
			if heard := of[record.Heard](w.records()); name == "once" && (len(heard) != 2 || heard[0].Event.Text != "my words") {
				t.Errorf("heard %+v, want both in order", heard)
			}
			if passed := of[record.Passed](w.records()); name == "for long" && (len(passed) != 2 || passed[0].Reason != "role not known") {
				t.Errorf("passed over %+v", passed)
			}
		})
	}
}
