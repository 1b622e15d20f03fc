package harness

import (
	"context"
	"encoding/json"
	"slices"
)

// A Callback runs at a moment of a turn, with a call of its own. It runs at
// least once: a crash repeats it, but what it wrote to state is stored once.
type Callback struct {
	Name string
	Run  func(context.Context, *Call) error
}

// A Finish runs when the model has answered.
type Finish struct {
	Name string
	Run  func(ctx context.Context, call *Call, answer string) (again string, err error)
}

// A Guard sees each call before it runs.
type Guard struct {
	Name string
	Run  func(ctx context.Context, call *Call, args json.RawMessage) (json.RawMessage, error)
}

// UseTurnStart runs f once a turn before its first model call, which already
// sees what f wrote to state. An error fails the turn. Names are unique.
func UseTurnStart(c *Context, name string, f func(context.Context, *Call) error) {
	if c.fresh("UseTurnStart", name, slices.ContainsFunc(c.m.Starts, func(o Callback) bool { return o.Name == name })) {
		c.m.Starts = append(c.m.Starts, Callback{Name: name, Run: f})
	}
}

// UseTurnFinish runs f when the model has answered and wants no more tools. A
// text sends the model back to work with it, at most 32 times a turn; then, or
// with "", the answer is posted. An error fails the turn. Names are unique.
func UseTurnFinish(c *Context, name string, f func(ctx context.Context, call *Call, answer string) (again string, err error)) {
	if c.fresh("UseTurnFinish", name, slices.ContainsFunc(c.m.Finishes, func(o Finish) bool { return o.Name == name })) {
		c.m.Finishes = append(c.m.Finishes, Finish{Name: name, Run: f})
	}
}

// UseToolCall lets f see each call of a mounted tool before it runs: an error
// denies it and is told to the model, arguments other than nil replace those of
// the model. Several run in the order of declaration. Names are unique.
func UseToolCall(c *Context, name string, f func(ctx context.Context, call *Call, args json.RawMessage) (json.RawMessage, error)) {
	if c.fresh("UseToolCall", name, slices.ContainsFunc(c.m.Guards, func(o Guard) bool { return o.Name == name })) {
		c.m.Guards = append(c.m.Guards, Guard{Name: name, Run: f})
	}
}

// fresh says whether a callback may be declared under the name.
func (c *Context) fresh(hook, name string, known bool) bool {
	c.use(hook)
	switch {
	case name == "":
		c.misuse(hook, "the name is empty")
	case known:
		c.misuse(hook, "%q is declared twice; names are unique within a render", name)
	default:
		return true
	}
	return false
}
