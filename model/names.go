package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Names maps what agents and settings call a model to a provider and its model.
type Names struct {
	providers map[string]Provider
	alias     map[string]string
	specs     map[string]Spec     // overrides by "provider/model"
	after     map[string][]string // who answers when the named one cannot, in order
}

// A Choice is a model that a name stands for.
type Choice struct {
	Provider Provider
	Model    string // the provider's id
	Spec     Spec
}

// Full is the name with its provider: "openai/gpt-5-mini".
func (c Choice) Full() string { return c.Provider.Name() + "/" + c.Model }

// A Spec is what is known about a model. Prices are US dollars per million tokens.
type Spec struct {
	Window     int // tokens of context
	MaxOut     int // tokens of answer
	In         float64
	Out        float64
	CacheRead  float64
	CacheWrite float64
	Thinking   string // the levels it takes, lowest first: "off low medium high"; "" for none
	Images     bool   // it can look at images
	Known      bool   // false: the figures are safe defaults
}

// NewNames checks every alias: its target must be "provider/model" with one of
// the providers. Overrides replace the embedded figures of a model.
func NewNames(providers []Provider, alias map[string]string, overrides map[string]Spec) (*Names, error) {
	n := &Names{providers: map[string]Provider{}, alias: alias, specs: overrides}
	for _, p := range providers {
		n.providers[p.Name()] = p
	}
	for _, a := range slices.Sorted(maps.Keys(alias)) {
		if strings.Contains(a, "/") {
			return nil, fmt.Errorf("model name %q: a name of your own may not hold a slash", a)
		}
		if _, err := n.Resolve(a); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// Resolve finds the model for an alias or for "provider/model", split at the
// first slash. An unknown provider or alias is an error that lists what there
// is; an unknown model of a known provider is accepted with Spec.Known false.
func (n *Names) Resolve(name string) (Choice, error) {
	full := name
	if t, ok := n.alias[name]; ok {
		full = t
	}
	provider, id, ok := strings.Cut(full, "/")
	if !ok || id == "" {
		return Choice{}, fmt.Errorf("model %q: not one of the names in models (%s) and not provider/model", name, list(n.alias))
	}
	p := n.providers[provider]
	if p == nil {
		return Choice{}, fmt.Errorf("model %q: provider %q has no key or is unknown (available: %s)", name, provider, list(n.providers))
	}
	c := Choice{Provider: p, Model: id}
	if s, ok := n.specs[full]; ok {
		c.Spec = s
		c.Spec.Known = true
	} else {
		c.Spec = Lookup(provider, id)
	}
	return c, nil
}

// Fallbacks sets who answers, in order, when the model of a name cannot. Every
// name must resolve.
func (n *Names) Fallbacks(after map[string][]string) error {
	for _, name := range slices.Sorted(maps.Keys(after)) {
		for _, next := range append([]string{name}, after[name]...) {
			if _, err := n.Resolve(next); err != nil {
				return err
			}
		}
	}
	n.after = after
	return nil
}

// Chain is the model of a name and those that answer when it cannot.
func (n *Names) Chain(name string) ([]Choice, error) {
	var out []Choice
	for _, next := range append([]string{name}, n.after[name]...) {
		c, err := n.Resolve(next)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

func list[V any](m map[string]V) string {
	if len(m) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(maps.Keys(m)), ", ")
}

// Cost is the price in US dollars of a call with this usage.
func (s Spec) Cost(u Usage) float64 {
	plain := u.In - u.Cached - u.CacheWrite
	return (float64(plain)*s.In + float64(u.Cached)*s.CacheRead + float64(u.CacheWrite)*s.CacheWrite + float64(u.Out)*s.Out) / 1e6
}
