package model_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/model"
)

func TestLookup(t *testing.T) {
	t.Parallel()
	unknown := model.Spec{Window: 32_000, MaxOut: 4096}
	const all = "off low medium high"
	opus := model.Spec{Window: 200_000, MaxOut: 64_000, In: 5, Out: 25, CacheRead: 0.5, CacheWrite: 6.25, Thinking: all, Images: true, Known: true}
	tests := []struct {
		provider, id string
		want         model.Spec
	}{
		{"anthropic", "claude-opus-4-5-20251101", opus},
		{"anthropic", "claude-opus-4-5", opus},
		{"anthropic", "claude-opus-4-8", model.Spec{Window: 1_000_000, MaxOut: 128_000, In: 5, Out: 25, CacheRead: 0.5, CacheWrite: 6.25, Thinking: all, Images: true, Known: true}},
		{"openai", "gpt-5.6-sol", model.Spec{Window: 1_050_000, MaxOut: 128_000, In: 5, Out: 30, CacheRead: 0.5, CacheWrite: 6.25, Thinking: all, Images: true, Known: true}},
		{"openai", "claude-opus-4-5", unknown},
		{"ollama", "llama4:8b", unknown},
		{"anthropic", "", unknown},
		{"", "", unknown},
	}
	for _, tt := range tests {
		if d := cmp.Diff(tt.want, model.Lookup(tt.provider, tt.id)); d != "" {
			t.Errorf("%s/%s (-want +got):\n%s", tt.provider, tt.id, d)
		}
	}
	if a, b := model.Lookup("openai", "gpt-5-mini"), model.Lookup("openai", "gpt-5-mini-2025-08-07"); a != b || !a.Known {
		t.Errorf("a dated id differs from its entry: %+v, %+v", a, b)
	}
}

// TestLevels: what a model takes, in our words.
func TestLevels(t *testing.T) {
	t.Parallel()
	for full, want := range map[string]string{
		"openai/gpt-5.6-sol":             "off low medium high",
		"openai/gpt-5-mini":              "low medium high",
		"openai/gpt-5.4-pro":             "medium high",
		"openai/gpt-4.1":                 "",
		"anthropic/claude-haiku-4-5":     "off low medium high",
		"anthropic/claude-opus-4-8":      "off low medium high",
		"gemini/gemini-3-pro-preview":    "low high",
		"gemini/gemini-3-flash-preview":  "off low medium high",
		"gemini/gemini-2.5-flash":        "off low medium high",
		"openai/not-yet-made":            "",
		"anthropic/claude-opus-4-5-fork": "",
	} {
		provider, id, _ := strings.Cut(full, "/")
		if got := model.Lookup(provider, id).Thinking; got != want {
			t.Errorf("%s: %q, want %q", full, got, want)
		}
	}
}

// TestCachedTokensAreCheap guards against mixing up the two cache prices.
func TestCachedTokensAreCheap(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"claude-opus-4-8", "claude-sonnet-4-6", "claude-haiku-4-5"} {
		if s := model.Lookup("anthropic", id); s.CacheRead*2 > s.In || s.CacheWrite < s.In {
			t.Errorf("%s: %+v", id, s)
		}
	}
}

// BenchmarkLookup shows what a call pays once the table was read.
func BenchmarkLookup(b *testing.B) {
	for b.Loop() {
		model.Lookup("openai", "gpt-5-mini")
	}
}
