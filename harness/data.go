package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// ErrInitial is wrapped by the mistake of a render whose conversation began
// with data that does not fit: its sender has to change that.
var ErrInitial = errors.New("the initial data does not fit")

// UseInitialData is what whoever began the conversation passed along with the
// first event, false if that was nothing. Data that does not fit T fails the
// render. It may be called more than once.
func UseInitialData[T any](c *Context) (T, bool) {
	c.use("UseInitialData")
	var v T
	if c.snap.Initial == nil {
		return v, false
	}
	s, err := schemaOf(reflect.TypeFor[T]())
	if err != nil {
		c.misuse("UseInitialData", "%w; use a type with a JSON form", err)
		return v, false
	}
	if err := s.fit(c.snap.Initial, &v); err != nil {
		c.misuse("UseInitialData", "%w %s: %w; begin the conversation with other data", ErrInitial, reflect.TypeFor[T](), err)
		return *new(T), false
	}
	return v, true
}

// Data is a named part of the conversation for programs that read it, such as
// a progress or a table. The model never sees it.
type Data[T any] struct{ name string }

// UseData declares a part for programs: 1 to 64 letters, digits, _ or -. The
// same name may be declared again with the same type.
func UseData[T any](c *Context, name string) Data[T] {
	c.use("UseData")
	t := reflect.TypeFor[T]()
	switch old, ok := c.data[name]; {
	case !validName.MatchString(name):
		c.misuse("UseData", "name %q: want 1 to 64 letters, digits, _ or -", name)
	case ok && old != t:
		c.misuse("UseData", "%q is declared as %s and as %s; use one of them", name, old, t)
	default:
		c.data[name] = t
	}
	return Data[T]{name: name}
}

// Write adds a value of the part. It is recorded with the result of the call;
// the newest one counts. A value without a JSON form fails the call.
func (d Data[T]) Write(call *Call, v T) {
	raw, err := marshal(v)
	if err != nil {
		call.fail(fmt.Errorf("data %q: %w", d.name, err))
		return
	}
	s := call.scope
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts = append(s.parts, Part{Call: call.ID, Name: d.name, Value: raw})
}

// A Part is one value for programs.
type Part struct {
	Call  string // id of the call that wrote it
	Name  string
	Value json.RawMessage
}

// Parts returns the values for programs written so far, in order.
func (s *Scope) Parts() []Part {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Part(nil), s.parts...)
}
