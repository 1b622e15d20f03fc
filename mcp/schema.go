package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Bounds on a schema, and on what checking against it may cost.
const (
	maxSchema  = 64 << 10 // bytes
	maxNesting = 64
	maxChecks  = 2000    // schemas that one value may have to meet, references counted as often as they are followed
	maxPattern = 4 << 10 // bytes of all regular expressions
)

// A schema is a server's schema after a look at it.
type schema struct {
	shown   json.RawMessage      // for the model: the server's, with its descriptions cleaned
	checked *jsonschema.Resolved // nil where checking may cost too much: it is then left to the server
	text    json.RawMessage      // of checked
	tree    map[string]any       // text as values
}

// anyObject is what arguments are in any case; the server's own schema is
// checked where that is not too much.
var anyObject = json.RawMessage(`{"type":"object"}`)

// readSchema looks at a schema. It fails for one that must not reach a model or
// that no model's provider would take.
func readSchema(raw any) (schema, error) {
	root, ok := raw.(map[string]any)
	if !ok {
		return schema{}, errors.New("its schema is not an object")
	}
	if depth(root) > maxNesting {
		return schema{}, fmt.Errorf("its schema is nested more than %d deep", maxNesting)
	}
	cleaned, err := scrub(root, keywords)
	if err != nil {
		return schema{}, err
	}
	var s schema
	if s.shown, err = json.Marshal(cleaned); err != nil {
		return schema{}, fmt.Errorf("its schema: %w", err)
	}
	if len(s.shown) > maxSchema {
		return schema{}, fmt.Errorf("its schema has more than %d bytes", maxSchema)
	}
	if _, err := resolve(s.shown); err != nil {
		return schema{}, err
	}
	if draft, _ := root["$schema"].(string); !slices.Contains(drafts, draft) {
		return s, nil
	}
	w := &weigher{root: root, under: map[string]bool{}}
	reduced, err := w.weigh(root)
	if err != nil {
		return s, nil // a rare keyword, a loop or too much of it
	}
	if s.text, err = json.Marshal(reduced); err != nil {
		return schema{}, fmt.Errorf("its schema: %w", err)
	}
	s.tree, _ = reduced.(map[string]any)
	if s.checked, err = resolve(s.text); err != nil {
		return schema{}, err
	}
	return s, nil
}

// drafts are those that we can check.
var drafts = []string{
	"", "https://json-schema.org/draft/2020-12/schema",
	"http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft-07/schema#",
}

// resolve makes a schema ready. It reads nothing from anywhere, and a panic on
// a strange schema is an error.
func resolve(text json.RawMessage) (r *jsonschema.Resolved, err error) {
	defer func() {
		if p := recover(); p != nil {
			r, err = nil, errors.New("its schema cannot be read")
		}
	}()
	var js jsonschema.Schema
	if err := json.Unmarshal(text, &js); err != nil {
		return nil, errors.New("its schema is not a JSON schema")
	}
	if r, err = js.Resolve(nil); err != nil {
		return nil, errors.New("its schema refers to what is not in it, or is not a JSON schema")
	}
	return r, nil
}

func depth(v any) int {
	deepest := 0
	switch v := v.(type) {
	case map[string]any:
		for _, x := range v {
			deepest = max(deepest, depth(x))
		}
	case []any:
		for _, x := range v {
			deepest = max(deepest, depth(x))
		}
	default:
		return 0
	}
	return deepest + 1
}

// marks are what begins an announcement of the harness.
var marks = regexp.MustCompile(`(?i)[<\x{FE64}\x{FF1C}][\s/]*(heard|notice|cited)`)

// What the keys of an object are.
type keys int

const (
	keywords keys = iota // of a schema
	names                // of properties or definitions
	data                 // of a value
)

// below says what is under a keyword.
func below(keyword string) keys {
	switch keyword {
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies", "dependentRequired":
		return names
	case "default", "const", "enum", "examples":
		return data
	}
	return keywords
}

// scrub cleans what describes and refuses what would have to be cleaned but
// means something: names and values.
func scrub(v any, are keys) (any, error) {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			y, err := scrubEntry(k, x, are)
			if err != nil {
				return nil, err
			}
			out[k] = y
		}
		return out, nil
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			y, err := scrub(x, are)
			if err != nil {
				return nil, err
			}
			out[i] = y
		}
		return out, nil
	case string:
		return v, honest(v)
	default:
		return v, nil
	}
}

var typeNames = []string{"object", "array", "string", "number", "integer", "boolean", "null"}

func scrubEntry(k string, x any, are keys) (any, error) {
	text, isText := x.(string)
	switch {
	case are == keywords && isText && (k == "description" || k == "title" || k == "$comment"):
		return describe(text, maxDoc), nil
	case are == keywords && isText && k == "type" && !slices.Contains(typeNames, text):
		return nil, errors.New("its schema has a type that does not exist")
	}
	if err := honest(k); err != nil {
		return nil, err
	}
	switch are {
	case keywords:
		return scrub(x, below(k))
	case names:
		return scrub(x, keywords)
	default:
		return scrub(x, data)
	}
}

func honest(text string) error {
	if strings.ContainsFunc(text, hidden) {
		return errors.New("its schema has invisible characters in names or values")
	}
	if marks.MatchString(text) {
		return errors.New("its schema imitates an announcement")
	}
	return nil
}

// A weigher finds out whether checking a value can cost too much: schemas can
// refer to themselves without end, or double with every level.
type weigher struct {
	root    map[string]any
	under   map[string]bool // references being followed
	count   int
	pattern int
}

var errHeavy = errors.New("too costly to check")

// weigh counts what a schema asks to be checked and returns it without the
// regular expressions that could cost too much.
func (w *weigher) weigh(v any) (any, error) {
	m, ok := v.(map[string]any)
	if !ok {
		return v, nil // true or false
	}
	if w.count++; w.count > maxChecks {
		return nil, errHeavy
	}
	out := make(map[string]any, len(m))
	for k, x := range m {
		var err error
		switch k {
		case "$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor":
			return nil, errHeavy
		case "$ref":
			out[k], err = x, w.follow(x)
		case "pattern":
			if p, ok := x.(string); ok && w.cheap(p) {
				out[k] = x
			}
		case "patternProperties":
			if m, ok := x.(map[string]any); ok {
				for p := range m {
					if !w.cheap(p) {
						return nil, errHeavy
					}
				}
			}
			out[k], err = w.named(x)
		case "properties", "$defs", "definitions", "dependentSchemas", "dependencies":
			out[k], err = w.named(x)
		case "allOf", "anyOf", "oneOf", "prefixItems", "items", "additionalItems", "additionalProperties", "unevaluatedItems",
			"unevaluatedProperties", "contains", "propertyNames", "not", "if", "then", "else", "contentSchema":
			out[k], err = w.each(x)
		case "$schema", "type", "enum", "const", "multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength",
			"minLength", "maxItems", "minItems", "uniqueItems", "maxContains", "minContains", "maxProperties", "minProperties", "required",
			"dependentRequired":
			out[k] = x
		default:
			// Left out: the library takes a keyword in any case, so that an
			// "AnyOf" that is not looked at here would be followed there.
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (w *weigher) named(v any) (any, error) {
	m, ok := v.(map[string]any)
	if !ok {
		return v, nil
	}
	out := make(map[string]any, len(m))
	for k, x := range m {
		y, err := w.each(x)
		if err != nil {
			return nil, err
		}
		out[k] = y
	}
	return out, nil
}

func (w *weigher) each(v any) (any, error) {
	list, ok := v.([]any)
	if !ok {
		return w.weigh(v)
	}
	out := make([]any, len(list))
	for i, x := range list {
		y, err := w.weigh(x)
		if err != nil {
			return nil, err
		}
		out[i] = y
	}
	return out, nil
}

// cheap says whether an expression may be run. A repetition by number grows to
// a thousand times its length.
func (w *weigher) cheap(pattern string) bool {
	w.pattern += len(pattern)
	return w.pattern <= maxPattern && !strings.Contains(pattern, "{")
}

// follow counts what a reference to a definition leads to. Others are rare.
func (w *weigher) follow(ref any) error {
	pointer, _ := ref.(string)
	_, path, ok := strings.Cut(pointer, "#/")
	where, name, ok2 := strings.Cut(path, "/")
	if !ok || !ok2 || pointer[0] != '#' || where != "$defs" && where != "definitions" || strings.ContainsAny(name, "/~%") || w.under[name] {
		return errHeavy
	}
	defs, _ := w.root[where].(map[string]any)
	w.under[name] = true
	defer delete(w.under, name)
	_, err := w.weigh(defs[name])
	return err
}
