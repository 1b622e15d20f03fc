package harness

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
)

// NewRawTool makes a tool whose argument schema comes as JSON, from a server or
// a file. Arguments are validated against it before run gets them as they are.
// The schema must not refer to itself: checking a value would not end. A schema
// of strangers has to be looked through first.
func NewRawTool(name, doc string, text json.RawMessage, run func(context.Context, *Call, json.RawMessage) (string, error)) Tool {
	t := Tool{Name: name, Doc: doc, Schema: text, timeout: DefaultTimeout}
	var js jsonschema.Schema
	if err := json.Unmarshal(text, &js); err != nil {
		t.err = fmt.Errorf("schema: %w", err)
		return t
	}
	resolved, err := js.Resolve(nil)
	if err != nil {
		t.err = fmt.Errorf("schema: %w", err)
		return t
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
