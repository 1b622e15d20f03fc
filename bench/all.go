//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

type allCmd struct {
	with
	Rounds   int           `default:"3" help:"How often; the table has the medians."`
	Patience time.Duration `help:"How long to wait, before each measurement, for a moment when nothing else runs."`
	Out      string        `help:"Markdown file to write the table into, between its markers." type:"existingfile"`
}

// A loadCase is a kind of load, as the table names it.
type loadCase struct {
	title string
	pace  pace
	plan  plan
}

var loadCases = [...]loadCase{
	{"16 deliveries under way", pace{Words: 10}, plan{events: 3000, threads: 200, atOnce: 16}},
	{"16 mentions unanswered", pace{Words: 10}, plan{events: 3000, threads: 200, atOnce: 16, reply: true}},
	{
		"10 a second, a model of 1 s",
		pace{First: 500 * time.Millisecond, Word: 20 * time.Millisecond, Words: 20, Post: 50 * time.Millisecond},
		plan{events: 200, threads: 100, rate: 10},
	},
}

// Places in loadCases.
const (
	busyCase       = 0
	unansweredCase = 1
)

// both are the reports of several rounds.
type both[T any] struct{ floor, gateway []T }

// A sitting is everything that was measured in one.
type sitting struct {
	loads   [len(loadCases)]both[loadReport]
	turn    both[turnReport]
	long    both[longReport]
	start   []startReport
	full    startReport // with a store of many conversations
	crashes []crashReport
}

// Run measures the gateway and the floor in turns, so that what disturbs one
// disturbs the other.
func (c *allCmd) Run(ctx context.Context) error {
	return c.use(ctx, func(s subject) (any, error) {
		var all sitting
		for n := range c.Rounds {
			if err := all.round(ctx, s, c.Patience); err != nil {
				return nil, err
			}
			fmt.Fprintf(os.Stderr, "round %d of %d is done\n", n+1, c.Rounds)
		}
		var err error
		if all.full, err = measureStart(ctx, s, 10_000, 5); err != nil {
			return nil, err
		}
		for _, p := range []crashCmd{{Kills: 6, Every: 5 * time.Second, Rate: 10}, {Kills: 6, Every: 5 * time.Second, Rate: 10, Term: true}} {
			rep, err := crash(ctx, s, p.plan())
			if err != nil {
				return nil, err
			}
			all.crashes = append(all.crashes, rep)
		}
		return nil, write(c.Out, "table", all.table(s.dir, c.Rounds))
	})
}

func (a *sitting) round(ctx context.Context, s subject, patience time.Duration) error {
	floor := subject{dir: s.dir}
	for i, c := range loadCases {
		calm(ctx, patience)
		c.plan.run, c.plan.rooms = runName(), 50
		if err := a.loads[i].measure(floor, s, func(s subject) (loadReport, error) {
			rep, err := load(ctx, s, c.pace, c.plan, 200, "")
			if err == nil {
				err = rep.err()
			}
			return rep, err
		}); err != nil {
			return fmt.Errorf("%s: %w", c.title, err)
		}
	}
	calm(ctx, patience)
	if err := a.turn.measure(floor, s, func(s subject) (turnReport, error) { return measureTurn(ctx, s, pace{Words: 10}, 300) }); err != nil {
		return fmt.Errorf("turn: %w", err)
	}
	calm(ctx, patience)
	if err := a.long.measure(floor, s, func(s subject) (longReport, error) { return measureLong(ctx, s) }); err != nil {
		return fmt.Errorf("long thread: %w", err)
	}
	calm(ctx, patience)
	rep, err := measureStart(ctx, s, 0, 5)
	a.start = append(a.start, rep)
	return err
}

// calm waits for two seconds in which the machine has almost nothing to do, at
// most for so long.
func calm(ctx context.Context, patience time.Duration) {
	for began := time.Now(); time.Since(began) < patience; {
		before := busy()
		if !pause(ctx, 2*time.Second) || busy()-before < 200*time.Millisecond {
			return
		}
	}
}

func (b *both[T]) measure(floor, gateway subject, f func(subject) (T, error)) error {
	r, err := f(floor)
	if err != nil {
		return fmt.Errorf("floor: %w", err)
	}
	b.floor = append(b.floor, r)
	if r, err = f(gateway); err != nil {
		return err
	}
	b.gateway = append(b.gateway, r)
	return nil
}
