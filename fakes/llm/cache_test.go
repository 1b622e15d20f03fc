package llm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/heddlehq/heddle/fakes/llm"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/anthropic"
	"github.com/heddlehq/heddle/model/openai"
	"github.com/heddlehq/heddle/model/openai/responses"
)

// A request that begins as one before it is read from the cache, up to where it
// differs: tools stand before the system text, and this before the messages.
func TestPromptCache(t *testing.T) {
	t.Parallel()
	tool := func(name string) model.Tool {
		return model.Tool{Name: name, Doc: strings.Repeat("It does much. ", 600), Schema: json.RawMessage(`{"type":"object"}`)}
	}
	says := func(n int) []model.Message {
		var out []model.Message
		for i := range n {
			out = append(out, model.Message{Role: []model.Role{model.User, model.Assistant}[i%2], Parts: []model.Part{{Kind: model.Text, Text: fmt.Sprint(i, strings.Repeat(" word", 1000))}}})
		}
		return out
	}
	first := model.Request{Model: "m-1", System: strings.Repeat("Help. ", 1000), Tools: []model.Tool{tool("a"), tool("b")}, Messages: says(1), MaxTokens: 9}
	with := func(change func(*model.Request)) model.Request {
		r := first
		change(&r)
		return r
	}
	// Tokens, about: a tool has 2100 (or the 260 that OpenAI takes of it), the system text 1500, a message 1250.
	for _, tt := range []struct {
		name                    string
		then                    model.Request
		anthropic, write, short int // read and written at Anthropic; read at OpenAI
	}{
		{"the same", first, 7000, 0, 3300},
		{"longer", with(func(r *model.Request) { r.Messages = says(3) }), 7000, 2500, 3300},
		{"another message", with(func(r *model.Request) { r.Messages = says(2)[1:]; r.Messages[0].Role = model.User }), 5700, 1250, 2050},
		{"another system text", with(func(r *model.Request) { r.System = "New. " + r.System }), 0, 7000, 0},
		{"one tool more", with(func(r *model.Request) { r.Tools = append(r.Tools[:2:2], tool("c")) }), 0, 9100, 0},
		{"another order", with(func(r *model.Request) { r.Tools = []model.Tool{tool("b"), tool("a")} }), 0, 7000, 0},
		{"another model", with(func(r *model.Request) { r.Model = "m-2" }), 0, 7000, 0},
		{"too short", model.Request{Model: "m-1", Messages: []model.Message{{Role: model.User, Parts: []model.Part{{Kind: model.Text, Text: "hi"}}}}, MaxTokens: 9}, 0, 0, 0},
	} {
		h := httptest.NewServer(llm.New(llm.Options{Caches: true}))
		for _, p := range []model.Provider{anthropic.New(anthropic.Options{BaseURL: h.URL}), openai.New(openai.Options{BaseURL: h.URL + "/v1"}), responses.New(responses.Options{BaseURL: h.URL + "/v1"})} {
			var u model.Usage
			for _, r := range []model.Request{first, tt.then} {
				if n := len(r.Messages); r.Messages[n-1].Role == model.Assistant {
					r.Messages = r.Messages[:n-1]
				}
				resp, err := p.Stream(context.Background(), r, nil)
				if err != nil {
					t.Fatal(tt.name, err)
				}
				u = resp.Usage
			}
			read, wrote := tt.short, 0
			if p.Name() == "anthropic" {
				read, wrote = tt.anthropic, tt.write
			}
			if off(u.Cached, read) || off(u.CacheWrite, wrote) || u.In < u.Cached+u.CacheWrite {
				t.Errorf("%s, %s: %+v, want %d read and %d written", p.Name(), tt.name, u, read, wrote)
			}
		}
		h.Close()
	}
}

// off says whether a number of tokens is not about the wanted one.
func off(got, want int) bool { return got < want*9/10 || got > want*11/10 }
