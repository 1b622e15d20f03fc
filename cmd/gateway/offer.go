package main

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/config"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/enhance"
)

// An offer is what agents may name beside models and sandboxes.
type offer struct {
	skills  *shelf // nil if it cannot be read
	servers *remotes
	recall  *recall
	// channels are those that tools may use.
	channels []channels.Channel
}

// offerOf reads what there is. Servers must be ready to be used.
func offerOf(s *config.Settings, f *fileSettings, cs ...channels.Channel) *offer {
	sh, err := openShelf(s, f.skills)
	if err != nil {
		s.Refuse("skills", err.Error(), "a folder and a lock file that can be read")
	} else {
		for _, p := range sh.odd {
			s.Warn("skills", p.Error())
		}
	}
	r := remotesOf(s, f.mcp)
	r.ready(s)
	return &offer{skills: sh, servers: r, recall: recallOf(s, f.memory), channels: cs}
}

// to gives the rungs of an agent the skills, servers and tools that its settings name.
// What it has on every level belongs to the first, and the levels above have
// what those below have.
func (o *offer) to(s *config.Settings, path string, a agentSettings, rungs []enhance.Rung) {
	if len(rungs) == 0 {
		return // refused already
	}
	had := map[string]bool{}
	o.add(s, path, a.Skills, a.MCP, a.Tools, &rungs[0], had)
	if a.Memory {
		o.recall.used = true
		rungs[0].Use = append(rungs[0].Use, o.recall.use)
	}
	if a.Attach {
		rungs[0].Use = append(rungs[0].Use, func(c *harness.Context) { harness.UseAttach(c) })
	}
	for i, r := range a.Ladder {
		o.add(s, fmt.Sprintf("%s.ladder[%d]", path, i), r.Skills, r.MCP, r.Tools, &rungs[i], had)
	}
}

func (o *offer) add(s *config.Settings, at string, skills, servers, tools []string, r *enhance.Rung, had map[string]bool) {
	again := func(at, what, name string) bool {
		if had[what+name] {
			s.Refuse(at, fmt.Sprintf("%q again", name), "each "+what+" once; the levels above have it as well")
			return true
		}
		had[what+name] = true
		return false
	}
	for i, name := range skills {
		at := fmt.Sprintf("%s.skills[%d]", at, i)
		if again(at, "skill", name) || o.skills == nil {
			continue
		}
		if m, ok := o.skills.find(s, at, name); ok {
			r.Skills = append(r.Skills, m)
		}
	}
	for i, name := range servers {
		if at := fmt.Sprintf("%s.mcp[%d]", at, i); !again(at, "server", name) {
			r.Use = append(r.Use, o.servers.find(s, at, name))
		}
	}
	for i, name := range tools {
		if at := fmt.Sprintf("%s.tools[%d]", at, i); !again(at, "set of tools", name) {
			r.Use = append(r.Use, findTools(s, at, name, o.channels))
		}
	}
}

// explain prints a line for each skill and server.
func (o *offer) explain(w io.Writer) {
	if o.skills != nil {
		for _, one := range o.skills.all {
			fmt.Fprintf(w, "skill %-16s %s\n", one.Name, o.skills.state(one))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.servers.settings)) {
		one := o.servers.settings[name]
		fmt.Fprintf(w, "server %-15s %s, for %s, %d tools pinned\n", name, place(one), one.Who, len(o.servers.lock[name].Tools))
	}
}
