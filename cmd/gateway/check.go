package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
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
	logLevel(s)
	if len(p.channels) == 0 {
		s.Refuse("SLACK_BOT_TOKEN", "no channel is enabled", "SLACK_BOT_TOKEN and SLACK_SIGNING_SECRET")
	}
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
	fmt.Fprintf(e.stdout, "answered from role     %s\n", p.talk)
	if err := s.Err(); err != nil {
		return err
	}
	for _, n := range p.unknown() {
		fmt.Fprintf(e.stdout, "warning: model %s is not known; safe figures are used (section figures replaces them)\n", n)
	}
	if _, err := p.engine(mem.Open(time.Now), slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	_, err := fmt.Fprintln(e.stdout, "all settings are fine")
	return err
}
