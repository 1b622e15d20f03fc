package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

const (
	beatEvery  = 30 * time.Second // a channel that listens is noted
	steady     = 5 * time.Second  // a socket must hold before what was missed is looked for
	overlap    = 10 * time.Second // looked for before the gap began
	mostMissed = 500              // events of one gap
	longestGap = 24 * time.Hour
	missedTime = 5 * time.Minute // of one look
	missedTry  = time.Minute     // between two
	missedMost = 3               // looks for one gap that fail
	mostFollow = 500             // threads in which is looked
)

// listenSpace keeps when each channel listened last.
const listenSpace = "listening"

type historian interface {
	channels.Channel
	channels.Historian
}

// hearing is whether a channel listens. Only one with a socket ever does not.
type hearing struct {
	mu   sync.Mutex
	down time.Time     // since when not, zero while it does
	up   chan struct{} // told when it does again
}

// lost says that the channel does not listen any more.
func (h *hearing) lost(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.down.IsZero() {
		h.down = now
	}
}

// found says that it does.
func (h *hearing) found() {
	select {
	case h.up <- struct{}{}:
	default:
	}
}

// taken is since, and what is lost from now on is another gap.
func (h *hearing) taken() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	down := h.down
	h.down = time.Time{}
	return down
}

func (h *hearing) since() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.down
}

// catchUp looks for what a channel missed while nobody listened, until ctx ends:
// since the last process and, for a channel with a socket, between connections.
func (g *Gateway) catchUp(ctx context.Context, h historian, here *hearing) {
	log := g.Logger.With("channel", h.Name())
	last, err := g.listened(ctx, h.Name())
	if err != nil {
		log.Warn("time of the last listening not read", "err", err)
	}
	if !last.IsZero() {
		here.lost(last)
	}
	if _, ok := h.(channels.Socket); !ok {
		here.found()
	}
	for {
		select {
		case <-here.up:
			if down := here.taken(); !down.IsZero() {
				g.missed(ctx, log, h, down)
			}
		case <-time.After(beatEvery):
		case <-ctx.Done():
			return
		}
		if here.since().IsZero() && ctx.Err() == nil {
			now := g.Clock().UTC().Format(time.RFC3339Nano)
			if err := g.Store.PutValues(ctx, listenSpace, state.Value{Key: h.Name(), Data: []byte(now)}); err != nil && ctx.Err() == nil {
				log.Warn("listening not noted", "err", err)
			}
		}
	}
}

// listened is when a channel was known to listen, zero if it never was.
func (g *Gateway) listened(ctx context.Context, channel string) (time.Time, error) {
	data, err := g.Store.Value(ctx, listenSpace, channel)
	if err != nil || data == nil {
		return time.Time{}, err
	}
	return time.Parse(time.RFC3339Nano, string(data))
}

var errEnough = errors.New("more was missed than is looked at")

// missed admits what a channel missed since a time.
func (g *Gateway) missed(ctx context.Context, log *slog.Logger, h historian, down time.Time) {
	began := g.Clock()
	since := latest(down.Add(-overlap), began.Add(-longestGap))
	events, fresh := 0, 0
	take := func(ctx context.Context, in channels.Inbound) error {
		if events += len(in.Events); events > mostMissed {
			return errEnough
		}
		var err error
		if in.Events, err = g.unjudged(ctx, h.Name(), in.Events); err != nil {
			return err
		}
		n, err := g.takeCounted(ctx, h.Name(), in)
		fresh += n
		return err
	}
	for try := 1; ; try++ {
		followed, err := g.followed(ctx, h.Name())
		if err == nil {
			limited, cancel := context.WithTimeout(ctx, missedTime)
			_, err = guard(log, func() (struct{}, error) { return struct{}{}, h.Missed(limited, since, followed, take) })
			cancel()
		}
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			log.Info("caught up", "since", since, "events", events, "new", fresh, "took", g.Clock().Sub(began))
			return
		case errors.Is(err, errEnough) || try == missedMost:
			log.Error("caught up in part", "since", since, "events", events, "new", fresh, "err", err)
			return
		}
		log.Warn("not caught up yet", "err", err)
		if events = 0; !sleep(ctx, missedTry) {
			return
		}
	}
}

// unjudged are the events about what nobody has told of yet. What was ignored
// when it came stays so, though its thread may be followed since, and its id is
// another where it is looked up.
func (g *Gateway) unjudged(ctx context.Context, channel string, in []chat.Event) (out []chat.Event, err error) {
	for _, e := range in {
		if e.Same != "" && e.Topic != chat.About {
			acts, err := g.Store.Acts(ctx, channel, e.Same)
			if err != nil {
				return nil, err
			}
			if len(acts) > 0 {
				continue
			}
		}
		out = append(out, e)
	}
	return out, nil
}

// followed lists the threads of a channel in which people may have gone on, those
// used last first.
func (g *Gateway) followed(ctx context.Context, channel string) (out []chat.Thread, err error) {
	const page = 200
	oldest := g.since()
	for before := (time.Time{}); ; {
		cs, err := g.Store.Conversations(ctx, before, page)
		if err != nil {
			return nil, err
		}
		for _, c := range cs {
			if before = c.UpdatedAt; before.Before(oldest) || len(out) >= mostFollow {
				return out, nil
			}
			more, err := g.Store.Threads(ctx, c.ID)
			if err != nil {
				return nil, err
			}
			for _, t := range append([]chat.Thread{c.Thread}, more...) {
				if t.Channel == channel {
					out = append(out, t)
				}
			}
		}
		if len(cs) < page {
			return out, nil
		}
	}
}
