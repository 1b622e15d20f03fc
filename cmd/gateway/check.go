package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

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
	for _, r := range p.routes {
		fmt.Fprintf(e.stdout, "route %-16s %v\n", r.Agent, r.On)
	}
	p.offer.explain(e.stdout)
	if p.offer.recall.used {
		fmt.Fprintf(e.stdout, "memory                 %s\n", p.offer.recall.embedder.Name())
	}
	fmt.Fprintf(e.stdout, "answered from role     %s\nmembers                %s\nmaintainers            %s\nadmins                 %s\n",
		p.talk, people(p.access.Members), people(p.access.Maintainers), people(p.access.Admins))
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
	return strings.ReplaceAll(strings.Join(ids, ", "), "all", "every full member of the workspace")
}
