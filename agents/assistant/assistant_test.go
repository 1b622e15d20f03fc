package assistant_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/heddlehq/heddle/agents/assistant"
	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/enhance"
	"github.com/heddlehq/heddle/harness/harnesstest"
)

var ladder = []enhance.Rung{{Name: "quick", Model: "fast"}, {Name: "strong", Model: "strong", Sandbox: "virtual", Who: chat.Member}}

// An agent that unlocks step by step is one short function: no orchestrator, no graph.
func TestProgressiveUnlockIsShort(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("assistant.go")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(src), "\n"); n > 30 {
		t.Errorf("the whole agent has %d lines, at most 30 are allowed", n)
	}
	agent := assistant.New(assistant.Options{Ladder: ladder})
	for level, want := range []string{"fast", "strong"} {
		m, err := harness.Render(agent, harness.Snapshot{Trust: chat.Member, State: map[string]json.RawMessage{
			enhance.StateName: json.RawMessage([]string{`{}`, `{"strong":{}}`}[level]),
		}})
		if err != nil {
			t.Fatal(err)
		}
		if _, climbs := m.Tool("enhance"); m.Model != want || m.Sandbox != ladder[level].Sandbox || climbs != (level == 0) {
			t.Errorf("level %d: %+v", level, m)
		}
	}
}

// The words of the default prompt are the marks that the harness writes.
func TestPrompt(t *testing.T) {
	t.Parallel()
	for prompt, want := range map[string]string{"": assistant.DefaultPrompt, "Be kind.": "Be kind."} {
		m, err := harness.Render(assistant.New(assistant.Options{Prompt: prompt, Ladder: ladder}), harness.Snapshot{})
		if err != nil || m.System() != want {
			t.Errorf("%q gave %q, %v", prompt, m.System(), err)
		}
	}
	for _, mark := range []string{"<heard>", "<notice>", "<cited>"} {
		if !strings.Contains(assistant.DefaultPrompt, mark) {
			t.Errorf("the default prompt does not explain %s", mark)
		}
	}
}

// The agent and its ladder read only their context, and declare the same for the
// same snapshot.
func TestAgentIsPure(t *testing.T) {
	t.Parallel()
	harnesstest.Pure(t, ".")
	harnesstest.Pure(t, "../../harness/enhance")
	var snapshots []harness.Snapshot
	for _, trust := range []chat.Role{chat.Outsider, chat.Member, chat.Admin} {
		for _, unlocked := range []string{`{}`, `{"strong":{}}`} {
			snapshots = append(snapshots, harness.Snapshot{Trust: trust, State: map[string]json.RawMessage{enhance.StateName: json.RawMessage(unlocked)}})
		}
	}
	harnesstest.Same(t, assistant.New(assistant.Options{Ladder: ladder}), snapshots...)
}
