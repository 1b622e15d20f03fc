package harness_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/harness"
)

// tallies is an agent whose state has had three forms: "2", {"n":2}, {"count":2}.
func tallies(seen *[]int) harness.Agent {
	type form struct {
		Count int `json:"count"`
	}
	return func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		s := harness.UseState(c, "tally", form{Count: 7}, harness.Migrate(3, func(old json.RawMessage, from int) (form, error) {
			*seen = append(*seen, from)
			switch from {
			case 1:
				var n int
				err := json.Unmarshal(old, &n)
				return form{Count: n}, err
			case 2:
				var o struct{ N int }
				err := json.Unmarshal(old, &o)
				return form{Count: o.N}, err
			}
			return form{}, fmt.Errorf("no form %d", from)
		}))
		harness.UseTool(c, harness.NewTool("add", "", func(_ context.Context, call *harness.Call, _ struct{}) (string, error) {
			s.Update(call, func(f form) form { return form{Count: f.Count + 1} })
			return "", nil
		}))
		harness.UseTool(c, harness.NewTool("drop", "", func(_ context.Context, call *harness.Call, _ struct{}) (string, error) {
			s.Delete(call)
			return "", nil
		}))
		return fmt.Sprint(s.Value.Count)
	}
}

// An older form is migrated at render, and stored in the new form with the next
// write; what newer code has stored is left alone.
func TestStateMigrates(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		raw     string
		version int
		want    string // the rendered count, or the mistake
		from    []int  // what one render migrates
	}{
		"nothing":      {"", 0, "7", nil},
		"first form":   {"2", 0, "2", []int{1}},
		"second form":  {`{"n":2}`, 2, "2", []int{2}},
		"today's form": {`{"count":2}`, 3, "2", nil},
		"newer form":   {`{"count":2}`, 4, `UseState: "tally": the stored value has version 4 and this code knows 3; run the newer code, or use another name`, nil},
		"damaged":      {`"x"`, 2, `UseState: "tally": migrate from version 2 to 3: json: cannot unmarshal string into Go value of type struct { N int }`, []int{2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := snapshot()
			if tt.raw != "" {
				s.State, s.Versions = map[string]json.RawMessage{"tally": json.RawMessage(tt.raw)}, map[string]int{"tally": tt.version}
			}
			var from []int
			m, err := harness.Render(tallies(&from), s)
			if d := cmp.Diff(tt.from, from); d != "" {
				t.Errorf("migrated (-want +got):\n%s", d)
			}
			if err != nil {
				if !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v, want %s", err, tt.want)
				}
				return
			}
			if m.System() != tt.want {
				t.Errorf("rendered %s, want %s", m.System(), tt.want)
			}
			scope := harness.NewScope(s, nil)
			for _, tool := range []string{"add", "add", "drop", "add"} {
				tl, _ := m.Tool(tool)
				if _, err := tl.Run(context.Background(), scope.Call("c_"+tool, tool), nil); err != nil {
					t.Fatal(err)
				}
			}
			var got []string
			for _, w := range scope.Writes() {
				got = append(got, fmt.Sprintf("%s %s %s %d", w.Call, w.Name, w.Value, w.Version))
			}
			var n int
			fmt.Sscan(tt.want, &n)
			want := []string{fmt.Sprintf(`c_add tally {"count":%d} 3`, n+1), fmt.Sprintf(`c_add tally {"count":%d} 3`, n+2), "c_drop tally  0", `c_add tally {"count":8} 3`}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("writes (-want +got):\n%s", d)
			}
		})
	}
}

// A mistake in the data that a conversation began with can be told from one of the agent's author.
func TestInitialDataThatDoesNotFit(t *testing.T) {
	t.Parallel()
	type order struct {
		ID string `json:"id"`
		N  int    `json:"n,omitempty"`
	}
	agent := func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		o, ok := harness.UseInitialData[order](c)
		return fmt.Sprint(o, ok)
	}
	for data, want := range map[string]string{"": "{ 0} false", `{"id":"a"}`: "{a 0} true", `{"id":"a","n":2}`: "{a 2} true", `null`: "", `{}`: "", `{"id":1}`: "", `{"id":"a","more":1}`: "", `[]`: "", `{"id"`: ""} {
		s := snapshot()
		if data != "" {
			s.Initial = json.RawMessage(data)
		}
		m, err := harness.Render(agent, s)
		if wrong := errors.Is(err, harness.ErrInitial); wrong != (want == "") || err == nil && m.System() != want {
			t.Errorf("%s: %s, %v, want %q", data, m.System(), err, want)
		}
	}
	s := snapshot()
	s.Initial = json.RawMessage("1")
	if _, err := harness.Render(func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		harness.UseInitialData[func()](c)
		return ""
	}, s); err == nil || errors.Is(err, harness.ErrInitial) {
		t.Errorf("a type without a JSON form: %v", err)
	}
}
