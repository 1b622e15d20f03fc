package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/wire"
)

type headed struct {
	Model string `json:"model"`
	Talk  []any  `json:"talk"`
}

type said struct {
	Text string `json:"text"`
}

// forms are one whose items stand by themselves and one with lists and a mark.
// They count what they write.
func forms(count *int) []wire.Form {
	items := func(m model.Message) (out []any) {
		for _, p := range m.Parts {
			*count++
			switch p.Kind {
			case model.Reasoning:
				out = append(out, p.Opaque)
			case model.Image:
				out = append(out, &said{fmt.Sprint(p.Media, " ", len(p.Data))})
			default:
				out = append(out, &said{p.CallID + p.Text})
			}
		}
		return out
	}
	return []wire.Form{
		{From: "p/m", Items: items},
		{From: "p/m", Items: items, List: "parts", Assistant: "model", Mark: `,"mark":1`},
	}
}

func joined(b wire.Body) string { return string(bytes.Join(b, nil)) }

func TestWrite(t *testing.T) {
	t.Parallel()
	var n int
	text := func(r model.Role, s string) model.Message {
		return model.Message{Role: r, Parts: []model.Part{{Kind: model.Text, Text: s}}}
	}
	think := model.Message{Role: model.Assistant, Parts: []model.Part{
		{Kind: model.Text, Text: "<c>"},
		{Kind: model.Reasoning, From: "p/m", Opaque: json.RawMessage(`{"r": "<>"}`)},
	}}
	system := headed{"m", []any{"sys"}}
	for _, tt := range []struct {
		name       string
		head       headed
		in         []model.Message
		flat, list string
	}{
		{"nothing", headed{"m", []any{}}, nil, `{"model":"m","talk":[]}`, `{"model":"m","talk":[]}`},
		{"nothing but the head", system, nil, `{"model":"m","talk":["sys"]}`, `{"model":"m","talk":["sys"]}`},
		{
			"neighbours", system,
			[]model.Message{text("user", "a"), text("user", "b"), think},
			`{"model":"m","talk":["sys",{"text":"a"},{"text":"b"},{"text":"<c>"},{"r":"<>"}]}`,
			`{"model":"m","talk":["sys",{"role":"user","parts":[{"text":"a"},{"text":"b"}]},{"role":"model","parts":[{"text":"<c>","mark":1},{"r":"<>"}]}]}`,
		},
	} {
		for i, f := range forms(&n) {
			got, err := f.Write(tt.head, model.Request{Messages: tt.in})
			if d := cmp.Diff([]string{tt.flat, tt.list}[i], joined(got)); d != "" || err != nil {
				t.Errorf("%s: %v (-want +got):\n%s", tt.name, err, d)
			}
		}
	}
	if _, err := forms(&n)[0].Write("no list", model.Request{}); err == nil {
		t.Error("a head without a list was taken")
	}
	think.Parts[1].Opaque = json.RawMessage("{")
	if _, err := forms(&n)[0].Write(system, model.Request{Messages: []model.Message{think}, Written: &model.Written{}}); err == nil {
		t.Error("what is no JSON was taken")
	}
}

// TestWriteAgain: what a conversation keeps of earlier requests changes no byte
// of a later one, nor that of an earlier one that may still be being sent.
func TestWriteAgain(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var n int
		f := rapid.SampledFrom(forms(&n)).Draw(t, "form")
		var talk []model.Message
		var kept model.Written
		sent := map[string]wire.Body{}
		id := 0
		part := func(kind model.PartKind) model.Part {
			id++
			p := model.Part{Kind: kind, Text: fmt.Sprint("t", id), CallID: fmt.Sprint("c", rapid.IntRange(max(0, id-4), id).Draw(t, "call"))}
			if kind == model.Reasoning {
				p.From, p.Opaque = "p/m", json.RawMessage(`{}`)
			}
			return p
		}
		for range rapid.IntRange(1, 12).Draw(t, "requests") {
			switch cut := rapid.IntRange(0, 9).Draw(t, "cut"); {
			case cut == 0: // a summary takes the place of what came before
				at := rapid.IntRange(0, len(talk)).Draw(t, "drop")
				talk = append([]model.Message{{Role: model.User, Parts: []model.Part{part(model.Text)}}}, talk[at:]...)
			case cut == 1 && len(talk) > 0: // a late result goes with the others
				last := &talk[len(talk)-1]
				last.Parts = append(last.Parts, part(model.Result))
			case cut == 2:
				f.From = rapid.SampledFrom([]string{"p/m", "p/other"}).Draw(t, "from")
			}
			for range rapid.IntRange(0, 3).Draw(t, "more") {
				m := model.Message{Role: rapid.SampledFrom([]model.Role{model.User, model.Assistant, model.Results}).Draw(t, "role")}
				kinds := map[model.Role][]model.PartKind{
					model.User: {model.Text}, model.Assistant: {model.Text, model.Call, model.Reasoning}, model.Results: {model.Result, model.Image},
				}[m.Role]
				for range rapid.IntRange(0, 3).Draw(t, "parts") {
					m.Parts = append(m.Parts, part(rapid.SampledFrom(kinds).Draw(t, "kind")))
				}
				talk = append(talk, m)
			}
			r := model.Request{Messages: talk, Blind: rapid.IntRange(0, 9).Draw(t, "blind") == 0}
			want, err := f.Write(headed{Talk: []any{}}, r)
			if err != nil {
				t.Fatal(err)
			}
			r.Written = &kept
			got, err := f.Write(headed{Talk: []any{}}, r)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(joined(want), joined(got)); d != "" {
				t.Fatalf("(-anew +again):\n%s", d)
			}
			sent[joined(got)] = got
		}
		for was, b := range sent {
			if joined(b) != was {
				t.Fatalf("an earlier body was changed to %s from %s", joined(b), was)
			}
		}
	})
}

// TestWriteOnlyWhatIsNew: a request costs what was said since the last one.
func TestWriteOnlyWhatIsNew(t *testing.T) {
	t.Parallel()
	var n int
	f := forms(&n)[1]
	var kept model.Written
	var talk []model.Message
	for i := range 200 {
		for _, m := range []model.Message{
			{Role: model.User, Parts: []model.Part{{Kind: model.Text, Text: "q"}}},
			{Role: model.Assistant, Parts: []model.Part{{Kind: model.Call, CallID: fmt.Sprint(i)}}},
			{Role: model.Results, Parts: []model.Part{{Kind: model.Result, CallID: fmt.Sprint(i), Text: "r"}}},
		} {
			talk = append(talk, m)
			n = 0
			if _, err := f.Write(headed{Talk: []any{}}, model.Request{Messages: talk, Written: &kept}); err != nil || n > 2 {
				t.Fatalf("message %d: %d items were written, %v", len(talk), n, err)
			}
		}
	}
	if kept.Bytes < 200*len(`{"text":"q"}`) || kept.Bytes > 200*400 {
		t.Errorf("%d bytes are said to be kept", kept.Bytes)
	}
	// An image is read when it is written, and what cannot be read is not kept.
	reads, broken := 0, errors.New("broken")
	r := model.Request{Written: &kept, Image: func(ref string) ([]byte, error) {
		if reads++; reads == 1 {
			return nil, broken
		}
		return []byte(ref), nil
	}}
	r.Messages = append(talk, model.Message{Role: model.User, Parts: []model.Part{{Kind: model.Image, Media: "image/png", Ref: "x"}}})
	if _, err := f.Write(headed{Talk: []any{}}, r); !errors.Is(err, broken) {
		t.Errorf("an image that cannot be read: %v", err)
	}
	for range 3 {
		if b, err := f.Write(headed{Talk: []any{}}, r); err != nil || reads != 2 || !strings.Contains(joined(b), "image/png 1") {
			t.Errorf("%d reads, %v, %s", reads, err, b[1][len(b[1])-40:])
		}
	}
	big := model.Message{Role: model.User, Parts: []model.Part{{Kind: model.Text, Text: string(bytes.Repeat([]byte("x"), 5<<20))}}}
	if _, err := f.Write(headed{Talk: []any{}}, model.Request{Messages: append(talk, big), Written: &kept}); err != nil || kept != (model.Written{}) {
		t.Errorf("more than the most was kept: %d bytes, %v", kept.Bytes, err)
	}
}
