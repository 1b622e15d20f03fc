package model_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/heddlehq/heddle/fakes/llm"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/anthropic"
	"github.com/heddlehq/heddle/model/gemini"
	"github.com/heddlehq/heddle/model/openai"
	"github.com/heddlehq/heddle/model/openai/responses"
	"github.com/heddlehq/heddle/model/script"
)

var update = flag.Bool("update", false, "rewrite golden files")

// A wireModel is a model behind one of the wires.
type wireModel struct {
	wire, id string
	provider model.Provider
}

// world is a strict server with a model behind each wire, and some more.
func world(t *testing.T) (*llm.Server, []wireModel) {
	t.Helper()
	s, err := script.Parse(`
when "deploy"
think: they want the log
and say: I will look.
and call: bash {"command":"tail log"}
and call: bash {"command":"date"}`)
	if err != nil {
		t.Fatal(err)
	}
	server := llm.New(llm.Options{Script: script.NewPlayer(s)})
	h := httptest.NewServer(server)
	t.Cleanup(h.Close)
	var (
		chat  = openai.New(openai.Options{BaseURL: h.URL + "/v1"})
		resp  = responses.New(responses.Options{BaseURL: h.URL + "/v1"})
		claud = anthropic.New(anthropic.Options{BaseURL: h.URL})
		gemin = gemini.New(gemini.Options{BaseURL: h.URL + "/v1beta"})
	)
	return server, []wireModel{
		{"openai", "gpt-4.1", chat},
		{"responses", "gpt-5", resp},
		{"anthropic", "claude-opus-4-6", claud},
		{"gemini", "gemini-3.7-flash", gemin},
		{"anthropic", "claude-haiku-4-5", claud}, // thinks by budget
		{"gemini", "gemini-2.5-flash", gemin},    // asks for no signatures
	}
}

func textPart(s string) model.Part { return model.Part{Kind: model.Text, Text: s} }

func callPart(id, name string) model.Part {
	return model.Part{Kind: model.Call, CallID: id, Name: name, Args: json.RawMessage(`{"n":1}`)}
}

func resultPart(id, name, text string, failed bool) model.Part {
	return model.Part{Kind: model.Result, CallID: id, Name: name, Text: text, Failed: failed}
}

func imagePart(media string, data string) model.Part {
	return model.Part{Kind: model.Image, Media: media, Data: []byte(data), Ref: "files/1"}
}

var bash = []model.Tool{{Name: "bash", Doc: "Run.", Schema: json.RawMessage(`{"type":"object","properties":{}}`)}}

// begin lets a model think, speak and call two tools.
func begin(t testing.TB, m wireModel) []model.Part {
	t.Helper()
	r := model.Request{Model: m.id, Tools: bash, Messages: []model.Message{{Role: model.User, Parts: []model.Part{textPart("please deploy")}}}}
	got, err := m.provider.Stream(context.Background(), r, nil)
	if err != nil || got.Stop != model.StopTools {
		t.Fatalf("%s: %+v, %v", m.id, got, err)
	}
	return got.Parts
}

// rich is a conversation that the model of begun began and another went on with.
func rich(begun []model.Part) []model.Message {
	var ids []string
	for _, p := range begun {
		if p.Kind == model.Call {
			ids = append(ids, p.CallID)
		}
	}
	long := strings.Repeat("long|", 90)
	return []model.Message{
		{Role: model.User, Parts: []model.Part{textPart("please deploy what this shows"), imagePart("image/png", "png bytes"), imagePart("image/png", ""), imagePart("image/tiff", "x")}},
		{Role: model.Assistant, Parts: begun},
		{Role: model.Results, Parts: []model.Part{resultPart(ids[1], "bash", "no such command", true), resultPart(ids[0], "bash", "all <well> & good", false), imagePart("image/jpeg", "a screen")}},
		{Role: model.User, Parts: []model.Part{textPart("<notice>bash was removed</notice>")}},
		{Role: model.Assistant, Parts: []model.Part{
			{Kind: model.Reasoning, Text: "another's", Opaque: json.RawMessage(`{"type":"thinking","thinking":"another's","signature":"x"}`), From: "elsewhere/m-9"},
			textPart("Two more."), callPart("id:with/odd characters", "bash"), callPart(long, "enhance"),
		}},
		{Role: model.User, Parts: []model.Part{textPart("hurry")}}, // while they ran
		{Role: model.Results, Parts: []model.Part{resultPart("id:with/odd characters", "bash", "", false)}},
		{Role: model.Assistant, Parts: []model.Part{{Kind: model.Reasoning, Text: "and then the power went", From: begun[0].From, Opaque: begun[0].Opaque}}},
		{Role: model.User, Parts: []model.Part{textPart("are you there?")}},
	}
}

// TestConvert has every wire go on with a conversation that each of them began.
func TestConvert(t *testing.T) {
	t.Parallel()
	for from := range 4 {
		for to := range 4 {
			server, models := world(t)
			src, dst := models[from], models[to]
			t.Run(src.wire+" to "+dst.wire, func(t *testing.T) {
				t.Parallel()
				begun := begin(t, src)
				r := model.Request{Model: dst.id, System: "Be brief.", Tools: bash, MaxTokens: 4096, CacheKey: "conversation-1", Messages: rich(begun)}
				_, _ = dst.provider.Stream(context.Background(), r, nil) // the script has no answer
				ledger := server.Requests()
				last := ledger[len(ledger)-1]
				if last.Refused != "" || last.Wire != dst.wire {
					t.Fatalf("refused by %s: %s\n%s", last.Wire, last.Refused, last.Body)
				}
				var pretty bytes.Buffer
				if err := json.Indent(&pretty, last.Body, "", "  "); err != nil {
					t.Fatal(err)
				}
				golden(t, filepath.Join("testdata", "convert", src.wire+"-"+dst.wire+".json"), pretty.String()+"\n")
				if kept := bytes.Contains(last.Body, kept(t, begun)); kept != (from == to) {
					t.Errorf("reasoning went along: %v", kept)
				}
			})
		}
	}
}

// kept are the bytes in which reasoning goes back to its own model.
func kept(t *testing.T, parts []model.Part) []byte {
	t.Helper()
	for _, p := range parts {
		if p.Kind == model.Reasoning && p.Opaque != nil {
			return bytes.Trim(p.Opaque, "{}")
		}
	}
	t.Fatal("nothing that can go back")
	return nil
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", name, d)
	}
}

// TestConvertAnything: whatever a conversation holds, every wire accepts it.
func TestConvertAnything(t *testing.T) {
	t.Parallel()
	server, models := world(t)
	begun := make([][]model.Part, len(models))
	for i, m := range models {
		begun[i] = begin(t, m)
	}
	rapid.Check(t, func(t *rapid.T) {
		talk := anything(t, begun)
		for _, m := range models {
			level := rapid.SampledFrom([]model.Thinking{"", model.ThinkOff, model.ThinkLow, model.ThinkHigh}).Draw(t, "level")
			r := model.Request{Model: m.id, MaxTokens: rapid.SampledFrom([]int{0, 1000, 9000}).Draw(t, "most"), Thinking: level, Messages: talk}
			r = model.Spec{Thinking: "off low medium high", Images: rapid.Bool().Draw(t, "images")}.Fit(r)
			_, err := m.provider.Stream(context.Background(), r, nil)
			ledger := server.Requests()
			last := ledger[len(ledger)-1]
			if last.Refused != "" {
				t.Fatalf("%s: %s\n%s", m.id, last.Refused, last.Body)
			}
			if d := cmp.Diff(string(last.Body), again(server, m, r, rapid.IntRange(0, len(talk)).Draw(t, "before"))); d != "" {
				t.Fatalf("%s: what was kept of a shorter talk changed it (-anew +again):\n%s", m.id, d)
			}
			var e *model.Error
			if !errors.As(err, &e) || e.Fault != model.Invalid { // the script has no answer
				t.Fatalf("%s: %v", m.id, err)
			}
		}
	})
}

// again is the body of a request whose codec has kept what it wrote of the first
// n messages.
func again(server *llm.Server, m wireModel, r model.Request, n int) string {
	all := r.Messages
	r.Written = &model.Written{}
	for _, r.Messages = range [][]model.Message{all[:n], all} {
		_, _ = m.provider.Stream(context.Background(), r, nil) // the script has no answer
	}
	ledger := server.Requests()
	return string(ledger[len(ledger)-1].Body)
}

// anything is a conversation with all that can be in one, and more. Ids of
// calls are unique, which CheckCalls sees to, and somebody speaks first.
func anything(t *rapid.T, begun [][]model.Part) []model.Message {
	talk := []model.Message{{Role: model.User, Parts: []model.Part{textPart("hello")}}}
	var ids []string
	text := rapid.SampledFrom([]string{"", " ", "\n", "a", "<b> & ä", "{\"c\":1}"})
	result := func() model.Part {
		id := "stray"
		if len(ids) > 0 && rapid.IntRange(0, 5).Draw(t, "stray") > 0 {
			id = rapid.SampledFrom(ids).Draw(t, "of")
		}
		return resultPart(id, "bash", text.Draw(t, "text"), rapid.Bool().Draw(t, "failed"))
	}
	call := func() model.Part {
		p := callPart(rapid.SampledFrom([]string{"", "call_", "a:b|", strings.Repeat("x", 70)}).Draw(t, "id")+string(rune('a'+len(ids)%26))+strings.Repeat("z", len(ids)/26), "bash")
		ids = append(ids, p.CallID)
		return p
	}
	image := func() model.Part {
		return imagePart(rapid.SampledFrom([]string{"image/png", "image/webp", "image/gif", ""}).Draw(t, "media"), text.Draw(t, "data"))
	}
	reasoning := func() model.Part {
		for _, p := range rapid.SampledFrom(begun).Draw(t, "begun") {
			if p.Kind == model.Reasoning {
				return p
			}
		}
		return model.Part{Kind: model.Reasoning, Text: "of nobody"}
	}
	for range rapid.IntRange(0, 8).Draw(t, "messages") {
		m := model.Message{Role: rapid.SampledFrom([]model.Role{model.User, model.Assistant, model.Results}).Draw(t, "role")}
		for range rapid.IntRange(0, 4).Draw(t, "parts") {
			kinds := map[model.Role][]func() model.Part{
				model.User:      {func() model.Part { return textPart(text.Draw(t, "text")) }, image},
				model.Assistant: {func() model.Part { return textPart(text.Draw(t, "text")) }, call, call, reasoning},
				model.Results:   {result, result, result, image},
			}[m.Role]
			m.Parts = append(m.Parts, rapid.SampledFrom(kinds).Draw(t, "kind")())
		}
		talk = append(talk, m)
	}
	return talk
}
