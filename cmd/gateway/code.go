package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/heddlehq/heddle/config"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/enhance"
)

// written makes the agent in Go that a block of settings names, with what the
// block gives it besides. all is filled while the agents are made.
func (f *fileSettings) written(s *config.Settings, path string, a agentSettings, o *offer, all map[string]harness.Agent) harness.Agent {
	if a.Prompt != "" || a.Model != "" || len(a.Ladder) > 0 {
		s.Refuse(path, "code beside prompt, model or ladder", "code alone: an agent in Go declares its own")
	}
	agent, ok := f.code[a.Code]
	if !ok {
		names := append(slices.Sorted(maps.Keys(f.code)), "a new line of goAgents in cmd/gateway/wire.go")
		s.Refuse(path+".code", fmt.Sprintf("%q", a.Code), "one of "+strings.Join(names, ", "))
	}
	more := []enhance.Rung{{}}
	o.to(s, path, a, more)
	f.team(s, path, a, more, all)
	return func(c *harness.Context) string {
		text := agent(c)
		for _, skill := range more[0].Skills {
			harness.UseSkill(c, skill)
		}
		for _, sub := range more[0].Subagents {
			harness.UseSubagent(c, sub)
		}
		for _, use := range more[0].Use {
			use(c)
		}
		return text
	}
}
