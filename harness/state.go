package harness

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"sync"
)

// A State is a named value of the conversation, as of this render.
type State[T any] struct {
	Value T // as it was when the render began
	name  string
}

// UseState declares a named value that lives as long as the conversation. It
// is found by its name, never by the order of calls. Value is init until the
// first write. The same name may be declared again with the same type.
func UseState[T any](c *Context, name string, init T) State[T] {
	c.use("UseState")
	s := State[T]{Value: init, name: name}
	if name == "" {
		c.misuse("UseState", "the name is empty")
		return s
	}
	t := reflect.TypeFor[T]()
	if old, ok := c.types[name]; ok && old != t {
		c.misuse("UseState", "%q is declared as %s and as %s", name, old, t)
		return s
	}
	c.types[name] = t
	raw, ok := c.snap.State[name]
	if !ok {
		return s
	}
	var v T
	if err := json.Unmarshal(raw, &v); err != nil {
		c.misuse("UseState", "%q: the stored value does not fit %s; use another name for the new form", name, t)
		return s
	}
	s.Value = v
	return s
}

// Set writes the value. It is stored with the result of the call and read by
// the next render. A value without a JSON form fails the call and changes
// nothing; a write that was made stays, however the call ends.
func (s State[T]) Set(call *Call, v T) {
	s.Update(call, func(T) T { return v })
}

// Update writes f of the newest value, which includes writes made earlier in
// this step by other calls. f runs once, while no other write happens, so it
// must not write itself.
func (s State[T]) Update(call *Call, f func(T) T) {
	call.scope.update(call, s.name, func(raw json.RawMessage) (json.RawMessage, error) {
		cur := s.Value
		if raw != nil {
			var v T
			if err := json.Unmarshal(raw, &v); err != nil {
				return nil, fmt.Errorf("state %q: the stored value does not fit: %w", s.name, err)
			}
			cur = v
		}
		next, err := json.Marshal(f(cur))
		if err != nil {
			return nil, fmt.Errorf("state %q: the value has no JSON form: %w", s.name, err)
		}
		return next, nil
	})
}

// A Write is one change of a state.
type Write struct {
	Call  string // id of the call that made it
	Name  string
	Value json.RawMessage
}

// values are the states as the calls of one step see and change them.
type values struct {
	mu     sync.Mutex
	now    map[string]json.RawMessage
	writes []Write
}

func newValues(at map[string]json.RawMessage) *values {
	return &values{now: maps.Clone(at)}
}

func (v *values) update(call, name string, f func(json.RawMessage) (json.RawMessage, error)) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	next, err := f(v.now[name])
	if err != nil {
		return err
	}
	if v.now == nil {
		v.now = map[string]json.RawMessage{}
	}
	v.now[name] = next
	v.writes = append(v.writes, Write{Call: call, Name: name, Value: next})
	return nil
}
