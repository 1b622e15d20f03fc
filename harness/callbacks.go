package harness

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/heddlehq/heddle/model"
)

// A Callback runs at a moment of a turn, with a call of its own. It runs at
// least once: a crash repeats it, but what it decided through its call, such as
// a write to state, is recorded once.
type Callback[F any] struct {
	Name string
	Run  F
}

// A Guard sees each call before it runs.
type Guard = Callback[func(ctx context.Context, call *Call, args json.RawMessage) (json.RawMessage, error)]

// UseTurnStart runs f once a turn before its first model call, which already
// sees what f wrote to state. An error fails the turn. Names are unique.
func UseTurnStart(c *Context, name string, f func(context.Context, *Call) error) {
	hang(c, "UseTurnStart", &c.m.Starts, name, f, f == nil)
}

// UseTurnFinish runs f when the model has answered and wants no more tools. A
// text sends the model back to work with it, at most 32 times a turn; then, or
// with "", the answer is posted. An error fails the turn. Names are unique.
func UseTurnFinish(c *Context, name string, f func(ctx context.Context, call *Call, answer string) (again string, err error)) {
	hang(c, "UseTurnFinish", &c.m.Finishes, name, f, f == nil)
}

// UseToolCall lets f see each call of a mounted tool before it runs: an error
// denies it and is told to the model, arguments other than nil replace those of
// the model. Several run in the order of declaration. Names are unique.
func UseToolCall(c *Context, name string, f func(ctx context.Context, call *Call, args json.RawMessage) (json.RawMessage, error)) {
	hang(c, "UseToolCall", &c.m.Guards, name, f, f == nil)
}

// UseResponseStart runs f in each step before the model is called. What f
// writes to state is seen by the next render. An error fails the turn. Names are
// unique.
func UseResponseStart(c *Context, name string, f func(context.Context, *Call) error) {
	hang(c, "UseResponseStart", &c.m.Asks, name, f, f == nil)
}

// UseResponseFinish runs f in each step when the model has answered, before the
// tools that it calls. An error fails the turn, and no tool is run. Names are
// unique.
func UseResponseFinish(c *Context, name string, f func(context.Context, *Call, Response) error) {
	hang(c, "UseResponseFinish", &c.m.Answers, name, f, f == nil)
}

// A Response is what a model answered in one step.
type Response struct {
	Text  string
	Calls []string // names of the tools that it calls, in order
	Model string   // "provider/model" that was asked
	Stop  model.Stop
	Usage model.Usage
	Cost  float64 // US dollars
}

// UseSettled runs f when the turn is over and its outcome stored, whatever it is;
// the next turn begins after it, so its context ends after [DefaultTimeout]. f may
// write state and data and dispatch, but reaches no sandbox. An error is logged
// and changes nothing. Names are unique. There is no such moment in a task.
func UseSettled(c *Context, name string, f func(context.Context, *Call, Settled) error) {
	if c.snap.Depth > 0 {
		c.use("UseSettled")
		c.misuse("UseSettled", "%q: a task only gives its answer back; use UseTurnFinish in a subagent", name)
		return
	}
	hang(c, "UseSettled", &c.m.Settles, name, f, f == nil)
}

// Settled is how a turn ended.
type Settled struct {
	Outcome string // "answered", "declined", "failed", "parked", "aborted", "needs_human"
	Reason  string // a constant text, "" for a plain answer
	Answer  string // what people read, in Markdown; the reason if they read nothing
	Value   json.RawMessage
	Steps   int
	Usage   model.Usage
	Cost    float64 // US dollars
}

// UseCompaction runs f before the oldest messages are replaced by a summary. A
// text of at most 8 KiB stands in the summary as it is. An error leaves the
// conversation as it is, this time. Names are unique.
func UseCompaction(c *Context, name string, f func(context.Context, *Call, Summarised) (keep string, err error)) {
	hang(c, "UseCompaction", &c.m.Folds, name, f, f == nil)
}

// Summarised is what a summary is about to stand for.
type Summarised struct {
	Messages int    // how many, of the model's view
	Tokens   int    // of them, estimated
	Why      string // "threshold", or "overflow" if the provider refused the request
}

// hang declares a callback.
func hang[F any](c *Context, hook string, on *[]Callback[F], name string, f F, none bool) {
	c.use(hook)
	switch {
	case name == "":
		c.misuse(hook, "the name is empty; give the callback a name")
	case none:
		c.misuse(hook, "%q has no function; give it one or leave the callback out", name)
	case slices.ContainsFunc(*on, func(o Callback[F]) bool { return o.Name == name }):
		c.misuse(hook, "%q is declared twice; names are unique within a render", name)
	default:
		*on = append(*on, Callback[F]{Name: name, Run: f})
	}
}
