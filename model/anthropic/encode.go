package anthropic

import (
	"encoding/json"
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
	Tools     []tool    `json:"tools,omitempty"`
	System    []block   `json:"system,omitempty"`
	Messages  []message `json:"messages"`
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
	Cache       *cache          `json:"cache_control,omitempty"`
}

type message struct {
	Role    string `json:"role"`
	Content []any  `json:"content"` // *block, or a reasoning block as json.RawMessage
}

// A block is a piece of content: text, a call or a result.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   string          `json:"content,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
	Cache     *cache          `json:"cache_control,omitempty"`
}

type cache struct {
	Type string `json:"type"`
}

func (p *Provider) encode(r model.Request) ([]byte, error) {
	out := request{Model: r.Model, MaxTokens: r.MaxTokens, Stream: true}
	if out.MaxTokens <= 0 {
		out.MaxTokens = defaultMaxTokens
	}
	for _, t := range r.Tools {
		out.Tools = append(out.Tools, tool{Name: t.Name, Description: t.Doc, InputSchema: wire.Schema(t)})
	}
	if strings.TrimSpace(r.System) != "" {
		out.System = []block{{Type: "text", Text: r.System}}
	}
	out.Messages = messages(r.Messages, p.opt.Name+"/"+r.Model)
	mark(&out)
	return wire.Encode(out)
}

// messages merges neighbours of one role, as the format wants the roles to
// alternate: results, and what is said after them, are one user message.
func messages(in []model.Message, from string) []message {
	out := make([]message, 0, len(in))
	for _, m := range in {
		role := "user"
		if m.Role == model.Assistant {
			role = "assistant"
		}
		for _, p := range m.Parts {
			b := encodePart(p, from)
			if b == nil {
				continue
			}
			if len(out) == 0 || out[len(out)-1].Role != role {
				out = append(out, message{Role: role})
			}
			last := &out[len(out)-1]
			last.Content = append(last.Content, b)
		}
	}
	return out
}

// encodePart is nil for what must not be sent: blank text, which is refused,
// and reasoning of another model, whose signature would not be valid.
func encodePart(p model.Part, from string) any {
	switch {
	case p.Kind == model.Text && strings.TrimSpace(p.Text) != "":
		return &block{Type: "text", Text: p.Text}
	case p.Kind == model.Reasoning && p.From == from && len(p.Opaque) > 0:
		return p.Opaque
	case p.Kind == model.Call:
		return &block{Type: "tool_use", ID: wire.CallID(p.CallID), Name: p.Name, Input: wire.Args(p)}
	case p.Kind == model.Result:
		text := p.Text
		if p.Failed && text == "" { // refused
			text = "failed"
		}
		return &block{Type: "tool_result", ToolUseID: wire.CallID(p.CallID), Content: text, IsError: p.Failed}
	}
	return nil
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
	for i := len(r.Messages) - 1; i >= 0; i-- {
		content := r.Messages[i].Content
		for k := len(content) - 1; k >= 0; k-- {
			if b, ok := content[k].(*block); ok {
				b.Cache = here
				return
			}
		}
	}
}
