package dispatch

import (
	"context"
	"errors"
	"time"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/state"
)

const (
	// lived is how long a connection must have been held for the next attempt
	// to begin without the back-off of those before.
	lived        = time.Minute
	maxReconnect = 30 * time.Second
)

// listenLoop keeps a socket connected until ctx ends or the provider refuses
// it for good.
func (g *Gateway) listenLoop(ctx context.Context, s channels.Socket, here *hearing) {
	log := g.Logger.With("channel", s.Name())
	take := func(ctx context.Context, in channels.Inbound) error { return g.take(ctx, s.Name(), in) }
	var since time.Duration // of failing
	for ctx.Err() == nil {
		began := g.Clock()
		steadied := time.AfterFunc(steady, here.found)
		_, err := guard(log, func() (struct{}, error) { return struct{}{}, s.Listen(ctx, take) })
		steadied.Stop()
		switch {
		case ctx.Err() != nil:
			return
		case err == nil: // there is none: it is heard otherwise
			here.found()
			return
		case errors.Is(err, channels.ErrFatal):
			log.Error("socket refused; it is not tried again until the next start", "err", err)
			return
		}
		here.lost(g.Clock())
		since += g.Clock().Sub(began)
		if g.Clock().Sub(began) >= lived {
			since = 0
		}
		wait := min(backoff(since), maxReconnect)
		log.Warn("socket ended", "err", err, "wait", wait)
		since += wait
		sleep(ctx, wait)
	}
}

// take counts and admits what one delivery said: its events are on disk when it
// returns nil. A provider that hangs up does not undo it: others may wait for
// the same event.
func (g *Gateway) take(ctx context.Context, channel string, in channels.Inbound) error {
	_, err := g.takeCounted(ctx, channel, in)
	return err
}

// takeCounted is take, and says how many events were new.
func (g *Gateway) takeCounted(ctx context.Context, channel string, in channels.Inbound) (fresh int, err error) {
	if err := g.then(ctx, channel, in.Then); err != nil {
		return 0, err
	}
	for _, i := range in.Ignored {
		g.tally.add(channel, "ignored: "+i.Reason)
	}
	if len(in.Events) == 0 {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), admitTime)
	defer cancel()
	if fresh, err = g.admit(ctx, in.Events); err != nil {
		g.health.fail()
		g.Logger.Error("events not admitted", "channel", channel, "err", err)
	}
	return fresh, err
}

// Remember gives the channels that keep things over restarts a place for them.
// secrets is nil without a key to encrypt them.
func Remember(cs []channels.Channel, values state.Values, secrets channels.Memory) {
	for _, c := range cs {
		r, ok := c.(channels.Rememberer)
		if !ok {
			continue
		}
		var own channels.Memory
		if secrets != nil {
			own = prefixed{secrets, "channel/" + c.Name() + "/"}
		}
		r.Remember(plain{values, "channel/" + c.Name()}, own)
	}
}

// plain keeps values as they are.
type plain struct {
	values state.Values
	space  string
}

func (p plain) Load(ctx context.Context, name string) ([]byte, error) {
	return p.values.Value(ctx, p.space, name)
}

func (p plain) Save(ctx context.Context, name string, value []byte) error {
	return p.values.PutValues(ctx, p.space, state.Value{Key: name, Data: value})
}

// prefixed keeps the names of a channel apart from all others.
type prefixed struct {
	channels.Memory
	prefix string
}

func (p prefixed) Load(ctx context.Context, name string) ([]byte, error) {
	return p.Memory.Load(ctx, p.prefix+name)
}

func (p prefixed) Save(ctx context.Context, name string, value []byte) error {
	return p.Memory.Save(ctx, p.prefix+name, value)
}
