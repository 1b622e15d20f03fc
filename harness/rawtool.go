package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
)

// NewRawTool makes a tool whose argument schema comes as JSON, from a server or
// a file, and is one of an object. Arguments are validated against it before run
// gets them as they are. The schema must not refer to itself: checking a value would not end. A schema
// of strangers has to be looked through first.
func NewRawTool(name, doc string, text json.RawMessage, run func(context.Context, *Call, json.RawMessage) (string, error)) Tool {
	t := Tool{Name: name, Doc: doc, Schema: text, timeout: DefaultTimeout}
	var js jsonschema.Schema
	if err := json.Unmarshal(text, &js); err != nil {
		t.err = fmt.Errorf("schema: %w", err)
		return t
	}
	if js.Type != "object" {
		t.err = errors.New("schema: arguments are an object; want \"type\": \"object\"")
		return t
	}
	resolved, err := ready(&js)
	if err != nil {
		t.err = fmt.Errorf("schema: %w", err)
		return t
	}
	if run == nil {
		return t // UseTool says so
	}
	s := &schema{text: text, resolved: resolved}
	t.run = func(ctx context.Context, call *Call, raw json.RawMessage) (string, error) {
		var doc json.RawMessage
		if err := s.decode(raw, &doc); err != nil {
			return "", err
		}
		return run(ctx, call, doc)
	}
	return t
}

// ready makes a schema that comes from outside ready to check values. The
// library takes any word for a type; no value would fit, and no provider takes it.
func ready(js *jsonschema.Schema) (*jsonschema.Resolved, error) {
	r, err := js.Resolve(nil)
	if err != nil {
		return nil, err
	}
	return r, checkTypes(js)
}

// types are all that JSON Schema has.
var types = []string{"null", "boolean", "object", "array", "number", "string", "integer"}

// checkTypes fails for a type that there is not, in the schema or in one within it.
func checkTypes(js *jsonschema.Schema) error {
	if js == nil {
		return nil
	}
	for _, t := range append(slices.Clone(js.Types), js.Type) {
		if t != "" && !slices.Contains(types, t) {
			return fmt.Errorf("there is no type %q", t)
		}
	}
	within := []*jsonschema.Schema{}
	fields := reflect.ValueOf(js).Elem()
	for i := range fields.NumField() {
		if !fields.Type().Field(i).IsExported() {
			continue
		}
		switch f := fields.Field(i).Interface().(type) {
		case *jsonschema.Schema:
			within = append(within, f)
		case []*jsonschema.Schema:
			within = append(within, f...)
		case map[string]*jsonschema.Schema:
			within = slices.AppendSeq(within, maps.Values(f))
		}
	}
	for _, s := range within {
		if err := checkTypes(s); err != nil {
			return err
		}
	}
	return nil
}
