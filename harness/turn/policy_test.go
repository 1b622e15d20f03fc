package turn

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/scripted"
	"github.com/heddlehq/heddle/state"
)

// answering says whom it answers, once its tools have run.
func answering(tool string) scripted.Step {
	return func(ctx context.Context, r model.Request) (model.Response, error) {
		var heard []string
		for _, m := range r.Messages {
			switch {
			case m.Role == model.Assistant && m.Parts[0].Kind == model.Text:
				heard = nil
			case m.Role == model.User:
				heard = append(heard, words(m.Parts[0].Text))
			}
		}
		if last := r.Messages[len(r.Messages)-1]; words(last.Parts[0].Text) == "first" {
			return call(tool)(ctx, r)
		}
		return scripted.Say(fmt.Sprint(heard))(ctx, r)
	}
}

// words are what somebody said in a message, "!" for what the harness says.
func words(text string) string {
	for _, w := range []string{"first", "second", "third"} {
		if text == "<heard from=\"U1\" role=\"member\">\n"+w+"\n</heard>" {
			return w
		}
	}
	return "!"
}

// What becomes of two messages that come while a tool runs, by policy: of the
// route and of the conversation, and when the worker dies meanwhile.
func TestPolicies(t *testing.T) {
	t.Parallel()
	for policy, want := range map[chat.Policy]struct {
		posts []string
		trace string
	}{
		chat.Join:  {[]string{"[first second third]"}, "heard rendered said did:done heard heard rendered said settled:answered"},
		chat.Steer: {[]string{"[first second third]"}, "heard rendered said did:canceled heard heard rendered said settled:answered"},
		chat.Queue: {
			[]string{"[first]", "[second]", "[third]"},
			"heard rendered said did:done rendered said settled:answered heard rendered said settled:answered heard rendered said settled:answered",
		},
		chat.Replace: {
			[]string{"[first ! second ! third]"},
			"heard rendered said did:unknown settled:aborted heard settled:aborted heard rendered said settled:answered",
		},
		chat.Drop: {
			[]string{lineDropped, "[first]"},
			"heard rendered said did:done passed passed rendered said settled:answered",
		},
	} {
		for _, how := range []string{"route", "conversation"} {
			t.Run(fmt.Sprint(policy, " of the ", how), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					free := make(chan struct{})
					job := act("job", hang(true, free))
					if policy == chat.Steer {
						job = job.Interruptible()
					}
					w := worldOf(t, plain(job), scripted.Play(answering("job"), 0))
					if how == "route" {
						w.opts.Busy = func(chat.Event) chat.Policy { return policy }
						w.restart()
					} else {
						w.steer(chat.SetPolicy, string(policy))
						w.run()
					}
					w.say("U1", "first")
					took := w.during(func() {
						w.say("U1", "second")
						w.say("U1", "third")
						time.AfterFunc(time.Minute, func() { close(free) })
					})
					if early := policy == chat.Steer || policy == chat.Replace; early != (took < 2*time.Second) {
						t.Errorf("it took %v", took)
					}
					log := w.records()
					if how == "conversation" {
						log = log[1:]
					}
					if d := cmp.Diff(want.trace, trace(log)); d != "" {
						t.Errorf("the log (-want +got):\n%s", d)
					}
					if d := cmp.Diff(want.posts, w.posts()); d != "" {
						t.Errorf("posts (-want +got):\n%s", d)
					}
				})
			})
		}
	}
}

// Whatever the policy and wherever the worker dies, every message reaches one
// end, and turns come in the order of their messages.
func TestPoliciesOverACrash(t *testing.T) {
	t.Parallel()
	for _, policy := range []chat.Policy{chat.Join, chat.Steer, chat.Queue, chat.Replace, chat.Drop} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			for n := 1; n <= 8; n++ {
				for _, f := range []fate{before, after} {
					r := &runs{by: map[string]int{}}
					var w *world
					said := false
					w = worldOf(t, plain(act("look", func(_ context.Context, c *harness.Call) (string, error) {
						r.note(c.Key())
						if !said {
							said = true
							w.say("U1", "second")
							w.say("U1", "third")
						}
						return "seen", nil
					})), scripted.Play(answering("look"), 0))
					w.wary.stable = false
					w.log = &mortal{Log: w.store, dies: at(n, f)}
					w.opts.Busy = func(chat.Event) chat.Policy { return policy }
					w.restart()
					w.say("U1", "first")
					for {
						err := w.try()
						if errors.Is(err, state.ErrNone) {
							break
						}
						if errors.Is(err, errDied) {
							w.store.Expire()
							w.restart()
						} else if err != nil {
							t.Fatal(err)
						}
					}
					when := fmt.Sprintf("died at commit %d, made: %t", n, f == after)
					if policy != chat.Drop { // else two are lost, as they should
						checkLog(t, when, scenario{}, w, r)
					}
					var ends []string
					for _, b := range w.records() {
						switch b := b.(type) {
						case record.Heard:
							ends = append(ends, b.Event.ID)
						case record.Passed:
							ends = append(ends, b.Event)
						}
					}
					want := []string{"E1", "E2", "E3"}
					if !said { // it died before the tool ran
						want = want[:1]
					}
					if d := cmp.Diff(want, ends); d != "" {
						t.Errorf("%s: messages (-want +got):\n%s", when, d)
					}
				}
			}
		})
	}
}

// The conversation's policy goes before its route's, until it is taken back.
func TestPolicyOfTheConversation(t *testing.T) {
	t.Parallel()
	var w *world
	w = newWorld(t, plain(act("look", func(context.Context, *harness.Call) (string, error) {
		w.say("U1", "more")
		return "seen", nil
	})), call("look"), scripted.Say("both"), call("look"), scripted.Say("one"), scripted.Say("two"))
	w.opts.Busy = func(chat.Event) chat.Policy { return chat.Queue }
	w.restart()
	w.steer(chat.SetPolicy, "join")
	w.ask("U1", "go")
	w.restart() // it is in the log
	w.steer(chat.SetPolicy, "")
	w.ask("U1", "go")
	if d := cmp.Diff([]string{"both", "one", "two"}, w.posts()); d != "" {
		t.Errorf("posts (-want +got):\n%s", d)
	}
}

// A stop in front of which something waits for its own turn is obeyed at once,
// and only once.
func TestStopAheadOfAQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		defer close(free)
		w := worldOf(t, plain(act("job", hang(true, free))), scripted.Play(answering("job"), 0))
		w.opts.Busy = func(chat.Event) chat.Policy { return chat.Queue }
		w.restart()
		w.say("U1", "first")
		took := w.during(func() {
			w.say("U1", "second")
			w.say("U1", "stop")
		})
		if took > 2*time.Second {
			t.Errorf("it took %v", took)
		}
		if d := cmp.Diff([]string{"Stopped.", "[first ! second]"}, w.posts()); d != "" {
			t.Errorf("posts (-want +got):\n%s", d)
		}
		passed := of[record.Passed](w.records())
		if len(passed) != 1 || passed[0].Reason != "obeyed" || of[record.Controlled](w.records())[0].Ahead == 0 {
			t.Errorf("the log is %s, passed %+v", trace(w.records()), passed)
		}
		w.ask("U1", "cancel") // of nothing: a message again
		if n := len(of[record.Heard](w.records())); n != 3 {
			t.Errorf("%d messages were heard, want 3", n)
		}
	})
}

// An abort of the conversation leaves nothing of what waited before it.
func TestAbortOfAQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		defer close(free)
		w := worldOf(t, plain(act("job", hang(true, free))), scripted.Play(answering("job"), 0))
		w.opts.Busy = func(chat.Event) chat.Policy { return chat.Queue }
		w.restart()
		w.say("U1", "first")
		w.during(func() {
			w.say("U1", "second")
			w.steer(chat.Abort, "")
			w.say("U1", "third")
		})
		if d := cmp.Diff([]string{"Stopped.", "[first ! third]"}, w.posts()); d != "" {
			t.Errorf("posts (-want +got):\n%s", d)
		}
		if got := of[record.Passed](w.records()); len(got) != 1 || got[0].Reason != "aborted" || got[0].Event != "E2" {
			t.Errorf("passed %+v", got)
		}
	})
}

// A message that comes while the last answer is made is dropped like any other.
func TestDropDuringTheLastStep(t *testing.T) {
	t.Parallel()
	var w *world
	w = newWorld(t, plain(), func(ctx context.Context, r model.Request) (model.Response, error) {
		w.say("U2", "and me")
		return scripted.Say("for you")(ctx, r)
	}, scripted.Say("again"))
	w.opts.Busy = func(chat.Event) chat.Policy { return chat.Drop }
	w.restart()
	w.ask("U1", "hi")
	w.ask("U2", "now")
	if d := cmp.Diff([]string{lineDropped, "for you", "again"}, w.posts()); d != "" {
		t.Errorf("posts (-want +got):\n%s", d)
	}
}
