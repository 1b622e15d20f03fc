package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"unicode/utf8"
)

// Durable says that the tool may be run again after a crash, under the same
// call: what it finished inside [Step] is answered from the log, the rest is
// repeated. Other tools are never repeated; the model is told that their
// outcome is unknown.
func (t Tool) Durable() Tool { t.durable = true; return t }

// Asks says that the tool may wait for people or a time, with [Ask] and [Sleep].
// Unlike a durable one it is not run again after a crash that cut it off, but
// only to go on after a question or a finished step.
func (t Tool) Asks() Tool { t.asks = true; return t }

// Resumes says whether an open call of the tool may be run again. begun says
// that it has asked something or finished a step.
func (t Tool) Resumes(begun bool) bool { return t.durable || t.asks && begun }

// Memos keeps the values of finished steps. Put returns when the value is stored.
// Both fail when the call is over.
type Memos interface {
	Get(call, step string) (value json.RawMessage, ok bool, err error)
	Put(ctx context.Context, call, step string, value json.RawMessage) error
}

// Step runs f at least once and records its value exactly once: run again after
// a crash, the call gets the recorded value and f is not run. Names are unique
// within a call. The value must have a JSON form; an error is not recorded.
func Step[T any](ctx context.Context, call *Call, name string, f func(context.Context) (T, error)) (T, error) {
	var v T
	if err := call.step(name); err != nil {
		return v, err
	}
	raw, ok, err := call.scope.memos.Get(call.ID, name)
	if err != nil {
		return v, fmt.Errorf("step %q: %w", name, err)
	}
	if ok {
		if err := json.Unmarshal(raw, &v); err != nil {
			return v, fmt.Errorf("step %q: the recorded value does not fit: %w", name, err)
		}
		return v, nil
	}
	if v, err = f(ctx); err != nil {
		return v, err
	}
	if raw, err = marshal(v); err != nil {
		return v, fmt.Errorf("step %q: %w", name, err)
	}
	if err := call.scope.memos.Put(ctx, call.ID, name, raw); err != nil {
		return v, fmt.Errorf("step %q: %w", name, err)
	}
	return v, nil
}

// step notes the use of a name.
func (c *Call) step(name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case name == "" || c.steps[name]:
		return fmt.Errorf("step %q: names are not empty and unique within a call", name)
	case !utf8.ValidString(name):
		return fmt.Errorf("step %q: names are UTF-8, or they would not be found again", name)
	}
	if c.steps == nil {
		c.steps = map[string]bool{}
	}
	c.steps[name] = true
	return nil
}

// again lets the names of steps be used once more: the call runs anew.
func (c *Call) again() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steps = nil
}

// forgetful are the memos of a scope that is given none.
type forgetful struct {
	mu     sync.Mutex
	values map[[2]string]json.RawMessage
}

func (f *forgetful) Get(call, step string) (json.RawMessage, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	v, ok := f.values[[2]string{call, step}]
	return v, ok, nil
}

func (f *forgetful) Put(_ context.Context, call, step string, value json.RawMessage) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.values[[2]string{call, step}] = value
	return nil
}
