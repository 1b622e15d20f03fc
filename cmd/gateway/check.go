package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/config"
	"github.com/heddlehq/heddle/state/mem"
)

type checkCmd struct{}

// Run explains the settings in force. It opens no store, asks no provider and
// listens nowhere.
func (checkCmd) Run(_ context.Context, e env, s *config.Settings) error {
	p := partsOf(s)
	defer p.close()
	file := s.Path()
	if file == "" {
		file = "none"
	}
	fmt.Fprintf(e.stdout, "settings file: %s\n", file)
	for _, g := range vars {
		for _, v := range g.Vars {
			fmt.Fprintf(e.stdout, "%-22s %s\n", v.Name, s.Explain(v))
		}
	}
	for _, n := range slices.Sorted(maps.Keys(p.names)) {
		fmt.Fprintf(e.stdout, "model %-16s %s\n", n, p.names[n])
	}
	p.file.explain(e.stdout)
	for _, r := range p.routes {
		busy := ""
		if r.WhileBusy != "" && r.WhileBusy != chat.Join {
			busy = ", while busy " + string(r.WhileBusy)
		}
		if r.PostTo.Channel != "" {
			busy += ", answers to " + r.PostTo.Key()
		}
		fmt.Fprintf(e.stdout, "route %-16s %v%s\n", r.Agent, r.On, busy)
	}
	p.offer.explain(e.stdout)
	if p.offer.recall.used {
		fmt.Fprintf(e.stdout, "memory                 %s\n", p.offer.recall.embedder.Name())
	}
	fmt.Fprintf(e.stdout, "answered from role     %s\n", p.talk)
	for _, c := range p.channels {
		if h, ok := p.file.access.holders(c.Name()); ok {
			fmt.Fprintf(e.stdout, "%-22s members: %s; maintainers: %s; admins: %s\n", c.Name(), people(h.members), people(h.maintainers), people(h.admins))
		}
	}
	for _, w := range s.Warnings() {
		fmt.Fprintf(e.stdout, "warning: %s\n", w)
	}
	if err := s.Err(); err != nil {
		return err
	}
	if _, err := p.engine(mem.Open(time.Now), slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	_, err := fmt.Fprintln(e.stdout, "all settings are fine")
	return err
}

// people says who holds a role.
func people(ids []string) string {
	if len(ids) == 0 {
		return "nobody"
	}
	return strings.ReplaceAll(strings.Join(ids, ", "), "all", "every full member")
}

// explain prints a line for each fallback, agent, level and budget.
func (f *fileSettings) explain(w io.Writer) {
	for _, name := range slices.Sorted(maps.Keys(f.after)) {
		fmt.Fprintf(w, "fallback %-13s %s\n", name, strings.Join(f.after[name], ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(f.agents)) {
		a := f.agents[name]
		head := a.Model
		switch {
		case a.Code != "":
			head = "in Go: " + a.Code
		case len(a.Ladder) > 0:
			head = count(len(a.Ladder), "level", "levels")
		}
		if a.Memory {
			head += ", memory"
		}
		fmt.Fprintf(w, "agent %-16s %s%s\n", name, head, has(a.Skills, a.MCP, a.Tools, a.Subagents))
		for _, r := range a.Ladder {
			line := r.Model
			if r.Sandbox != "" {
				line += ", sandbox " + r.Sandbox
			}
			if r.Who != chat.Outsider {
				line += ", for the role " + r.Who.String()
			}
			if r.For > 0 {
				line += ", for " + r.For.String()
			}
			fmt.Fprintf(w, "    %-18s %s%s\n", r.Name, line, has(r.Skills, r.MCP, r.Tools, r.Subagents))
		}
	}
	b := f.budgets
	for _, one := range []struct {
		name string
		set  bool
		text string
	}{
		{"steps", b.Steps > 0, fmt.Sprint(b.Steps)},
		{"time", b.Time > 0, b.Time.String()},
		{"tokens", b.Tokens > 0, fmt.Sprint(b.Tokens)},
		{"turn", b.Turn > 0, fmt.Sprintf("$%g", b.Turn)},
		{"conversation", b.Conversation > 0, fmt.Sprintf("$%g", b.Conversation)},
		{"day", b.Day > 0, fmt.Sprintf("$%g", b.Day)},
	} {
		if one.set {
			fmt.Fprintf(w, "budget %-15s %s\n", one.name, one.text)
		}
	}
}

// has is what an agent or a level names.
func has(skills, servers, tools, subagents []string) (text string) {
	for _, one := range []struct {
		what  string
		names []string
	}{{"skills", skills}, {"servers", servers}, {"tools", tools}, {"subagents", subagents}} {
		if len(one.names) > 0 {
			text += ", " + one.what + " " + strings.Join(one.names, " ")
		}
	}
	return text
}
