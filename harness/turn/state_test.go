package turn

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model/scripted"
)

// counter is an agent whose instructions hold its state.
func counter(c *harness.Context) string {
	harness.UseModel(c, "fast")
	n := harness.UseState(c, "n", 0)
	harness.UseTool(c, act("count", func(_ context.Context, call *harness.Call) (string, error) {
		n.Update(call, func(v int) int { return v + 1 })
		return "counted", nil
	}))
	return fmt.Sprintf("Counted %d times.", n.Value)
}

// A write is there at the next render, also in another process.
func TestStateSurvivesRestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, counter, call("count"), scripted.Say("1"), scripted.Say("2"))
	w.ask("U1", "go")
	w.restart()
	w.ask("U1", "go on")
	for i, want := range []string{"Counted 0 times.", "Counted 1 times.", "Counted 1 times."} {
		if got := w.request(i).System; got != want {
			t.Errorf("request %d says %q, want %q", i, got, want)
		}
	}
}

// State lives as long as the conversation: over many turns and restarts, and
// the instructions hold the right number in each.
func TestStateOverTurnsAndRestarts(t *testing.T) {
	t.Parallel()
	var steps []scripted.Step
	for range 100 {
		steps = append(steps, call("count"), scripted.Say("ok"))
	}
	w := newWorld(t, counter, steps...)
	for i := range 100 {
		if i%33 == 32 {
			w.restart()
		}
		w.ask("U1", "go")
		for k, want := range []int{i, i + 1} {
			if got := w.request(2*i + k).System; got != fmt.Sprintf("Counted %d times.", want) {
				t.Fatalf("turn %d, step %d: %q", i, k+1, got)
			}
		}
	}
}

// Swapping two declarations and starting anew leaves values with their names.
func TestStateStaysWithItsName(t *testing.T) {
	t.Parallel()
	agent := func(order ...string) harness.Agent {
		return func(c *harness.Context) string {
			harness.UseModel(c, "fast")
			text := ""
			for _, name := range order {
				s := harness.UseState(c, name, "unset")
				text += name + "=" + s.Value + " "
				harness.UseTool(c, act("set_"+name, func(_ context.Context, call *harness.Call) (string, error) {
					s.Set(call, "value of "+name)
					return "", nil
				}))
			}
			return text
		}
	}
	w := newWorld(t, agent("a", "b"), call("set_a", "set_b"), scripted.Say("1"), scripted.Say("2"))
	w.ask("U1", "go")
	w.opts.Agents["tested"] = agent("b", "a")
	w.restart()
	w.wary.stable = true
	w.ask("U1", "go")
	if got := w.request(-1).System; got != "b=value of b a=value of a " {
		t.Errorf("after the swap: %q", got)
	}
}

// Two calls of one step that add one make two.
func TestParallelUpdates(t *testing.T) {
	t.Parallel()
	both := make(chan struct{})
	var first sync.Once
	w := newWorld(t, func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		n := harness.UseState(c, "n", 40)
		harness.UseTool(c, act("add", func(_ context.Context, call *harness.Call) (string, error) {
			last := true
			first.Do(func() { last = false })
			if last {
				close(both)
			}
			<-both // both run before either writes
			n.Update(call, func(v int) int { return v + 1 })
			return "", nil
		}))
		return strconv.Itoa(n.Value)
	}, call("add", "add"), scripted.Say("ok"))
	w.ask("U1", "go")
	if got := w.request(1).System; got != "42" {
		t.Errorf("the value is %s, want 42", got)
	}
}

// A value without a JSON form fails the call; the model is told, nothing is stored.
func TestStateValueWithoutJSONIsNotStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		s := harness.UseState[any](c, "s", "init")
		harness.UseTool(c, act("break", func(_ context.Context, call *harness.Call) (string, error) {
			s.Set(call, make(chan int))
			return "stored", nil
		}))
		return fmt.Sprint(s.Value)
	}, call("break"), scripted.Say("ok"))
	w.ask("U1", "go")
	did := of[record.Did](w.records())
	if len(did) != 1 || did[0].End != record.Failed || !strings.Contains(did[0].Text, "no JSON form") {
		t.Errorf("the call ended as %+v", did)
	}
	if wrote := of[record.Wrote](w.records()); len(wrote) != 0 || w.request(1).System != "init" {
		t.Errorf("stored %+v, the next render says %q", wrote, w.request(1).System)
	}
}

// The log shows result, write and the render that follows from it, in this order.
func TestOrderInTheLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t, counter, call("count"), scripted.Say("ok"))
	w.ask("U1", "go")
	if got := trace(w.records()); got != "heard rendered said did:done wrote told rendered said settled:answered" {
		t.Errorf("the log is %s", got)
	}
	rendered := of[record.Rendered](w.records())
	if rendered[0].Digest == rendered[1].Digest {
		t.Error("the state changed the instructions and not the digest")
	}
	want := []record.Wrote{{Turn: of[record.Settled](w.records())[0].Turn, Step: 1, Call: of[record.Did](w.records())[0].CallID, Name: "n", Value: []byte("1")}}
	if d := cmp.Diff(want, of[record.Wrote](w.records())); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
