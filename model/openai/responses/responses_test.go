package responses_test

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
	"github.com/heddlehq/heddle/model/modeltest"
	"github.com/heddlehq/heddle/model/openai/responses"
)

var _ = flag.Bool("update", false, "rewrite golden files")

func codec() modeltest.Codec {
	return modeltest.Codec{
		New:        func(c *http.Client) model.Provider { return provider(c) },
		Recordings: os.DirFS("testdata/recordings"),
		Golden:     "testdata/request.json",
		Terminator: "complete", // or incomplete
		KeepAlive:  ": here\n\nevent: response.in_progress\ndata: {\"type\":\"response.in_progress\",\"sequence_number\":1}\n\n",
	}
}

func provider(c *http.Client) *responses.Provider {
	return responses.New(responses.Options{APIKey: modeltest.Key, BaseURL: "http://m.test/v1", Client: c})
}

func TestProvider(t *testing.T) { t.Parallel(); modeltest.Run(t, codec()) }

func FuzzStream(f *testing.F) { modeltest.Fuzz(f, codec()) }

func BenchmarkChunk(b *testing.B) { modeltest.Bench(b, codec(), `"delta":"Hello"`) }

// TestItems covers what only this format has.
func TestItems(t *testing.T) {
	t.Parallel()
	text := func(s string) model.Part { return model.Part{Kind: model.Text, Text: s} }
	reasoning := func(s, opaque string) model.Part {
		return model.Part{Kind: model.Reasoning, Text: s, Opaque: json.RawMessage(opaque), From: "openai/m"}
	}
	const (
		two      = `{"id":"rs_0","type":"reasoning","summary":[{"type":"summary_text","text":"One."},{"type":"summary_text","text":"Two."}],"encrypted_content":"gAAAc2ln+/==<&>","later":{"a":[1,2]}}`
		unsigned = `{"id":"rs_0","type":"reasoning","summary":[],"encrypted_content":null,"later":{"a":[1,2]}}`
	)
	tests := []struct {
		name  string
		parts []model.Part
		stop  model.Stop
		fault model.Fault
		kept  bool // the reasoning goes back
	}{
		{name: "summaries", parts: []model.Part{reasoning("One.\n\nTwo.", two), text("Three.")}, stop: model.StopEnd, kept: true},
		{name: "unsigned", parts: []model.Part{reasoning("", unsigned), text("Four.")}, stop: model.StopEnd},
		{name: "filtered", parts: []model.Part{text("I")}, stop: model.StopRefused},
		{name: "length-open", parts: []model.Part{text("I look.")}, stop: model.StopLength},
		{name: "failed-limited", fault: model.Limited},
		{name: "open-item", fault: model.Garbled},
		{name: "stray-delta", fault: model.Garbled},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			client, sent := modeltest.Play(t, codec(), tt.name)
			p := provider(client)
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
			if d := cmp.Diff(tt.parts, got.Parts, cmpopts.EquateEmpty()); d != "" || got.Stop != tt.stop {
				t.Errorf("stop %q, parts (-want +got):\n%s", got.Stop, d)
			}
			talk := []model.Message{{Role: model.User, Parts: []model.Part{text("hi")}}, {Role: model.Assistant, Parts: got.Parts}}
			if _, err := p.Stream(context.Background(), model.Request{Model: "m", Messages: talk}, nil); err != nil {
				t.Fatal(err)
			}
			if o := got.Parts[0].Opaque; o != nil && bytes.Contains(sent.Body, o) != tt.kept {
				t.Errorf("%s was sent back: %v\n%s", o, !tt.kept, sent.Body)
			}
		})
	}
}

// TestRaw: the answer is the response that the last event holds.
func TestRaw(t *testing.T) {
	t.Parallel()
	client, _ := modeltest.Play(t, codec(), "reasoning")
	got, err := provider(client).Stream(context.Background(), model.Request{Model: "m"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var raw struct {
		Object string            `json:"object"`
		Output []json.RawMessage `json:"output"`
	}
	if err := json.Unmarshal(got.Raw, &raw); err != nil || raw.Object != "response" || len(raw.Output) != 2 || !bytes.Equal(raw.Output[0], got.Parts[0].Opaque) {
		t.Errorf("%s, %v", got.Raw, err)
	}
	if got.Usage.Reasoning != 8 || got.Usage.Out != 20 {
		t.Errorf("usage %+v", got.Usage)
	}
}

// TestRequest: what a request is asked for beyond its messages.
func TestRequest(t *testing.T) {
	t.Parallel()
	const head = `{"model":"gpt-5","stream":true,"store":false,"include":["reasoning.encrypted_content"],`
	tests := []struct {
		r    model.Request
		want string
	}{
		{model.Request{}, head + `"input":[]}`},
		{model.Request{MaxTokens: 9, CacheKey: "c1"}, head + `"max_output_tokens":9,"prompt_cache_key":"c1","input":[]}`},
		{model.Request{CacheKey: strings.Repeat("k", 70)}, head + `"prompt_cache_key":"` + strings.Repeat("k", 64) + `","input":[]}`},
		{model.Request{Thinking: model.ThinkOff}, head + `"reasoning":{"effort":"none"},"input":[]}`},
		{model.Request{Thinking: model.ThinkLow}, head + `"reasoning":{"effort":"low"},"input":[]}`},
		{model.Request{Thinking: model.ThinkMedium}, head + `"reasoning":{"effort":"medium"},"input":[]}`},
		{model.Request{Thinking: model.ThinkHigh}, head + `"reasoning":{"effort":"high"},"input":[]}`},
	}
	for _, tt := range tests {
		client, sent := modeltest.Play(t, codec(), "text")
		tt.r.Model = "gpt-5"
		if _, err := provider(client).Stream(context.Background(), tt.r, nil); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(tt.want, string(sent.Body)); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		if got := sent.Request.URL.String(); got != "http://m.test/v1/responses" || sent.Request.Header.Get("Authorization") != "Bearer "+modeltest.Key {
			t.Errorf("%s %q", got, sent.Request.Header.Get("Authorization"))
		}
	}
}
