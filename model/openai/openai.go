// Package openai speaks the Chat Completions wire format, streamed, to OpenAI
// and to every server that is compatible with it: Ollama, vLLM, OpenRouter,
// LiteLLM and others. Models of OpenAI itself that reason are spoken to by
// package responses, as only that format carries their reasoning on.
package openai

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/openai/responses"
	"github.com/heddlehq/heddle/model/wire"
)

// DefaultBaseURL is OpenAI's own address.
const DefaultBaseURL = "https://api.openai.com/v1"

// Options say which server is meant. Zero values are good defaults.
type Options struct {
	Name    string // of the provider, "" for "openai"
	APIKey  string // "" sends none
	BaseURL string // with its /v1, "" for DefaultBaseURL
	Client  *http.Client
	First   time.Duration // most time to the first content, 0 for wire.DefaultFirst
	Idle    time.Duration // most time between two pieces of content, 0 for wire.DefaultIdle
}

// Provider is one such server.
type Provider struct {
	opt    Options
	url    string
	header http.Header
	own    bool // it is OpenAI itself, which has retired max_tokens

	responses *responses.Provider // nil where that format may be unknown
}

// reasons are the models that reason: on api.openai.com they are spoken to by
// package responses.
var reasons = regexp.MustCompile(`^(ft:)?(o\d|gpt-[5-9]|codex-)`)

// New returns a provider. It does no I/O.
func New(o Options) *Provider {
	if o.Name == "" {
		o.Name = "openai"
	}
	if o.BaseURL == "" {
		o.BaseURL = DefaultBaseURL
	}
	if o.Client == nil {
		o.Client = wire.NewClient()
	}
	p := &Provider{opt: o, url: strings.TrimRight(o.BaseURL, "/") + "/chat/completions", header: http.Header{}}
	if o.APIKey != "" {
		p.header.Set("Authorization", "Bearer "+o.APIKey)
	}
	if u, err := url.Parse(o.BaseURL); err == nil {
		host := u.Hostname()
		p.own = strings.HasSuffix(host, ".openai.com") || strings.HasSuffix(host, ".openai.azure.com")
		if strings.HasSuffix(host, ".openai.com") { // on Azure an id says nothing about the model
			p.responses = responses.New(responses.Options(o))
		}
	}
	return p
}

// Name is the provider's part of a model name.
func (p *Provider) Name() string { return p.opt.Name }

// Stream implements model.Provider. The terminator is a finish_reason: an answer
// that has one is whole, even if the connection then breaks before the usage.
func (p *Provider) Stream(ctx context.Context, r model.Request, on func(model.Delta)) (model.Response, error) {
	if p.responses != nil && reasons.MatchString(r.Model) {
		return p.responses.Stream(ctx, r, on)
	}
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
	a := answer{s: s, again: wire.Shape{Key: `"content":"`}}
	if err := a.read(); err != nil {
		return model.Response{}, err
	}
	out, err := a.response(r, p.opt.Name)
	if err != nil {
		return model.Response{}, err
	}
	return out, nil
}
