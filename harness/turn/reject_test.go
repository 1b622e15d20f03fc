package turn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
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

type number struct {
	N int `json:"n"`
}

// counting is a tool that takes a number and counts its runs.
func counting(ran *atomic.Int64) harness.Tool {
	return harness.NewTool("count", "", func(_ context.Context, _ *harness.Call, _ number) (string, error) {
		ran.Add(1)
		return "counted", nil
	})
}

// Calls that are the model's mistake run nothing. It is told twice in a turn;
// the third step with mistakes ends the turn, and people are told.
func TestMistakesEndTheTurn(t *testing.T) {
	t.Parallel()
	good := scripted.Call("count", `{"n":1}`)
	bad := map[string]scripted.Step{
		"not JSON":     scripted.Call("count", `{"n":1`),
		"no object":    scripted.Call("count", `[1]`),
		"wrong type":   scripted.Call("count", `{"n":"one"}`),
		"wrong field":  scripted.Call("count", `{"n":1,"m":2}`),
		"unknown tool": scripted.Call("recount", `{"n":1}`),
		"10 MiB":       scripted.Call("count", `{"n":1,"pad":"`+strings.Repeat("x", 10<<20)+`"}`),
		"too deep":     scripted.Call("count", `{"n":1,"m":`+strings.Repeat("[", 9999)+strings.Repeat("]", 9999)+"}"),
		"10 MiB of no": scripted.Call("count", strings.Repeat("x", 10<<20)),
		"200 at once":  scripted.Answer(slices.Repeat([]model.Part{scripted.ToolCall("count", `{"n":`)}, 200)...),
	}
	mixed := []scripted.Step{bad["not JSON"], good, bad["unknown tool"], good, bad["wrong type"]}
	for name, tt := range map[string]struct {
		steps []scripted.Step
		ran   int64
		post  string
	}{
		"once":        {[]scripted.Step{bad["not JSON"], good, scripted.Say("ok")}, 1, "ok"},
		"twice":       {[]scripted.Step{bad["unknown tool"], bad["wrong type"], good, scripted.Say("ok")}, 1, "ok"},
		"one of each": {mixed, 2, lineRejected},
		"beside good": {slices.Repeat([]scripted.Step{scripted.Answer(scripted.ToolCall("count", `{"n":1}`), scripted.ToolCall("count", `{`))}, 3), 3, lineRejected},
	} {
		w, ran := mistaken(t, tt.steps...)
		w.ask("U1", "go")
		if d := cmp.Diff([]string{tt.post}, w.posts()); d != "" || ran.Load() != tt.ran {
			t.Errorf("%s: it ran %d times, want %d; posts (-want +got):\n%s", name, ran.Load(), tt.ran, d)
		}
	}
	for name, step := range bad {
		w, ran := mistaken(t, step, step, step, scripted.Say("next"))
		w.ask("U1", "go")
		w.ask("U1", "again") // a turn begins with none
		s := of[record.Settled](w.records())
		if len(s) != 2 || s[0].Outcome != record.Broken || s[0].Reason != "calls rejected" || ran.Load() != 0 {
			t.Errorf("%s: it ran %d times, settled %+v", name, ran.Load(), s)
		}
		if d := cmp.Diff([]string{lineRejected, "next"}, w.posts()); d != "" {
			t.Errorf("%s: posts (-want +got):\n%s", name, d)
		}
		v, err := w.store.Load(context.Background(), state.ConversationID("tested", thread), 0)
		bytes := 0
		for _, r := range v.Records {
			bytes += len(r.Data)
		}
		if err != nil || bytes > 1<<20 {
			t.Errorf("%s: the log takes %d bytes, %v", name, bytes, err)
		}
	}
}

func mistaken(t *testing.T, steps ...scripted.Step) (*world, *atomic.Int64) {
	t.Helper()
	var ran atomic.Int64
	return newWorld(t, plain(counting(&ran)), steps...), &ran
}

// A restart forgets no mistake, and the log says which it was.
func TestMistakesAreRecorded(t *testing.T) {
	t.Parallel()
	w, _ := mistaken(t, scripted.Call("count", `{`), scripted.Call("recount", `{}`), scripted.Call("count", `{"n":""}`), scripted.Call("count", `{"n":""}`), scripted.Say("never"))
	w.log = &mortal{Log: w.store, dies: at(5, before)} // its third answer is asked for in a second process
	w.restart()
	w.say("U1", "go")
	if err := w.try(); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	w.store.Expire()
	w.log = w.store
	w.restart()
	w.run()
	if d := cmp.Diff([]string{lineRejected}, w.posts()); d != "" {
		t.Errorf("posts (-want +got):\n%s", d)
	}
	var got []string
	for _, d := range of[record.Did](w.records()) {
		got = append(got, d.Rejected)
	}
	if d := cmp.Diff([]string{record.BadArguments, record.UnknownTool, record.BadArguments}, got); d != "" {
		t.Errorf("recorded (-want +got):\n%s", d)
	}
	if !strings.Contains(w.logged.String(), `reason="unknown tool"`) {
		t.Error("operators are not told why")
	}
}

// same is a provider whose calls all have one id, against the port's promise.
type same struct{ model.Provider }

func (p same) Stream(ctx context.Context, r model.Request, on func(model.Delta)) (model.Response, error) {
	resp, err := p.Provider.Stream(ctx, r, on)
	for i := range resp.Parts {
		if resp.Parts[i].Kind == model.Call {
			resp.Parts[i].CallID = "call_x"
		}
	}
	return resp, err
}

// Calls that cannot be told apart by their ids are refused with their answer:
// nothing runs.
func TestDuplicateCallIDs(t *testing.T) {
	t.Parallel()
	good := scripted.Call("count", `{"n":1}`)
	two := scripted.Answer(scripted.ToolCall("count", `{"n":1}`), scripted.ToolCall("count", `{"n":2}`))
	for name, tt := range map[string]struct {
		steps []scripted.Step
		ran   int64
		posts []string
	}{
		"once":             {[]scripted.Step{two, good, scripted.Say("ok")}, 1, []string{"ok"}},
		"twice":            {[]scripted.Step{two, two, scripted.Say("ok")}, 0, []string{lineBusy}},
		"of an older call": {[]scripted.Step{good, good, scripted.Say("ok")}, 1, []string{"ok"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, ran := mistaken(t, tt.steps...)
				names, err := model.NewNames([]model.Provider{same{w.wary}}, map[string]string{"fast": "scripted/fast-1"}, nil)
				if err != nil {
					t.Fatal(err)
				}
				w.opts.Models = names
				w.restart()
				w.ask("U1", "go")
				if d := cmp.Diff(tt.posts, w.posts()); d != "" || ran.Load() != tt.ran {
					t.Errorf("it ran %d times, want %d; posts (-want +got):\n%s", ran.Load(), tt.ran, d)
				}
			})
		})
	}
}

// Of the calls that had one id in their answer, the first is run and the others
// are refused; that is no mistake that ends the turn.
func TestRepeatedCallIDs(t *testing.T) {
	t.Parallel()
	first, again := scripted.ToolCall("count", `{"n":1}`), scripted.ToolCall("count", `{"n":2}`)
	first.CallID, again.CallID = "call_a", "call_a"
	w, ran := mistaken(t, scripted.Answer(first, again, again), scripted.Say("ok"))
	w.ask("U1", "go")
	var got []string
	for _, d := range of[record.Did](w.records()) {
		got = append(got, d.CallID+" "+string(d.End)+d.Rejected)
	}
	if d := cmp.Diff([]string{"call_a done", "call_2 refused", "call_3 refused"}, got); d != "" || ran.Load() != 1 {
		t.Errorf("it ran %d times; (-want +got):\n%s", ran.Load(), d)
	}
	if d := cmp.Diff([]string{"ok"}, w.posts()); d != "" {
		t.Errorf("posts (-want +got):\n%s", d)
	}
}

// Two hundred calls of one answer: sixteen run at a time, those of a group one
// after the other and in order, each within its time, tried again as often as
// its tool says; the results come in the order of the calls.
func TestEachToolHasItsOwnRules(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var now, most, grouped, mostGrouped atomic.Int64
		inside := func(n, m *atomic.Int64) func() {
			for v := n.Add(1); ; {
				if old := m.Load(); old >= v || m.CompareAndSwap(old, v) {
					return func() { n.Add(-1) }
				}
			}
		}
		var order []int // of the group, which runs one at a time
		tool := func(name string, f func(ctx context.Context, n int) error) harness.Tool {
			return harness.NewTool(name, "", func(ctx context.Context, _ *harness.Call, in number) (string, error) {
				defer inside(&now, &most)()
				return fmt.Sprint(name, " ", in.N), f(ctx, in.N)
			})
		}
		write := func(ctx context.Context, n int) error {
			defer inside(&grouped, &mostGrouped)()
			order = append(order, n)
			time.Sleep(time.Second)
			return nil
		}
		tries := make([]atomic.Int64, 200)
		w := newWorld(t, plain(
			tool("quick", func(context.Context, int) error { time.Sleep(time.Second); return nil }),
			tool("insert", write).SerialWith("db"), tool("delete", write).SerialWith("db"),
			tool("stuck", func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() }).Timeout(3*time.Second),
			tool("shaky", func(_ context.Context, n int) error {
				if tries[n].Add(1) <= int64(n%4) {
					return errors.New("not now")
				}
				return nil
			}).Retry(2),
		), func(ctx context.Context, r model.Request) (model.Response, error) {
			var parts []model.Part
			for n := range 200 {
				name := "quick"
				if n%10 == 0 {
					name = []string{"insert", "delete", "stuck", "shaky"}[n/10%4]
				}
				if n > 180 {
					name = "shaky"
				}
				parts = append(parts, scripted.ToolCall(name, fmt.Sprintf(`{"n":%d}`, n)))
			}
			return scripted.Answer(parts...)(ctx, r)
		}, scripted.Say("ok"))
		w.ask("U1", "go")
		did := of[record.Did](w.records())
		if len(did) != 200 || most.Load() != 16 || mostGrouped.Load() != 1 || !slices.IsSorted(order) || len(order) != 10 {
			t.Errorf("%d results; at most %d ran at a time, of the group %d, in the order %v", len(did), most.Load(), mostGrouped.Load(), order)
		}
		for n, d := range did {
			want := fmt.Sprintf("%s %d", d.Tool, n)
			switch {
			case d.Tool == "stuck":
				want = "Error: stuck did not finish within 3s; its outcome is unknown"
			case d.Tool == "shaky" && n%4 == 3:
				want = "Error: not now"
			}
			if d.Text != want || d.Tool == "shaky" && tries[n].Load() != int64(min(n%4, 2)+1) {
				t.Errorf("call %d: %s %q after %d tries, want %q", n, d.End, d.Text, tries[n].Load(), want)
			}
		}
	})
}

// Three suppliers are asked at once; one is slow, one fails. The model gets all
// three outcomes, in the order of its calls, and the turn goes on.
func TestBranchesJoin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ask := func(name string, after time.Duration, err error) harness.Tool {
			return act(name, func(ctx context.Context, _ *harness.Call) (string, error) {
				select {
				case <-time.After(after):
					return name + " offers 7", err
				case <-ctx.Done():
					return "", ctx.Err()
				}
			}).Timeout(10 * time.Second)
		}
		w := newWorld(t, plain(ask("slow", time.Hour, nil), ask("failing", 2*time.Second, errors.New("closed")), ask("good", time.Second, nil)),
			call("slow", "failing", "good"), scripted.Say("one offer"))
		began := time.Now()
		w.ask("U1", "offers?")
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("it took %v", took)
		}
		var got []string
		for _, p := range w.request(-1).Messages[2].Parts {
			got = append(got, p.Name+": "+p.Text)
		}
		want := []string{"slow: Error: slow did not finish within 10s; its outcome is unknown", "failing: Error: closed", "good: good offers 7"}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("results (-want +got):\n%s", d)
		}
		if d := cmp.Diff([]string{"one offer"}, w.posts()); d != "" {
			t.Errorf("posts (-want +got):\n%s", d)
		}
	})
}
