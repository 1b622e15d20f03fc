package sqlite

import (
	"context"
	"sync"
	"time"
)

// A hint knows a time before which there is nothing to claim: it may be too
// early, never too late. It saves an idle gateway from asking the file, and is
// what waiting is built on. The file holds the truth.
type hint struct {
	mu      sync.Mutex
	at      time.Time     // zero: nothing will be
	changed chan struct{} // closed and replaced when at becomes earlier, or nothing more will come
	closed  error         // why waiting fails, nil while it does not
}

// long is a time long past: look now.
var long = time.Unix(0, 0).UTC()

// A change is what a transaction does to a hint when it is committed.
type change struct {
	known bool      // at is all there is; otherwise it is one more
	at    time.Time // zero: nothing
}

// add notes that something can be claimed at a time.
func (c *change) add(at time.Time) {
	if !at.IsZero() && (c.at.IsZero() || at.Before(c.at)) {
		c.at = at
	}
}

// reset notes that there is nothing to claim before a time, zero for never.
func (c *change) reset(at time.Time) { *c = change{known: true, at: at} }

func (h *hint) apply(c change) {
	if !c.known && c.at.IsZero() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	earlier := !c.at.IsZero() && (h.at.IsZero() || c.at.Before(h.at))
	if c.known || earlier {
		h.at = c.at
	}
	if earlier {
		h.announce()
	}
}

// announce wakes everybody who waits. The mutex is held.
func (h *hint) announce() {
	if h.changed != nil {
		close(h.changed)
		h.changed = nil
	}
}

// close makes waiting fail.
func (h *hint) close(why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = why
	h.announce()
}

// none says that there is nothing to claim at a time.
func (h *hint) none(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed == nil && (h.at.IsZero() || h.at.After(now))
}

// wait returns when there may be something to claim.
func (h *hint) wait(ctx context.Context, clock func() time.Time) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		h.mu.Lock()
		at, closed := h.at, h.closed
		if h.changed == nil {
			h.changed = make(chan struct{})
		}
		changed := h.changed
		h.mu.Unlock()
		if closed != nil {
			return closed
		}
		var timeout <-chan time.Time
		if !at.IsZero() {
			left := at.Sub(clock())
			if left <= 0 {
				return nil
			}
			timer := time.NewTimer(left)
			defer timer.Stop()
			timeout = timer.C
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		case <-timeout:
		}
	}
}
