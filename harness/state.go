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
	Value   T // as it was when the render began
	name    string
	init    T
	version int
	migrate func(old json.RawMessage, from int) (T, error)
}

// A StateOption says more about a state.
type StateOption[T any] struct {
	version int
	migrate func(old json.RawMessage, from int) (T, error)
}

// Migrate says that the value has its form for the version-th time, from 2, and
// how an older form becomes it. The form of a state without Migrate is version 1.
// f runs at render, so it only computes; the new form is stored with the next
// write. A value that newer code has stored fails the render and is left alone.
func Migrate[T any](version int, f func(old json.RawMessage, from int) (T, error)) StateOption[T] {
	return StateOption[T]{version: version, migrate: f}
}

// UseState declares a named value that lives as long as the conversation. It
// is found by its name, never by the order of calls. Value is init until the
// first write. The same name may be declared again with the same type.
func UseState[T any](c *Context, name string, init T, options ...StateOption[T]) State[T] {
	c.use("UseState")
	s := State[T]{Value: init, name: name, init: init, version: 1}
	for _, o := range options {
		if o.version < 2 || o.migrate == nil {
			c.misuse("UseState", "%q: Migrate to version %d; want version 2 or more and a function", name, o.version)
			return s
		}
		if s.migrate != nil {
			c.misuse("UseState", "%q: Migrate to version %d and to version %d; want one that takes every older form", name, s.version, o.version)
			return s
		}
		s.version, s.migrate = o.version, o.migrate
	}
	if name == "" {
		c.misuse("UseState", "the name is empty; give the state a name")
		return s
	}
	t := form{reflect.TypeFor[T](), s.version}
	if old, ok := c.states[name]; ok && old != t {
		c.misuse("UseState", "%q is declared as %s and as %s; use one of them", name, old, t)
		return s
	}
	c.states[name] = t
	v, err := s.read(c.snap.State[name], c.snap.Versions[name])
	if err != nil {
		c.misuse("UseState", "%w", err)
		return s
	}
	s.Value = v
	return s
}

// form is how the value of a state is declared.
type form struct {
	of      reflect.Type
	version int
}

func (f form) String() string {
	if f.version == 1 {
		return f.of.String()
	}
	return fmt.Sprintf("%s in version %d", f.of, f.version)
}

// read is the stored value in the form of today, the initial one if there is none.
func (s State[T]) read(raw json.RawMessage, version int) (v T, err error) {
	version = max(version, 1) // not recorded for the first
	switch {
	case raw == nil:
		return s.init, nil
	case version > s.version:
		return v, fmt.Errorf("%q: the stored value has version %d and this code knows %d; run the newer code, or use another name", s.name, version, s.version)
	case version < s.version:
		if v, err = s.migrate(raw, version); err != nil {
			return v, fmt.Errorf("%q: migrate from version %d to %d: %w; mend the function of Migrate", s.name, version, s.version, err)
		}
		return v, nil
	}
	if json.Unmarshal(raw, &v) != nil { // what it says may hold what people wrote
		return v, fmt.Errorf("%q: the stored value does not fit %s; give its new form a version with Migrate, or use another name", s.name, reflect.TypeFor[T]())
	}
	return v, nil
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
	call.update(s.name, func(raw json.RawMessage, version int) (Write, error) {
		cur, err := s.read(raw, version)
		if err != nil {
			return Write{}, fmt.Errorf("state %w", err)
		}
		next, err := marshal(f(cur))
		if err != nil {
			return Write{}, fmt.Errorf("state %q: %w", s.name, err)
		}
		w := Write{Value: next}
		if s.version > 1 {
			w.Version = s.version
		}
		return w, nil
	})
}

// Delete takes the value away: the next render sees the initial one.
func (s State[T]) Delete(call *Call) {
	call.update(s.name, func(json.RawMessage, int) (Write, error) { return Write{}, nil })
}

// A Write is one change of a state.
type Write struct {
	Call    string // id of the call that made it
	Name    string
	Value   json.RawMessage // nil if the state was deleted
	Version int             // of the value's form, 0 for the first
}

// values are the states as the calls of one step see and change them.
type values struct {
	mu       sync.Mutex
	now      map[string]json.RawMessage
	versions map[string]int
	writes   []Write
}

func newValues(s Snapshot) *values {
	v := &values{now: maps.Clone(s.State), versions: maps.Clone(s.Versions)}
	if v.now == nil {
		v.now = map[string]json.RawMessage{}
	}
	if v.versions == nil {
		v.versions = map[string]int{}
	}
	return v
}

// update makes one change; a call that cannot fails.
func (c *Call) update(name string, f func(json.RawMessage, int) (Write, error)) {
	v := c.scope.values
	v.mu.Lock()
	defer v.mu.Unlock()
	w, err := f(v.now[name], v.versions[name])
	if err != nil {
		c.fail(err)
		return
	}
	w.Call, w.Name = c.ID, name
	v.now[name], v.versions[name] = w.Value, w.Version
	v.writes = append(v.writes, w)
}
