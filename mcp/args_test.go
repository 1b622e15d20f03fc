package mcp

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/chat"
)

// A schema that a provider would refuse, and with it the whole request, is
// changed until all take it.
func TestArguments(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 70)
	for _, tt := range []struct{ name, schema, want string }{
		{"nothing", `{}`, `{"properties":{},"type":"object"}`},
		{"no properties", `{"type":"object"}`, `{"properties":{},"type":"object"}`},
		{
			"lists of what", `{"properties":{"a":{"type":"array"},"b":{"type":["array","null"],"items":true},"c":{"items":{"type":"array"},"type":"array"}}}`,
			`{"properties":{"a":{"items":{},"type":"array"},"b":{"items":{},"type":["array","null"]},"c":{"items":{"items":{},"type":"array"},"type":"array"}},"type":"object"}`,
		},
		{
			"places", `{"properties":{"a":{"type":"array","items":[{"type":"array"}],"additionalItems":{"type":"string"}}}}`,
			`{"properties":{"a":{"items":{"type":"string"},"prefixItems":[{"items":{},"type":"array"}],"type":"array"}},"type":"object"}`,
		},
		{
			"lists in definitions", `{"$defs":{"d":{"type":"array"}},"properties":{"a":{"anyOf":[{"type":"array"},{"$ref":"#/$defs/d"}]}}}`,
			`{"$defs":{"d":{"items":{},"type":"array"}},"properties":{"a":{"anyOf":[{"items":{},"type":"array"},{"$ref":"#/$defs/d"}]}},"type":"object"}`,
		},
		{
			"values", `{"properties":{"type":{"default":{"type":"array"},"enum":[{"type":"array"}]}}}`,
			`{"properties":{"type":{"default":{"type":"array"},"enum":[{"type":"array"}]}},"type":"object"}`,
		},
		{
			"names", `{"properties":{"$top":{"type":"number"},"filter[a]":{},"filter_a_":{},"a.b-c":{},"` + long + `":{},"":{},"日本":{}},"required":["$top","a.b-c"],"dependentRequired":{"$top":["a.b-c"]}}`,
			`{"properties":{"_":{},"_2":{},"_top":{"type":"number"},"a.b-c":{},"filter_a_":{},"filter_a__2":{},"` + long[:60] + `":{}},"required":["_top","a.b-c"],"type":"object"}`,
		},
	} {
		got, _, err := arguments(json.RawMessage(tt.schema))
		if d := cmp.Diff(tt.want, string(got)); d != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", tt.name, err, d)
		}
	}
}

// Arguments that have another name for the model reach the server under its own.
func TestRenamedArguments(t *testing.T) {
	t.Parallel()
	url := stranger{
		"tools/list": func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) {
			answer(w, id, `{"tools":[{"name":"look","inputSchema":{"type":"object","properties":{"$top":{"type":"integer"},"q":{"type":"string"}},"required":["$top"],"additionalProperties":false}}]}`)
		},
		"tools/call": func(w http.ResponseWriter, _ *http.Request, id, params json.RawMessage) {
			var p struct{ Arguments json.RawMessage }
			_ = json.Unmarshal(params, &p)
			b, _ := json.Marshal(string(p.Arguments))
			answer(w, id, `{"resultType":"complete","content":[{"type":"text","text":`+string(b)+`}]}`)
		},
	}.start(t)
	m := mounted(t, openOne(t, at(url)), "E1", chat.Admin)
	if text, err := invoke(t, m, "mcp__demo__look", `{"_top":3,"q":"x"}`); text != `{"$top":3,"q":"x"}` || err != nil {
		t.Errorf("%s, %v", text, err)
	}
	for _, wrong := range []string{`{"q":"x"}`, `{"_top":"three"}`, `{"_top":3,"other":1}`} {
		if text, err := invoke(t, m, "mcp__demo__look", wrong); err == nil {
			t.Errorf("%s: %s", wrong, text)
		}
	}
}
