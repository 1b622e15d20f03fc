//go:build linux

package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"
)

// A crashReport is what a gateway that is killed again and again comes to.
type crashReport struct {
	Signal string `json:"signal"`
	Kills  int    `json:"kills"`
	verdict
	Down      float64 `json:"down_ms"`            // from the signal to the next readiness, median
	DownMost  float64 `json:"down_ms_worst"`      //
	Recovered float64 `json:"recovered_ms"`       // from the signal to the last answer of what had been accepted, median
	RecMost   float64 `json:"recovered_ms_worst"` //
}

// crashPlan is how a gateway is killed.
type crashPlan struct {
	kills int
	every time.Duration // between kills, give or take a quarter
	rate  float64
	sig   syscall.Signal
	name  string // of the signal
}

// crash kills a gateway under load. The model and the posts are slow, so that
// most kills hit something under way.
func crash(ctx context.Context, s subject, c crashPlan) (crashReport, error) {
	rep := crashReport{Signal: c.name}
	r, err := newRig(s, pace{First: 200 * time.Millisecond, Word: 10 * time.Millisecond, Words: 10, Post: 200 * time.Millisecond})
	if err != nil {
		return rep, err
	}
	defer r.close()
	if _, err := r.start(ctx); err != nil {
		return rep, err
	}
	book := newLedger()
	r.world.book.Store(book)
	p := plan{run: "crash", threads: 37, rooms: 7, rate: c.rate, retries: quickRetries()}
	p.events = int(c.rate * c.every.Seconds() * (float64(c.kills) + 0.5))
	ctx, cancel := context.WithCancel(ctx)
	driven := make(chan struct{})
	go func() {
		defer close(driven)
		r.drive(ctx, p, book)
	}()
	at, down, err := r.kill(ctx, c)
	if err != nil {
		cancel()
	}
	<-driven
	r.settle(ctx, book, 60*time.Second, 7*time.Second) // a post in doubt is looked for, and made again 5 s later
	cancel()
	rep.Kills, rep.verdict = len(at), book.sum()
	var recovered []float64
	for _, t := range at {
		if last := book.recovered(t); last.After(t) {
			recovered = append(recovered, ms(last.Sub(t)))
		}
	}
	if len(down) > 0 && len(recovered) > 0 {
		rep.Down, rep.DownMost = median(down), slices.Max(down)
		rep.Recovered, rep.RecMost = median(recovered), slices.Max(recovered)
	}
	return rep, errors.Join(err, rep.err())
}

// kill ends and restarts the gateway as planned.
func (r *rig) kill(ctx context.Context, c crashPlan) (at []time.Time, down []float64, err error) {
	for range c.kills {
		if !pause(ctx, c.every*3/4+rand.N(c.every/2)) {
			return at, down, ctx.Err()
		}
		at = append(at, time.Now())
		if err := r.stop(c.sig); err != nil {
			return at, down, err
		}
		if _, err := r.start(ctx); err != nil {
			return at, down, err
		}
		down = append(down, ms(time.Since(at[len(at)-1])))
	}
	return at, down, nil
}
