package openai

import (
	"encoding/json"

	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/wire"
)

// response turns a finished answer into the port's form.
func (a *answer) response(r model.Request, provider string) (model.Response, error) {
	out := model.Response{Model: a.model, ID: a.id, Usage: a.usage.neutral()}
	if out.Model == "" {
		out.Model = r.Model
	}
	kept := a.carry()
	if kept.Reasoning != "" || kept.ReasoningContent != "" || kept.ReasoningDetails != nil {
		opaque, err := wire.Encode(kept)
		if err != nil {
			return out, a.s.Fail(model.Garbled, err)
		}
		out.Parts = append(out.Parts, model.Part{Kind: model.Reasoning, Text: a.reasoning.String(), Opaque: opaque, From: provider + "/" + r.Model})
	}
	if text := a.text.String() + a.refusal.String(); text != "" {
		out.Parts = append(out.Parts, model.Part{Kind: model.Text, Text: text})
	}
	for _, b := range a.calls {
		args, bad := wire.Arguments(b.args.String())
		out.Parts = append(out.Parts, model.Part{Kind: model.Call, CallID: b.id, Name: b.name, Args: args, BadArgs: bad})
	}
	switch stop, ok := a.stop(); {
	case !ok:
		return out, a.s.Fail(model.Transient, errFinish)
	case stop == model.StopTools:
		if err := wire.CheckCalls(r, out.Parts); err != nil {
			return out, a.s.Fail(model.Garbled, err)
		}
		out.Stop = stop
	default:
		out.Parts, out.Stop = wire.WithoutCalls(out.Parts), stop
	}
	raw, err := a.raw(kept)
	if err != nil {
		return out, a.s.Fail(model.Garbled, err)
	}
	out.Raw = raw
	return out, nil
}

// stop reads the finish_reason. Compatible servers say "stop" after calls, and
// have words of their own for the end; only failures and cuts matter. It is not
// ok if the server itself broke off.
func (a *answer) stop() (model.Stop, bool) {
	switch a.finish {
	case "length", "max_tokens", "model_length":
		return model.StopLength, true
	case "content_filter", "refusal", "safety":
		return model.StopRefused, true
	case "error", "abort", "insufficient_system_resource", "network_error":
		return "", false
	}
	switch {
	case a.refusal.Len() > 0:
		return model.StopRefused, true
	case len(a.calls) > 0:
		return model.StopTools, true
	}
	return model.StopEnd, true
}

func (a *answer) carry() carry {
	c := carry{ReasoningDetails: a.details}
	if a.content {
		c.ReasoningContent = a.reasoning.String()
	} else {
		c.Reasoning = a.reasoning.String()
	}
	return c
}

func (u usage) neutral() model.Usage {
	return model.Usage{
		In:         u.PromptTokens,
		Out:        u.CompletionTokens,
		Cached:     min(max(u.PromptDetails.CachedTokens, u.CacheHitTokens), u.PromptTokens),
		CacheWrite: u.PromptDetails.CacheWriteTokens,
		Reasoning:  u.CompletionDetails.ReasoningTokens,
	}
}

// raw puts the chunks together into what the answer is without streaming.
func (a *answer) raw(kept carry) (json.RawMessage, error) {
	type said struct {
		Role    string `json:"role"`
		Content string `json:"content"`
		Refusal string `json:"refusal,omitempty"`
		carry
		ToolCalls []call `json:"tool_calls,omitempty"`
	}
	type rawChoice struct {
		Index        int    `json:"index"`
		Message      said   `json:"message"`
		FinishReason string `json:"finish_reason"`
	}
	m := said{Role: "assistant", Content: a.text.String(), Refusal: a.refusal.String(), carry: kept}
	for _, b := range a.calls {
		m.ToolCalls = append(m.ToolCalls, call{ID: b.id, Type: "function", Function: callFunction{Name: b.name, Arguments: b.args.String()}})
	}
	return wire.Encode(struct {
		ID      string      `json:"id"`
		Object  string      `json:"object"`
		Model   string      `json:"model"`
		Choices []rawChoice `json:"choices"`
		Usage   usage       `json:"usage"`
	}{a.id, "chat.completion", a.model, []rawChoice{{0, m, a.finish}}, a.usage})
}
