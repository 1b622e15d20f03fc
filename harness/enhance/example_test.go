package enhance_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/enhance"
)

// A member's question begins with a quick model; the model climbs when it needs
// more, and the next step of the same answer has it. A stranger's stays below.
func ExampleUse() {
	agent := func(c *harness.Context) string {
		enhance.Use(
			c,
			enhance.Rung{Name: "quick answers", Model: "fast"},
			enhance.Rung{Name: "a stronger model and a shell", Model: "strong", Sandbox: "virtual", Who: chat.Member},
		)
		return "Help."
	}
	for _, trust := range []chat.Role{chat.Outsider, chat.Member} {
		s := harness.Snapshot{Trust: trust, State: map[string]json.RawMessage{}}
		for range 2 {
			m, _ := harness.Render(agent, s)
			fmt.Println(trust, m.Model, len(m.Tools))
			scope := harness.NewScope(s, nil)
			if tool, ok := m.Tool("enhance"); ok {
				_, _ = tool.Run(context.Background(), scope.Call("call_1", "enhance"), json.RawMessage(`{"reason":"it needs a build"}`))
			}
			for _, w := range scope.Writes() {
				s.State[w.Name] = w.Value
			}
		}
	}
	// Output:
	// outsider fast 0
	// outsider fast 0
	// member fast 1
	// member strong 6
}
