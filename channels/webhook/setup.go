// Package webhook is a channel of sources that settings describe: whatever sends
// signed JSON becomes a conversation, by a template from the payload to a text.
// Nothing can be posted there.
package webhook

import (
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/config"
)

// Name is the channel's name in paths, thread keys and settings.
const Name = "webhook"

// Section is the section of the settings file: sources by name.
const Section = "webhooks"

// Settings describe one source. Secret and Template are required.
type Settings struct {
	Secret   string        `yaml:"secret" doc:"What the sender signs with, best as ${NAME}; several, separated by commas, while it is changed."`
	Scheme   string        `yaml:"scheme" doc:"How it signs: standard (Standard Webhooks, the default) or hmac (an HMAC of the body in one header)."`
	Header   string        `yaml:"header" doc:"Of hmac: the header of the signature. Of standard: how the names of its three headers begin; webhook if not set, svix for senders that use Svix."`
	Prefix   string        `yaml:"prefix" doc:"Of hmac: what stands before the signature, such as sha256=."`
	Encoding string        `yaml:"encoding" doc:"Of hmac: hex (the default) or base64."`
	Hash     string        `yaml:"hash" doc:"Of hmac: sha256 (the default), sha1 or sha512."`
	Template string        `yaml:"template" doc:"The text that the agent gets, as a template over the payload: {{.title}}. A payload that lacks what it names, or for which it gives nothing, is ignored."`
	Thread   string        `yaml:"thread" doc:"What one conversation is about, as a template over the payload; one conversation for the whole source if not set."`
	ID       string        `yaml:"id" doc:"What names the event, as a template over the payload. If not set, the id of the header of standard, and of hmac the content."`
	Coalesce string        `yaml:"coalesce" doc:"A template over the payload: of events with the same text only the first is taken."`
	Within   time.Duration `yaml:"within" doc:"Of standard: coalesce holds for periods of this length, counted from 1970; always if not set."`
}

// A Channel is all sources. Its methods may be called at once.
type Channel struct{ sources map[string]*source }

var (
	_ channels.Webhook = (*Channel)(nil)
	_ channels.Signer  = (*Channel)(nil)
)

// A source is one entry of the settings, ready to be used.
type source struct {
	name                       string
	secrets                    [][]byte
	scheme                     scheme
	text, thread, id, coalesce *template.Template // nil if not set
	within                     time.Duration
}

// New checks the settings of sources and does no I/O. Its error names the setting
// that is wrong and never shows a secret.
func New(settings map[string]Settings) (*Channel, error) {
	c := &Channel{sources: map[string]*source{}}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		h, err := newSource(name, settings[name])
		if err != nil {
			return nil, fmt.Errorf("%s.%s%w", Section, name, err)
		}
		c.sources[name] = h
	}
	return c, nil
}

// Setup makes the channel from the settings, nil if there are no sources or one is
// wrong. What is wrong is noted in the settings.
func Setup(s *config.Settings, section map[string]Settings) *Channel {
	if len(section) == 0 {
		return nil
	}
	c, err := New(section)
	if err != nil {
		s.Refuse(Section, err.Error(), "sources as docs/webhooks.md has them")
	}
	return c
}

// Topics are what routes may name: "webhook.NAME" for each source.
func Topics(section map[string]Settings) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(section)) {
		out = append(out, Name+"."+name)
	}
	return append(out, Name+".*")
}

// Name is "webhook".
func (c *Channel) Name() string { return Name }

// taken are topics that mean something in every channel: a source's name is one, too.
var taken = []string{"mention", "message", "thread", "dm", "edited", "deleted"}

func newSource(name string, s Settings) (*source, error) {
	if name == "" || len(name) > 64 || strings.Trim(name, "-_0123456789abcdefghijklmnopqrstuvwxyz") != "" {
		return nil, fmt.Errorf(": want a name of lower case letters, digits, - and _")
	}
	if slices.Contains(taken, name) {
		return nil, fmt.Errorf(": want another name: %s are topics of what people say", strings.Join(taken, ", "))
	}
	h := &source{name: name, within: s.Within}
	if err := h.sign(s); err != nil {
		return nil, err
	}
	if s.Template == "" {
		return nil, fmt.Errorf(".template is empty: want a text such as \"{{.title}}\"")
	}
	for _, t := range []struct {
		key, text string
		to        **template.Template
	}{{"template", s.Template, &h.text}, {"thread", s.Thread, &h.thread}, {"id", s.ID, &h.id}, {"coalesce", s.Coalesce, &h.coalesce}} {
		if t.text == "" {
			continue
		}
		parsed, err := template.New(t.key).Option("missingkey=error").Funcs(template.FuncMap{"json": asJSON}).Parse(t.text)
		if err != nil {
			return nil, fmt.Errorf(".%s: %w", t.key, err)
		}
		*t.to = parsed
	}
	switch {
	case s.Within < 0 || s.Within > 0 && s.Within < time.Second:
		return nil, fmt.Errorf(".within: want at least a second")
	case s.Within > 0 && (s.Coalesce == "" || s.Scheme == "hmac"):
		return nil, fmt.Errorf(".within: want it with coalesce and the scheme standard, which signs the time")
	}
	return h, nil
}

// sign fills in how requests are verified.
func (h *source) sign(s Settings) error {
	for i, secret := range strings.Split(s.Secret, ",") {
		if secret = strings.TrimSpace(secret); config.Placeholder(secret) {
			return fmt.Errorf(".secret: entry %d is empty or a placeholder: want what the sender signs with", i+1)
		}
		h.secrets = append(h.secrets, []byte(secret))
	}
	switch s.Scheme {
	case "", "standard":
		return h.standard(s)
	case "hmac":
		return h.plain(s)
	}
	return fmt.Errorf(".scheme: %q: want standard or hmac", s.Scheme)
}

func (h *source) standard(s Settings) error {
	if s.Prefix != "" || s.Encoding != "" || s.Hash != "" {
		return fmt.Errorf(": prefix, encoding and hash are for the scheme hmac")
	}
	for i, secret := range h.secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(string(secret), "whsec_"))
		if err != nil || len(key) < minKeyBytes {
			return fmt.Errorf(".secret: entry %d is no base64 of %d bytes or more (whsec_…)", i+1, minKeyBytes)
		}
		h.secrets[i] = key
	}
	if s.Header == "" {
		s.Header = "webhook"
	}
	if !isHeader(s.Header) {
		return fmt.Errorf(".header: %q: want how the names of the headers begin, such as webhook", s.Header)
	}
	h.scheme = standard{secrets: h.secrets, header: s.Header}
	return nil
}

const minKeyBytes = 16

func (h *source) plain(s Settings) error {
	p := plain{secrets: h.secrets, header: s.Header, prefix: s.Prefix, encode: hex.EncodeToString, hash: sha256.New}
	if !isHeader(s.Header) {
		return fmt.Errorf(".header: %q: want the header of the signature, such as X-Signature", s.Header)
	}
	if strings.ContainsAny(s.Prefix, ", ") {
		return fmt.Errorf(".prefix: want no commas and blanks")
	}
	switch s.Encoding {
	case "", "hex":
	case "base64":
		p.encode = base64.StdEncoding.EncodeToString
	default:
		return fmt.Errorf(".encoding: %q: want hex or base64", s.Encoding)
	}
	hashes := map[string]func() hash.Hash{"": sha256.New, "sha256": sha256.New, "sha1": sha1.New, "sha512": sha512.New}
	if p.hash = hashes[s.Hash]; p.hash == nil {
		return fmt.Errorf(".hash: %q: want sha256, sha1 or sha512", s.Hash)
	}
	h.scheme = p
	return nil
}

// isHeader tells whether a text can be the name of a header.
func isHeader(s string) bool {
	return s != "" && strings.Trim(s, "-_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") == ""
}

// asJSON is the function json of templates.
func asJSON(v any) (string, error) {
	b, err := json.Marshal(v)
	return string(b), err
}
