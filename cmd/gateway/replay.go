package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/heddlehq/heddle/config"
	"github.com/heddlehq/heddle/harness/turn"
	"github.com/heddlehq/heddle/state"
	"github.com/heddlehq/heddle/state/mem"
)

type replayCmd struct {
	Log  string `arg:"" help:"Id of a conversation, its thread key, or a file that was exported."`
	JSON bool   `help:"One JSON object."`
}

// Run walks one log with the agents and models of the settings. MCP servers are
// asked for the tools that they have now, but for those that people log in at:
// their tokens are the running gateway's.
func (c replayCmd) Run(ctx context.Context, e env, s *config.Settings) error {
	p := partsOf(s)
	defer p.close()
	if err := s.Err(); err != nil {
		return err
	}
	v, err := openLog(ctx, s, c.Log)
	if err != nil {
		return err
	}
	logger := slog.New(slog.DiscardHandler)
	if err := p.offer.servers.open(ctx, nil, logger); err != nil {
		return err
	}
	defer p.offer.servers.close()
	engine, err := p.engine(mem.Open(time.Now), logger)
	if err != nil {
		return err
	}
	got, err := engine.Replay(ctx, v.Conversation, v.Records)
	if err != nil {
		return err
	}
	if got.Drift != nil {
		for i, l := range got.Drift.Lines {
			got.Drift.Lines[i] = printable(l)
		}
	}
	if c.JSON {
		type found struct {
			Conversation state.ID `json:"conversation"`
			turn.Replayed
		}
		if err := jsonLines(e.stdout, []found{{v.Conversation.ID, got}}); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(e.stdout, "conversation %s: %s walked, %s and %s are as recorded", v.Conversation.ID,
			count(got.Records, "record", "records"), count(got.Renders, "manifest", "manifests"), count(got.Requests, "request", "requests"))
		if got.Skipped > 0 {
			fmt.Fprintf(e.stdout, ", %s kept no request to compare", count(got.Skipped, "answer", "answers"))
		}
		fmt.Fprintln(e.stdout)
		showDrift(e, got.Drift)
	}
	if got.Drift != nil {
		return fmt.Errorf("record %d: today's code does something else: %s", got.Drift.Record, got.Drift.What)
	}
	return nil
}

func showDrift(e env, d *turn.Drift) {
	if d == nil {
		return
	}
	task := ""
	if d.Task != "" {
		task = ", task " + printable(d.Task)
	}
	fmt.Fprintf(e.stdout, "first drift: record %d, turn %s, step %d%s: another %s (- recorded, + today)\n", d.Record, d.Turn, d.Step, task, d.What)
	for _, l := range d.Lines {
		fmt.Fprintf(e.stdout, "    %s\n", l)
	}
}
