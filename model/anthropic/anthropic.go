// Package anthropic speaks the Messages wire format, streamed.
package anthropic

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/wire"
)

// DefaultBaseURL is Anthropic's own address.
const DefaultBaseURL = "https://api.anthropic.com"

// defaultMaxTokens is sent where the request leaves it open, as the API needs a
// number: every model of the last years accepts this one.
const defaultMaxTokens = 8192

const version = "2023-06-01"

// Options say which server is meant. Zero values are good defaults.
type Options struct {
	Name    string // of the provider, "" for "anthropic"
	APIKey  string
	BaseURL string // with or without /v1, "" for DefaultBaseURL
	Client  *http.Client
	First   time.Duration // most time to the first content, 0 for wire.DefaultFirst
	Idle    time.Duration // most time between two pieces of content, 0 for wire.DefaultIdle
}

// Provider is one such server.
type Provider struct {
	opt    Options
	url    string
	header http.Header
}

// New returns a provider. It does no I/O.
func New(o Options) *Provider {
	if o.Name == "" {
		o.Name = "anthropic"
	}
	if o.BaseURL == "" {
		o.BaseURL = DefaultBaseURL
	}
	if o.Client == nil {
		o.Client = wire.NewClient()
	}
	base := strings.TrimSuffix(strings.TrimRight(o.BaseURL, "/"), "/v1")
	p := &Provider{opt: o, url: base + "/v1/messages", header: http.Header{}}
	p.header.Set("Anthropic-Version", version)
	if o.APIKey != "" {
		p.header.Set("X-Api-Key", o.APIKey)
	}
	return p
}

// Name is the provider's part of a model name.
func (p *Provider) Name() string { return p.opt.Name }

// Stream implements model.Provider. The terminator is message_stop.
func (p *Provider) Stream(ctx context.Context, r model.Request, on func(model.Delta)) (model.Response, error) {
	body, err := p.encode(r)
	if err != nil {
		return model.Response{}, &model.Error{Provider: p.opt.Name, Model: r.Model, Fault: model.Invalid, Err: err}
	}
	s, err := wire.Open(ctx, wire.Call{
		Provider: p.opt.Name, Model: r.Model, Client: p.opt.Client, URL: p.url, Header: p.header,
		Body: body, First: p.opt.First, Idle: p.opt.Idle, On: on,
	})
	if err != nil {
		return model.Response{}, err
	}
	defer s.Close()
	a := answer{s: s, again: wire.Shape{Key: `"text":"`}}
	if err := a.read(); err != nil {
		return model.Response{}, err
	}
	out, err := a.response(r, p.opt.Name)
	if err != nil {
		return model.Response{}, err
	}
	return out, nil
}
