package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

// A teller is a fake that can tell what was missed.
type teller struct {
	*fake
	missed func(ctx context.Context, take channels.Take) error

	mu       sync.Mutex
	asked    []time.Time // since
	followed [][]chat.Thread
}

func (f *teller) Missed(ctx context.Context, since time.Time, followed []chat.Thread, take channels.Take) error {
	f.mu.Lock()
	f.asked, f.followed = append(f.asked, since), append(f.followed, followed)
	f.mu.Unlock()
	if f.missed == nil {
		return nil
	}
	return f.missed(ctx, take)
}

// gaps lists how long ago each look began.
func (f *teller) gaps() (out []time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.asked {
		out = append(out, time.Since(s).Round(time.Second))
	}
	return out
}

func (f *teller) looks() int { return len(f.gaps()) }

func telling(t *testing.T, test func(*world, *teller)) {
	f := &teller{}
	bubble(t, func(w *world) { test(w, f) }, func(o *Options) {
		f.fake = o.Channels[0].(*fake)
		o.Channels = []channels.Channel{f}
	})
}

func (w *world) heardAt(at time.Time) {
	w.Helper()
	if err := w.store.PutValues(w.Context(), listenSpace, state.Value{Key: "fake", Data: []byte(at.UTC().Format(time.RFC3339Nano))}); err != nil {
		w.Fatal(err)
	}
}

// What came while no process ran is looked for once, in the threads that are
// followed, and admitted like any other event: what is known already is not again.
func TestCatchUp(t *testing.T) {
	t.Parallel()
	telling(t, func(w *world, f *teller) {
		w.hear("r", "s")
		w.heardAt(time.Now())
		w.pass(time.Hour)
		f.missed = func(ctx context.Context, take channels.Take) error {
			return take(ctx, channels.Inbound{Events: []chat.Event{
				event("mention r", chat.Mention, thread("r", "1")), event("new", chat.Mention, thread("r", "1")), event("other", chat.Mention, thread("q", "1")),
			}})
		}
		w.run()
		w.pass(10 * time.Minute)
		if d := cmp.Diff([]time.Duration{time.Hour + overlap + 10*time.Minute}, f.gaps()); d != "" {
			t.Errorf("looked since (-want +got):\n%s", d)
		}
		followed := f.followed[0]
		slices.SortFunc(followed, func(a, b chat.Thread) int { return strings.Compare(a.Room, b.Room) })
		if d := cmp.Diff([]chat.Thread{thread("r", "1"), thread("s", "1")}, followed); d != "" {
			t.Errorf("followed (-want +got):\n%s", d)
		}
		logs := w.log.find("caught up")
		if len(logs) != 1 || logs[0]["events"] != 3.0 || logs[0]["new"] != 2.0 {
			t.Errorf("logged %v", logs)
		}
		if at, err := w.gw.listened(w.Context(), "fake"); err != nil || time.Since(at) > beatEvery {
			t.Errorf("listening was noted at %v, %v", at, err)
		}
	})
}

// What was ignored when it came is not answered because it is found again, under
// another id, when its thread is followed.
func TestCatchUpKeepsWhatWasIgnored(t *testing.T) {
	t.Parallel()
	telling(t, func(w *world, f *teller) {
		said := func(id, same string) chat.Event {
			e := event(id, chat.Message, thread("r", "1"))
			e.Topic, e.Same = topicThread, same
			return e
		}
		ctx := w.Context()
		if _, err := w.gw.admit(ctx, []chat.Event{said("before", "1")}); err != nil {
			t.Fatal(err)
		}
		w.hear("r")
		w.heardAt(time.Now())
		f.missed = func(ctx context.Context, take channels.Take) error {
			return take(ctx, channels.Inbound{Events: []chat.Event{said("found 1", "1"), said("found 2", "2")}})
		}
		w.run()
		w.pass(time.Minute)
		for id, want := range map[string]bool{"found 1": false, "found 2": true} {
			a, err := w.store.Event(ctx, "fake", id)
			if got := err == nil && a.Status == state.Admitted; got != want {
				t.Errorf("%s: %+v, %v", id, a, err)
			}
		}
	})
}

// The first start has missed nothing, a long gap is bounded, and so is what comes
// of it; a look that fails is made again, a few times.
func TestCatchUpIsBounded(t *testing.T) {
	t.Parallel()
	t.Run("the first start", func(t *testing.T) {
		t.Parallel()
		telling(t, func(w *world, f *teller) {
			w.run()
			w.pass(time.Hour)
			if f.looks() > 0 {
				t.Errorf("looked %v", f.gaps())
			}
		})
	})
	t.Run("a long gap", func(t *testing.T) {
		t.Parallel()
		telling(t, func(w *world, f *teller) {
			w.heardAt(time.Now().Add(-30 * 24 * time.Hour))
			n := 0
			f.missed = func(ctx context.Context, take channels.Take) error {
				for {
					if err := take(ctx, channels.Inbound{Events: []chat.Event{event(fmt.Sprint(n), chat.Mention, thread("r", "1"))}}); err != nil {
						return fmt.Errorf("taken: %w", err)
					}
					n++
				}
			}
			w.run()
			w.pass(time.Minute)
			if d := cmp.Diff([]time.Duration{longestGap + time.Minute}, f.gaps()); d != "" || n != mostMissed {
				t.Errorf("%d events, looked since (-want +got):\n%s", n, d)
			}
			if len(w.log.find("caught up in part")) != 1 {
				t.Error("not logged")
			}
		})
	})
	t.Run("a provider that fails", func(t *testing.T) {
		t.Parallel()
		telling(t, func(w *world, f *teller) {
			w.heardAt(time.Now().Add(-time.Hour))
			f.missed = func(context.Context, channels.Take) error { return errors.New("busy") }
			w.run()
			w.pass(missedTry + time.Second)
			if at, _ := w.gw.listened(w.Context(), "fake"); time.Since(at) < time.Hour {
				t.Errorf("listening was noted at %v, while what was missed is looked for", at)
			}
			w.pass(time.Hour)
			if f.looks() != missedMost || len(w.log.find("not caught up yet")) != missedMost-1 || len(w.log.find("caught up in part")) != 1 {
				t.Errorf("looked %d times", f.looks())
			}
		})
	})
}

// plugged is a teller with a socket.
type plugged struct {
	*teller
	listen func(ctx context.Context) error
}

func (p *plugged) Listen(ctx context.Context, _ channels.Take) error { return p.listen(ctx) }

// What a socket missed between two connections is looked for once the new one
// holds; while there is none, the channel does not count as listening.
func TestCatchUpAfterACut(t *testing.T) {
	t.Parallel()
	f := &plugged{teller: &teller{}}
	bubble(t, func(w *world) {
		w.run()
		w.pass(time.Hour)
		at, err := w.gw.listened(w.Context(), "fake")
		if d := at.Sub(w.began); err != nil || d > 10*time.Minute || d < 9*time.Minute {
			t.Errorf("in the dark, listening was noted %v after the start, %v; want what was so", d, err)
		}
		if f.looks() > 0 {
			t.Errorf("looked %v before a connection held", f.gaps())
		}
		w.pass(2 * time.Hour)
		if d := f.gaps(); len(d) != 1 || time.Now().Add(-d[0]).Sub(w.began) != 10*time.Minute-overlap {
			t.Errorf("looked %v, want once, since the cut", f.gaps())
		}
		if at, err := w.gw.listened(w.Context(), "fake"); err != nil || time.Since(at) > beatEvery {
			t.Errorf("listening was noted at %v, %v", at, err)
		}
	}, func(o *Options) {
		f.fake = o.Channels[0].(*fake)
		began, n := time.Now(), 0
		f.listen = func(ctx context.Context) error {
			n++
			switch at := time.Since(began); {
			case n == 1:
				sleep(ctx, 10*time.Minute)
			case n < 9:
				sleep(ctx, steady-time.Second) // it does not hold
			case at > 2*time.Hour:
				<-ctx.Done()
			}
			return errors.New("cut")
		}
		o.Channels = []channels.Channel{f}
	})
}
