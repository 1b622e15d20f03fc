package turn

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/heddlehq/heddle/fakes/llm"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/anthropic"
	"github.com/heddlehq/heddle/model/gemini"
	"github.com/heddlehq/heddle/model/openai"
	"github.com/heddlehq/heddle/model/openai/responses"
	"github.com/heddlehq/heddle/state"
)

// strict are the wires of providers that refuse what the real ones refuse.
type strict []model.Provider

// direct hands a request to a server without a network.
type direct struct{ http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	rec := httptest.NewRecorder()
	d.ServeHTTP(rec, r)
	return rec.Result(), nil
}

func newStrict() strict {
	c := &http.Client{Transport: direct{llm.New(llm.Options{})}}
	const base = "http://strict.invalid/v1"
	return strict{
		openai.New(openai.Options{BaseURL: base, Client: c}), responses.New(responses.Options{BaseURL: base, Client: c}),
		anthropic.New(anthropic.Options{BaseURL: base, Client: c}), gemini.New(gemini.Options{BaseURL: base, Client: c}),
	}
}

// check asks every provider to go on with a conversation.
func (s strict) check(t *testing.T, when string, w *world) {
	t.Helper()
	f := w.present()
	q := model.Request{
		System: "Help.", Tools: f.Offered(), MaxTokens: 100,
		Image: func(ref string) ([]byte, error) {
			return w.store.Blob(context.Background(), state.ConversationID("tested", thread), ref)
		},
		Messages: append(slices.Clone(f.Messages), model.Message{Role: model.User, Parts: []model.Part{{Kind: model.Text, Text: "and now?"}}}),
	}
	for i, p := range s {
		q.Model = []string{"gpt-4.1", "gpt-5", "claude-opus-4-6", "gemini-3.7-flash"}[i]
		if _, err := p.Stream(context.Background(), q, nil); err != nil {
			t.Errorf("%s: %s refuses the transcript: %v\n%s", when, p.Name(), err, transcript(q))
		}
	}
}
