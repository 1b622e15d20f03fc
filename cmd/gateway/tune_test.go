package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/config"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/enhance"
	"github.com/heddlehq/heddle/model"
)

// What settings say of thinking and compaction reaches the manifest, on each level.
func TestTune(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	if err := os.WriteFile(file, []byte(`
agents:
  plain: {model: openai/gpt-5, thinking: medium}
  ladder:
    thinking: low
    compaction: {off: true, reserve: 9000, keep: 4000, model: openai/gpt-5-mini}
    ladder:
      - {name: one, model: openai/gpt-5}
      - {name: two, model: openai/gpt-5, thinking: high}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	s := config.Open(file, func(string) (string, bool) { return "", false })
	f := readFile(s)
	agents := f.agentsOf(s, nil, nil, offerOf(s, &f))
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ agent, unlocked, want string }{
		{"plain", "", "medium {false 0 0 }"},
		{"ladder", "", "low {true 9000 4000 openai/gpt-5-mini}"},
		{"ladder", `{"two":{}}`, "high {true 9000 4000 openai/gpt-5-mini}"},
	} {
		snap := harness.Snapshot{Trust: chat.Member}
		if tt.unlocked != "" {
			snap.State = map[string]json.RawMessage{enhance.StateName: json.RawMessage(tt.unlocked)}
		}
		m, err := harness.Render(agents[tt.agent], snap)
		if got := fmt.Sprint(m.Thinking, " ", m.Compaction); err != nil || got != tt.want {
			t.Errorf("%s: %s, %v; want %s", tt.agent, got, err, tt.want)
		}
	}
}

// Figures can also say that a model costs nothing and cannot look at images.
func TestFiguresOfNothing(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	text := "figures:\n  openai/gpt-5: {in: 0, cache_read: 0.0, images: false, thinking: \"\"}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := config.Open(file, func(string) (string, bool) { return "", false })
	f := readFile(s)
	known := model.Lookup("openai", "gpt-5")
	if known.In == 0 || known.CacheRead == 0 || !known.Images || known.Thinking == "" {
		t.Fatalf("known is %+v", known)
	}
	want := known
	want.In, want.CacheRead, want.Images, want.Thinking = 0, 0, false, ""
	checkFigures(s, f.figures)
	if got := f.figures["openai/gpt-5"].over(known); got != want || s.Err() != nil {
		t.Errorf("got %+v, %v; want %+v", got, s.Err(), want)
	}
}
