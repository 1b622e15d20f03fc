package turn

import (
	"context"
	"fmt"
	"time"

	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
)

// settles says whether callbacks are to run when the turn is settled.
func (r *run) settles(ctx context.Context) bool {
	if r.manifest == nil { // no step was made, or none could be
		agent := r.agent()
		if agent == nil {
			return false
		}
		m, err := harness.Render(agent, r.snapshot(ctx))
		if err != nil {
			return false
		}
		r.manifest = &m
	}
	return len(r.manifest.Settles) > 0
}

// after runs the callbacks of the turn that is settled and gives the lease back.
// A crash before that is followed by another claim, which begins here. Callbacks
// that crash the process again and again are given up.
func (r *run) after(ctx context.Context) error {
	d := r.f.Due
	var names []string
	if r.lease.Attempt <= r.Limits.Attempts+1 {
		var err error
		if names, err = r.notify(ctx, d); err != nil {
			return err
		}
	} else {
		r.log.Error("callbacks of a settled turn given up", "turn", d.Settled.Turn)
	}
	if err := r.stopped(ctx, d.Settled.Turn); err != nil {
		return err
	}
	r.add(record.Notified{Turn: d.Settled.Turn, Hooks: names})
	return r.release(ctx, time.Time{})
}

// stopped obeys those who wanted the turn to end while its callbacks ran: it has.
func (r *run) stopped(ctx context.Context, turn string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTime) // as long as the commit that follows
	defer cancel()
	if err := r.refresh(ctx); err != nil {
		return err
	}
	at := r.present()
	at.turn = turn
	for {
		p := r.intake(ctx, at, r.entries)
		if len(p.moves) == 0 || p.moves[0].do != stop || p.moves[0].ahead {
			return nil
		}
		r.obey(p.moves[0])
		at.taken = p.moves[0].Seq
		r.batch.Taken = at.taken
	}
}

func (r *run) notify(ctx context.Context, d *record.Due) ([]string, error) {
	agent := r.agent()
	if agent == nil {
		return nil, nil
	}
	snap := r.snapshotOf(ctx, d.Settled.Turn, d.Event)
	snap.Hops = d.Hops
	m, err := harness.Render(agent, snap)
	if err != nil {
		r.logRender(err)
		return nil, nil
	}
	s := harness.Settled{
		Outcome: string(d.Settled.Outcome), Reason: d.Settled.Reason, Answer: d.Settled.Due, Value: d.Settled.Value,
		Steps: d.Settled.Steps, Usage: d.Settled.Usage, Cost: d.Settled.Cost,
	}
	m.Sandbox = "" // it is not saved after the turn
	scope := r.scope(snap, &m)
	var names []string
	for _, h := range m.Settles {
		call := scope.Call(fmt.Sprintf("settled/%s/%s", d.Settled.Turn, h.Name), "")
		limited, cancel := context.WithTimeout(ctx, harness.DefaultTimeout) // nothing else would end it
		err := r.callback(limited, call, h.Name, func() error { return h.Run(limited, call, s) })
		cancel()
		if err != nil {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			r.log.Error("callback failed", "turn", d.Settled.Turn, "hook", h.Name, "err", err)
		}
		names = append(names, h.Name)
	}
	r.wrote(d.Settled.Turn, d.Settled.Steps, scope)
	return names, nil
}
