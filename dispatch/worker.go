package dispatch

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/heddlehq/heddle/state"
)

// claimers is how many claims are under way at once: a store makes the claims
// that come together durable together.
const claimers = 4

// claimLoop claims ready conversations while there is room for a turn, until
// draining begins. Turns run until hard ends.
func (g *Gateway) claimLoop(hard context.Context) {
	for g.soft.Err() == nil {
		select {
		case g.slots <- struct{}{}:
		case <-g.soft.Done():
			return
		}
		l, err := g.claim(hard)
		if err == nil {
			g.turns.Go(func() {
				defer func() { <-g.slots }()
				g.work(hard, l)
			})
			continue
		}
		<-g.slots
		if errors.Is(err, state.ErrNone) {
			err = g.Store.WaitReady(g.soft)
		}
		if err != nil && g.soft.Err() == nil {
			g.Logger.Warn("claim failed", "err", err)
			sleep(g.soft, time.Second)
		}
	}
}

// claim asks for a lease. The beginning of a drain does not end it: it might
// be given a lease then that nobody knows of.
func (g *Gateway) claim(ctx context.Context) (state.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, g.Lease)
	defer cancel()
	return g.Store.Claim(ctx, g.Owner, g.Lease)
}

// work runs one lease to its end and keeps it alive meanwhile.
func (g *Gateway) work(hard context.Context, l state.Lease) {
	ctx, cancel := context.WithCancelCause(hard)
	log := g.Logger.With("conversation", string(l.Conversation.ID), "epoch", l.Epoch, "attempt", l.Attempt)
	var beat sync.WaitGroup
	beat.Go(func() { g.heartbeat(ctx, cancel, l) })
	end := func(error) {}
	if s := g.Signs; s != nil {
		id := l.Conversation.ID
		t := s.begin(id)
		beat.Go(func() { s.show(ctx, l, t) })
		end = func(err error) { s.end(hard, id, t, err != nil) }
	}
	_, err := guard(log, func() (struct{}, error) { return struct{}{}, g.Engine.Run(ctx, g.soft, l) })
	cancel(nil)
	beat.Wait()
	end(err)
	if err != nil {
		// The lease is left to run out: the turn goes on from its log.
		log.Warn("turn interrupted", "err", err)
	}
}

// heartbeat renews the lease until ctx ends. When the lease is lost, or could
// not be renewed for most of its time, it cancels the work with ErrLeaseLost.
func (g *Gateway) heartbeat(ctx context.Context, cancel context.CancelCauseFunc, l state.Lease) {
	lost := func() { cancel(state.ErrLeaseLost) }
	most := g.Lease * 8 / 10
	last := time.AfterFunc(most, lost)
	defer last.Stop()
	for sleep(ctx, g.Lease/3) {
		switch _, err := g.Store.Renew(ctx, l, g.Lease); {
		case err == nil:
			last.Reset(most)
		case errors.Is(err, state.ErrLeaseLost):
			lost()
		case ctx.Err() == nil:
			g.Logger.Warn("lease not renewed", "conversation", string(l.Conversation.ID), "err", err)
		}
	}
}
