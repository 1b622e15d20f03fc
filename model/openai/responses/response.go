package responses

import (
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/wire"
)

// response turns a finished answer into the port's form.
func (a *answer) response(r model.Request, provider string) (model.Response, error) {
	u := a.Usage
	out := model.Response{ID: a.ID, Model: a.Model, Raw: a.raw, Usage: model.Usage{
		In: u.InputTokens, Out: u.OutputTokens, Cached: u.InputDetails.CachedTokens,
		CacheWrite: u.InputDetails.CacheWriteTokens, Reasoning: u.OutputDetails.ReasoningTokens,
	}}
	if out.Model == "" {
		out.Model = r.Model
	}
	calls := false
	for _, b := range a.items {
		if b.done == nil && !a.cut {
			return out, a.s.Fail(model.Garbled, errOpen)
		}
		text := b.text.String()
		switch b.kind {
		case "reasoning":
			out.Parts = append(out.Parts, model.Part{Kind: model.Reasoning, Text: text, Opaque: b.done, From: provider + "/" + r.Model})
		case "message":
			if text != "" {
				out.Parts = append(out.Parts, model.Part{Kind: model.Text, Text: text})
			}
		case "function_call":
			calls = true
			args, bad := wire.Arguments(text)
			out.Parts = append(out.Parts, model.Part{Kind: model.Call, CallID: b.id, Name: b.name, Args: args, BadArgs: bad})
		}
	}
	switch {
	case a.Incomplete.Reason == "content_filter" || a.refused:
		out.Stop = model.StopRefused
	case a.cut:
		out.Stop = model.StopLength
	case calls:
		out.Stop = model.StopTools
	default:
		out.Stop = model.StopEnd
	}
	if out.Stop != model.StopTools {
		out.Parts = wire.WithoutCalls(out.Parts)
	} else if err := wire.CheckCalls(r, out.Parts); err != nil {
		return out, a.s.Fail(model.Garbled, err)
	}
	return out, nil
}
