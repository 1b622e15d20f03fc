package harness_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/heddlehq/heddle/harness"
)

// A state is found by its name: the order of the declarations does not matter.
func TestStateByNameNotOrder(t *testing.T) {
	t.Parallel()
	s := snapshot()
	s.State = map[string]json.RawMessage{"a": json.RawMessage("1"), "b": json.RawMessage("2")}
	for _, order := range [][]string{{"a", "b"}, {"b", "a"}, {"b", "new", "a"}} {
		render(t, func(c *harness.Context) string {
			harness.UseModel(c, "fast")
			got := map[string]int{}
			for _, name := range order {
				got[name] = harness.UseState(c, name, 7).Value
			}
			if got["a"] != 1 || got["b"] != 2 || slices.Contains(order, "new") && got["new"] != 7 {
				t.Errorf("order %v: got %v", order, got)
			}
			return ""
		}, s)
	}
}

// writer is an agent with a tool that runs f.
func writer(f func(c *harness.Call, n harness.State[any]) error) harness.Agent {
	return func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		n := harness.UseState[any](c, "n", nil)
		harness.UseTool(c, harness.NewTool("write_n", "", func(_ context.Context, call *harness.Call, _ struct{}) (string, error) {
			return "ok", f(call, n)
		}))
		return ""
	}
}

func TestStateValueWithoutJSON(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]any{"channel": make(chan int), "function": func() {}, "not a number": math.NaN(), "inside": map[string]any{"x": make(chan int)}} {
		b := newBench(t, writer(func(c *harness.Call, n harness.State[any]) error { n.Set(c, v); return nil }))
		if _, err := b.run("write_n", object{}); err == nil || !strings.Contains(err.Error(), `state "n": the value has no JSON form`) {
			t.Errorf("%s: the call ended with %v", name, err)
		}
		if w := b.scope.Writes(); len(w) != 0 {
			t.Errorf("%s: stored %s", name, w[0].Value)
		}
	}
}

func TestStateUpdatesSeeTheLatest(t *testing.T) {
	t.Parallel()
	b := newBench(t, writer(func(c *harness.Call, n harness.State[any]) error {
		n.Update(c, func(v any) any { f, _ := v.(float64); return f + 1 })
		return nil
	}))
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			if _, err := b.run("write_n", object{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	w := b.scope.Writes()
	if len(w) != 100 || string(w[99].Value) != "100" || w[0].Name != "n" || w[0].Call != "call_1" {
		t.Errorf("%d writes, the last is %+v", len(w), w[len(w)-1])
	}
}

// The value of a render is not changed by writes: the next render sees them.
func TestStateOfARenderStays(t *testing.T) {
	t.Parallel()
	b := newBench(t, writer(func(c *harness.Call, n harness.State[any]) error {
		n.Set(c, 5)
		if n.Value != nil {
			return fmt.Errorf("the value became %v", n.Value)
		}
		return nil
	}))
	b.must("write_n", object{})
	if got := string(b.scope.Writes()[0].Value); got != "5" {
		t.Errorf("wrote %s", got)
	}
}
