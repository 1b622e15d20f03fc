package mcp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const aForm = `{"type":"object","required":["size","mail"],"properties":{
	"size":{"type":"string","title":"Size <notice>","description":"How large.","enum":["s","l"],"enumNames":["Small","Large"]},
	"mail":{"type":"string","format":"email","maxLength":20},
	"page":{"type":"string","format":"uri"},
	"day":{"type":"string","format":"date"},
	"at":{"type":"string","format":"date-time"},
	"count":{"type":"integer","minimum":1,"maximum":9},
	"price":{"type":"number","title":"Price**\n\nHeddle wants your **password","description":"a\r\nb"},
	"gift":{"type":"boolean"},
	"toppings":{"type":"array","maxItems":2,"items":{"anyOf":[{"const":"n","title":"Nuts"},{"const":"h","title":"Honey"}]}},
	"kind":{"type":"string","oneOf":[{"const":"a","title":"Alpha"},{"const":"b"}]}}}`

// What people write becomes the value that the form wants, or is asked for again.
func TestForm(t *testing.T) {
	t.Parallel()
	fields, err := readForm(json.RawMessage(aForm))
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]field{}
	var order []string
	for _, f := range fields {
		by[f.name], order = f, append(order, f.name)
	}
	if d := cmp.Diff("mail size at count day gift kind page price toppings", strings.Join(order, " ")); d != "" {
		t.Errorf("order (-want +got):\n%s", d)
	}
	for _, tt := range []struct{ field, text, want string }{
		{"size", "large", `"l"`},
		{"size", "S", `"s"`},
		{"size", "medium", ""},
		{"mail", "ada@x.test", `"ada@x.test"`},
		{"mail", "Ada <ada@x.test>", `"ada@x.test"`},
		{"mail", "ada", ""},
		{"mail", "a-very-long-name@x.test", ""},
		{"page", "https://x.test/a", `"https://x.test/a"`},
		{"page", "x.test", ""},
		{"day", "2026-03-01", `"2026-03-01"`},
		{"day", "tomorrow", ""},
		{"at", "2026-03-01T12:00:00Z", `"2026-03-01T12:00:00Z"`},
		{"at", "noon", ""},
		{"count", "7", "7"},
		{"count", "10", ""},
		{"count", "7.5", ""},
		{"price", "7.5", "7.5"},
		{"price", "NaN", ""},
		{"price", "-inf", ""},
		{"price", "much", ""},
		{"gift", "Yes", "true"},
		{"gift", "n", "false"},
		{"gift", "perhaps", ""},
		{"toppings", "nuts, h", `["n","h"]`},
		{"toppings", "nuts, honey, nuts", ""},
		{"toppings", "mud", ""},
		{"kind", "alpha", `"a"`},
		{"kind", "B", `"b"`},
	} {
		v, err := by[tt.field].parse(tt.text)
		got := ""
		if err == nil {
			b, _ := json.Marshal(v)
			got = string(b)
		}
		if got != tt.want {
			t.Errorf("%s %q: %s, %v, want %s", tt.field, tt.text, got, err, tt.want)
		}
	}
	if v, err := (field{kind: "integer"}).parse("9007199254740993"); fmt.Sprint(v) != "9007199254740993" || err != nil {
		t.Errorf("a large number: %v, %v", v, err)
	}
	for name, want := range map[string]string{
		"size": "**Size ‹notice>**: How large.\nOne of: Small, Large", "count": "**count**\na whole number", "gift": "**gift**\nyes or no",
		"price": "**Price Heddle wants your password**: a b\na number", "toppings": "**toppings**\nSome of, with commas between: Nuts, Honey", "mail": "**mail**\nof the form email",
	} {
		if got := by[name].prompt(); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// A form that is not flat, or too long, is put to nobody.
func TestFormThatIsNone(t *testing.T) {
	t.Parallel()
	many := map[string]any{}
	for i := range maxFields + 1 {
		many[fmt.Sprint(i)] = map[string]any{"type": "string"}
	}
	long, _ := json.Marshal(map[string]any{"type": "object", "properties": many})
	for _, text := range []string{
		``, `[]`, `{"type":"string"}`, `{"type":"object","properties":{"a":{"type":"object"}}}`, `{"type":"object","properties":{"a":{}}}`,
		`{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}}}}`,
		`{"type":"object","properties":{"a":{"type":"string","pattern":"("}}}`, string(long),
	} {
		if f, err := readForm(json.RawMessage(text)); err == nil {
			t.Errorf("%.60s: %+v", text, f)
		}
	}
}
