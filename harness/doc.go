// Package harness is what an agent author sees. An agent is a plain function
// that is run again before every model call and declares, by hooks, what that
// call may use:
//
//	func Assistant(c *harness.Context) string {
//		harness.UseModel(c, "fast")
//		visits := harness.UseState(c, "visits", 0)
//		harness.UseTool(c, harness.NewTool("count", "Counts a visit.",
//			func(ctx context.Context, call *harness.Call, in struct{}) (string, error) {
//				visits.Update(call, func(n int) int { return n + 1 })
//				return "counted", nil
//			}))
//		return fmt.Sprintf("You have been visited %d times.", visits.Value)
//	}
//
// A render only reads and declares. State is written inside a [Call], which no
// render is handed. A hook of your own is a function that calls these hooks.
package harness
