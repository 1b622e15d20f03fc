package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/heddlehq/heddle/config"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/modeltest"
	"github.com/heddlehq/heddle/model/openai"
	"github.com/heddlehq/heddle/model/wire"
)

var _ = flag.Bool("update", false, "rewrite golden files")

func codec() modeltest.Codec {
	return modeltest.Codec{
		New: func(c *http.Client) model.Provider {
			return openai.New(openai.Options{APIKey: modeltest.Key, BaseURL: "http://m.test/v1", Client: c})
		},
		Recordings: os.DirFS("testdata/recordings"),
		Golden:     "testdata/request.json",
		Terminator: "finish_reason",
		KeepAlive:  ": processing\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"},\"finish_reason\":null}]}\n\n",
	}
}

func TestProvider(t *testing.T) { t.Parallel(); modeltest.Run(t, codec()) }

func FuzzStream(f *testing.F) { modeltest.Fuzz(f, codec()) }

func BenchmarkChunk(b *testing.B) { modeltest.Bench(b, codec(), `"delta":{"content":"Hello"}`) }

// TestCompatible covers what only compatible servers do.
func TestCompatible(t *testing.T) {
	t.Parallel()
	call := func(id, args string) model.Part {
		return model.Part{Kind: model.Call, CallID: id, Name: "get_weather", Args: json.RawMessage(args)}
	}
	both := []model.Part{call("call_a", `{"city":"Paris"}`), call("call_b", `{"city":"Rome"}`)}
	tests := []struct {
		name  string
		parts []model.Part
		stop  model.Stop
		usage model.Usage
		fault model.Fault
	}{
		{name: "one-index", parts: both, stop: model.StopTools, usage: model.Usage{In: 100, Out: 20}},
		{name: "no-index", parts: both, stop: model.StopTools, usage: model.Usage{In: 100, Out: 20}},
		{name: "no-usage", parts: []model.Part{{Kind: model.Text, Text: "Hi."}}, stop: model.StopEnd},
		{name: "filtered", parts: []model.Part{{Kind: model.Text, Text: "I"}}, stop: model.StopRefused, usage: model.Usage{In: 100, Out: 20}},
		{name: "reasoning-field", parts: []model.Part{{Kind: model.Reasoning, Text: "Two and two.", Opaque: json.RawMessage(`{"reasoning":"Two and two."}`), From: "ollama/m"}, {Kind: model.Text, Text: "Four."}}, stop: model.StopEnd, usage: model.Usage{In: 100, Out: 20}},
		{name: "server-broke-off", fault: model.Transient},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			client, _ := modeltest.Play(t, codec(), tt.name)
			p := openai.New(openai.Options{Name: "ollama", BaseURL: "http://m.test/v1", Client: client})
			got, err := p.Stream(context.Background(), model.Request{Model: "m"}, nil)
			if tt.fault != "" {
				var e *model.Error
				if !errors.As(err, &e) || e.Fault != tt.fault || e.Provider != "ollama" {
					t.Fatalf("want %s, got %v", tt.fault, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.parts, got.Parts, cmpopts.EquateEmpty()); d != "" || got.Stop != tt.stop || got.Usage != tt.usage {
				t.Errorf("stop %q, usage %+v, parts (-want +got):\n%s", got.Stop, got.Usage, d)
			}
		})
	}
}

// TestReasoningUsage: reasoning tokens are a part of those put out.
func TestReasoningUsage(t *testing.T) {
	t.Parallel()
	client, _ := modeltest.Play(t, codec(), "reasoning")
	p := openai.New(openai.Options{Client: client})
	got, err := p.Stream(context.Background(), model.Request{Model: "m"}, nil)
	if err != nil || got.Usage.Reasoning != 8 {
		t.Errorf("usage %+v, %v", got.Usage, err)
	}
}

func TestRaw(t *testing.T) {
	t.Parallel()
	client, _ := modeltest.Play(t, codec(), "parallel")
	p := openai.New(openai.Options{Client: client})
	got, err := p.Stream(context.Background(), model.Request{Model: "m"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"id":"chatcmpl-1","object":"chat.completion","model":"m-1-2026","choices":[{"index":0,"message":{"role":"assistant","content":"I look.",` +
		`"tool_calls":[{"id":"call_a","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Paris\"}"}},` +
		`{"id":"call_b","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Rome\"}"}}]},"finish_reason":"tool_calls"}],` +
		`"usage":{"prompt_tokens":50,"completion_tokens":30,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}}`
	if d := cmp.Diff(want, string(got.Raw)); d != "" {
		t.Errorf("raw (-want +got):\n%s", d)
	}
}

func TestAddress(t *testing.T) {
	t.Parallel()
	tests := []struct {
		base, key       string
		url, auth, most string
	}{
		{"", "k", "https://api.openai.com/v1/chat/completions", "Bearer k", `"max_completion_tokens":99`},
		{"https://us.api.openai.com/v1/", "k", "https://us.api.openai.com/v1/chat/completions", "Bearer k", `"max_completion_tokens":99`},
		{"http://127.0.0.1:11434/v1", "", "http://127.0.0.1:11434/v1/chat/completions", "", `"max_tokens":99`},
		{"http://openai.com.evil.test/v1", "k", "http://openai.com.evil.test/v1/chat/completions", "Bearer k", `"max_tokens":99`},
	}
	for _, tt := range tests {
		client, sent := modeltest.Play(t, codec(), "text")
		p := openai.New(openai.Options{APIKey: tt.key, BaseURL: tt.base, Client: client})
		if _, err := p.Stream(context.Background(), model.Request{Model: "m", MaxTokens: 99}, nil); err != nil {
			t.Fatal(err)
		}
		if got := sent.Request.URL.String(); got != tt.url || sent.Request.Header.Get("Authorization") != tt.auth || !strings.Contains(string(sent.Body), tt.most) {
			t.Errorf("%q: %s %q %s", tt.base, got, sent.Request.Header.Get("Authorization"), sent.Body)
		}
	}
}

// TestWire: the format follows the model, at OpenAI's own address only.
func TestWire(t *testing.T) {
	t.Parallel()
	const chat, resp = "/v1/chat/completions", "/v1/responses"
	for id, want := range map[string]string{
		"gpt-5-mini": resp, "gpt-5.6-sol": resp, "o3": resp, "o4-mini": resp, "ft:gpt-5:acme": resp, "codex-mini-latest": resp, "gpt-6": resp,
		"gpt-4.1": chat, "gpt-4o": chat, "gpt-oss-120b": chat, "omni": chat, "chatgpt-4o-latest": chat,
	} {
		for base, want := range map[string]string{"": want, "https://eu.api.openai.com/v1": want, "http://openai.test/v1": chat, "https://x.openai.azure.com/v1": chat} {
			var path string
			client := &http.Client{Transport: refusing(func(r *http.Request) { path = r.URL.Path })}
			_, err := openai.New(openai.Options{BaseURL: base, Client: client}).Stream(context.Background(), model.Request{Model: id}, nil)
			var e *model.Error
			if !errors.As(err, &e) || e.Provider != "openai" || path != want {
				t.Errorf("%s at %q: %s, want %s (%v)", id, base, path, want, err)
			}
		}
	}
}

// refusing is a transport that sees requests and answers none.
type refusing func(*http.Request)

func (f refusing) RoundTrip(r *http.Request) (*http.Response, error) {
	f(r)
	return nil, errors.New("refused")
}

// TestThinking: a level is a word of the format; the cache key is OpenAI's own.
func TestThinking(t *testing.T) {
	t.Parallel()
	const head = `{"model":"m","stream":true,"stream_options":{"include_usage":true},`
	tests := []struct {
		base string
		r    model.Request
		want string
	}{
		{"", model.Request{}, head + `"messages":[]}`},
		{"", model.Request{Thinking: model.ThinkOff}, head + `"reasoning_effort":"none","messages":[]}`},
		{"", model.Request{Thinking: model.ThinkLow}, head + `"reasoning_effort":"low","messages":[]}`},
		{"", model.Request{Thinking: model.ThinkHigh, CacheKey: "c1"}, head + `"reasoning_effort":"high","prompt_cache_key":"c1","messages":[]}`},
		{"http://h.test/v1", model.Request{Thinking: model.ThinkMedium, CacheKey: "c1"}, head + `"reasoning_effort":"medium","messages":[]}`},
	}
	for _, tt := range tests {
		client, sent := modeltest.Play(t, codec(), "text")
		tt.r.Model = "m"
		if _, err := openai.New(openai.Options{BaseURL: tt.base, Client: client}).Stream(context.Background(), tt.r, nil); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(tt.want, string(sent.Body)); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
}

// TestTooManyCalls: an answer cannot make us hold any number of calls.
func TestTooManyCalls(t *testing.T) {
	t.Parallel()
	var body strings.Builder
	for i := range wire.MaxCalls + 1 {
		fmt.Fprintf(&body, `data: {"choices":[{"delta":{"tool_calls":[{"index":%d,"id":"c%d","function":{"name":"a","arguments":"{}"}}]}}]}`+"\n\n", i, i)
	}
	body.WriteString(`data: {"choices":[{"finish_reason":"tool_calls"}]}` + "\n\n")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body.String()) }))
	defer s.Close()
	_, err := openai.New(openai.Options{BaseURL: s.URL}).Stream(context.Background(), model.Request{Model: "m"}, nil)
	var e *model.Error
	if !errors.As(err, &e) || e.Fault != model.Garbled || !errors.Is(err, wire.ErrCalls) {
		t.Errorf("%v", err)
	}
}

func TestSetup(t *testing.T) {
	t.Parallel()
	for env, want := range map[string]struct{ names, warning, problem string }{
		"":                                 {},
		"OPENAI_API_KEY=k":                 {names: "openai"},
		"OPENAI_BASE_URL=":                 {},
		"OPENAI_BASE_URL=http://h.test/v1": {names: "openai"},
		"OPENAI_BASE_URL=http://h.test/":   {names: "openai", warning: "http://h.test/v1"},
		"OPENAI_BASE_URL=h.test/v1":        {names: "openai", problem: "OPENAI_BASE_URL: found"},
		"OPENAI_API_KEY=sk-...":            {names: "openai", problem: "OPENAI_API_KEY: found a placeholder"},
		"OLLAMA_HOST=gpu":                  {names: "ollama"},
		"OLLAMA_HOST=ftp://gpu":            {names: "ollama", problem: "OLLAMA_HOST: found"},
		"OPENAI_API_KEY=k OLLAMA_HOST=gpu": {names: "openai ollama"},
	} {
		s := config.Open("", func(name string) (string, bool) {
			for kv := range strings.FieldsSeq(env) {
				if k, v, _ := strings.Cut(kv, "="); k == name {
					return v, true
				}
			}
			return "", false
		})
		var got []string
		for _, p := range openai.Setup(s) {
			got = append(got, p.Name())
		}
		if strings.Join(got, " ") != want.names {
			t.Errorf("%q: %v, want %s", env, got, want.names)
		}
		if w := strings.Join(s.Warnings(), "\n"); (w == "") != (want.warning == "") || !strings.Contains(w, want.warning) {
			t.Errorf("%q: warnings %q, want %q", env, w, want.warning)
		}
		if err := s.Err(); (err == nil) != (want.problem == "") || err != nil && !strings.HasPrefix(err.Error(), want.problem) {
			t.Errorf("%q: %v, want %q", env, err, want.problem)
		}
	}
}
