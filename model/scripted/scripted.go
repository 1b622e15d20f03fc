// Package scripted is a provider that plays a part: for tests and for the demo,
// without a network. It keeps every request it was given.
package scripted

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/script"
	"github.com/heddlehq/heddle/model/wire"
)

// A Step answers one request. Missing ids of calls, the stop reason, the usage
// and the raw answer are filled in. A fault is an *model.Error, for which
// provider and model are filled in; what the response holds beside it is
// streamed first, as of an answer that breaks off.
type Step func(ctx context.Context, r model.Request) (model.Response, error)

// Say answers with a text.
func Say(text string) Step { return Answer(model.Part{Kind: model.Text, Text: text}) }

// Call answers with one call of a tool; args is JSON.
func Call(name, args string) Step { return Answer(ToolCall(name, args)) }

// ToolCall is a call as a part of an Answer.
func ToolCall(name, args string) model.Part {
	a, bad := wire.Arguments(args)
	return model.Part{Kind: model.Call, Name: name, Args: a, BadArgs: bad}
}

// Answer answers with these parts.
func Answer(parts ...model.Part) Step {
	return func(context.Context, model.Request) (model.Response, error) {
		return model.Response{Parts: slices.Clone(parts)}, nil
	}
}

// Fault fails. After is the Retry-After, 0 for none.
func Fault(f model.Fault, after time.Duration) Step {
	return func(context.Context, model.Request) (model.Response, error) {
		return model.Response{}, &model.Error{Fault: f, RetryAfter: after}
	}
}

// Until waits for open to be closed, then answers by next. It ends with ctx.
func Until(open <-chan struct{}, next Step) Step {
	return func(ctx context.Context, r model.Request) (model.Response, error) {
		select {
		case <-open:
			return next(ctx, r)
		case <-ctx.Done():
			return model.Response{}, &model.Error{Fault: model.Canceled, Err: context.Cause(ctx)}
		}
	}
}

// Provider plays. Its name is "scripted".
type Provider struct {
	pace time.Duration // between two words

	mu       sync.Mutex
	steps    []Step // nil: always is asked
	always   Step
	requests []model.Request
}

// New returns a provider that takes one step a request, in order. When no step
// is left, requests fail as invalid with the code "script_over".
func New(steps ...Step) *Provider { return &Provider{steps: steps} }

// Play returns a provider whose every answer is made by one step, which looks
// at the conversation: a function of the request survives a restart. Words come
// at the pace, 0 for at once.
func Play(step Step, pace time.Duration) *Provider { return &Provider{always: step, pace: pace} }

// Script returns the step that plays a script; see package script for its form.
func Script(p *script.Player) Step {
	return func(ctx context.Context, r model.Request) (model.Response, error) {
		line, ok, err := p.Next(ctx, talk(r))
		switch {
		case err != nil:
			return model.Response{}, &model.Error{Fault: model.Canceled, Err: err}
		case !ok:
			return model.Response{}, over()
		}
		var out model.Response
		if line.Think != "" {
			out.Parts = append(out.Parts, model.Part{Kind: model.Reasoning, Text: line.Think})
		}
		if line.Say != "" {
			out.Parts = append(out.Parts, model.Part{Kind: model.Text, Text: line.Say})
		}
		for _, c := range line.Calls {
			out.Parts = append(out.Parts, ToolCall(c.Name, c.Args))
		}
		if line.Fault != "" {
			return out, &model.Error{Fault: fault(line.Fault), RetryAfter: line.After}
		}
		return out, nil
	}
}

func over() *model.Error { return &model.Error{Fault: model.Invalid, Code: "script_over"} }

// fault is the fault a script's word stands for.
func fault(word string) model.Fault {
	if word == "limited" {
		return model.Limited
	}
	return model.Fault(word)
}

// talk is the conversation as scripts see it.
func talk(r model.Request) []script.Message {
	out := make([]script.Message, 0, len(r.Messages))
	for _, m := range r.Messages {
		var texts []string
		for _, p := range m.Parts {
			if p.Text != "" && p.Kind != model.Reasoning {
				texts = append(texts, p.Text)
			}
		}
		out = append(out, script.Message{Role: string(m.Role), Text: strings.Join(texts, "\n")})
	}
	return out
}

// Name is "scripted".
func (p *Provider) Name() string { return "scripted" }

// Requests are the requests so far, in the order of their arrival.
func (p *Provider) Requests() []model.Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests)
}

// Stream implements model.Provider: it streams word by word.
func (p *Provider) Stream(ctx context.Context, r model.Request, on func(model.Delta)) (model.Response, error) {
	r, err := looked(r)
	if err != nil {
		return model.Response{}, p.failed(r, &model.Error{Fault: model.Invalid, Err: err}, false)
	}
	step := p.next(r)
	out, err := step(ctx, r)
	partial := false
	emit := func(d model.Delta) {
		partial = true
		if on != nil {
			on(d)
		}
	}
	if err == nil {
		err = ctx.Err()
	}
	if cut := p.stream(ctx, out.Parts, emit); cut != nil {
		err = &model.Error{Fault: model.Canceled, Err: cut}
	}
	if err != nil {
		return model.Response{}, p.failed(r, err, partial)
	}
	if err := finish(r, &out); err != nil {
		return model.Response{}, p.failed(r, &model.Error{Fault: model.Garbled, Err: err}, partial)
	}
	return out, nil
}

// looked is the request with the images in it, as codecs read them.
func looked(r model.Request) (model.Request, error) {
	r.Messages = slices.Clone(r.Messages)
	if r.Blind || r.Image == nil {
		return r, nil
	}
	for i, m := range r.Messages {
		for k, p := range m.Parts {
			if p.Kind != model.Image || len(p.Data) > 0 {
				continue
			}
			data, err := r.Image(p.Ref)
			if err != nil {
				return r, err
			}
			r.Messages[i].Parts = slices.Clone(r.Messages[i].Parts)
			r.Messages[i].Parts[k].Data = data
		}
	}
	return r, nil
}

func (p *Provider) next(r model.Request) Step {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.Messages, r.Written, r.Image = slices.Clone(r.Messages), nil, nil
	p.requests = append(p.requests, r)
	if p.always != nil {
		return p.always
	}
	if len(p.steps) == 0 {
		return func(context.Context, model.Request) (model.Response, error) { return model.Response{}, over() }
	}
	step := p.steps[0]
	p.steps = p.steps[1:]
	return step
}

func (p *Provider) failed(r model.Request, err error, partial bool) error {
	e, ok := err.(*model.Error)
	if !ok {
		e = &model.Error{Fault: model.Canceled, Err: err}
	}
	full := *e
	full.Provider, full.Model, full.Partial = p.Name(), r.Model, partial
	return &full
}

func (p *Provider) stream(ctx context.Context, parts []model.Part, emit func(model.Delta)) error {
	for _, part := range parts {
		if part.Kind == model.Call {
			emit(model.Delta{Tool: part.Name})
			continue
		}
		for word := range strings.SplitAfterSeq(part.Text, " ") {
			if word == "" {
				continue
			}
			if err := p.pause(ctx); err != nil {
				return err
			}
			if part.Kind == model.Reasoning {
				emit(model.Delta{Reasoning: word})
			} else {
				emit(model.Delta{Text: word})
			}
		}
	}
	return nil
}

func (p *Provider) pause(ctx context.Context) error {
	if p.pace <= 0 {
		return nil
	}
	t := time.NewTimer(p.pace)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// finish fills in what a step leaves out, as a function of request and answer.
func finish(r model.Request, out *model.Response) error {
	for i := range out.Parts {
		if out.Parts[i].Kind == model.Reasoning && out.Parts[i].From == "" {
			out.Parts[i].From = "scripted/" + r.Model
		}
	}
	if err := wire.CheckCalls(r, out.Parts); err != nil {
		return err
	}
	if out.Stop == "" {
		out.Stop = model.StopEnd
		if slices.ContainsFunc(out.Parts, func(p model.Part) bool { return p.Kind == model.Call }) {
			out.Stop = model.StopTools
		}
	}
	if out.Model == "" {
		out.Model = r.Model
	}
	if out.ID == "" {
		out.ID = "scripted-" + strconv.Itoa(len(r.Messages))
	}
	if out.Usage == (model.Usage{}) {
		out.Usage = model.Usage{In: tokens(len(r.System)), Out: 0}
		for _, m := range r.Messages {
			out.Usage.In += size(m.Parts)
		}
		out.Usage.Out = size(out.Parts)
	}
	if out.Raw == nil {
		raw, err := wire.Encode(out.Parts)
		if err != nil {
			return fmt.Errorf("answer of a step: %w", err)
		}
		out.Raw = raw
	}
	return nil
}

// size is a guess at the tokens of some parts: four bytes each.
func size(parts []model.Part) int {
	n := 0
	for _, p := range parts {
		n += tokens(len(p.Text) + len(p.Name) + len(p.Args))
	}
	return n
}

func tokens(bytes int) int { return (bytes + 3) / 4 }
