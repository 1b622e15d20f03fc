package harness_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/heddlehq/heddle/harness"
)

// State can be written only with a *Call, and a render is handed none:
//
//	visits := harness.UseState(c, "visits", 0)
//	visits.Set(c, 1) // cannot use c (variable of type *harness.Context) as *harness.Call value
func ExampleUseState() {
	agent := func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		visits := harness.UseState(c, "visits", 0)
		harness.UseTool(c, harness.NewTool("count", "Counts a visit.",
			func(_ context.Context, call *harness.Call, _ struct{}) (string, error) {
				visits.Update(call, func(n int) int { return n + 1 })
				return "counted", nil
			}))
		return fmt.Sprintf("Visits: %d.", visits.Value)
	}
	s := harness.Snapshot{State: map[string]json.RawMessage{"visits": json.RawMessage("41")}}
	m, _ := harness.Render(agent, s)
	scope := harness.NewScope(s, nil)
	count, _ := m.Tool("count")
	text, _ := count.Run(context.Background(), scope.Call("call_1", "count"), nil)
	fmt.Println(m.System(), text, string(scope.Writes()[0].Value))
	// Output: Visits: 41. counted 42
}

// A cart was a list of names once and has quantities now.
func ExampleMigrate() {
	type cart map[string]int
	agent := func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		items := harness.UseState(c, "cart", cart{}, harness.Migrate(2, func(old json.RawMessage, _ int) (cart, error) {
			var names []string
			err := json.Unmarshal(old, &names)
			now := cart{}
			for _, n := range names {
				now[n]++
			}
			return now, err
		}))
		return fmt.Sprintf("In the cart: %v.", items.Value)
	}
	old := map[string]json.RawMessage{"cart": json.RawMessage(`["yarn","needle","yarn"]`)}
	m, _ := harness.Render(agent, harness.Snapshot{State: old})
	fmt.Println(m.System())
	// Output: In the cart: map[needle:1 yarn:2].
}

// A program began the conversation with the number of an order.
func ExampleUseInitialData() {
	type order struct {
		ID string `json:"id"`
	}
	agent := func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		if o, ok := harness.UseInitialData[order](c); ok {
			return "Answer questions about order " + o.ID + "."
		}
		return "Ask for the number of the order."
	}
	m, _ := harness.Render(agent, harness.Snapshot{Initial: json.RawMessage(`{"id":"A-7"}`)})
	fmt.Println(m.System())
	_, err := harness.Render(agent, harness.Snapshot{Agent: "orders", Initial: json.RawMessage(`{}`)})
	fmt.Println(err)
	// Output:
	// Answer questions about order A-7.
	// agent "orders": UseInitialData: the initial data does not fit harness_test.order: validating root: required: missing properties: ["id"]; begin the conversation with other data
}

// Programs that read the conversation see how far the work is.
func ExampleUseData() {
	type progress struct {
		Done int `json:"done"`
		Of   int `json:"of"`
	}
	agent := func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		at := harness.UseData[progress](c, "progress")
		harness.UseTool(c, harness.NewTool("import", "Imports the files.",
			func(_ context.Context, call *harness.Call, _ struct{}) (string, error) {
				for i := range 3 {
					at.Write(call, progress{Done: i + 1, Of: 3})
				}
				return "imported", nil
			}))
		return "Import what is asked for."
	}
	m, _ := harness.Render(agent, harness.Snapshot{})
	scope := harness.NewScope(harness.Snapshot{}, nil)
	tool, _ := m.Tool("import")
	_, _ = tool.Run(context.Background(), scope.Call("call_1", "import"), nil)
	for _, p := range scope.Parts() {
		fmt.Println(p.Name, string(p.Value))
	}
	// Output:
	// progress {"done":1,"of":3}
	// progress {"done":2,"of":3}
	// progress {"done":3,"of":3}
}
