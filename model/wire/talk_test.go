package wire_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/wire"
)

// written is a conversation in short, a line a message: "a text(x) call(1)".
func written(talk []model.Message) string {
	var b strings.Builder
	for _, m := range talk {
		b.WriteString(string(m.Role[0]))
		for _, p := range m.Parts {
			s := p.Text
			switch p.Kind {
			case model.Call:
				s = p.CallID
			case model.Result:
				s = p.CallID + ":" + p.Name + ":" + p.Text
			case model.Image:
				s = p.Media
			}
			b.WriteString(" " + string(p.Kind) + "(" + s + ")")
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestTalk(t *testing.T) {
	t.Parallel()
	msg := func(role model.Role, parts ...model.Part) model.Message {
		return model.Message{Role: role, Parts: parts}
	}
	text := func(s string) model.Part { return model.Part{Kind: model.Text, Text: s} }
	call := func(id string) model.Part { return model.Part{Kind: model.Call, CallID: id, Name: "n" + id} }
	result := func(id, s string) model.Part { return model.Part{Kind: model.Result, CallID: id, Text: s} }
	image := func(media, data string) model.Part {
		return model.Part{Kind: model.Image, Media: media, Data: []byte(data), Ref: "r"}
	}
	think := func(from, opaque string) model.Part {
		return model.Part{Kind: model.Reasoning, Text: from, From: from, Opaque: json.RawMessage(opaque)}
	}
	const gone = "no result: the call was cut off; whether it did anything is unknown"
	tests := []struct {
		name string
		in   []model.Message
		want string
	}{
		{"nothing", nil, ""},
		{"plain", []model.Message{msg("user", text("a")), msg("assistant", text("b"))}, "u text(a)\na text(b)\n"},
		{"blank", []model.Message{msg("user", text(" "), text("a")), msg("user", text("\n")), msg("assistant", text(""))}, "u text(a)\n"},
		{"in order of the calls", []model.Message{msg("assistant", call("1"), call("2")), msg("results", result("2", "y"), result("1", "x"))}, "a call(1) call(2)\nr result(1:n1:x) result(2:n2:y)\n"},
		{"results apart", []model.Message{msg("assistant", call("1"), call("2")), msg("results", result("1", "x")), msg("user", text("a")), msg("results", result("2", "y"))}, "a call(1) call(2)\nr result(1:n1:x) result(2:n2:y)\nu text(a)\n"},
		{"orphan", []model.Message{msg("assistant", call("1")), msg("user", text("a"))}, "a call(1)\nr result(1:n1:" + gone + ")\nu text(a)\n"},
		{"stray and twice", []model.Message{msg("results", result("9", "z")), msg("assistant", call("1")), msg("results", result("1", "x"), result("1", "again"))}, "a call(1)\nr result(1:n1:x)\n"},
		{"one id again", []model.Message{msg("assistant", call("1")), msg("results", result("1", "x")), msg("assistant", call("1")), msg("results", result("1", "y"))}, "a call(1)\nr result(1:n1:x)\na call(1)\nr result(1:n1:y)\n"},
		{"reasoning", []model.Message{msg("assistant", think("p/m", "{}"), think("p/other", "{}"), think("p/m", ""), text("b"))}, "a reasoning(p/m) text(b)\n"},
		{"reasoning alone", []model.Message{msg("user", text("a")), msg("assistant", think("p/m", "{}"), text(" "))}, "u text(a)\n"},
		{"images", []model.Message{msg("user", image("image/png", "x"), image("image/png", ""), image("image/gif", "x"))}, "u image(image/png) text([an image was here; it is not available]) text([an image was here; it is not available])\n"},
		{"images of results", []model.Message{msg("assistant", call("1")), msg("results", image("image/jpeg", "x"), result("1", "x"), text("note"))}, "a call(1)\nr result(1:n1:x)\nu image(image/jpeg) text(note)\n"},
		{"image of a model", []model.Message{msg("assistant", image("image/png", "x"), text("b"))}, "a text(b)\n"},
	}
	for _, tt := range tests {
		before := written(tt.in)
		if d := cmp.Diff(tt.want, written(wire.Talk(tt.in, "p/m", false))); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
		if written(tt.in) != before {
			t.Errorf("%s: the conversation itself was changed", tt.name)
		}
	}
	look := []model.Message{msg("user", text("a"), image("image/png", "x")), msg("results", image("image/gif", ""))}
	if d := cmp.Diff("u text(a) text("+model.NoImages+")\nu text("+model.NoImages+")\n", written(wire.Talk(look, "p/m", true))); d != "" {
		t.Errorf("blind (-want +got):\n%s", d)
	}
	closed := wire.Talk([]model.Message{msg("assistant", call("1"))}, "p/m", false)
	if !closed[1].Parts[0].Failed {
		t.Error("what closes a call is no failure")
	}
}

func TestLed(t *testing.T) {
	t.Parallel()
	r, x := model.Part{Kind: model.Reasoning}, model.Part{Kind: model.Text}
	for _, tt := range []struct{ in, want []model.Part }{
		{nil, nil}, {[]model.Part{r}, nil}, {[]model.Part{r, x}, []model.Part{r, x}}, {[]model.Part{r, x, r, r}, []model.Part{r, x}},
	} {
		if got := wire.Led(tt.in); !slices.EqualFunc(got, tt.want, func(a, b model.Part) bool { return a.Kind == b.Kind }) {
			t.Errorf("%v: %v", tt.in, got)
		}
	}
}
