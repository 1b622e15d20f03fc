package turn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/scripted"
	"github.com/heddlehq/heddle/state"
)

var errProcess = errors.New("the process died")

// dying is a log whose process dies before or after its n-th commit.
type dying struct {
	state.Log
	left  int
	after bool // the commit happens, its answer is lost
}

func (d *dying) Commit(ctx context.Context, l state.Lease, b state.Batch) (state.Lease, error) {
	if d.left--; d.left != 0 {
		return d.Log.Commit(ctx, l, b)
	}
	if d.after {
		if _, err := d.Log.Commit(ctx, l, b); err != nil {
			return l, err
		}
	}
	return l, errProcess
}

// die runs a conversation in a process that dies at its n-th commit, then goes
// on in another. It says whether the first process died.
func (w *world) die(n int, after bool) bool {
	w.t.Helper()
	w.log = &dying{Log: w.store, left: n, after: after}
	w.restart()
	err := w.try()
	w.log = w.store
	w.restart()
	if err != nil && !errors.Is(err, errProcess) {
		w.t.Fatal(err)
	}
	if err != nil {
		w.store.Expire()
		w.run()
	}
	return err != nil
}

// jobber calls the job, then says so.
func jobber(ctx context.Context, r model.Request) (model.Response, error) {
	if r.Messages[len(r.Messages)-1].Role == model.Results {
		return scripted.Say("done")(ctx, r)
	}
	return call("job")(ctx, r)
}

// A job of six steps dies at each of its commits: no finished step is done
// again, and the model gets one result.
func TestDurableToolGoesOn(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		died := true
		for n := 1; died; n++ {
			runs := map[string]int{}
			job := harness.NewTool("job", "Works.", func(ctx context.Context, c *harness.Call, _ struct{}) (string, error) {
				var got []string
				for i := range 6 {
					name := fmt.Sprint("step ", i)
					v, err := harness.Step(ctx, c, name, func(context.Context) (string, error) {
						runs[name]++
						return fmt.Sprint("<", i, ">"), nil
					})
					if err != nil {
						return "", err
					}
					got = append(got, v)
				}
				return strings.Join(got, " "), nil
			}).Durable()
			w := worldOf(t, plain(job), scripted.Play(jobber, 0))
			w.say("U1", "go")
			died = w.die(n, after)
			for name, times := range runs {
				// A step whose memo was lost with the process has to be done again.
				if times > 2 || times == 2 && after {
					t.Errorf("died at commit %d (after: %v): %s was done %d times", n, after, name, times)
				}
			}
			dids := of[record.Did](w.records())
			if len(dids) != 1 || dids[0].End != record.Done || dids[0].Text != "<0> <1> <2> <3> <4> <5>" {
				t.Errorf("died at commit %d (after: %v): results %+v", n, after, dids)
			}
			if d := cmp.Diff([]string{"done"}, w.posts()); d != "" {
				t.Errorf("died at commit %d (after: %v): posts %s", n, after, d)
			}
			if memos := of[record.Memo](w.records()); len(memos) != 6 {
				t.Errorf("died at commit %d (after: %v): %d memos", n, after, len(memos))
			}
		}
	}
}

// A durable tool that is no longer declared is not run.
func TestDurableToolThatIsGone(t *testing.T) {
	t.Parallel()
	there := true
	job := harness.NewTool("job", "Works.", func(ctx context.Context, c *harness.Call, _ struct{}) (int, error) {
		return harness.Step(ctx, c, "one", func(context.Context) (int, error) { return 1, nil })
	}).Durable()
	w := newWorld(t, func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		if there {
			harness.UseTool(c, job)
		}
		return "Help."
	}, call("job"), scripted.Say("done"))
	w.say("U1", "go")
	w.log = &dying{Log: w.store, left: 2}
	w.restart()
	if err := w.try(); !errors.Is(err, errProcess) {
		t.Fatal(err)
	}
	there = false
	w.log = w.store
	w.restart()
	w.store.Expire()
	w.run()
	if dids := of[record.Did](w.records()); len(dids) != 1 || dids[0].End != record.Unknown {
		t.Errorf("results %+v, want one of unknown outcome", dids)
	}
}

// Names of steps are unique in a call, and values must have a JSON form.
func TestStepMisuse(t *testing.T) {
	t.Parallel()
	one := func(context.Context) (int, error) { return 1, nil }
	for name, c := range map[string]struct {
		run  func(context.Context, *harness.Call) error
		want string
	}{
		"twice": {func(ctx context.Context, c *harness.Call) error {
			if _, err := harness.Step(ctx, c, "a", one); err != nil {
				return err
			}
			_, err := harness.Step(ctx, c, "a", one)
			return err
		}, "unique within a call"},
		"no JSON": {func(ctx context.Context, c *harness.Call) error {
			_, err := harness.Step(ctx, c, "a", func(context.Context) (any, error) { return func() {}, nil })
			return err
		}, "no JSON form"},
		"failed": {func(ctx context.Context, c *harness.Call) error {
			_, err := harness.Step(ctx, c, "a", func(context.Context) (int, error) { return 0, errors.New("not today") })
			return err
		}, "not today"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, plain(act("job", func(ctx context.Context, call *harness.Call) (string, error) { return "", c.run(ctx, call) })),
				call("job"), scripted.Say("done"))
			w.ask("U1", "go")
			if dids := of[record.Did](w.records()); len(dids) != 1 || !strings.Contains(dids[0].Text, c.want) {
				t.Errorf("results %+v, want %q", dids, c.want)
			}
		})
	}
}

// Start callbacks run before the model, which sees what they wrote; a crash
// repeats them, and their effects are stored once.
func TestTurnStart(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 3; n++ {
		runs := 0
		w := newWorld(t, func(c *harness.Context) string {
			harness.UseModel(c, "fast")
			loads := harness.UseState(c, "loads", 0)
			harness.UseTurnStart(c, "load", func(_ context.Context, call *harness.Call) error {
				runs++
				loads.Update(call, func(n int) int { return n + 1 })
				return nil
			})
			return fmt.Sprintf("Loaded %d times.", loads.Value)
		}, scripted.Say("hello"), scripted.Say("hello"))
		w.say("U1", "hi")
		died := w.die(n, false)
		if runs < 1 || died && n == 1 && runs != 2 {
			t.Errorf("died at commit %d: ran %d times", n, runs)
		}
		if got := w.request(-1).System; got != "Loaded 1 times." {
			t.Errorf("died at commit %d: the model is told %q", n, got)
		}
		if d := cmp.Diff([]string{"hello"}, w.posts()); d != "" {
			t.Errorf("died at commit %d: posts %s", n, d)
		}
		w.ask("U1", "again")
	}
}

// A finish callback sends the model back to work until it is content, at most
// 32 times; the last answer is posted.
func TestTurnFinish(t *testing.T) {
	t.Parallel()
	w := worldOf(t, func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		tries := harness.UseState(c, "tries", 0)
		harness.UseTurnFinish(c, "check", func(_ context.Context, call *harness.Call, answer string) (string, error) {
			tries.Update(call, func(n int) int { return n + 1 })
			if answer == "good" {
				return "", nil
			}
			return "Not yet: " + answer, nil
		})
		return "Help."
	}, scripted.New(scripted.Say("bad"), scripted.Say("better"), scripted.Say("good")))
	w.ask("U1", "go")
	if d := cmp.Diff([]string{"good"}, w.posts()); d != "" {
		t.Errorf("posts %s", d)
	}
	if d := cmp.Diff([]string{"Not yet: bad", "Not yet: better"}, notices(w.request(-1))); d != "" {
		t.Errorf("notices %s", d)
	}

	var steps []scripted.Step
	for range 40 {
		steps = append(steps, scripted.Say("bad"))
	}
	w = newWorld(t, func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		harness.UseTurnFinish(c, "never", func(context.Context, *harness.Call, string) (string, error) { return "again", nil })
		return "Help."
	}, steps...)
	w.ask("U1", "go")
	if sent := of[record.Sent](w.records()); len(sent) != maxSent || len(w.posts()) != 1 {
		t.Errorf("sent back %d times, %d posts", len(sent), len(w.posts()))
	}
}

// A guard lets a call run, denies it, or changes its arguments.
func TestToolCallGuard(t *testing.T) {
	t.Parallel()
	var ran []string
	echo := harness.NewTool("echo", "Says it.", func(_ context.Context, _ *harness.Call, in struct {
		Text string `json:"text"`
	},
	) (string, error) {
		ran = append(ran, in.Text)
		return in.Text, nil
	}).Serial()
	w := newWorld(t, func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		harness.UseTool(c, echo)
		harness.UseToolCall(c, "polite", func(_ context.Context, call *harness.Call, args json.RawMessage) (json.RawMessage, error) {
			switch {
			case strings.Contains(string(args), "curse"):
				return nil, errors.New("mind your words")
			case strings.Contains(string(args), "shout"):
				return json.RawMessage(`{"text":"whisper"}`), nil
			}
			return nil, nil
		})
		return "Help."
	}, scripted.Answer(scripted.ToolCall("echo", `{"text":"hello"}`), scripted.ToolCall("echo", `{"text":"curse"}`), scripted.ToolCall("echo", `{"text":"shout"}`)), scripted.Say("done"))
	w.ask("U1", "go")
	if d := cmp.Diff([]string{"hello", "whisper"}, ran); d != "" {
		t.Errorf("ran %s", d)
	}
	dids := of[record.Did](w.records())
	if len(dids) != 3 || dids[1].End != record.Refused || !strings.Contains(dids[1].Text, "mind your words") || string(dids[2].Ran) != `{"text":"whisper"}` {
		t.Errorf("results %+v", dids)
	}
}

// What fails or panics in a callback ends the turn visibly.
func TestCallbackFails(t *testing.T) {
	t.Parallel()
	for name, declare := range map[string]func(*harness.Context){
		"start": func(c *harness.Context) {
			harness.UseTurnStart(c, "x", func(context.Context, *harness.Call) error { return errProcess })
		},
		"panic": func(c *harness.Context) {
			harness.UseTurnStart(c, "x", func(context.Context, *harness.Call) error { panic("secret") })
		},
		"finish": func(c *harness.Context) {
			harness.UseTurnFinish(c, "x", func(context.Context, *harness.Call, string) (string, error) { return "", errProcess })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(c *harness.Context) string {
				harness.UseModel(c, "fast")
				if c.Event().ID != "" {
					declare(c)
				}
				return "Help."
			}, scripted.Say("hello"))
			w.ask("U1", "hi")
			if d := cmp.Diff([]string{lineBroken}, w.posts()); d != "" {
				t.Errorf("posts %s", d)
			}
			if strings.Contains(w.logged.String(), "secret") {
				t.Error("the log holds what the callback panicked with")
			}
		})
	}
}

// A provider that keeps failing is left alone for a while, by all conversations.
func TestCircuit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		w := worldOf(t, plain(), scripted.Play(func(ctx context.Context, r model.Request) (model.Response, error) {
			if asked++; asked <= breakAfter {
				return scripted.Fault(model.Transient, 0)(ctx, r)
			}
			return scripted.Say("up again")(ctx, r)
		}, 0))
		w.opts.Clock = time.Now
		w.restart()
		for range breakAfter / 5 {
			w.ask("U1", "hello?")
		}
		began := time.Now()
		w.ask("U1", "hello?")
		if got := w.posts(); got[len(got)-1] != "up again" {
			t.Errorf("posts %q", got)
		}
		if asked != breakAfter+1 {
			t.Errorf("asked %d times, want %d: nobody asks while the circuit is open", asked, breakAfter+1)
		}
		if took := time.Since(began); took < breakFor/2 || took > 2*breakFor {
			t.Errorf("answered after %v", took)
		}
		if rs := of[record.Retried](w.records()); rs[len(rs)-1].Code != "circuit_open" {
			t.Errorf("the last retry is %+v", rs[len(rs)-1])
		}
	})
}

// When a model cannot answer, the next of the chain does, in the same step; a
// request that no model would take is not passed on.
func TestFallback(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault model.Fault
		want  string
		asked int
	}{"denied": {model.Denied, "from the other", 2}, "invalid": {model.Invalid, lineSettings, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, plain(), scripted.Fault(c.fault, 0), scripted.Say("from the other"))
			if err := w.opts.Models.Fallbacks(map[string][]string{"fast": {"scripted/other"}}); err != nil {
				t.Fatal(err)
			}
			w.ask("U1", "hi")
			if got := w.posts(); len(got) != 1 || got[0] != c.want {
				t.Errorf("posts %q, want %q", got, c.want)
			}
			if n := len(w.model.Requests()); n != c.asked {
				t.Errorf("%d requests, want %d", n, c.asked)
			}
			if said := of[record.Said](w.records()); c.asked == 2 && (len(said) != 1 || said[0].Asked != "scripted/other") {
				t.Errorf("answers %+v", said)
			}
		})
	}
}
