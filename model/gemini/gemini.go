// Package gemini speaks the generateContent wire format, streamed.
package gemini

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/wire"
)

// DefaultBaseURL is Google's own address.
const DefaultBaseURL = "https://generativelanguage.googleapis.com/v1beta"

// Options say which server is meant. Zero values are good defaults.
type Options struct {
	Name    string // of the provider, "" for "gemini"
	APIKey  string
	BaseURL string // with its /v1beta, "" for DefaultBaseURL
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
		o.Name = "gemini"
	}
	if o.BaseURL == "" {
		o.BaseURL = DefaultBaseURL
	}
	o.BaseURL = strings.TrimRight(o.BaseURL, "/")
	if o.Client == nil {
		o.Client = wire.NewClient()
	}
	p := &Provider{opt: o, header: http.Header{}}
	if o.APIKey != "" {
		p.header.Set("X-Goog-Api-Key", o.APIKey) // not in the URL, which ends up in logs
	}
	return p
}

// Name is the provider's part of a model name.
func (p *Provider) Name() string { return p.opt.Name }

// Stream implements model.Provider. The terminator is a finishReason, or the
// blockReason of a prompt that was not let through.
func (p *Provider) Stream(ctx context.Context, r model.Request, on func(model.Delta)) (model.Response, error) {
	body, err := p.encode(r)
	if err != nil {
		return model.Response{}, &model.Error{Provider: p.opt.Name, Model: r.Model, Fault: model.Invalid, Err: err}
	}
	s, err := wire.Open(ctx, wire.Call{
		Provider: p.opt.Name, Model: r.Model, Client: p.opt.Client, Header: p.header,
		URL:  p.opt.BaseURL + "/models/" + url.PathEscape(r.Model) + ":streamGenerateContent?alt=sse",
		Body: body, First: p.opt.First, Idle: p.opt.Idle, On: on,
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
