package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
)

// argName is what every model's provider takes for the name of an argument.
var argName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

// arguments makes a schema one that every model's provider takes for arguments:
// one tool that is refused has the whole request refused. It is an object with
// properties, without alternatives at the top, which the server checks, and its
// lists say of what. Names that no provider takes are replaced; were has the
// server's by the new ones.
func arguments(shown json.RawMessage) (schema json.RawMessage, were map[string]string, err error) {
	var m map[string]any
	if err := json.Unmarshal(shown, &m); err != nil {
		return nil, nil, fmt.Errorf("its schema: %w", err)
	}
	if m["type"] == nil {
		m["type"] = "object"
	}
	if m["type"] != "object" {
		return nil, nil, errors.New("its arguments are not an object")
	}
	for _, k := range []string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "enum", "const"} {
		delete(m, k)
	}
	if m["properties"] == nil {
		m["properties"] = map[string]any{}
	}
	were = rename(m)
	complete(m, keywords)
	schema, err = json.Marshal(m)
	return schema, were, err
}

// rename gives the arguments names that can be sent, the same ones every time.
func rename(m map[string]any) (were map[string]string) {
	properties, _ := m["properties"].(map[string]any)
	news := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if argName.MatchString(name) {
			continue
		}
		plain := oddRunes.ReplaceAllString(name, "_")
		plain = plain[:min(len(plain), 60)]
		as := plain
		for n := 2; as == "" || has(properties, as); n++ {
			as = fmt.Sprintf("%s_%d", plain, n)
		}
		news[name] = as
		properties[as] = properties[name]
		delete(properties, name)
	}
	if len(news) == 0 {
		return nil
	}
	required, _ := m["required"].([]any)
	for i, name := range required {
		if text, _ := name.(string); has(news, text) {
			required[i] = news[text]
		}
	}
	for _, k := range []string{"dependentRequired", "dependentSchemas", "dependencies"} { // they know the old names
		delete(m, k)
	}
	were = map[string]string{}
	for name, as := range news {
		were[as] = name
	}
	return were
}

func has[V any](m map[string]V, key string) bool {
	_, ok := m[key]
	return ok
}

// complete says of what lists are that do not, in the words of today's schemas.
func complete(v any, are keys) {
	m, ok := v.(map[string]any)
	if list, isList := v.([]any); isList && are != data {
		for _, x := range list {
			complete(x, are)
		}
	}
	if !ok || are == data {
		return
	}
	for k, x := range m {
		if are == names {
			complete(x, keywords)
		} else {
			complete(x, below(k))
		}
	}
	if are != keywords || m["type"] != "array" && !isListed(m["type"], "array") {
		return
	}
	if places, ok := m["items"].([]any); ok { // of draft 7
		m["prefixItems"], m["items"] = places, m["additionalItems"]
		delete(m, "additionalItems")
	}
	if m["items"] == nil || m["items"] == true {
		m["items"] = map[string]any{}
	}
}

func isListed(v any, one string) bool {
	list, _ := v.([]any)
	return slices.Contains(list, any(one))
}

// original gives arguments the names that the server knows.
func (t *tool) original(args json.RawMessage) json.RawMessage {
	var m map[string]json.RawMessage
	if len(t.names) == 0 || json.Unmarshal(args, &m) != nil {
		return args
	}
	for as, name := range t.names {
		if v, ok := m[as]; ok {
			delete(m, as)
			m[name] = v
		}
	}
	out, err := json.Marshal(m)
	if err != nil {
		return args // unreachable: it has been decoded
	}
	return out
}
