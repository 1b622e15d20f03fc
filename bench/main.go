//go:build linux

// Command bench measures a gateway from the outside: it plays Slack and a model
// provider on loopback, sends signed mentions, and keeps an account of every
// event. A floor, the least that a gateway can do, is measured in the same way.
// It reads /proc, so it is for Linux only.
package main

import (
	"context"
	"encoding/json"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
)

type cli struct {
	Load   loadCmd   `cmd:"" help:"Answer many mentions: rates, latencies, costs, and whether each was answered once."`
	Floor  loadCmd   `cmd:"" help:"The same for the least that a gateway can do."`
	Turn   turnCmd   `cmd:"" help:"A gateway's own time of a turn without tools."`
	Long   longCmd   `cmd:"" help:"What message 1000 of a thread costs, compared with message 10."`
	Start  startCmd  `cmd:"" help:"Start to ready, and memory when idle."`
	Crash  crashCmd  `cmd:"" help:"Kill the gateway again and again under load."`
	Inside insideCmd `cmd:"" help:"What the harness itself takes: render, step, fold."`
	Churn  churnCmd  `cmd:"" help:"What it costs when the list of tools changes, compared with sending the present one."`
	All    allCmd    `cmd:"" help:"Everything in one sitting; writes the table of docs/performance.md."`

	ServeFloor floorCmd `cmd:"" hidden:""`
}

// with is what all commands share.
type with struct {
	Gateway string `help:"The gateway's binary; built if none is given." type:"existingfile"`
	Dir     string `help:"Folder for the stores, on the disk to measure." type:"existingdir"`
}

// use calls f with the gateway and a folder that is removed afterwards, and prints its report.
func (w with) use(ctx context.Context, f func(subject) (any, error)) error {
	dir, err := os.MkdirTemp(w.Dir, "heddle-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // what is left over is in a folder for such things
	binary, err := build(ctx, w.Gateway, dir)
	if err != nil {
		return err
	}
	report, err := f(subject{binary: binary, dir: dir})
	if report != nil {
		out := json.NewEncoder(os.Stdout)
		out.SetIndent("", "  ")
		_ = out.Encode(report)
	}
	return err
}

type loadCmd struct {
	with
	Events  int           `default:"3000" help:"Mentions to send."`
	Threads int           `default:"200" help:"Threads that they go to."`
	Rooms   int           `default:"50" help:"Channels that the threads lie in."`
	AtOnce  int           `default:"16" help:"Mentions under way."`
	Accept  bool          `help:"A mention is under way until it is accepted, not until it is answered."`
	Rate    float64       `help:"Mentions a second, whatever is under way."`
	First   time.Duration `help:"Time of the model to its first word."`
	Word    time.Duration `help:"Time of the model to each further word."`
	Words   int           `default:"10" help:"Words of an answer."`
	Post    time.Duration `help:"Time of a post."`
	Warm    int           `default:"200" help:"Mentions before those that count."`
	Perf    string        `help:"Let perf write a profile of the gateway to this file."`
}

// Run measures the gateway, or the floor if that is the command.
func (c *loadCmd) Run(ctx context.Context, k *kong.Context) error {
	return c.use(ctx, func(s subject) (any, error) {
		if k.Command() == "floor" {
			s.binary = ""
		}
		p := pace{First: c.First, Word: c.Word, Words: c.Words, Post: c.Post}
		rep, err := load(ctx, s, p, plan{
			run: runName(), threads: c.Threads, rooms: c.Rooms, events: c.Events, rate: c.Rate,
			atOnce: c.AtOnce, reply: !c.Accept,
		}, c.Warm, c.Perf)
		if err == nil {
			err = rep.err()
		}
		return rep, err
	})
}

func runName() string { return strconv.FormatInt(time.Now().UnixMilli(), 36) }

type turnCmd struct {
	with
	Events int `default:"300" help:"Mentions to send, one at a time."`
}

// Run measures the gateway and the floor.
func (c *turnCmd) Run(ctx context.Context) error {
	return c.use(ctx, func(s subject) (any, error) {
		gateway, err := measureTurn(ctx, s, pace{Words: 10}, c.Events)
		if err != nil {
			return nil, err
		}
		floor, err := measureTurn(ctx, subject{dir: s.dir}, pace{Words: 10}, c.Events)
		return []turnReport{gateway, floor}, err
	})
}

type longCmd struct{ with }

// Run measures the gateway and the floor with history.
func (c *longCmd) Run(ctx context.Context) error {
	return c.use(ctx, func(s subject) (any, error) {
		gateway, err := measureLong(ctx, s)
		if err != nil {
			return nil, err
		}
		floor, err := measureLong(ctx, subject{dir: s.dir})
		if err != nil {
			return nil, err
		}
		return map[string]any{"gateway": gateway, "floor": floor, "growth": growth(gateway, floor)}, nil
	})
}

type startCmd struct {
	with
	Conversations int `default:"0" help:"Conversations in the store."`
	Times         int `default:"5" help:"How often to start."`
}

// Run measures the gateway.
func (c *startCmd) Run(ctx context.Context) error {
	return c.use(ctx, func(s subject) (any, error) { return measureStart(ctx, s, c.Conversations, c.Times) })
}

type crashCmd struct {
	with
	Kills   int           `default:"5" help:"How often."`
	Every   time.Duration `default:"8s" help:"Time between kills, give or take a quarter."`
	Minutes float64       `help:"Go on for so long, instead of a number of kills."`
	Rate    float64       `default:"10" help:"Mentions a second."`
	Term    bool          `help:"Ask it to stop (SIGTERM) instead of killing it (SIGKILL)."`
}

func (c *crashCmd) plan() crashPlan {
	p := crashPlan{kills: c.Kills, every: c.Every, rate: c.Rate, sig: syscall.SIGKILL, name: "KILL"}
	if c.Term {
		p.sig, p.name = syscall.SIGTERM, "TERM"
	}
	if c.Minutes > 0 {
		p.kills = int(time.Duration(c.Minutes*float64(time.Minute)) / c.Every)
	}
	return p
}

// Run kills the gateway.
func (c *crashCmd) Run(ctx context.Context) error {
	return c.use(ctx, func(s subject) (any, error) { return crash(ctx, s, c.plan()) })
}

type insideCmd struct {
	Out string `help:"Markdown file to write the table into, between its markers." type:"existingfile"`
}

// Run measures in this process.
func (c *insideCmd) Run(ctx context.Context) error {
	rep, err := measureInside(ctx)
	if err != nil {
		return err
	}
	return write(c.Out, "inside", insideTable(rep))
}

type churnCmd struct {
	Models []string `default:"anthropic/claude-opus-4-6,openai/gpt-5" help:"Models, for their prices and their way of caching."`
	Out    string   `help:"Markdown file to write the table into, between its markers." type:"existingfile"`
}

// Run measures without a gateway: the same every time and on every machine.
func (c *churnCmd) Run(ctx context.Context) error {
	var all []churnReport
	for _, name := range c.Models {
		reports, err := measureChurn(ctx, name)
		if err != nil {
			return err
		}
		all = append(all, reports...)
	}
	return write(c.Out, "churn", churnTable(all))
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	k := kong.Parse(&cli{}, kong.Name("bench"), kong.UsageOnError(), kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Description("Measures a gateway from the outside."))
	k.FatalIfErrorf(k.Run())
}
