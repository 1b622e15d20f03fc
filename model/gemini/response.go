package gemini

import (
	"encoding/json"

	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/wire"
)

// response turns a finished answer into the port's form.
func (a *answer) response(r model.Request, provider string) (model.Response, error) {
	u := a.usage
	out := model.Response{ID: a.id, Model: a.model, Usage: model.Usage{
		In: u.Prompt + u.ToolPrompt, Out: u.Candidates + u.Thoughts, Cached: min(u.Cached, u.Prompt), Reasoning: u.Thoughts,
	}}
	if out.Model == "" {
		out.Model = r.Model
	}
	for _, p := range a.pieces {
		parts, err := p.parts(provider + "/" + r.Model)
		if err != nil {
			return out, a.s.Fail(model.Garbled, err)
		}
		// The signature goes to the thoughts right before it, if there are any.
		if n := len(out.Parts); n > 0 && p.signature != "" && !p.thought && out.Parts[n-1].Kind == model.Reasoning && out.Parts[n-1].Opaque == nil {
			out.Parts[n-1].Opaque = parts[0].Opaque
			parts = parts[1:]
		}
		out.Parts = append(out.Parts, parts...)
	}
	stop, fault := a.stop()
	if fault != nil {
		return out, fault
	}
	out.Stop = stop
	if stop != model.StopTools {
		out.Parts = wire.WithoutCalls(out.Parts)
	} else if err := wire.CheckCalls(r, out.Parts); err != nil {
		return out, a.s.Fail(model.Garbled, err)
	}
	raw, err := a.raw()
	if err != nil {
		return out, a.s.Fail(model.Garbled, err)
	}
	out.Raw = raw
	return out, nil
}

// parts are the piece in the port's form: a Reasoning part with the signature,
// where it has one, and what it signs.
func (p *piece) parts(from string) ([]model.Part, error) {
	var out []model.Part
	text := p.text.String()
	if p.thought || p.signature != "" {
		think := model.Part{Kind: model.Reasoning, From: from}
		if p.thought {
			think.Text = text
		}
		if p.signature != "" {
			opaque, err := wire.Encode(signed{p.signature})
			if err != nil {
				return nil, err
			}
			think.Opaque = opaque
		}
		out = append(out, think)
	}
	switch {
	case p.call != nil:
		args := string(p.call.Args)
		var quoted string
		if json.Unmarshal(p.call.Args, &quoted) == nil { // compatible servers send what a model wrote
			args = quoted
		}
		good, bad := wire.Arguments(args)
		out = append(out, model.Part{Kind: model.Call, CallID: p.call.ID, Name: p.call.Name, Args: good, BadArgs: bad})
	case !p.thought && text != "":
		out = append(out, model.Part{Kind: model.Text, Text: text})
	}
	return out, nil
}

// stop reads why the answer ended.
func (a *answer) stop() (model.Stop, error) {
	fail := func(f model.Fault, cause error) error {
		e := a.s.Fail(f, cause)
		e.Code = wire.SafeCode(a.finish)
		return e
	}
	switch {
	case a.blocked != "":
		return model.StopRefused, nil
	case a.finish == "STOP" && a.calls > 0:
		return model.StopTools, nil
	case a.finish == "STOP":
		return model.StopEnd, nil
	}
	switch a.finish {
	case "MAX_TOKENS":
		return model.StopLength, nil
	case "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII",
		"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "MODEL_ARMOR":
		return model.StopRefused, nil
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE":
		return "", fail(model.Garbled, errCall)
	case "MISSING_THOUGHT_SIGNATURE":
		return "", fail(model.Invalid, errFinish)
	}
	return "", fail(model.Transient, errFinish)
}

// raw puts the chunks together into what the answer is without streaming.
func (a *answer) raw() (json.RawMessage, error) {
	type said struct {
		Content      content `json:"content"`
		FinishReason string  `json:"finishReason"`
		Index        int     `json:"index"`
	}
	one := said{Content: content{Role: "model", Parts: []part{}}, FinishReason: a.finish}
	for _, p := range a.pieces {
		n := part{Thought: p.thought, Call: p.call, Signature: p.signature}
		if p.call == nil {
			text := p.text.String()
			n.Text = &text
		}
		one.Content.Parts = append(one.Content.Parts, n)
	}
	whole := struct {
		Candidates []said    `json:"candidates,omitempty"`
		Feedback   *feedback `json:"promptFeedback,omitempty"`
		Usage      usage     `json:"usageMetadata"`
		Model      string    `json:"modelVersion"`
		ID         string    `json:"responseId"`
	}{Usage: a.usage, Model: a.model, ID: a.id}
	if a.finish != "" {
		whole.Candidates = []said{one}
	}
	if a.blocked != "" {
		whole.Feedback = &feedback{a.blocked}
	}
	return wire.Encode(whole)
}
