package dispatch

import (
	"context"
	"errors"
	"time"

	"github.com/heddlehq/heddle/state"
)

// claimers is how many claims are under way at once: a store makes the claims
// that come together durable together.
const claimers = 4

// claimLoop claims ready conversations while there is room for a turn, until
// draining begins.
func (g *Gateway) claimLoop(hard context.Context) {
	for {
		select {
		case g.slots <- struct{}{}:
		case <-g.soft.Done():
			return
		}
		l, err := g.Store.Claim(g.soft, g.Owner, g.Lease)
		if err == nil {
			g.turns.Go(func() {
				defer func() { <-g.slots }()
				g.work(hard, l)
			})
			continue
		}
		<-g.slots
		switch {
		case g.soft.Err() != nil:
			return
		case errors.Is(err, state.ErrNone):
			err = g.Store.WaitReady(g.soft)
		default:
			g.Logger.Warn("claim failed", "err", err)
			sleep(g.soft, time.Second)
		}
		if g.soft.Err() != nil {
			return
		}
	}
}

// work runs one lease to its end and keeps it alive meanwhile.
func (g *Gateway) work(hard context.Context, l state.Lease) {
	ctx, cancel := context.WithCancelCause(hard)
	beat := make(chan struct{})
	go func() {
		defer close(beat)
		g.heartbeat(ctx, cancel, l)
	}()
	err := g.Engine.Run(ctx, g.soft, l)
	cancel(nil)
	<-beat
	if err != nil {
		// The lease is left to run out: the turn goes on from its log.
		g.Logger.Warn("turn interrupted", "conversation", string(l.Conversation.ID), "epoch", l.Epoch, "attempt", l.Attempt, "err", err)
	}
}

// heartbeat renews the lease until ctx ends. When the lease is lost, or cannot
// be renewed for most of its time, it cancels the work.
func (g *Gateway) heartbeat(ctx context.Context, cancel context.CancelCauseFunc, l state.Lease) {
	last := g.Clock()
	for sleep(ctx, g.Lease/3) {
		_, err := g.Store.Renew(ctx, l, g.Lease)
		switch {
		case err == nil:
			last = g.Clock()
		case errors.Is(err, state.ErrLeaseLost):
			cancel(state.ErrLeaseLost)
			return
		case ctx.Err() == nil && g.Clock().Sub(last) > g.Lease*8/10:
			g.Logger.Warn("lease not renewed", "conversation", string(l.Conversation.ID), "err", err)
			cancel(state.ErrLeaseLost)
			return
		}
	}
}
