package anthropic

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/wire"
)

// The order of the fields is that of the bytes: messages come last, so a longer
// conversation only appends.
type request struct {
	Model     string    `json:"model"`
	MaxTokens int       `json:"max_tokens"`
	Stream    bool      `json:"stream"`
	Thinking  *thinking `json:"thinking,omitempty"`
	Output    *output   `json:"output_config,omitempty"`
	Tools     []tool    `json:"tools,omitempty"`
	Choice    *choice   `json:"tool_choice,omitempty"`
	System    []block   `json:"system,omitempty"`
	Messages  []any     `json:"messages"` // empty: the conversation follows
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
	Cache       *cache          `json:"cache_control,omitempty"`
}

// A block is a piece of content: text, an image, a call or a result.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   string          `json:"content,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
	Source    *source         `json:"source,omitempty"`
	Cache     *cache          `json:"cache_control,omitempty"` // last, as marked
}

type source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      []byte `json:"data"`
}

type choice struct {
	Type string `json:"type"`
}

type cache struct {
	Type string `json:"type"`
}

func (p *Provider) encode(r model.Request) (wire.Body, error) {
	out := request{Model: r.Model, MaxTokens: r.MaxTokens, Stream: true, Messages: []any{}}
	for _, t := range r.Tools {
		out.Tools = append(out.Tools, tool{Name: t.Name, Description: t.Doc, InputSchema: wire.Schema(t)})
	}
	if strings.TrimSpace(r.System) != "" {
		out.System = []block{{Type: "text", Text: r.System}}
	}
	if len(out.Tools) == 0 {
		if out.Tools = called(r.Messages); out.Tools != nil {
			out.Choice = &choice{Type: "none"}
		}
	}
	from := p.opt.Name + "/" + r.Model
	think(&out, r, from)
	if out.MaxTokens <= 0 {
		out.MaxTokens = defaultMaxTokens
	}
	mark(&out)
	return wire.Form{From: from, Items: items, List: "content", Assistant: "assistant", Mark: marked}.Write(&out, r)
}

// called defines the tools of the calls in a conversation: the format wants
// definitions where there are calls, also when no tool is left.
func called(talk []model.Message) []tool {
	var out []tool
	for _, m := range talk {
		for _, p := range m.Parts {
			if m.Role == model.Assistant && p.Kind == model.Call && !slices.ContainsFunc(out, func(t tool) bool { return t.Name == p.Name }) {
				out = append(out, tool{Name: p.Name, Description: "This tool is gone.", InputSchema: wire.Schema(model.Tool{})})
			}
		}
	}
	return out
}

// items are the blocks of a message: *block, or reasoning as it came.
func items(m model.Message) []any {
	parts := wire.Led(m.Parts)
	out := make([]any, len(parts))
	for i, p := range parts {
		out[i] = encodePart(p)
	}
	return out
}

func encodePart(p model.Part) any {
	switch p.Kind {
	case model.Reasoning:
		return p.Opaque
	case model.Image:
		return &block{Type: "image", Source: &source{Type: "base64", MediaType: p.Media, Data: p.Data}}
	case model.Call:
		return &block{Type: "tool_use", ID: wire.CallID(p.CallID), Name: p.Name, Input: wire.Args(p)}
	case model.Result:
		text := p.Text
		if p.Failed && text == "" { // refused
			text = "failed"
		}
		return &block{Type: "tool_result", ToolUseID: wire.CallID(p.CallID), Content: text, IsError: p.Failed}
	}
	return &block{Type: "text", Text: p.Text}
}

// mark asks the provider to cache what the next step sends again. The prefix is
// tools, then system, then messages, so a mark on the system (or on the last
// tool where there is none) keeps the first two for every conversation of an
// agent, and one on the last block keeps this conversation. The provider looks
// for an earlier end by itself, so the moving mark costs nothing; it is not
// part of what is cached. Reasoning blocks may not be marked.
func mark(r *request) {
	here := &cache{Type: "ephemeral"}
	if n := len(r.System); n > 0 {
		r.System[n-1].Cache = here
	} else if n := len(r.Tools); n > 0 {
		r.Tools[n-1].Cache = here
	}
}

// marked is a mark on a block: its last field.
const marked = `,"cache_control":{"type":"ephemeral"}`
