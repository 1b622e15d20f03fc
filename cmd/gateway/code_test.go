package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddlehq/heddle/config"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/scripted"
	"github.com/heddlehq/heddle/sandbox"
)

// agentsIn makes the agents of a settings file, of which one may be in Go.
func agentsIn(t *testing.T, text string) (map[string]harness.Agent, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := config.Open(path, func(string) (string, bool) { return "", false })
	f := readFile(s)
	f.code = map[string]harness.Agent{"triage": func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		return "Triage."
	}}
	n, err := model.NewNames([]model.Provider{scripted.Play(scripted.Say("ok"), 0)}, map[string]string{"fast": "scripted/fast"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	agents := f.agentsOf(s, n, map[string]sandbox.Provider{}, offerOf(s, &f))
	f.routesOf(s)
	return agents, s.Err()
}

// An agent in Go is one of the settings like any other: it has a route, subagents
// and memory, and is a subagent.
func TestAgentInGo(t *testing.T) {
	t.Parallel()
	agents, err := agentsIn(t, `agents:
  oncall: {code: triage, subagents: [helper], doc: sorts incidents}
  helper: {model: fast, doc: helps, subagents: [oncall]}
routes: [{on: [slack.mention], agent: oncall}]
`)
	if err != nil {
		t.Fatal(err)
	}
	m, err := harness.Render(agents["oncall"], harness.Snapshot{Agent: "oncall"})
	if err != nil || m.Model != "fast" || m.Instructions[0] != "Triage." || len(m.Subagents) != 1 {
		t.Fatalf("%+v, %v", m, err)
	}
	if m, err = harness.Render(m.Subagents[0].Agent, harness.Snapshot{Depth: 1}); err != nil || m.Subagents[0].Name != "oncall" {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestAgentInGoThatIsNot(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`agents: {a: {code: triaje}}`:               `found "triaje"; want one of triage, a new line of goAgents in cmd/gateway/wire.go`,
		`agents: {a: {code: triage, prompt: Help}}`: "found code beside prompt, model or ladder; want code alone",
		`agents: {a: {}}`:                           "found neither model, ladder nor code",
	} {
		if _, err := agentsIn(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
