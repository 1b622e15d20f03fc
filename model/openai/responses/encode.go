package responses

import (
	"encoding/json"

	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/wire"
)

// The order of the fields is that of the bytes: the input comes last, so a
// longer conversation only appends.
type request struct {
	Model           string     `json:"model"`
	Stream          bool       `json:"stream"`
	Store           bool       `json:"store"`
	Include         []string   `json:"include"`
	MaxOutputTokens int        `json:"max_output_tokens,omitempty"`
	Reasoning       *reasoning `json:"reasoning,omitempty"`
	PromptCacheKey  string     `json:"prompt_cache_key,omitempty"`
	Instructions    string     `json:"instructions,omitempty"`
	Tools           []tool     `json:"tools,omitempty"`
	Input           []item     `json:"input"` // empty: the conversation follows
}

type reasoning struct {
	Effort string `json:"effort"`
}

type tool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"` // true by default, and then most schemas are refused
}

// An item is a message, a call or the output of one.
type item struct {
	Type      string    `json:"type"`
	Role      string    `json:"role,omitempty"`
	Content   []content `json:"content,omitempty"`
	CallID    string    `json:"call_id,omitempty"`
	Name      string    `json:"name,omitempty"`
	Arguments *string   `json:"arguments,omitempty"`
	Output    *string   `json:"output,omitempty"`
}

type content struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	ImageURL string `json:"image_url,omitempty"`
}

func (p *Provider) encode(r model.Request) (wire.Body, error) {
	out := request{
		Model: r.Model, Stream: true, Include: []string{"reasoning.encrypted_content"},
		MaxOutputTokens: max(r.MaxTokens, 0), PromptCacheKey: wire.CacheKey(r), Instructions: r.System, Input: []item{},
	}
	switch r.Thinking {
	case "":
	case model.ThinkOff:
		out.Reasoning = &reasoning{"none"}
	default:
		out.Reasoning = &reasoning{string(r.Thinking)}
	}
	for _, t := range r.Tools {
		out.Tools = append(out.Tools, tool{Type: "function", Name: t.Name, Description: wire.Doc(t), Parameters: wire.Schema(t)})
	}
	return wire.Form{From: p.opt.Name + "/" + r.Model, Items: items}.Write(&out, r)
}

// items are a message as the format has it: *item, or reasoning as it came.
func items(m model.Message) []any {
	if m.Role == model.User {
		u := &item{Type: "message", Role: "user"}
		for _, p := range m.Parts {
			if p.Kind == model.Image {
				u.Content = append(u.Content, content{Type: "input_image", ImageURL: wire.DataURL(p)})
			} else {
				u.Content = append(u.Content, content{Type: "input_text", Text: p.Text})
			}
		}
		return []any{u}
	}
	var out []any
	for _, p := range wire.Led(m.Parts) {
		switch p.Kind {
		case model.Reasoning:
			if carried(p.Opaque) {
				out = append(out, p.Opaque)
			}
		case model.Call:
			args := string(wire.Args(p))
			out = append(out, &item{Type: "function_call", CallID: wire.CallID(p.CallID), Name: p.Name, Arguments: &args})
		case model.Result:
			text := p.Text
			if p.Failed { // this format has no field for it
				text = "Error: " + text
			}
			out = append(out, &item{Type: "function_call_output", CallID: wire.CallID(p.CallID), Output: &text})
		default:
			out = append(out, &item{Type: "message", Role: "assistant", Content: []content{{Type: "output_text", Text: p.Text}}})
		}
	}
	return out
}

// carried says whether a reasoning item can go back: one without its encrypted
// content would be looked up by its id, and nothing is stored.
func carried(opaque json.RawMessage) bool {
	var r struct {
		Type      string `json:"type"`
		Encrypted string `json:"encrypted_content"`
	}
	return json.Unmarshal(opaque, &r) == nil && r.Type == "reasoning" && r.Encrypted != ""
}
