//go:build linux

package main

import (
	"context"
	"fmt"
	"syscall"
	"time"
)

// A turnReport says how long a turn without tools takes the subject itself.
type turnReport struct {
	Subject string `json:"subject"`
	Events  int    `json:"events"`
	// From sending the webhook to the arrival of the post, without the time in
	// which the model and Slack had a request in hand.
	Own quantiles `json:"own_ms"`
}

// measureTurn sends events one at a time.
func measureTurn(ctx context.Context, s subject, p pace, events int) (turnReport, error) {
	rep := turnReport{Subject: s.name(), Events: events}
	r, err := newRig(s, p)
	if err != nil {
		return rep, err
	}
	defer r.close()
	if _, err := r.start(ctx); err != nil {
		return rep, err
	}
	if err := r.warm(ctx, 100); err != nil {
		return rep, fmt.Errorf("warm up: %w", err)
	}
	book := newLedger()
	r.world.book.Store(book)
	pl := plan{run: "turn", threads: 50, rooms: 50, events: events}
	var all []time.Duration
	for n := range events {
		e := pl.event(n%pl.threads, n/pl.threads)
		inside := r.world.inside.Load()
		r.send(ctx, pl, book, e)
		r.await(ctx, e)
		inside = r.world.inside.Load() - inside
		if len(e.posts) > 0 {
			all = append(all, e.posts[0].Sub(e.sent)-time.Duration(inside))
		}
		pause(ctx, 10*time.Millisecond) // for what the subject has to note after the post
	}
	rep.Own = quantilesOf(all)
	return rep, book.sum().err()
}

// A longReport says what a message costs early and late in a thread.
type longReport struct {
	Subject string  `json:"subject"`
	Early   float64 `json:"early_cpu_ms"` // of one event, messages 6 to 25 of ten threads
	Late    float64 `json:"late_cpu_ms"`  // messages 901 to 1000 of one thread
	// Bytes of the model requests of these messages, mean.
	EarlySize float64 `json:"early_request_bytes"`
	LateSize  float64 `json:"late_request_bytes"`
}

const (
	earlyThreads, earlyFrom, earlyTo = 10, 5, 25
	lateFrom, lateTo                 = 900, 1000
)

// measureLong has a thread of a thousand messages answered, one at a time.
func measureLong(ctx context.Context, s subject) (longReport, error) {
	rep := longReport{Subject: s.name()}
	s.history = true
	r, err := newRig(s, pace{Words: 10})
	if err != nil {
		return rep, err
	}
	defer r.close()
	if _, err := r.start(ctx); err != nil {
		return rep, err
	}
	if err := r.warm(ctx, 100); err != nil {
		return rep, fmt.Errorf("warm up: %w", err)
	}
	book := newLedger()
	r.world.book.Store(book)
	pl := plan{run: "long", threads: 1, rooms: 50}
	// stretch sends some messages of a thread and returns what they took.
	stretch := func(thread, from, to int) (cpu time.Duration, size int64) {
		u, b := r.usage(), r.world.bytes.Load()
		for seq := from; seq < to; seq++ {
			e := pl.event(thread, seq)
			r.send(ctx, pl, book, e)
			r.await(ctx, e)
		}
		pause(ctx, 50*time.Millisecond) // for what follows the last post
		return r.usage().cpu - u.cpu, r.world.bytes.Load() - b
	}
	var cpu time.Duration
	var size int64
	for thread := range earlyThreads {
		stretch(thread, 0, earlyFrom)
		c, b := stretch(thread, earlyFrom, earlyTo)
		cpu, size = cpu+c, size+b
	}
	n := float64(earlyThreads * (earlyTo - earlyFrom))
	rep.Early, rep.EarlySize = round(float64(cpu)/1e6/n), round(float64(size)/n)
	stretch(earlyThreads, 0, lateFrom)
	cpu, size = stretch(earlyThreads, lateFrom, lateTo)
	n = lateTo - lateFrom
	rep.Late, rep.LateSize = round(float64(cpu)/1e6/n), round(float64(size)/n)
	return rep, book.sum().err()
}

// growth is the cost of message 1000 as a multiple of that of message 10. What
// the floor, which only sends the thread to the model, pays more late than
// early is taken out of the late cost, in proportion to the requests' growth.
func growth(gateway, floor longReport) float64 {
	sent := (floor.Late - floor.Early) * (gateway.LateSize - gateway.EarlySize) / (floor.LateSize - floor.EarlySize)
	return round((gateway.Late - sent) / gateway.Early)
}

// A startReport says how a subject starts and how much it holds when idle.
type startReport struct {
	Subject string  `json:"subject"`
	Threads int     `json:"conversations"` // in the store
	Ready   float64 `json:"ready_ms"`      // from the start of the process to the first good answer of /readyz, median
	Killed  float64 `json:"ready_after_kill_ms"`
	RSS     float64 `json:"idle_rss_mib"` // 1.5 s later, median
}

// measureStart starts a subject several times over a store of so many conversations.
func measureStart(ctx context.Context, s subject, threads, times int) (startReport, error) {
	rep := startReport{Subject: s.name(), Threads: threads}
	r, err := newRig(s, pace{Words: 10})
	if err != nil {
		return rep, err
	}
	defer r.close()
	if threads > 0 {
		if err := r.fill(ctx, threads); err != nil {
			return rep, err
		}
	}
	var ready, rss, killed []float64
	for range times {
		took, err := r.start(ctx)
		if err != nil {
			return rep, err
		}
		pause(ctx, 1500*time.Millisecond)
		ready, rss = append(ready, ms(took)), append(rss, mib(r.usage().rss))
		if err := r.stop(syscall.SIGKILL); err != nil {
			return rep, err
		}
		if took, err = r.start(ctx); err != nil {
			return rep, err
		}
		killed = append(killed, ms(took))
		if err := r.stop(syscall.SIGTERM); err != nil {
			return rep, err
		}
	}
	rep.Ready, rep.Killed, rep.RSS = median(ready), median(killed), median(rss)
	return rep, ctx.Err()
}

// fill has one event of each of so many threads answered, and stops.
func (r *rig) fill(ctx context.Context, threads int) error {
	if _, err := r.start(ctx); err != nil {
		return err
	}
	book := newLedger()
	r.world.book.Store(book)
	r.drive(ctx, plan{run: "fill", threads: threads, rooms: 50, events: threads, atOnce: 16, reply: true}, book)
	if err := book.sum().err(); err != nil {
		return err
	}
	return r.stop(syscall.SIGTERM)
}
