package anthropic

import (
	"encoding/json"

	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/wire"
)

// response turns a finished answer into the port's form.
func (a *answer) response(r model.Request, provider string) (model.Response, error) {
	u := a.usage
	out := model.Response{ID: a.id, Model: a.model, Usage: model.Usage{
		In:         u.InputTokens + u.CacheCreationTokens + u.CacheReadTokens,
		Out:        u.OutputTokens,
		Cached:     u.CacheReadTokens,
		CacheWrite: u.CacheCreationTokens,
	}}
	if out.Model == "" {
		out.Model = r.Model
	}
	if a.stop == "" {
		return out, a.s.Fail(model.Garbled, errOpen)
	}
	content := []json.RawMessage{}
	for _, b := range a.blocks {
		if !b.closed {
			return out, a.s.Fail(model.Garbled, errOpen)
		}
		p, raw, err := b.part()
		if err != nil {
			return out, a.s.Fail(model.Garbled, err)
		}
		content = append(content, raw)
		if p.Kind == model.Reasoning {
			p.From = provider + "/" + r.Model
		}
		if p.Kind != "" {
			out.Parts = append(out.Parts, p)
		}
	}
	out.Stop = a.reason()
	if out.Stop != model.StopTools {
		out.Parts = wire.WithoutCalls(out.Parts)
	} else if err := wire.CheckCalls(r, out.Parts); err != nil {
		return out, a.s.Fail(model.Garbled, err)
	}
	raw, err := a.raw(content)
	if err != nil {
		return out, a.s.Fail(model.Garbled, err)
	}
	out.Raw = raw
	return out, nil
}

func (a *answer) reason() model.Stop {
	switch a.stop {
	case "max_tokens", "model_context_window_exceeded":
		return model.StopLength
	case "refusal":
		return model.StopRefused
	}
	if a.calls > 0 {
		return model.StopTools
	}
	return model.StopEnd
}

// part is the block in the port's form and as the provider would have sent it
// in one piece. Kinds of block that are not known have only the second.
func (b *building) part() (model.Part, json.RawMessage, error) {
	type said struct {
		Type      string          `json:"type"`
		Text      *string         `json:"text,omitempty"`
		Thinking  *string         `json:"thinking,omitempty"`
		Signature *string         `json:"signature,omitempty"`
		ID        string          `json:"id,omitempty"`
		Name      string          `json:"name,omitempty"`
		Input     json.RawMessage `json:"input,omitempty"`
	}
	text, signature := b.text.String(), b.signature.String()
	switch b.kind {
	case "text":
		raw, err := wire.Encode(said{Type: b.kind, Text: &text})
		if text == "" {
			return model.Part{}, raw, err
		}
		return model.Part{Kind: model.Text, Text: text}, raw, err
	case "thinking":
		raw, err := wire.Encode(said{Type: b.kind, Thinking: &text, Signature: &signature})
		return model.Part{Kind: model.Reasoning, Text: text, Opaque: raw}, raw, err
	case "redacted_thinking":
		return model.Part{Kind: model.Reasoning, Opaque: b.start}, b.start, nil
	case "tool_use":
		if text == "" { // compatible servers send the whole input when the block begins
			var start said
			if err := json.Unmarshal(b.start, &start); err != nil {
				return model.Part{}, nil, errEvent
			}
			text = string(start.Input)
		}
		args, bad := wire.Arguments(text)
		raw, err := wire.Encode(said{Type: b.kind, ID: b.id, Name: b.name, Input: args})
		return model.Part{Kind: model.Call, CallID: b.id, Name: b.name, Args: args, BadArgs: bad}, raw, err
	}
	return model.Part{}, b.start, nil
}

// raw puts the events together into what the answer is without streaming.
func (a *answer) raw(content []json.RawMessage) (json.RawMessage, error) {
	return wire.Encode(struct {
		ID         string            `json:"id"`
		Type       string            `json:"type"`
		Role       string            `json:"role"`
		Model      string            `json:"model"`
		Content    []json.RawMessage `json:"content"`
		StopReason string            `json:"stop_reason"`
		Usage      usage             `json:"usage"`
	}{a.id, "message", "assistant", a.model, content, a.stop, a.usage})
}
