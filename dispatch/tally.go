package dispatch

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// A tally counts what leads to no turn, by channel and reason. The first of a
// kind is logged at once, the others once a minute: a flood fills no disk.
type tally struct {
	log  *slog.Logger
	mu   sync.Mutex
	seen map[kind]int // not yet logged
}

type kind struct{ channel, reason string }

func newTally(log *slog.Logger) *tally {
	return &tally{log: log, seen: map[kind]int{}}
}

// add counts one. The reason is constant text.
func (t *tally) add(channel, reason string) {
	k := kind{channel, reason}
	t.mu.Lock()
	n, known := t.seen[k]
	if known {
		n++
	}
	t.seen[k] = n
	t.mu.Unlock()
	if !known {
		t.log.Info("delivery counted", "channel", channel, "reason", reason, "count", 1)
	}
}

// run reports every minute until ctx ends, and then once more.
func (t *tally) run(ctx context.Context) {
	for sleep(ctx, time.Minute) {
		t.report()
	}
	t.report()
}

func (t *tally) report() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, n := range t.seen {
		if n == 0 {
			delete(t.seen, k) // quiet for a minute: the next one is news
			continue
		}
		t.log.Info("delivery counted", "channel", k.channel, "reason", k.reason, "count", n)
		t.seen[k] = 0
	}
}
