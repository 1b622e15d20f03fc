package harness_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/model"
)

// moment renders an agent and makes the call of a callback, as the engine does.
func moment(a harness.Agent) (harness.Manifest, *harness.Scope, *harness.Call) {
	m, err := harness.Render(a, harness.Snapshot{Agent: "example"})
	if err != nil {
		panic(err)
	}
	scope := harness.NewScope(harness.Snapshot{}, nil)
	return m, scope, scope.Call("callback", "")
}

// What the model has to know is loaded before it is asked.
func ExampleUseTurnStart() {
	agent := func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		plan := harness.UseState(c, "plan", "")
		harness.UseTurnStart(c, "load", func(_ context.Context, call *harness.Call) error {
			plan.Set(call, "pro") // from the billing system
			return nil
		})
		return "The customer's plan: " + plan.Value
	}
	m, scope, call := moment(agent)
	_ = m.Starts[0].Run(context.Background(), call)
	fmt.Println(string(scope.Writes()[0].Value))
	// Output: "pro"
}

// An answer without a source goes back to the model.
func ExampleUseTurnFinish() {
	agent := func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		harness.UseTurnFinish(c, "sources", func(_ context.Context, _ *harness.Call, answer string) (string, error) {
			if !strings.Contains(answer, "https://") {
				return "Name the page that says so.", nil
			}
			return "", nil
		})
		return "Answer from the handbook."
	}
	m, _, call := moment(agent)
	again, _ := m.Finishes[0].Run(context.Background(), call, "Twenty days.")
	fmt.Println(again)
	// Output: Name the page that says so.
}

// Nothing is deployed on a Friday, whatever the model wants.
func ExampleUseToolCall() {
	agent := func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		friday := c.Now().Weekday().String() == "Friday"
		harness.UseToolCall(c, "friday", func(_ context.Context, call *harness.Call, _ json.RawMessage) (json.RawMessage, error) {
			if call.Tool == "deploy" && friday {
				return nil, errors.New("not on a Friday")
			}
			return nil, nil
		})
		return "Help."
	}
	m, _ := harness.Render(agent, harness.Snapshot{Now: when("2026-03-06")})
	scope := harness.NewScope(harness.Snapshot{}, nil)
	_, err := m.Guards[0].Run(context.Background(), scope.Call("call_1", "deploy"), nil)
	fmt.Println(err)
	// Output: not on a Friday
}

// How often the model was asked is known to the next render.
func ExampleUseResponseStart() {
	agent := func(c *harness.Context) string {
		asked := harness.UseState(c, "asked", 0)
		harness.UseModel(c, "fast")
		harness.UseResponseStart(c, "count", func(_ context.Context, call *harness.Call) error {
			asked.Update(call, func(n int) int { return n + 1 })
			return nil
		})
		return "Help."
	}
	m, scope, call := moment(agent)
	_ = m.Asks[0].Run(context.Background(), call)
	fmt.Println(string(scope.Writes()[0].Value))
	// Output: 1
}

// Programs see what each answer cost.
func ExampleUseResponseFinish() {
	agent := func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		spent := harness.UseData[string](c, "spent")
		harness.UseResponseFinish(c, "meter", func(_ context.Context, call *harness.Call, r harness.Response) error {
			spent.Write(call, fmt.Sprintf("%s: $%.3f for %d tools", r.Model, r.Cost, len(r.Calls)))
			return nil
		})
		return "Help."
	}
	m, scope, call := moment(agent)
	_ = m.Answers[0].Run(context.Background(), call, harness.Response{Model: "openai/gpt", Cost: 0.012, Calls: []string{"read"}, Usage: model.Usage{In: 900}})
	fmt.Println(string(scope.Parts()[0].Value))
	// Output: "openai/gpt: $0.012 for 1 tools"
}

// When a turn has failed for good, somebody is told.
func ExampleUseSettled() {
	ops := chat.Thread{Channel: "slack", Account: "T01", Room: "OPS"}
	agent := func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		d := harness.UseDispatch(c)
		harness.UseSettled(c, "alarm", func(_ context.Context, call *harness.Call, s harness.Settled) error {
			if s.Outcome != "failed" {
				return nil
			}
			return d.Send(call, ops, "An answer failed: "+s.Reason)
		})
		return "Help."
	}
	m, scope, call := moment(agent)
	_ = m.Settles[0].Run(context.Background(), call, harness.Settled{Outcome: "failed", Reason: "model denied"})
	fmt.Println(scope.Sent()[0].To, scope.Sent()[0].Text)
	// Output: slack/T01/OPS/ An answer failed: model denied
}

// A number that must not be lost stands in every summary.
func ExampleUseCompaction() {
	agent := func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		order := harness.UseState(c, "order", "A-7")
		harness.UseCompaction(c, "order", func(_ context.Context, _ *harness.Call, s harness.Summarised) (string, error) {
			return fmt.Sprintf("The order is %s. (%d messages were summarised.)", order.Value, s.Messages), nil
		})
		return "Help with the order."
	}
	m, _, call := moment(agent)
	keep, _ := m.Folds[0].Run(context.Background(), call, harness.Summarised{Messages: 40, Why: "threshold"})
	fmt.Println(keep)
	// Output: The order is A-7. (40 messages were summarised.)
}
