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
	Tools               []tool        `json:"tools,omitempty"`
	Messages            []message     `json:"messages"`
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
	Role       string  `json:"role"`
	ToolCallID string  `json:"tool_call_id,omitempty"`
	Content    *string `json:"content"` // null beside calls
	carry
	ToolCalls []call `json:"tool_calls,omitempty"`
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

func (p *Provider) encode(r model.Request) ([]byte, error) {
	out := request{Model: r.Model, Stream: true, StreamOptions: streamOptions{IncludeUsage: true}}
	// OpenAI refuses max_tokens for its newer models; most other servers know only that.
	if p.own {
		out.MaxCompletionTokens = r.MaxTokens
	} else {
		out.MaxTokens = r.MaxTokens
	}
	for _, t := range r.Tools {
		out.Tools = append(out.Tools, tool{Type: "function", Function: function{Name: t.Name, Description: t.Doc, Parameters: wire.Schema(t)}})
	}
	out.Messages = make([]message, 0, len(r.Messages)+1)
	if r.System != "" {
		out.Messages = append(out.Messages, message{Role: "system", Content: &r.System})
	}
	from := p.opt.Name + "/" + r.Model
	for _, m := range r.Messages {
		out.Messages = appendMessage(out.Messages, m, from)
	}
	return wire.Encode(out)
}

func appendMessage(out []message, m model.Message, from string) []message {
	switch m.Role {
	case model.Results:
		for _, p := range m.Parts {
			if p.Kind != model.Result {
				continue
			}
			text := p.Text
			if p.Failed { // this format has no field for it
				text = "Error: " + text
			}
			out = append(out, message{Role: "tool", ToolCallID: wire.CallID(p.CallID), Content: &text})
		}
	case model.Assistant:
		a := message{Role: "assistant"}
		if text := wire.Join(m.Parts); text != "" {
			a.Content = &text
		}
		for _, p := range m.Parts {
			switch {
			case p.Kind == model.Call:
				a.ToolCalls = append(a.ToolCalls, call{ID: wire.CallID(p.CallID), Type: "function", Function: callFunction{Name: p.Name, Arguments: string(wire.Args(p))}})
			case p.Kind == model.Reasoning && p.From == from:
				_ = json.Unmarshal(p.Opaque, &a.carry) // what is not ours to read is not sent
			}
		}
		if a.Content != nil || a.ToolCalls != nil {
			out = append(out, a)
		}
	default:
		if text := wire.Join(m.Parts); text != "" {
			out = append(out, message{Role: "user", Content: &text})
		}
	}
	return out
}
