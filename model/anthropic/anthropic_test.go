package anthropic_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/anthropic"
	"github.com/heddlehq/heddle/model/modeltest"
)

var _ = flag.Bool("update", false, "rewrite golden files")

func codec() modeltest.Codec {
	return modeltest.Codec{
		New: func(c *http.Client) model.Provider {
			return anthropic.New(anthropic.Options{APIKey: modeltest.Key, BaseURL: "http://m.test", Client: c})
		},
		Recordings: os.DirFS("testdata/recordings"),
		Golden:     "testdata/request.json",
		Terminator: "message_stop",
		KeepAlive:  "event: ping\ndata: {\"type\": \"ping\"}\n\n: still here\n\n",
	}
}

func TestProvider(t *testing.T) { t.Parallel(); modeltest.Run(t, codec()) }

func FuzzStream(f *testing.F) { modeltest.Fuzz(f, codec()) }

func BenchmarkChunk(b *testing.B) { modeltest.Bench(b, codec(), `"text":"Hello"`) }

// TestBlocks covers what only this format has.
func TestBlocks(t *testing.T) {
	t.Parallel()
	hi := []model.Part{{Kind: model.Text, Text: "Hi."}}
	tests := []struct {
		name  string
		parts []model.Part
		fault model.Fault
	}{
		{name: "reasoning", parts: []model.Part{
			{Kind: model.Reasoning, Text: "Two and two.", Opaque: json.RawMessage(`{"type":"thinking","thinking":"Two and two.","signature":"c2ln+/==<&>"}`), From: "anthropic/m"},
			{Kind: model.Text, Text: "Four."},
		}},
		{name: "redacted", parts: []model.Part{
			{Kind: model.Reasoning, Opaque: json.RawMessage(`{"type":"redacted_thinking","data":"b3BhcXVl<&>","later":{"a":[1,2]}}`), From: "anthropic/m"},
			{Kind: model.Text, Text: "Four."},
		}},
		{name: "whole-input", parts: []model.Part{{Kind: model.Call, CallID: "call_a", Name: "get_weather", Args: json.RawMessage(`{"city":"Paris"}`)}}},
		{name: "unknown", parts: hi},
		{name: "open-block", fault: model.Garbled},
		{name: "no-reason", fault: model.Garbled},
		{name: "stray-delta", fault: model.Garbled},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			client, sent := modeltest.Play(t, codec(), tt.name)
			p := anthropic.New(anthropic.Options{Client: client})
			got, err := p.Stream(context.Background(), model.Request{Model: "m"}, nil)
			if tt.fault != "" {
				var e *model.Error
				if !errors.As(err, &e) || e.Fault != tt.fault {
					t.Fatalf("want %s, got %v", tt.fault, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.parts, got.Parts, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("parts (-want +got):\n%s", d)
			}
			// What it said goes back byte for byte, between what people say.
			talk := []model.Message{{Role: model.User, Parts: hi}, {Role: model.Assistant, Parts: got.Parts}, {Role: model.User, Parts: hi}}
			if _, err := p.Stream(context.Background(), model.Request{Model: "m", Messages: talk}, nil); err != nil && tt.fault == "" {
				t.Fatal(err)
			}
			if o := got.Parts[0].Opaque; o != nil && !bytes.Contains(sent.Body, o) {
				t.Errorf("%s was not sent back:\n%s", o, sent.Body)
			}
		})
	}
}

func TestRaw(t *testing.T) {
	t.Parallel()
	client, _ := modeltest.Play(t, codec(), "parallel")
	p := anthropic.New(anthropic.Options{Client: client})
	got, err := p.Stream(context.Background(), model.Request{Model: "m"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"id":"msg_1","type":"message","role":"assistant","model":"m-1-2026","content":[{"type":"text","text":"I look."},` +
		`{"type":"tool_use","id":"call_a","name":"get_weather","input":{"city":"Paris"}},{"type":"tool_use","id":"call_b","name":"get_weather","input":{"city":"Rome"}}],` +
		`"stop_reason":"tool_use","usage":{"input_tokens":50,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":30}}`
	if d := cmp.Diff(want, string(got.Raw)); d != "" {
		t.Errorf("raw (-want +got):\n%s", d)
	}
}

func TestAddress(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"":                        "https://api.anthropic.com/v1/messages",
		"http://127.0.0.1:9":      "http://127.0.0.1:9/v1/messages",
		"http://127.0.0.1:9/v1":   "http://127.0.0.1:9/v1/messages",
		"http://h.test/proxy/v1/": "http://h.test/proxy/v1/messages",
	} {
		client, sent := modeltest.Play(t, codec(), "text")
		p := anthropic.New(anthropic.Options{APIKey: "k", BaseURL: base, Client: client})
		if _, err := p.Stream(context.Background(), model.Request{Model: "m"}, nil); err != nil {
			t.Fatal(err)
		}
		h := sent.Request.Header
		if got := sent.Request.URL.String(); got != want || h.Get("X-Api-Key") != "k" || h.Get("Anthropic-Version") == "" {
			t.Errorf("%q: %s", base, got)
		}
		if !strings.Contains(string(sent.Body), `"max_tokens":8192`) {
			t.Errorf("no default for max_tokens: %s", sent.Body)
		}
	}
}

// TestThinking: later models take an effort, earlier ones a budget that leaves
// room for the answer.
func TestThinking(t *testing.T) {
	t.Parallel()
	text := model.Part{Kind: model.Text, Text: "hi"}
	thought := model.Part{Kind: model.Reasoning, Opaque: json.RawMessage(`{"type":"thinking","thinking":"","signature":"s"}`), From: "anthropic/claude-haiku-4-5"}
	call := model.Part{Kind: model.Call, CallID: "c", Name: "a"}
	result := model.Message{Role: model.Results, Parts: []model.Part{{Kind: model.Result, CallID: "c"}}}
	user := model.Message{Role: model.User, Parts: []model.Part{text}}
	said := func(parts ...model.Part) model.Message { return model.Message{Role: model.Assistant, Parts: parts} }
	second := []model.Message{said(model.Part{Kind: model.Call, CallID: "d", Name: "a"}), {Role: model.Results, Parts: []model.Part{{Kind: model.Result, CallID: "d"}}}}
	const adaptive = `"max_tokens":50000,"stream":true,"thinking":{"type":"adaptive"},"output_config":{"effort":"high"},`
	const budget = `"max_tokens":50000,"stream":true,"thinking":{"type":"enabled","budget_tokens":8192},`
	const none = `"max_tokens":50000,"stream":true,`
	tests := []struct {
		model string
		level model.Thinking
		most  int
		talk  []model.Message
		want  string
	}{
		{"claude-opus-4-8", model.ThinkHigh, 50_000, []model.Message{user}, adaptive},
		{"claude-opus-4-6", model.ThinkHigh, 50_000, []model.Message{user}, adaptive},
		{"claude-sonnet-5", model.ThinkHigh, 50_000, []model.Message{user, said(text, call), result}, adaptive},
		{"claude-haiku-4-6", model.ThinkHigh, 50_000, []model.Message{user}, adaptive},
		{"claude-opus-4-8", model.ThinkOff, 50_000, []model.Message{user}, none},
		{"claude-opus-4-8", "", 50_000, []model.Message{user}, none},
		{"claude-haiku-4-5", "", 50_000, []model.Message{user}, none},
		{"claude-haiku-4-5", model.ThinkOff, 50_000, []model.Message{user}, none},
		{"claude-haiku-4-5", model.ThinkMedium, 50_000, []model.Message{user}, budget},
		{"claude-haiku-4-5-20251001", model.ThinkMedium, 50_000, []model.Message{user}, budget},
		{"claude-opus-4-5", model.ThinkMedium, 50_000, []model.Message{user}, budget},
		{"claude-sonnet-4-20250514", model.ThinkMedium, 50_000, []model.Message{user}, budget},
		{"claude-opus-4-1-20250805", model.ThinkHigh, 10_000, []model.Message{user}, `"max_tokens":10000,"stream":true,"thinking":{"type":"enabled","budget_tokens":5000},`},
		{"claude-haiku-4-5", model.ThinkLow, 2000, []model.Message{user}, `"max_tokens":2000,"stream":true,`},
		{"claude-haiku-4-5", model.ThinkHigh, 0, []model.Message{user}, `"max_tokens":24576,"stream":true,"thinking":{"type":"enabled","budget_tokens":16384},`},
		// In the middle of an answer that began without thinking, by another model or level.
		{"claude-haiku-4-5", model.ThinkMedium, 50_000, []model.Message{user, said(text, call), result}, none},
		{"claude-haiku-4-5", model.ThinkMedium, 50_000, append([]model.Message{user, said(call), result}, second...), none},
		{"claude-haiku-4-5", model.ThinkMedium, 50_000, append([]model.Message{user, said(thought, call), result}, second...), budget},
		{"claude-haiku-4-5", model.ThinkMedium, 50_000, []model.Message{user, said(text, call), result, user}, none},
		{"claude-haiku-4-5", model.ThinkMedium, 50_000, []model.Message{user, said(text, call), result, said(text), user}, budget},
	}
	for _, tt := range tests {
		client, sent := modeltest.Play(t, codec(), "text")
		r := model.Request{Model: tt.model, Thinking: tt.level, MaxTokens: tt.most, Messages: tt.talk, Tools: []model.Tool{{Name: "a"}}}
		if _, err := anthropic.New(anthropic.Options{Client: client}).Stream(context.Background(), r, nil); err != nil {
			t.Fatal(err)
		}
		if want := `{"model":"` + tt.model + `",` + tt.want + `"tools":`; !strings.HasPrefix(string(sent.Body), want) {
			t.Errorf("%s %q: %s\nwant %s", tt.model, tt.level, sent.Body, want)
		}
	}
}

// Where no tool is left, those of the calls in the conversation are defined, and none may be called.
func TestNoToolLeft(t *testing.T) {
	t.Parallel()
	user := model.Message{Role: model.User, Parts: []model.Part{{Kind: model.Text, Text: "hi"}}}
	called := []model.Message{user}
	for _, id := range []string{"1", "2"} {
		called = append(called, model.Message{Role: model.Assistant, Parts: []model.Part{{Kind: model.Call, CallID: id, Name: "look"}}},
			model.Message{Role: model.Results, Parts: []model.Part{{Kind: model.Result, CallID: id}}})
	}
	const gone = `"tools":[{"name":"look","description":"This tool is gone.","input_schema":{"type":"object","properties":{}},"cache_control":{"type":"ephemeral"}}],"tool_choice":{"type":"none"},`
	for _, tt := range []struct {
		talk  []model.Message
		tools []model.Tool
		want  bool
	}{{[]model.Message{user}, nil, false}, {called, nil, true}, {called, []model.Tool{{Name: "other"}}, false}} {
		client, sent := modeltest.Play(t, codec(), "text")
		r := model.Request{Model: "claude-opus-4-6", Messages: tt.talk, Tools: tt.tools}
		if _, err := anthropic.New(anthropic.Options{Client: client}).Stream(context.Background(), r, nil); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(sent.Body), gone); got != tt.want || strings.Contains(string(sent.Body), "tool_choice") != tt.want {
			t.Errorf("%d messages, %d tools: %s", len(tt.talk), len(tt.tools), sent.Body)
		}
	}
}
