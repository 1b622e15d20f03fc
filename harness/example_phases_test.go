package harness_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/heddlehq/heddle/harness"
)

func when(day string) time.Time {
	t, err := time.Parse(time.DateOnly, day)
	if err != nil {
		panic(err)
	}
	return t
}

// An incident has three phases, each with a model, a skill and a tool of its own.
// The model judges when a phase is over; only the phase's submit tool, which is
// code, moves on. There is no graph: a state and a switch say it.
func Example_phases() {
	type finding struct {
		Finding string `json:"finding" jsonschema:"what was found, in one sentence"`
	}
	agent := func(c *harness.Context) string {
		phase := harness.UseState(c, "phase", "triage")
		submit := func(next string) harness.Tool {
			return harness.NewTool("submit_"+phase.Value, "Ends this phase with its finding.",
				func(_ context.Context, call *harness.Call, f finding) (string, error) {
					if f.Finding == "" {
						return "", fmt.Errorf("%w: a phase ends with a finding", harness.ErrArgs)
					}
					phase.Set(call, next)
					return "noted", nil
				})
		}
		harness.UseSkill(c, harness.Skill{Name: phase.Value, Doc: "how we do the " + phase.Value, Body: "..."})
		switch phase.Value {
		case "triage":
			harness.UseModel(c, "fast")
			harness.UseTool(c, submit("diagnosis"))
		case "diagnosis":
			harness.UseModel(c, "strong")
			harness.UseTool(c, submit("report"))
		case "report":
			harness.UseModel(c, "fast")
			harness.UseTool(c, submit("triage"))
		}
		return "You are in the " + phase.Value + " of an incident."
	}
	s := harness.Snapshot{State: map[string]json.RawMessage{}}
	for range 3 {
		m, _ := harness.Render(agent, s)
		fmt.Println(m.Model, names(m))
		scope := harness.NewScope(s, nil)
		_, _ = m.Tools[0].Run(context.Background(), scope.Call("call_1", m.Tools[0].Name), json.RawMessage(`{"finding":"the disk is full"}`))
		for _, w := range scope.Writes() {
			s.State[w.Name] = w.Value
		}
	}
	// Output:
	// fast submit_triage skill
	// strong submit_diagnosis skill
	// fast submit_report skill
}
