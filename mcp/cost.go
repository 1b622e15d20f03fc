package mcp

import (
	"encoding/json"
	"errors"
	"strings"
)

// maxCost is what checking one value may cost. A unit takes about two
// microseconds.
const maxCost = 500_000

var errCost = errors.New("too costly to check")

// check says why a value does not fit, nil where the schema is not checked. It
// fails with errCost if checking would not end soon enough: a bounded schema may
// have all of itself looked at for each of thousands of values, and nobody could
// stop that in the middle.
func (s schema) check(text json.RawMessage) error {
	if s.checked == nil {
		return nil
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return err
	}
	b := bill{root: s.tree, left: maxCost}
	if b.add(s.tree, v); b.left < 0 {
		return errCost
	}
	return s.checked.Validate(v)
}

// A bill adds up what checking may cost at most: every schema that is looked at
// for every value, whatever the others say.
type bill struct {
	root map[string]any
	left int
}

func (b *bill) add(schema, v any) {
	if b.left--; b.left < 0 {
		return
	}
	m, ok := schema.(map[string]any)
	if !ok {
		return
	}
	list, _ := v.([]any)
	object, _ := v.(map[string]any)
	for k, x := range m {
		switch k {
		case "$ref":
			b.add(b.follow(x), v)
		case "enum", "required":
			some, _ := x.([]any)
			b.left -= len(some) / 16
		case "pattern":
			pattern, _ := x.(string)
			text, _ := v.(string)
			b.left -= len(pattern) * len(text) / 256
		case "uniqueItems":
			b.left -= size(list) / 16
		case "allOf", "anyOf", "oneOf", "not", "if", "then", "else":
			b.each(x, v)
		case "dependentSchemas", "dependencies", "dependentRequired":
			some, _ := x.(map[string]any)
			for _, x := range some {
				b.each(x, v)
			}
		case "prefixItems", "items", "additionalItems", "unevaluatedItems", "contains":
			some, ok := x.([]any)
			for i, one := range list {
				switch {
				case !ok:
					b.add(x, one)
				case i < len(some):
					b.add(some[i], one)
				}
			}
		case "properties":
			some, _ := x.(map[string]any)
			for name, x := range some {
				if one, ok := object[name]; ok {
					b.add(x, one)
				} else {
					b.left--
				}
			}
		case "patternProperties":
			some, _ := x.(map[string]any)
			for _, x := range some {
				b.all(x, object)
			}
		case "additionalProperties", "unevaluatedProperties":
			b.all(x, object)
		case "propertyNames":
			for name := range object {
				b.add(x, name)
			}
		}
		if b.left < 0 {
			return
		}
	}
}

// each adds a schema, or those of a list, for one value.
func (b *bill) each(schemas, v any) {
	some, ok := schemas.([]any)
	if !ok {
		b.add(schemas, v)
	}
	for _, x := range some {
		b.add(x, v)
	}
}

// all adds a schema for all values of an object.
func (b *bill) all(schema any, object map[string]any) {
	for _, v := range object {
		b.add(schema, v)
	}
}

// follow finds a definition; the weigher has let in no other reference.
func (b *bill) follow(ref any) any {
	pointer, _ := ref.(string)
	where, name, _ := strings.Cut(strings.TrimPrefix(pointer, "#/"), "/")
	defs, _ := b.root[where].(map[string]any)
	return defs[name]
}

// size counts what is in a value.
func size(v any) int {
	n := 1
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			n += size(x)
		}
	case map[string]any:
		for _, x := range v {
			n += size(x)
		}
	}
	return n
}
