package model_test

import (
	"context"
	"strings"
	"testing"

	"github.com/heddlehq/heddle/model"
)

// named is a provider with a name only.
type named string

func (n named) Name() string { return string(n) }

func (n named) Stream(context.Context, model.Request, func(model.Delta)) (model.Response, error) {
	return model.Response{}, &model.Error{Fault: model.Missing}
}

func TestNames(t *testing.T) {
	t.Parallel()
	own := model.Spec{Window: 7, MaxOut: 8, In: 9}
	n, err := model.NewNames(
		[]model.Provider{named("openai"), named("openrouter")},
		map[string]string{"fast": "openai/gpt-5-mini", "far": "openrouter/meta/llama:free"},
		map[string]model.Spec{"openrouter/meta/llama:free": own},
	)
	if err != nil {
		t.Fatal(err)
	}
	own.Known = true
	tests := []struct {
		name, full string
		spec       model.Spec
	}{
		{"fast", "openai/gpt-5-mini", model.Lookup("openai", "gpt-5-mini")},
		{"openai/gpt-5-mini", "openai/gpt-5-mini", model.Lookup("openai", "gpt-5-mini")},
		{"far", "openrouter/meta/llama:free", own},
		{"openai/not-yet-made", "openai/not-yet-made", model.Spec{Window: 32_000, MaxOut: 4096}},
	}
	for _, tt := range tests {
		c, err := n.Resolve(tt.name)
		if err != nil || c.Full() != tt.full || c.Spec != tt.spec {
			t.Errorf("%s: %s %+v, %v", tt.name, c.Full(), c.Spec, err)
		}
	}
	for name, want := range map[string]string{
		"quick":       "(far, fast)",
		"openai/":     "(far, fast)",
		"":            "(far, fast)",
		"anthropic/x": "available: openai, openrouter",
	} {
		if _, err := n.Resolve(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestNewNamesRefuses(t *testing.T) {
	t.Parallel()
	for alias, target := range map[string]string{"a/b": "openai/m", "fast": "m", "strong": "anthropic/m", "loop": "loop"} {
		if _, err := model.NewNames([]model.Provider{named("openai")}, map[string]string{alias: target}, nil); err == nil {
			t.Errorf("%s: %s was accepted", alias, target)
		}
	}
	if _, err := model.NewNames(nil, map[string]string{"fast": "openai/m"}, nil); err == nil || !strings.Contains(err.Error(), "available: none") {
		t.Errorf("no providers: %v", err)
	}
}

func TestCost(t *testing.T) {
	t.Parallel()
	s := model.Spec{In: 10, Out: 50, CacheRead: 1, CacheWrite: 12.5}
	got := s.Cost(model.Usage{In: 1_000_000, Cached: 600_000, CacheWrite: 200_000, Out: 100_000, Reasoning: 50_000})
	if want := 2 + 0.6 + 2.5 + 5.0; got < want-1e-9 || got > want+1e-9 {
		t.Errorf("%f, want %f", got, want)
	}
	if got := (model.Spec{}).Cost(model.Usage{In: 1000, Out: 1000}); got != 0 {
		t.Errorf("a free model costs %f", got)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for f, retry := range map[model.Fault]bool{
		model.Transient: true, model.Limited: true, model.Truncated: true, model.Stalled: true, model.Garbled: true,
		model.Overflow: false, model.Denied: false, model.Missing: false, model.Invalid: false, model.Canceled: false,
	} {
		if f.Retry() != retry {
			t.Errorf("%s: retry %v", f, f.Retry())
		}
	}
	e := &model.Error{Provider: "p", Model: "m", Fault: model.Limited, Status: 429, Code: "slow_down", Body: "SECRET", Err: context.Canceled}
	if got := e.Error(); got != "p/m: rate limited (status 429) slow_down" {
		t.Errorf("%s", got)
	}
	if e.Unwrap() != context.Canceled {
		t.Error("the cause is lost")
	}
}
