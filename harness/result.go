package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// The tools that end a turn whose answer must have a form.
const (
	FinishTool = "finish"
	GiveUpTool = "give_up"
)

// ErrWant is wrapped by the mistake of a render whose event wants an answer by a
// schema that cannot be used: its sender has to change that.
var ErrWant = errors.New("the schema of the wanted answer cannot be used")

// Bounds on a schema that comes with an event: checking a value must end.
const (
	maxWant       = 64 << 10 // bytes
	maxWantDepth  = 64       // references followed as well
	maxWantChecks = 2000
)

// UseResult says that the answer of the turn is a T: the model gets the tools
// finish, which takes one, and give_up. An answer in plain text is sent back,
// twice; then the turn fails. What the event itself wants goes before it. At
// most one UseResult may run in a render.
func UseResult[T any](c *Context) {
	c.use("UseResult")
	t := reflect.TypeFor[T]()
	if c.result != nil {
		c.misuse("UseResult", "called for %s and for %s; one render has one result", c.result, t)
		return
	}
	c.result = t
}

// want is the form of the answer: from the event, or from the agent; nil if it is free.
func (c *Context) want() (*result, error) {
	switch {
	case c.snap.Want != nil:
		if len(c.snap.Want) > maxWant {
			return nil, fmt.Errorf("%w: it has more than %d bytes; send a smaller one", ErrWant, maxWant)
		}
		r, err := newResult(c.snap.Want)
		if err != nil {
			return nil, fmt.Errorf("%w: %w; send another one", ErrWant, err)
		}
		return r, nil
	case c.result != nil:
		return resultOf(c.result)
	}
	return nil, nil
}

// resultKey is a type in the cache of schemas, as the form of an answer.
type resultKey struct{ reflect.Type }

func resultOf(t reflect.Type) (*result, error) {
	if r, ok := schemas.Load(resultKey{t}); ok {
		return r.(*result), nil
	}
	s, err := schemaOf(t)
	if err != nil {
		return nil, fmt.Errorf("%w; use a type with a JSON form", err)
	}
	r, err := newResult(s.text)
	if err == nil {
		schemas.Store(resultKey{t}, r)
	}
	return r, err
}

// result is a schema of answers as the arguments of a tool, which are an object.
type result struct {
	schema
	wrapped bool // the answer stands in the field "result"
}

func newResult(text json.RawMessage) (*result, error) {
	var root map[string]any
	if json.Unmarshal(text, &root) != nil {
		return nil, errors.New("it is no JSON object")
	}
	left := maxWantChecks
	if err := bounded(root, root, 0, &left); err != nil {
		return nil, err
	}
	r := &result{schema: schema{text: text}}
	if root["type"] != "object" || root["$ref"] != nil {
		r.wrapped = true
		outer := map[string]any{"type": "object", "properties": map[string]any{"result": root}, "required": []string{"result"}, "additionalProperties": false}
		for _, defs := range []string{"$defs", "definitions"} { // references begin at the root
			if root[defs] != nil {
				outer[defs] = root[defs]
			}
		}
		var err error
		if r.text, err = json.Marshal(outer); err != nil {
			return nil, err
		}
	}
	var js jsonschema.Schema
	if err := json.Unmarshal(r.text, &js); err != nil {
		return nil, err
	}
	var err error
	r.resolved, err = ready(&js)
	return r, err
}

// bounded fails for a schema that refers to itself, to elsewhere, or to so much
// that checking a value takes too long.
func bounded(root map[string]any, at any, depth int, left *int) error {
	if *left--; depth > maxWantDepth || *left < 0 {
		return errors.New("it is too large, too deep, or refers to itself")
	}
	switch at := at.(type) {
	case []any:
		for _, v := range at {
			if err := bounded(root, v, depth+1, left); err != nil {
				return err
			}
		}
	case map[string]any:
		for k, v := range at {
			if k == "$dynamicRef" || k == "$recursiveRef" || k == "$id" || k == "$anchor" || k == "$dynamicAnchor" {
				return fmt.Errorf("it uses %s", k)
			}
			if ref, ok := v.(string); ok && k == "$ref" {
				target, err := follow(root, ref)
				if err != nil {
					return err
				}
				v = target
			}
			if err := bounded(root, v, depth+1, left); err != nil {
				return err
			}
		}
	}
	return nil
}

// follow finds what a reference names: only definitions of the schema itself.
func follow(root map[string]any, ref string) (any, error) {
	parts := strings.Split(ref, "/")
	if len(parts) == 3 && parts[0] == "#" && (parts[1] == "$defs" || parts[1] == "definitions") {
		if defs, ok := root[parts[1]].(map[string]any); ok && defs[parts[2]] != nil {
			return defs[parts[2]], nil
		}
	}
	return nil, errors.New("it refers to what is not in its $defs")
}

// tools are those that end the turn; the first valid call of a step does.
func (r *result) tools() []Tool {
	finish := Tool{Name: FinishTool, Doc: "Gives the result and ends the work. Nothing else counts as an answer.", Schema: r.text, timeout: DefaultTimeout}
	finish.run = func(_ context.Context, call *Call, raw json.RawMessage) (string, error) {
		var value json.RawMessage
		if err := r.decode(raw, &value); err != nil {
			return "", err
		}
		if r.wrapped {
			var in struct{ Result json.RawMessage }
			if err := json.Unmarshal(value, &in); err != nil {
				return "", err
			}
			value = in.Result
		}
		return call.scope.end(Result{Call: call.ID, Value: value})
	}
	type reason struct {
		Reason string `json:"reason" jsonschema:"why there is no result, for people"`
	}
	giveUp := NewTool(GiveUpTool, "Ends the work without a result, when none can be had.", func(_ context.Context, call *Call, in reason) (string, error) {
		if strings.TrimSpace(in.Reason) == "" {
			return "", fmt.Errorf("%w: say in reason why there is no result", ErrArgs)
		}
		return call.scope.end(Result{Call: call.ID, GaveUp: in.Reason})
	})
	return []Tool{finish.SerialWith(FinishTool).Quiet(), giveUp.SerialWith(FinishTool).Quiet()}
}

// A Result ends a turn whose answer must have a form.
type Result struct {
	Call   string // id of the call that gave it
	Value  json.RawMessage
	GaveUp string // why there is none
}

func (s *Scope) end(r Result) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.result != nil {
		return "", errors.New("the work has ended already; this changes nothing")
	}
	s.result = &r
	return "Taken.", nil
}

// Result is what a call ended the turn with, nil if none did.
func (s *Scope) Result() *Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.result
}
