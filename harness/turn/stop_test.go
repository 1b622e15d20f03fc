package turn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
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

// steer admits an operator's event.
func (w *world) steer(topic, text string) {
	w.setRole("op", chat.Admin)
	w.mu.Lock()
	w.steered++
	e := chat.Event{ID: fmt.Sprint("C", w.steered), Thread: thread, Kind: chat.Control, Topic: topic, Text: text, Author: chat.Author{ID: "op"}}
	w.mu.Unlock()
	w.event(e, false)
}

// hang waits for the end of its context, or for ever.
func hang(heeds bool, free <-chan struct{}) func(context.Context, *harness.Call) (string, error) {
	return func(ctx context.Context, _ *harness.Call) (string, error) {
		if !heeds {
			ctx = context.Background()
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-free:
			return "late", nil
		}
	}
}

// during runs the conversation and has something happen while it hangs. It says
// how long it took from then on.
func (w *world) during(what func()) time.Duration {
	w.t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.run()
	}()
	synctest.Wait()
	began := time.Now()
	what()
	<-done
	return time.Since(began)
}

// A turn ends within two seconds of being stopped, whatever it is doing: from
// the thread and by an operator. People see it, and what was left open is closed.
func TestStop(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		agent func(free <-chan struct{}) harness.Agent
		model []scripted.Step
		trace string // of the turn
	}{
		"hanging model": {
			func(<-chan struct{}) harness.Agent { return plain() },
			[]scripted.Step{func(ctx context.Context, _ model.Request) (model.Response, error) {
				<-ctx.Done()
				return model.Response{}, ctx.Err()
			}},
			"heard rendered",
		},
		"waiting before a model call is made again": {
			func(<-chan struct{}) harness.Agent { return plain() },
			[]scripted.Step{fault(model.Limited, 90*time.Second)},
			"heard rendered retried",
		},
		"hanging tool": {
			func(free <-chan struct{}) harness.Agent { return plain(act("job", hang(true, free))) },
			[]scripted.Step{call("job")},
			"heard rendered said did:unknown",
		},
		"tool that heeds nothing": {
			func(free <-chan struct{}) harness.Agent { return plain(act("job", hang(false, free))) },
			[]scripted.Step{call("job")},
			"heard rendered said did:unknown",
		},
		"one of several tools": {
			func(free <-chan struct{}) harness.Agent {
				return plain(act("job", hang(true, free)).Serial(), act("look", func(context.Context, *harness.Call) (string, error) { return "seen", nil }))
			},
			[]scripted.Step{call("job", "look", "job")},
			"heard rendered said did:unknown did:done did:refused",
		},
		"tool that may be interrupted": {
			func(free <-chan struct{}) harness.Agent { return plain(act("job", hang(true, free)).Interruptible()) },
			[]scripted.Step{call("job")},
			"heard rendered said did:canceled",
		},
		"subagent": {
			func(free <-chan struct{}) harness.Agent {
				return func(c *harness.Context) string {
					harness.UseSubagent(c, harness.Subagent{Name: "digger", Doc: "digs", Agent: plain(act("job", hang(false, free)))})
					return plain()(c)
				}
			},
			[]scripted.Step{scripted.Call("task", `{"agent":"digger","prompt":"dig"}`), call("job")},
			"heard rendered said child child child did:unknown",
		},
		"callback that heeds nothing": {
			func(free <-chan struct{}) harness.Agent {
				return func(c *harness.Context) string {
					harness.UseTurnFinish(c, "slow", func(ctx context.Context, call *harness.Call, answer string) (string, error) {
						if answer == "first" {
							return hang(false, free)(ctx, call)
						}
						return "", nil
					})
					return plain()(c)
				}
			},
			[]scripted.Step{scripted.Say("first")},
			"heard rendered said",
		},
		"guard that heeds nothing": {
			func(free <-chan struct{}) harness.Agent {
				return func(c *harness.Context) string {
					harness.UseToolCall(c, "slow", func(ctx context.Context, call *harness.Call, args json.RawMessage) (json.RawMessage, error) {
						_, err := hang(false, free)(ctx, call)
						return args, err
					})
					return plain(act("look", func(context.Context, *harness.Call) (string, error) { return "seen", nil }))(c)
				}
			},
			[]scripted.Step{call("look")},
			"heard rendered said did:refused",
		},
		"turn start callback": {
			func(free <-chan struct{}) harness.Agent {
				return func(c *harness.Context) string {
					harness.UseTurnStart(c, "slow", func(ctx context.Context, call *harness.Call) error {
						if call.Event().Text != "go" {
							return nil
						}
						_, err := hang(true, free)(ctx, call)
						return err
					})
					return plain()(c)
				}
			},
			nil,
			"heard",
		},
	} {
		for how, stop := range map[string]func(*world){
			"in the thread":           func(w *world) { w.say("U2", " Stop! ") },
			"the turn":                func(w *world) { w.steer(chat.Abort, w.turn()) },
			"the conversation":        func(w *world) { w.steer(chat.Abort, "") },
			"after one who may not":   func(w *world) { w.say("U9", "stop"); w.say("U2", "cancel") },
			"and something else came": func(w *world) { w.say("U2", "stop"); w.say("U2", "go on") },
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					free := make(chan struct{})
					defer close(free)
					w := newWorld(t, c.agent(free), append(slices.Clone(c.model), scripted.Say("next"), scripted.Say("next"))...)
					w.opts.Talk = chat.Member
					w.restart()
					w.setRole("U9", chat.Outsider)
					w.wary.stable = false
					w.say("U1", "go")
					if took := w.during(func() { stop(w) }); took > 2*time.Second {
						t.Errorf("it took %v", took)
					}
					w.ask("U1", "next")
					got := strings.NewReplacer(" passed", "").Replace(trace(w.records()))
					if want := c.trace + " controlled settled:aborted heard"; !strings.HasPrefix(got, want) {
						t.Errorf("the log is %s\nwant        %s", got, want)
					}
					s := of[record.Settled](w.records())[0]
					if s.Reason != record.Stopped || s.Posts != 1 || w.posts()[0] != "Stopped." || w.posts()[1] != "next" {
						t.Errorf("settled %+v, posts %q", s, w.posts())
					}
					if got := notices(w.request(-1)); len(got) == 0 || !strings.Contains(got[len(got)-1], "stopped you") {
						t.Errorf("the model is told %q", got)
					}
				})
			})
		}
	}
}

// turn is the id of the open turn.
func (w *world) turn() string {
	w.t.Helper()
	heard := of[record.Heard](w.records())
	if len(heard) == 0 { // not committed yet: it follows from the entry
		return w.firstTurn()
	}
	return heard[len(heard)-1].Turn
}

// firstTurn is the id of the turn that the first message in the inbox opens.
func (w *world) firstTurn() string {
	return state.TurnID(state.ConversationID("tested", thread), 1)
}

// What is stopped before anybody worked on it is never worked on.
func TestStopBeforeTheBeginning(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(*world){
		"in the thread": func(w *world) { w.say("U1", "stop") },
		"by the API":    func(w *world) { w.steer(chat.Abort, "") },
		"the turn":      func(w *world) { w.steer(chat.Abort, w.firstTurn()) },
	} {
		w := newWorld(t, plain())
		w.say("U1", "go")
		stop(w)
		w.run()
		if got := trace(w.records()); got != "heard controlled settled:aborted" {
			t.Errorf("%s: the log is %s", name, got)
		}
		if d := cmp.Diff([]string{"Stopped."}, w.posts()); d != "" {
			t.Errorf("%s: posts (-want +got):\n%s", name, d)
		}
	}
}

// A call that waits is closed when the turn is stopped, and not run again.
func TestStopWhileACallWaits(t *testing.T) {
	t.Parallel()
	ran := 0
	w := newWorld(t, plain(act("wait", func(context.Context, *harness.Call) (string, error) { ran++; return "", &harness.Wait{} }).Durable()),
		call("wait"), scripted.Say("next"))
	w.ask("U1", "go")
	w.ask("U1", "stop")
	w.ask("U1", "next")
	if got := trace(w.records()); ran != 1 || got != "heard rendered said controlled did:unknown settled:aborted heard rendered said settled:answered" {
		t.Errorf("it ran %d times, the log is %s", ran, got)
	}
	if d := cmp.Diff([]string{"Stopped.", "next"}, w.posts()); d != "" {
		t.Errorf("posts (-want +got):\n%s", d)
	}
}

// Who is asked something may answer "cancel"; "stop" ends the turn there as well.
func TestStopOfAQuestion(t *testing.T) {
	t.Parallel()
	for word, want := range map[string][]string{"cancel": {"May I?", "the answer is cancel"}, "Stop.": {"May I?", "Stopped."}} {
		w := worldOf(t, plain(durable("job", func(ctx context.Context, c *harness.Call) (string, error) {
			r, err := harness.Ask(ctx, c, "ok", "May I?")
			return "the answer is " + r.Text, err
		})), scripted.Play(func(ctx context.Context, r model.Request) (model.Response, error) {
			for _, m := range r.Messages {
				if m.Role == model.Results {
					return scripted.Say(m.Parts[0].Text)(ctx, r)
				}
			}
			return call("job")(ctx, r)
		}, 0))
		w.opts.Busy = func(chat.Event) chat.Policy { return chat.Drop } // an answer is not dropped
		w.restart()
		w.ask("U1", "go")
		w.ask("U1", word)
		if d := cmp.Diff(want, w.posts()); d != "" {
			t.Errorf("%s: posts (-want +got):\n%s", word, d)
		}
	}
}

// A message while a call waits is heard, and nothing spins.
func TestMessageWhileACallWaits(t *testing.T) {
	t.Parallel()
	for _, p := range []chat.Policy{chat.Join, chat.Queue, chat.Steer} {
		over := false
		w := newWorld(t, plain(act("wait", func(context.Context, *harness.Call) (string, error) {
			if over {
				return "ready", nil
			}
			return "", &harness.Wait{}
		}).Durable()), call("wait"), scripted.Say("ok"))
		w.opts.Busy = func(chat.Event) chat.Policy { return p }
		w.restart()
		w.ask("U1", "go")
		w.ask("U2", "and?")
		over = true
		w.ask("U2", "now")
		if got := trace(w.records()); got != "heard rendered said heard heard did:done rendered said settled:answered" {
			t.Errorf("%s: the log is %s", p, got)
		}
	}
}

// Where nothing was under way so far "stop" is a message like any other, and an abort
// does nothing. Inside a sentence it always is.
func TestStopOfNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain(), scripted.Say("stop what?"), scripted.Say("I see"))
	w.ask("U1", "stop")
	w.steer(chat.Abort, "")
	w.steer(chat.Abort, w.turn())
	w.run()
	w.ask("U1", "please stop")
	if got := trace(w.records()); got != "heard rendered said settled:answered controlled controlled heard rendered said settled:answered" {
		t.Errorf("the log is %s", got)
	}
	if d := cmp.Diff([]string{"stop what?", "I see"}, w.posts()); d != "" {
		t.Errorf("posts (-want +got):\n%s", d)
	}
}

func TestIsStop(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"stop": true, "STOP!!": true, " Cancel.\n": true, "**stop**": true, "stop it": false, "don't stop": false, "": false, "stopp": false,
	} {
		if got := isStop(chat.Event{Kind: chat.Message, Text: text}); got != want {
			t.Errorf("%q: %t, want %t", text, got, want)
		}
	}
	for _, e := range []chat.Event{
		{Kind: chat.Edited, Text: "stop"},
		{Kind: chat.Notice, Text: "stop"},
		{Kind: chat.Message, Text: "stop", Files: []chat.File{{ID: "F1"}}},
	} {
		if isStop(e) {
			t.Errorf("%+v is no stop", e)
		}
	}
}

// Only maintainers and admins steer, and only by what there is.
func TestWhoMaySteer(t *testing.T) {
	t.Parallel()
	for role, want := range map[chat.Role]string{
		chat.Outsider: "passed", chat.Member: "passed", chat.Maintainer: "controlled", chat.Admin: "controlled",
	} {
		w := newWorld(t, plain())
		w.steer(chat.Pause, "")
		w.setRole("op", role)
		w.run()
		if got := trace(w.records()); got != want || len(w.posts()) != 0 {
			t.Errorf("%s: the log is %s, posts %q", role, got, w.posts())
		}
	}
	for topic, text := range map[string]string{"explode": "", chat.SetPolicy: "sometimes"} {
		w := newWorld(t, plain())
		w.steer(topic, text)
		w.run()
		if got := of[record.Passed](w.records()); len(got) != 1 || got[0].Reason != "no such command" {
			t.Errorf("%s %s: passed %+v", topic, text, got)
		}
	}
}

// A stop over all crash points: the turn ends once, and its call is never run again.
func TestStopOverACrash(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 3; n++ {
		for _, f := range []fate{before, after} {
			synctest.Test(t, func(t *testing.T) {
				free := make(chan struct{})
				defer close(free)
				w := newWorld(t, plain(act("job", hang(true, free))), call("job"), scripted.Say("next"), scripted.Say("next"))
				w.wary.stable = false
				w.log = &mortal{Log: w.store, dies: at(n, f)}
				w.restart()
				w.say("U1", "go")
				done := make(chan error)
				go func() { done <- w.try() }()
				synctest.Wait()
				w.say("U1", "stop")
				if err := <-done; err != nil && !errors.Is(err, errDied) {
					t.Fatal(err)
				}
				w.store.Expire()
				w.restart()
				w.run()
				settled := of[record.Settled](w.records())
				if len(settled) != 1 || settled[0].Outcome != record.Aborted || len(w.posts()) != 1 {
					t.Errorf("died at commit %d, made: %t: the log is %s, posts %q", n, f == after, trace(w.records()), w.posts())
				}
			})
		}
	}
}
