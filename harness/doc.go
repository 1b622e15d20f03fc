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
//
// What the next model call may use is declared by [UseModel], [UseSandbox],
// [UseTool], [UseSkill], [UseSubagent], [UseInstruction] and [UseLevel]; what the
// conversation keeps by [UseState], what programs pass along and read by
// [UseInitialData], [UseData] and [UseResult], what other conversations hear by
// [UseDispatch], which files people get by [UseAttach]. Callbacks run at the moments of a turn: [UseTurnStart],
// [UseResponseStart], [UseResponseFinish], [UseToolCall], [UseTurnFinish],
// [UseCompaction] and [UseSettled]. Ladders, MCP servers and memory are hooks of
// their own packages. Each has an example.
//
// What a tool or a callback decides through its call (state, data, texts to other
// conversations) is recorded with the result of its unit of work, or not at all.
// Callbacks and durable tools run at least once; what they recorded is there once.
// Package harnesstest finds agents that do more than declare.
package harness
