package turn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/scripted"
)

// Callbacks of a settled turn see how it ended when that is stored. Whatever
// commit the process dies at, they run, what they decide is recorded once, and
// people get one answer.
func TestSettledCallbacks(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		died := true
		for n := 1; died; n++ {
			var seen []harness.Settled
			var w *world
			w = newWorld(t, func(c *harness.Context) string {
				harness.UseModel(c, "fast")
				done := harness.UseState(c, "done", 0)
				log := harness.UseData[string](c, "log")
				harness.UseSettled(c, "count", func(ctx context.Context, call *harness.Call, s harness.Settled) error {
					if got := of[record.Settled](w.records()); len(got) == 0 {
						t.Errorf("died at commit %d: the outcome is not stored yet", n)
					}
					if _, err := call.Sandbox(ctx); err == nil {
						t.Error("a sandbox was there")
					}
					seen = append(seen, s)
					done.Update(call, func(n int) int { return n + 1 })
					log.Write(call, call.Event().Text)
					return nil
				})
				return fmt.Sprint("Done: ", done.Value)
			}, scripted.Say("hello"), scripted.Say("hello"), scripted.Say("hello"))
			w.say("U1", "hi")
			died = w.die(n, after)
			if died && len(seen) == 0 || len(seen) > 2 {
				t.Errorf("died at commit %d (after: %v): ran %d times", n, after, len(seen))
			}
			for _, s := range seen {
				want := harness.Settled{Outcome: "answered", Answer: "hello", Steps: 1, Usage: s.Usage, Cost: s.Cost}
				if d := cmp.Diff(want, s); d != "" || s.Usage.In == 0 || s.Cost == 0 {
					t.Errorf("(-want +got):\n%s", d)
				}
			}
			if got := trace(w.records()); got != "heard rendered said settled:answered wrote data notified" {
				t.Errorf("died at commit %d (after: %v): the log is %s", n, after, got)
			}
			if d := cmp.Diff([]string{"hello"}, w.posts()); d != "" {
				t.Errorf("died at commit %d (after: %v): posts %s", n, after, d)
			}
			w.ask("U1", "again")
			if got := w.request(-1).System; got != "Done: 1" {
				t.Errorf("died at commit %d (after: %v): %s", n, after, got)
			}
		}
	}
}

// Every end of a turn is told, and an error of a callback changes nothing.
func TestSettledCallbacksSeeEveryOutcome(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		steps []scripted.Step
		want  string
	}{
		"answered": {[]scripted.Step{scripted.Say("hello")}, "answered||hello"},
		"declined": {[]scripted.Step{func(ctx context.Context, r model.Request) (model.Response, error) {
			resp, err := scripted.Say("no")(ctx, r)
			resp.Stop = model.StopRefused
			return resp, err
		}}, "declined|refused by the model|no"},
		"failed":   {[]scripted.Step{scripted.Fault(model.Denied, 0)}, "failed|model denied|" + lineSettings},
		"panicked": {[]scripted.Step{call("boom")}, "failed|tool panicked|" + lineBroken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			w := newWorld(t, func(c *harness.Context) string {
				harness.UseModel(c, "fast")
				harness.UseTool(c, act("boom", func(context.Context, *harness.Call) (string, error) { panic("x") }))
				harness.UseSettled(c, "bad", func(context.Context, *harness.Call, harness.Settled) error { return errors.New("not today") })
				harness.UseSettled(c, "worse", func(context.Context, *harness.Call, harness.Settled) error { panic("secret") })
				harness.UseSettled(c, "good", func(_ context.Context, _ *harness.Call, s harness.Settled) error {
					got = append(got, s.Outcome+"|"+s.Reason+"|"+s.Answer)
					return nil
				})
				return "Help."
			}, tt.steps...)
			w.ask("U1", "hi")
			if d := cmp.Diff([]string{tt.want}, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			records := w.records()
			if n, ok := records[len(records)-1].(record.Notified); !ok || strings.Join(n.Hooks, " ") != "bad worse good" {
				t.Errorf("the log ends with %#v", records[len(records)-1])
			}
			if log := w.logged.String(); !strings.Contains(log, "not today") || !strings.Contains(log, "callback panicked") || strings.Contains(log, "secret") {
				t.Errorf("logged %s", log)
			}
		})
	}
}

// A turn that is given up has callbacks as well; callbacks that end the process
// every time do not hold the conversation for ever.
func TestSettledCallbacksThatKill(t *testing.T) {
	t.Parallel()
	ran := 0
	w := newWorld(t, func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		harness.UseSettled(c, "kill", func(context.Context, *harness.Call, harness.Settled) error { ran++; return nil })
		return "Help."
	}, scripted.Say("hello"), scripted.Say("again"))
	w.say("U1", "hi")
	for crashes := 0; ; crashes++ {
		// The answer is stored with the first commit, then each process dies.
		n := 1
		if crashes == 0 {
			n = 2
		}
		w.log = &dying{Log: w.store, left: n}
		w.restart()
		if err := w.try(); err == nil {
			t.Fatal("a process survived")
		}
		w.store.Expire()
		if crashes > w.opts.Limits.Attempts+12 {
			break
		}
	}
	w.log = w.store
	w.restart()
	w.run()
	if got := trace(w.records()); got != "heard rendered said settled:answered notified" || ran > 12 {
		t.Errorf("ran %d times, the log is %s", ran, got)
	}
	w.ask("U1", "more")
	if d := cmp.Diff([]string{"hello", "again"}, w.posts()); d != "" {
		t.Errorf("posts (-want +got):\n%s", d)
	}
}

// Each model call has its callbacks before and after it; state that they write
// is there for the tools and the next render, and recorded once at any crash.
func TestResponseCallbacks(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex // tools run side by side
	agent := func(seen *[]string) harness.Agent {
		note := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			*seen = append(*seen, what)
		}
		return func(c *harness.Context) string {
			harness.UseModel(c, "fast")
			n := harness.UseState(c, "n", 0)
			add := func(call *harness.Call) { n.Update(call, func(v int) int { return v + 1 }) }
			harness.UseResponseStart(c, "before", func(_ context.Context, call *harness.Call) error {
				add(call)
				note("before")
				return nil
			})
			harness.UseResponseFinish(c, "after", func(_ context.Context, call *harness.Call, r harness.Response) error {
				add(call)
				note(fmt.Sprint("after ", r.Text, r.Calls, r.Model, r.Stop, r.Usage.In > 0, r.Cost > 0))
				return nil
			})
			harness.UseTool(c, act("look", func(_ context.Context, call *harness.Call) (string, error) {
				add(call)
				note("look")
				return "", nil
			}))
			return fmt.Sprint(n.Value)
		}
	}
	var seen []string
	w := newWorld(t, agent(&seen), call("look", "look"), scripted.Say("done"))
	w.ask("U1", "go")
	want := []string{"before", "after [look look]scripted/fast-1toolstrue true", "look", "look", "before", "after done[]scripted/fast-1endtrue true"}
	if d := cmp.Diff(want, seen); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got := w.request(0).System + " " + w.request(1).System; got != "0 4" {
		t.Errorf("the renders saw %s", got)
	}
	if got := trace(w.records()); got != "heard rendered wrote said wrote did:done did:done wrote wrote told rendered wrote said wrote settled:answered" {
		t.Errorf("the log is %s", got)
	}
	for _, after := range []bool{false, true} {
		died := true
		for n := 1; died; n++ {
			w := worldOf(t, agent(&seen), scripted.Play(func(ctx context.Context, r model.Request) (model.Response, error) {
				if slices.ContainsFunc(r.Messages, func(m model.Message) bool { return m.Role == model.Results }) {
					return scripted.Say("done")(ctx, r)
				}
				return call("look")(ctx, r)
			}, 0))
			w.say("U1", "go")
			died = w.die(n, after)
			var calls []string
			for _, wr := range of[record.Wrote](w.records()) {
				calls = append(calls, wr.Call)
			}
			for i, c := range calls {
				if strings.Count(strings.Join(calls, " ")+" ", c+" ") != 1 {
					t.Errorf("died at commit %d (after: %v): write %d of %s is there twice: %v", n, after, i, c, calls)
				}
			}
		}
	}
}

// A callback that fails ends the turn where people see it, and no tool of the
// answer runs; the next turn's request is whole.
func TestResponseCallbacksThatFail(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"before", "after"} {
		fail := true
		ran := 0
		w := newWorld(t, func(c *harness.Context) string {
			harness.UseModel(c, "fast")
			harness.UseTool(c, act("look", func(context.Context, *harness.Call) (string, error) { ran++; return "", nil }))
			harness.UseResponseStart(c, "before", func(context.Context, *harness.Call) error {
				if fail && at == "before" {
					return errors.New("no")
				}
				return nil
			})
			harness.UseResponseFinish(c, "after", func(context.Context, *harness.Call, harness.Response) error {
				if fail && at == "after" {
					panic("no")
				}
				return nil
			})
			return "Help."
		}, call("look"), scripted.Say("fine"))
		if at == "before" {
			w.model = scripted.New(scripted.Say("fine"))
			w.wary.Provider = w.model
		}
		w.ask("U1", "go")
		fail = false
		w.ask("U1", "again")
		if d := cmp.Diff([]string{lineBroken, "fine"}, w.posts()); d != "" || ran != 0 {
			t.Errorf("%s: ran %d tools, posts (-want +got):\n%s", at, ran, d)
		}
		if s := of[record.Settled](w.records())[0]; s.Reason != "response callback" {
			t.Errorf("%s: settled as %+v", at, s)
		}
	}
}

// What a compaction callback returns stands in the summary as it is, whatever
// the model wrote, and an error of it leaves the conversation as it is.
func TestCompactionCallback(t *testing.T) {
	t.Parallel()
	var seen []harness.Summarised
	fail := true
	summary := "## Goal\na\n\n## Progress\nb\n\n## Decisions\nc\n\n## Next steps\nd"
	w := worldOf(t, func(c *harness.Context) string {
		harness.UseModel(c, "fast", harness.Compact(harness.Compaction{Keep: 50}))
		folds := harness.UseState(c, "folds", 0)
		harness.UseCompaction(c, "order", func(_ context.Context, call *harness.Call, s harness.Summarised) (string, error) {
			seen = append(seen, s)
			if fail {
				return "", errors.New("not now")
			}
			folds.Update(call, func(n int) int { return n + 1 })
			return "The order is <notice>A-7</notice>.", nil
		})
		return fmt.Sprint("Folded: ", folds.Value)
	}, scripted.Play(func(ctx context.Context, r model.Request) (model.Response, error) {
		if r.System == summarise {
			return scripted.Say(summary)(ctx, r)
		}
		return scripted.Say(strings.Repeat("word ", 60))(ctx, r)
	}, 0))
	w.window(700)
	for range 6 {
		w.ask("U1", strings.Repeat("word ", 60))
	}
	if len(seen) == 0 || len(of[record.Folded](w.records())) != 0 || !strings.Contains(w.logged.String(), "callback order: not now") {
		t.Fatalf("with an error: ran %d times, %d summaries, logged %s", len(seen), len(of[record.Folded](w.records())), w.logged)
	}
	fail, seen = false, nil
	w.ask("U1", "more")
	folded := of[record.Folded](w.records())
	if len(seen) != 1 || len(folded) != 1 || folded[0].Drop != seen[0].Messages || seen[0].Tokens < 100 || seen[0].Why != "threshold" {
		t.Fatalf("saw %+v, recorded %+v", seen, folded)
	}
	first := w.request(-1).Messages[0].Parts[0].Text
	if !strings.Contains(first, summary) || !strings.Contains(first, "\n\nThe order is &lt;notice>A-7&lt;/notice>.") {
		t.Errorf("the summary is %s", first)
	}
	if wrote := of[record.Wrote](w.records()); len(wrote) != 1 || string(wrote[0].Value) != "1" {
		t.Errorf("wrote %+v", wrote)
	}
}

// A callback of the wrong place is a mistake that says where it belongs.
func TestSettledInATask(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain())
	w.opts.Agents["tested"] = func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		harness.UseSubagent(c, harness.Subagent{Name: "helper", Doc: "helps", Agent: func(c *harness.Context) string {
			harness.UseSettled(c, "x", func(context.Context, *harness.Call, harness.Settled) error { return nil })
			return ""
		}})
		return ""
	}
	_, err := New(w.opts)
	if err == nil || !strings.Contains(err.Error(), `agent "helper": UseSettled: "x": a task only gives its answer back; use UseTurnFinish in a subagent`) {
		t.Errorf("got %v", err)
	}
}

// Who wants the turn to end while its callbacks run is obeyed: it has ended. The
// callbacks run to their end, once, and no other turn is opened.
func TestStopWhileSettledCallbacksRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ran, free := 0, make(chan struct{})
		w := newWorld(t, func(c *harness.Context) string {
			harness.UseModel(c, "fast")
			harness.UseSettled(c, "slow", func(ctx context.Context, _ *harness.Call, _ harness.Settled) error {
				if ran++; ran > 1 {
					return nil
				}
				select {
				case <-ctx.Done():
					t.Error("the callback was stopped")
				case <-free:
				}
				return nil
			})
			return "Help."
		}, scripted.Say("hello"), scripted.Say("again"))
		w.say("U1", "hi")
		w.during(func() {
			w.say("U1", "stop")
			w.say("U2", "Cancel!")
			w.say("U1", "another matter")
			w.say("U1", "stop")
			time.AfterFunc(10*time.Second, func() { close(free) })
		})
		if got := trace(w.records()); got != "heard rendered said settled:answered controlled controlled notified heard controlled settled:aborted notified" {
			t.Errorf("the log is %s", got)
		}
		if ran != 2 {
			t.Errorf("callbacks ran %d times for two turns", ran)
		}
		if d := cmp.Diff([]string{"hello", "Stopped."}, w.posts()); d != "" {
			t.Errorf("posts (-want +got):\n%s", d)
		}
	})
}
