package llm

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// checkTools refuses what all providers refuse in a list of tools.
func checkTools(names []string, schemas []json.RawMessage) error {
	seen := map[string]bool{}
	for i, n := range names {
		var schema struct {
			Type                           string
			OneOf, AnyOf, AllOf, Not, Enum json.RawMessage
		}
		switch {
		case !toolName.MatchString(n):
			return fmt.Errorf("tools.%d.name: should match %s", i, toolName)
		case seen[n]:
			return fmt.Errorf("tools: tool names must be unique")
		case json.Unmarshal(schemas[i], &schema) != nil || schema.Type != "object":
			return fmt.Errorf("tools.%d: schema must be of type object", i)
		case schema.OneOf != nil || schema.AnyOf != nil || schema.AllOf != nil || schema.Not != nil || schema.Enum != nil:
			return fmt.Errorf("tools.%d: schema must not have oneOf, anyOf, allOf, not or enum at the top level", i)
		}
		seen[n] = true
	}
	return nil
}

// propertyName is what Anthropic takes for the name of an argument.
var propertyName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

// checkProperties refuses what Anthropic refuses in the names of arguments.
func checkProperties(schemas []json.RawMessage) error {
	for i, text := range schemas {
		var schema struct{ Properties map[string]json.RawMessage }
		if json.Unmarshal(text, &schema) != nil {
			return fmt.Errorf("tools.%d: input_schema.properties: should be an object", i)
		}
		for name := range schema.Properties {
			if !propertyName.MatchString(name) {
				return fmt.Errorf("tools.%d: input_schema.properties: property keys should match pattern %s", i, propertyName)
			}
		}
	}
	return nil
}

// checkParameters refuses what OpenAI refuses in the schemas of functions.
func checkParameters(schemas []json.RawMessage) error {
	for i, text := range schemas {
		var schema map[string]any
		if json.Unmarshal(text, &schema) == nil && schema["properties"] == nil {
			return fmt.Errorf("tools.%d: object schema missing properties", i)
		}
		if lacksItems(schema) {
			return fmt.Errorf("tools.%d: array schema missing items", i)
		}
	}
	return nil
}

// lacksItems looks for a list that does not say of what.
func lacksItems(v any) bool {
	m, _ := v.(map[string]any)
	types, _ := m["type"].([]any)
	if (m["type"] == "array" || slices.Contains(types, any("array"))) && m["items"] == nil {
		return true
	}
	properties, _ := m["properties"].(map[string]any)
	for _, x := range properties {
		if lacksItems(x) {
			return true
		}
	}
	return m["items"] != nil && lacksItems(m["items"])
}

// checkFunctions refuses what OpenAI refuses in a list of functions.
func checkFunctions(docs []string, schemas []json.RawMessage) error {
	if len(docs) > 128 {
		return fmt.Errorf("tools: array too long, maximum length 128")
	}
	for i, doc := range docs {
		if utf8.RuneCountInString(doc) > 1024 {
			return fmt.Errorf("tools.%d.description: string too long, maximum length 1024", i)
		}
	}
	return checkParameters(schemas)
}

// checkTalk refuses what all providers refuse in a conversation: a call that
// is not answered at once, a result without its call, an id used twice.
func checkTalk(talk []Message) error {
	if len(talk) == 0 {
		return fmt.Errorf("messages: at least one message is required")
	}
	open, used := map[string]bool{}, map[string]bool{}
	for i, m := range talk {
		if m.Role == "results" {
			for _, id := range m.callIDs {
				if !open[id] {
					return fmt.Errorf("messages.%d: result %q has no call in the message before", i, id)
				}
				delete(open, id)
			}
			continue
		}
		if len(open) > 0 {
			return fmt.Errorf("messages.%d: %d calls before it have no result", i, len(open))
		}
		for k, c := range m.Calls {
			id := m.callIDs[k]
			switch {
			case id == "" || used[id]:
				return fmt.Errorf("messages.%d: id %q of a call is missing or used twice", i, id)
			case !toolName.MatchString(c.Name):
				return fmt.Errorf("messages.%d: name of a call should match %s", i, toolName)
			case !isObject([]byte(c.Args)):
				return fmt.Errorf("messages.%d: arguments of a call are no JSON object", i)
			}
			open[id], used[id] = true, true
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("messages: %d calls at the end have no result", len(open))
	}
	return nil
}

// checkImage refuses an image of a type or encoding that is not taken.
func checkImage(media, data string) error {
	switch media {
	case "image/png", "image/jpeg", "image/webp":
	default:
		return fmt.Errorf("image of media type %q is not supported", media)
	}
	if b, err := base64.StdEncoding.DecodeString(data); err != nil || len(b) == 0 {
		return fmt.Errorf("image data is no base64")
	}
	return nil
}

// checkURL is checkImage for an image in a URL.
func checkURL(url string) error {
	media, data, ok := strings.Cut(strings.TrimPrefix(url, "data:"), ";base64,")
	if !ok {
		return fmt.Errorf("this server fetches no images")
	}
	return checkImage(media, data)
}

// add joins a text to what a message says already.
func (m *Message) add(text string) { m.Text = strings.TrimPrefix(m.Text+"\n"+text, "\n") }

func isObject(b []byte) bool {
	var o map[string]json.RawMessage
	return json.Unmarshal(b, &o) == nil && o != nil
}

// event is one event of a stream; name may be empty.
func event(name string, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // unreachable: only maps of plain values are written
	}
	if name != "" {
		name = "event: " + name + "\n"
	}
	return name + "data: " + string(b) + "\n\n"
}
