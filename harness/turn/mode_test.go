package turn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model/scripted"
	"github.com/heddlehq/heddle/state"
)

// While people have taken over, what they say is heard and not answered; after
// that the next message is, and the model knows what was said.
func TestPauseOfAnIdleConversation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain(), scripted.Say("ok"), scripted.Say("I am back"))
	w.ask("U1", "hi")
	w.steer(chat.Pause, "")
	w.ask("U1", "is anybody here?")
	w.restart() // it is in the log
	w.ask("U2", "me, a person")
	w.steer(chat.Resume, "")
	w.run()
	if got := trace(w.records()); got != "heard rendered said settled:answered controlled heard heard controlled" {
		t.Errorf("the log is %s", got)
	}
	w.ask("U1", "and the bot?")
	if d := cmp.Diff([]string{"ok", "I am back"}, w.posts()); d != "" {
		t.Errorf("posts (-want +got):\n%s", d)
	}
	if got := transcript(w.request(-1)); !strings.Contains(got, "me, a person") {
		t.Errorf("the model sees\n%s", got)
	}
}

// A turn under way stops at its next step boundary, stays open over restarts,
// and goes on where it was. The pause is not counted as work.
func TestPauseOfATurn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		agent func(w **world, what func()) harness.Agent
		trace string // at the pause
	}{
		"at a step boundary": {func(_ **world, what func()) harness.Agent {
			return plain(act("look", func(context.Context, *harness.Call) (string, error) { what(); return "seen", nil }))
		}, "heard rendered said did:done controlled"},
		"while a call waits": {func(w **world, what func()) harness.Agent {
			first := true
			return plain(act("look", func(context.Context, *harness.Call) (string, error) {
				if first {
					first = false
					return "", &harness.Wait{}
				}
				if (*w).clock().Hour() == 12 {
					(*w).t.Error("the call was run again while people had taken over")
				}
				return "seen", nil
			}).Durable())
		}, "heard rendered said controlled"},
	} {
		var w *world
		w = newWorld(t, c.agent(&w, func() { w.steer(chat.Pause, "") }), call("look"), scripted.Say("ok"))
		w.ask("U1", "go")
		if name == "while a call waits" {
			w.steer(chat.Pause, "")
			w.run()
		}
		if got := trace(w.records()); got != c.trace {
			t.Errorf("%s: the log is %s, want %s", name, got, c.trace)
		}
		w.ask("U2", "wait, I do this")
		w.restart()
		w.pass(3 * time.Hour)
		w.steer(chat.Resume, "")
		w.run()
		if d := cmp.Diff([]string{"ok"}, w.posts()); d != "" {
			t.Errorf("%s: posts (-want +got):\n%s\n%s", name, d, trace(w.records()))
		}
		heard, settled := of[record.Heard](w.records()), of[record.Settled](w.records())
		if len(heard) != 2 || heard[1].Turn != "" || len(settled) != 1 || settled[0].Turn != heard[0].Turn {
			t.Errorf("%s: heard %+v, settled %+v", name, heard, settled)
		}
	}
}

// A pause is noticed while a subagent works: it stops at its own next step.
func TestPauseOfASubagent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		digger := plain(act("dig", func(context.Context, *harness.Call) (string, error) {
			time.Sleep(2 * time.Second) // of the test's own time
			return "dug", nil
		}))
		w := newWorld(t, func(c *harness.Context) string {
			harness.UseSubagent(c, harness.Subagent{Name: "digger", Doc: "digs", Agent: digger})
			return plain()(c)
		}, scripted.Call("task", `{"agent":"digger","prompt":"dig"}`), call("dig"), call("dig"), scripted.Say("a hole"), scripted.Say("there is a hole"))
		w.wary.stable = false
		w.say("U1", "go")
		w.during(func() { w.steer(chat.Pause, "") })
		if n := len(w.model.Requests()); n != 2 || len(w.posts()) != 0 {
			t.Errorf("%d requests, posts %q; the log is %s", n, w.posts(), trace(w.records()))
		}
		w.steer(chat.Resume, "")
		w.run()
		if d := cmp.Diff([]string{"there is a hole"}, w.posts()); d != "" {
			t.Errorf("posts (-want +got):\n%s", d)
		}
	})
}

// In single steps every step waits for its command; a message that opens a turn
// has the first one free. The end of it lets the turn run.
func TestSingleSteps(t *testing.T) {
	t.Parallel()
	w := worldOf(t, plain(act("look", func(context.Context, *harness.Call) (string, error) { return "seen", nil })), scripted.Play(
		lastSays(map[string]scripted.Step{"go": call("look"), "seen": call("look")}), 0))
	w.steer(chat.Step, "")
	w.run()
	w.say("U1", "go")
	for n := 1; n < 5; n++ {
		w.run()
		w.restart()
		if got := len(w.model.Requests()); got != n {
			t.Fatalf("%d steps were run, want %d", got, n)
		}
		w.steer(chat.Step, "")
	}
	w.run()
	w.steer(chat.Step, "") // two at once are two steps
	w.steer(chat.Step, "")
	w.run()
	if got := len(w.model.Requests()); got != 7 {
		t.Errorf("%d steps were run, want 7", got)
	}
	w.steer(chat.Resume, "")
	w.run()
	if s := of[record.Settled](w.records()); len(s) != 1 || s[0].Reason != "too many steps" {
		t.Errorf("settled %+v", s)
	}
}

// Commands work in every state of a turn and end in the state that they ask for.
func TestCommandsInEveryState(t *testing.T) {
	t.Parallel()
	states := map[string]func(w *world){
		"idle":             func(w *world) {},
		"waiting to begin": func(w *world) { w.say("U1", "go") },
		"held":             func(w *world) { w.steer(chat.Step, ""); w.run(); w.ask("U1", "go") },
		"waiting call":     func(w *world) { w.ask("U1", "wait") },
		"between attempts": func(w *world) {
			w.log = &mortal{Log: w.store, dies: at(2, before)}
			w.restart()
			w.say("U1", "go")
			if err := w.try(); !errors.Is(err, errDied) {
				w.t.Fatal(err)
			}
			w.store.Expire()
			w.log = w.store
			w.restart()
		},
		"settled": func(w *world) { w.ask("U1", "hi") },
		"paused":  func(w *world) { w.steer(chat.Pause, ""); w.run() },
	}
	for name, reach := range states {
		for topic, check := range map[string]func(open bool, mode record.Mode) bool{
			chat.Abort:  func(open bool, _ record.Mode) bool { return !open },
			chat.Pause:  func(_ bool, m record.Mode) bool { return m == record.Paused },
			chat.Resume: func(_ bool, m record.Mode) bool { return m == "" },
			chat.Step:   func(_ bool, m record.Mode) bool { return m == record.Stepping },
		} {
			ready := false
			w := worldOf(t, plain(
				act("look", func(context.Context, *harness.Call) (string, error) { return "seen", nil }),
				act("wait", func(context.Context, *harness.Call) (string, error) {
					if ready {
						return "seen", nil
					}
					return "", &harness.Wait{}
				}).Durable(),
			), scripted.Play(lastSays(map[string]scripted.Step{"go": call("look"), "wait": call("wait")}), 0))
			w.wary.stable = false
			reach(w)
			w.steer(topic, "")
			w.run()
			v, err := w.store.Load(context.Background(), state.ConversationID("tested", thread), 0)
			if err != nil {
				t.Fatal(err)
			}
			f := &record.Fold{}
			if err := f.Add(v.Records); err != nil {
				t.Fatal(err)
			}
			if !check(f.Turn != nil, f.Mode) || len(v.Inbox) != 0 {
				t.Errorf("%s, %s: open %t, mode %q, %d in the inbox; the log is %s", name, topic, f.Turn != nil, f.Mode, len(v.Inbox), trace(w.records()))
			}
			ready = true
			w.steer(chat.Resume, "")
			w.run()
			w.ask("U1", "hi")
			if posts := w.posts(); len(posts) == 0 || posts[len(posts)-1] != "the end" {
				t.Errorf("%s, %s: afterwards the posts are %q", name, topic, posts)
			}
		}
	}
}

// A turn that is run in single steps, by commands, does what one that runs by
// itself does: the same contract, with a crash at every point.
func TestSingleStepsKeepTheContract(t *testing.T) {
	t.Parallel()
	for name, s := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var want ending
			points := 0
			ended := func(w *world) ending { // commands have a place in the inbox: turns have other ids
				e := endOf(w)
				for i, o := range e.outcomes {
					_, e.outcomes[i], _ = strings.Cut(o, " ")
				}
				return e
			}
			s.in(t, calm, func(_ *testing.T, w *world, _ *runs) { want = ended(w) })
			setup := s.setup
			s.setup = func(w *world, r *runs) {
				if setup != nil {
					setup(w, r)
				}
				w.steer(chat.Step, "")
			}
			s.more = func(w *world) bool {
				f := w.present()
				open := f.Turn != nil && len(f.Waits()) == 0 // what waits for people waits
				if open {
					w.steer(chat.Step, "")
				}
				return open
			}
			s.in(t, calm, func(t *testing.T, w *world, r *runs) {
				checkLog(t, "calm", s, w, r)
				points = r.life.n
				if d := cmp.Diff(want, ended(w), cmp.AllowUnexported(ending{})); d != "" {
					t.Errorf("it ended otherwise (-want +got):\n%s", d)
				}
				if steps, said := len(of[record.Controlled](w.records())), len(of[record.Said](w.records())); steps < said-len(s.says) {
					t.Errorf("%d steps were run by %d commands", said, steps)
				}
			})
			for n := 1; n <= points; n += max(1, thorough/3) {
				s.in(t, func(at int) bool { return at == n }, func(t *testing.T, w *world, r *runs) {
					checkLog(t, fmt.Sprintf("died at point %d of %d", n, points), s, w, r)
				})
			}
		})
	}
}
