// Package responses speaks OpenAI's Responses wire format, streamed. Nothing is
// stored there: every request holds the whole conversation, with the reasoning
// of the model as it was sent, encrypted.
package responses

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/wire"
)

// Options say which server is meant.
type Options struct {
	Name    string // of the provider, "" for "openai"
	APIKey  string // "" sends none
	BaseURL string // with its /v1
	Client  *http.Client
	First   time.Duration // most time to the first content, 0 for wire.DefaultFirst
	Idle    time.Duration // most time between two pieces of content, 0 for wire.DefaultIdle
}

// Provider is one such server.
type Provider struct {
	opt    Options
	header http.Header
}

// New returns a provider. It does no I/O.
func New(o Options) *Provider {
	if o.Name == "" {
		o.Name = "openai"
	}
	if o.Client == nil {
		o.Client = wire.NewClient()
	}
	p := &Provider{opt: o, header: http.Header{}}
	if o.APIKey != "" {
		p.header.Set("Authorization", "Bearer "+o.APIKey)
	}
	return p
}

// Name is the provider's part of a model name.
func (p *Provider) Name() string { return p.opt.Name }

// Stream implements model.Provider. The terminator is response.completed or
// response.incomplete.
func (p *Provider) Stream(ctx context.Context, r model.Request, on func(model.Delta)) (model.Response, error) {
	body, err := p.encode(r)
	if err != nil {
		return model.Response{}, &model.Error{Provider: p.opt.Name, Model: r.Model, Fault: model.Invalid, Err: err}
	}
	s, err := wire.Open(ctx, wire.Call{
		Provider: p.opt.Name, Model: r.Model, Client: p.opt.Client, URL: strings.TrimRight(p.opt.BaseURL, "/") + "/responses",
		Header: p.header, Body: body, First: p.opt.First, Idle: p.opt.Idle, On: on,
	})
	if err != nil {
		return model.Response{}, err
	}
	defer s.Close()
	a := answer{s: s}
	if err := a.read(); err != nil {
		return model.Response{}, err
	}
	out, err := a.response(r, p.opt.Name)
	if err != nil {
		return model.Response{}, err
	}
	return out, nil
}
