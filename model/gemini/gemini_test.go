package gemini_test

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
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/heddlehq/heddle/config"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/gemini"
	"github.com/heddlehq/heddle/model/modeltest"
)

var _ = flag.Bool("update", false, "rewrite golden files")

func codec() modeltest.Codec {
	return modeltest.Codec{
		New: func(c *http.Client) model.Provider {
			return gemini.New(gemini.Options{APIKey: modeltest.Key, BaseURL: "http://m.test/v1beta", Client: c})
		},
		Recordings:   os.DirFS("testdata/recordings"),
		Golden:       "testdata/request.json",
		Terminator:   "reason", // finishReason or blockReason
		KeepAlive:    ": here\n\ndata: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"\"}],\"role\":\"model\"},\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":100}}\n\n",
		NoCacheWrite: true,
	}
}

func TestProvider(t *testing.T) { t.Parallel(); modeltest.Run(t, codec()) }

func FuzzStream(f *testing.F) { modeltest.Fuzz(f, codec()) }

func BenchmarkChunk(b *testing.B) { modeltest.Bench(b, codec(), `"text":"Hel"`) }

const signature = `{"thoughtSignature":"c2ln+/==<&>"}`

// TestParts covers what only this format has.
func TestParts(t *testing.T) {
	t.Parallel()
	text := func(s string) model.Part { return model.Part{Kind: model.Text, Text: s} }
	thought := func(s, opaque string) model.Part {
		return model.Part{Kind: model.Reasoning, Text: s, Opaque: json.RawMessage(opaque), From: "gemini/m"}
	}
	call := func(id, args string) model.Part {
		return model.Part{Kind: model.Call, CallID: id, Name: "get_weather", Args: json.RawMessage(args)}
	}
	tests := []struct {
		name  string
		parts []model.Part
		sent  string // the parts of the answer as they go back
		stop  model.Stop
		fault model.Fault
		code  string
	}{
		{
			name: "reasoning", stop: model.StopEnd,
			parts: []model.Part{thought("Two and two.", signature), text("Four.")},
			sent:  `[{"text":"Four.","thoughtSignature":"c2ln+/==<&>"}]`,
		},
		{
			name: "late-signature", stop: model.StopEnd,
			parts: []model.Part{thought("Two and two.", ""), text("Four."), thought("", signature)},
			sent:  `[{"text":"Four."},{"text":"","thoughtSignature":"c2ln+/==<&>"}]`,
		},
		{
			name: "signed-call", stop: model.StopTools,
			parts: []model.Part{thought("", signature), call("call_a", "{}"), call("call_b", "{}")},
			sent: `[{"functionCall":{"id":"call_a","name":"get_weather","args":{}},"thoughtSignature":"c2ln+/==<&>"},` +
				`{"functionCall":{"id":"call_b","name":"get_weather","args":{}}}]`,
		},
		{name: "blocked", stop: model.StopRefused},
		{name: "malformed", fault: model.Garbled, code: "MALFORMED_FUNCTION_CALL"},
		{name: "other", fault: model.Transient, code: "OTHER"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			client, sent := modeltest.Play(t, codec(), tt.name)
			p := gemini.New(gemini.Options{Client: client})
			got, err := p.Stream(context.Background(), model.Request{Model: "m"}, nil)
			if tt.fault != "" {
				var e *model.Error
				if !errors.As(err, &e) || e.Fault != tt.fault || e.Code != tt.code {
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
			if !bytes.Contains(sent.Body, []byte(tt.sent)) {
				t.Errorf("%s was not sent back:\n%s", tt.sent, sent.Body)
			}
		})
	}
}

// TestUsage: thoughts are a part of what was put out.
func TestUsage(t *testing.T) {
	t.Parallel()
	client, _ := modeltest.Play(t, codec(), "reasoning")
	got, err := gemini.New(gemini.Options{Client: client}).Stream(context.Background(), model.Request{Model: "m"}, nil)
	if want := (model.Usage{In: 100, Out: 20, Reasoning: 8}); err != nil || got.Usage != want {
		t.Errorf("usage %+v, %v", got.Usage, err)
	}
}

// TestRetryDelay: this provider says in the body how long to wait.
func TestRetryDelay(t *testing.T) {
	t.Parallel()
	client, _ := modeltest.Play(t, codec(), "limited-body")
	_, err := gemini.New(gemini.Options{Client: client}).Stream(context.Background(), model.Request{Model: "m"}, nil)
	var e *model.Error
	if !errors.As(err, &e) || e.Fault != model.Limited || e.RetryAfter != 34500*time.Millisecond || e.Code != "RESOURCE_EXHAUSTED" {
		t.Errorf("%v after %s", err, e.RetryAfter)
	}
}

func TestRaw(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"late-signature": `{"candidates":[{"content":{"role":"model","parts":[{"text":"Two and two.","thought":true},{"text":"Four."},{"text":"","thoughtSignature":"c2ln+/==<&>"}]},` +
			`"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":12,"thoughtsTokenCount":8,"totalTokenCount":120},"modelVersion":"m-1-2026","responseId":"resp-1"}`,
		"blocked": `{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":0,"totalTokenCount":100},"modelVersion":"m-1-2026","responseId":"resp-1"}`,
	} {
		client, _ := modeltest.Play(t, codec(), name)
		got, err := gemini.New(gemini.Options{Client: client}).Stream(context.Background(), model.Request{Model: "m"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, string(got.Raw)); d != "" {
			t.Errorf("raw (-want +got):\n%s", d)
		}
	}
}

// TestThinking: later models take a level, earlier ones a budget.
func TestThinking(t *testing.T) {
	t.Parallel()
	tests := []struct {
		model string
		level model.Thinking
		want  string
	}{
		{"gemini-3.7-flash", "", `{"contents":`},
		{"gemini-3.7-flash", model.ThinkOff, `{"generationConfig":{"thinkingConfig":{"thinkingLevel":"minimal"}},"contents":`},
		{"gemini-3.7-flash", model.ThinkLow, `{"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"low"}},"contents":`},
		{"gemini-3-pro-preview", model.ThinkHigh, `{"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"high"}},"contents":`},
		{"gemini-2.5-flash", "", `{"contents":`},
		{"gemini-2.5-flash", model.ThinkOff, `{"generationConfig":{"thinkingConfig":{"thinkingBudget":0}},"contents":`},
		{"gemini-2.5-pro", model.ThinkOff, `{"generationConfig":{"thinkingConfig":{"thinkingBudget":128}},"contents":`},
		{"gemini-2.5-pro", model.ThinkMedium, `{"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingBudget":8192}},"contents":`},
	}
	for _, tt := range tests {
		client, sent := modeltest.Play(t, codec(), "text")
		if _, err := gemini.New(gemini.Options{Client: client}).Stream(context.Background(), model.Request{Model: tt.model, Thinking: tt.level}, nil); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(sent.Body), tt.want) {
			t.Errorf("%s %q: %s, want %s", tt.model, tt.level, sent.Body, tt.want)
		}
	}
}

func TestAddress(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"":                       "https://generativelanguage.googleapis.com/v1beta/models/m%2Fx%3F:streamGenerateContent?alt=sse",
		"http://127.0.0.1:9/v1/": "http://127.0.0.1:9/v1/models/m%2Fx%3F:streamGenerateContent?alt=sse",
		"http://h.test/p/v1beta": "http://h.test/p/v1beta/models/m%2Fx%3F:streamGenerateContent?alt=sse",
	} {
		client, sent := modeltest.Play(t, codec(), "text")
		p := gemini.New(gemini.Options{APIKey: "k", BaseURL: base, Client: client})
		if _, err := p.Stream(context.Background(), model.Request{Model: "m/x?"}, nil); err != nil {
			t.Fatal(err)
		}
		if got := sent.Request.URL.String(); got != want || sent.Request.Header.Get("X-Goog-Api-Key") != "k" {
			t.Errorf("%q: %s", base, got)
		}
	}
}

func TestSetup(t *testing.T) {
	t.Parallel()
	for env, want := range map[string]bool{"": false, "GEMINI_API_KEY=k": true, "GEMINI_BASE_URL=http://h.test/v1beta": true} {
		s := config.Open("", func(name string) (string, bool) {
			k, v, _ := strings.Cut(env, "=")
			return v, k == name
		})
		if p := gemini.Setup(s); (p != nil) != want || p != nil && p.Name() != "gemini" {
			t.Errorf("%q: %v", env, p)
		}
	}
}
