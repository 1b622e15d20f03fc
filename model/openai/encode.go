package openai

import (
	"encoding/json"

	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/wire"
)

// The order of the fields is that of the bytes: messages come last, so a longer
// conversation only appends.
type request struct {
	Model               string        `json:"model"`
	Stream              bool          `json:"stream"`
	StreamOptions       streamOptions `json:"stream_options"`
	MaxTokens           int           `json:"max_tokens,omitempty"`
	MaxCompletionTokens int           `json:"max_completion_tokens,omitempty"`
	ReasoningEffort     string        `json:"reasoning_effort,omitempty"`
	PromptCacheKey      string        `json:"prompt_cache_key,omitempty"`
	Tools               []tool        `json:"tools,omitempty"`
	Messages            []message     `json:"messages"` // of the system; those of the conversation follow
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type tool struct {
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

type message struct {
	Role       string `json:"role"`
	ToolCallID string `json:"tool_call_id,omitempty"`
	Content    any    `json:"content"` // a string, []content with an image, or null beside calls
	carry
	ToolCalls []call `json:"tool_calls,omitempty"`
}

type content struct {
	Type     string    `json:"type"`
	Text     string    `json:"text,omitempty"`
	ImageURL *imageURL `json:"image_url,omitempty"`
}

type imageURL struct {
	URL string `json:"url"`
}

// carry is the reasoning of compatible servers, under the name its server uses.
// It is what a Reasoning part keeps as Opaque, and goes back unchanged.
type carry struct {
	Reasoning        string            `json:"reasoning,omitempty"`
	ReasoningContent string            `json:"reasoning_content,omitempty"`
	ReasoningDetails []json.RawMessage `json:"reasoning_details,omitempty"`
}

type call struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function callFunction `json:"function"`
}

type callFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

func (p *Provider) encode(r model.Request) (wire.Body, error) {
	out := request{Model: r.Model, Stream: true, StreamOptions: streamOptions{IncludeUsage: true}}
	// OpenAI refuses max_tokens for its newer models; most other servers know only that.
	if p.own {
		out.MaxCompletionTokens, out.PromptCacheKey = r.MaxTokens, wire.CacheKey(r)
	} else {
		out.MaxTokens = r.MaxTokens
	}
	out.ReasoningEffort = string(r.Thinking)
	if r.Thinking == model.ThinkOff {
		out.ReasoningEffort = "none"
	}
	for _, t := range r.Tools {
		out.Tools = append(out.Tools, tool{Type: "function", Function: function{Name: t.Name, Description: wire.Doc(t), Parameters: wire.Schema(t)}})
	}
	out.Messages = []message{}
	if r.System != "" {
		out.Messages = append(out.Messages, message{Role: "system", Content: r.System})
	}
	return wire.Form{From: p.opt.Name + "/" + r.Model, Items: items}.Write(&out, r)
}

func items(m model.Message) []any {
	switch m.Role {
	case model.Results:
		out := make([]any, len(m.Parts))
		for i, p := range m.Parts {
			text := p.Text
			if p.Failed { // this format has no field for it
				text = "Error: " + text
			}
			out[i] = &message{Role: "tool", ToolCallID: wire.CallID(p.CallID), Content: text}
		}
		return out
	case model.Assistant:
		a := message{Role: "assistant"}
		if text := wire.Join(m.Parts); text != "" {
			a.Content = text
		}
		for _, p := range m.Parts {
			switch p.Kind {
			case model.Call:
				a.ToolCalls = append(a.ToolCalls, call{ID: wire.CallID(p.CallID), Type: "function", Function: callFunction{Name: p.Name, Arguments: string(wire.Args(p))}})
			case model.Reasoning:
				_ = json.Unmarshal(p.Opaque, &a.carry) // what is not ours to read is not sent
			}
		}
		return []any{&a}
	}
	u := message{Role: "user", Content: wire.Join(m.Parts)}
	if wire.HasImage(m.Parts) {
		u.Content = contents(m.Parts)
	}
	return []any{&u}
}

func contents(parts []model.Part) []content {
	var out []content
	for _, p := range parts {
		if p.Kind == model.Image {
			out = append(out, content{Type: "image_url", ImageURL: &imageURL{URL: wire.DataURL(p)}})
		} else {
			out = append(out, content{Type: "text", Text: p.Text})
		}
	}
	return out
}
