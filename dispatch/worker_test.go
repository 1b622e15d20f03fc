package dispatch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

func TestParallelTurns(t *testing.T) {
	t.Parallel()
	var running, most, done atomic.Int32
	free := make(chan struct{})
	var w *world
	bubble(t, func(made *world) {
		w = made
		free = make(chan struct{})
		w.run()
		var rooms []string
		for i := range 10 {
			rooms = append(rooms, fmt.Sprint(i))
		}
		w.hear(rooms...)
		synctest.Wait()
		if got := running.Load(); got != 3 {
			t.Errorf("%d turns run, want 3", got)
		}
		close(free)
		synctest.Wait()
		if most.Load() != 3 || done.Load() != 10 {
			t.Errorf("at most %d turns at once, %d done; want 3 and 10", most.Load(), done.Load())
		}
	}, func(o *Options) { o.Parallel = 3 }, withEngine(func(ctx, _ context.Context, l state.Lease) error {
		n := running.Add(1)
		most.Store(max(most.Load(), n))
		<-free
		running.Add(-1)
		done.Add(1)
		return w.settle(ctx, l)
	}))
}

func TestHeartbeatKeepsTheLease(t *testing.T) {
	t.Parallel()
	var w *world
	var runs atomic.Int32
	bubble(t, func(made *world) {
		w = made
		w.run()
		w.hear("r")
		for range 24 {
			w.pass(2500 * time.Millisecond)
			if _, err := w.store.Claim(w.Context(), "another", time.Minute); !errors.Is(err, state.ErrNone) {
				t.Fatalf("%v: another claim got %v, want ErrNone", w.at(), err)
			}
		}
		w.pass(5 * time.Second)
		if runs.Load() != 1 {
			t.Errorf("%d attempts, want 1", runs.Load())
		}
		if n := w.store.renewed.Load(); n < 10 || n > 20 {
			t.Errorf("renewed %d times in a minute, want about 18", n)
		}
		// A turn that ended is not renewed.
		w.pass(time.Minute)
		if n := w.store.renewed.Load(); n > 20 {
			t.Errorf("renewed %d times", n)
		}
	}, withEngine(func(ctx, _ context.Context, l state.Lease) error {
		runs.Add(1)
		if !sleep(ctx, time.Minute) {
			t.Errorf("cancelled: %v", context.Cause(ctx))
		}
		return w.settle(ctx, l)
	}))
}

func TestLeaseLostEndsTheTurn(t *testing.T) {
	t.Parallel()
	broken := errors.New("no connection")
	for _, tc := range []struct {
		name  string
		renew func(ctx context.Context, n int32) error
		want  time.Duration // when the turn is cancelled
	}{
		{"taken over", func(context.Context, int32) error { return state.ErrLeaseLost }, 3 * time.Second},
		{"taken over later", func(_ context.Context, n int32) error {
			if n < 3 {
				return nil
			}
			return state.ErrLeaseLost
		}, 9 * time.Second},
		{"store broken", func(context.Context, int32) error { return broken }, 7200 * time.Millisecond},
		{"store hangs", func(ctx context.Context, _ int32) error { <-ctx.Done(); return ctx.Err() }, 7200 * time.Millisecond},
		{"broken for a moment", func(_ context.Context, n int32) error {
			if n <= 2 {
				return broken // at 3 s and 6 s; renewed... too late at 9 s
			}
			return nil
		}, 7200 * time.Millisecond},
		{"broken once", func(_ context.Context, n int32) error {
			if n == 1 {
				return broken
			}
			return nil
		}, time.Minute},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var w *world
			bubble(t, func(made *world) {
				w = made
				w.store.renew = func(ctx context.Context, _ state.Lease) error { return tc.renew(ctx, w.store.renewed.Load()) }
				w.run()
				w.hear("r")
				w.pass(time.Minute)
			}, func(o *Options) { o.Lease = 9 * time.Second }, withEngine(func(ctx, _ context.Context, l state.Lease) error {
				if l.Attempt > 1 {
					return w.settle(ctx, l)
				}
				began := time.Now()
				ended := sleep(ctx, time.Minute)
				if took := time.Since(began); took != tc.want {
					t.Errorf("the turn ended after %v, want %v", took, tc.want)
				}
				if !ended && !errors.Is(context.Cause(ctx), state.ErrLeaseLost) {
					t.Errorf("cause %v, want ErrLeaseLost", context.Cause(ctx))
				}
				if ended {
					return w.settle(context.WithoutCancel(ctx), l)
				}
				return context.Cause(ctx)
			}))
		})
	}
}

// A turn that fails or panics is claimed again when its lease has run out, and
// nothing else suffers. It pins that interrupted work goes on from its log.
func TestInterruptedTurnIsClaimedAgain(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func() error{
		"error": func() error { return errors.New("broken") },
		"panic": func() error { panic("people's words") },
		"fault": func() error { return errors.New(os.Args[1000]) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var w *world
			var attempts []string
			bubble(t, func(made *world) {
				w = made
				w.run()
				w.hear("r", "other")
				w.pass(time.Minute)
				want := "[1@0s 2@10s]"
				if got := fmt.Sprint(attempts); got != want {
					t.Errorf("attempts %s, want %s", got, want)
				}
				if c, err := w.store.Find(w.Context(), thread("other", "1")); err != nil || c.Inbox != 0 {
					t.Errorf("the other conversation has %d entries waiting (%v)", c.Inbox, err)
				}
				panics := w.log.find("recovered from a panic")
				if (len(panics) == 1) != (name != "error") {
					t.Errorf("%d panics were logged", len(panics))
				}
				if name == "panic" && fmt.Sprint(panics[0]["err"]) != "<nil>" {
					t.Errorf("what it panicked with was logged: %v", panics[0]["err"])
				}
				if n := len(w.log.find("turn interrupted")); n != 1 {
					t.Errorf("logged %d interruptions, want 1", n)
				}
			}, withEngine(func(ctx, _ context.Context, l state.Lease) error {
				if l.Conversation.Thread.Room == "r" {
					attempts = append(attempts, fmt.Sprintf("%d@%v", l.Attempt, w.at()))
					if l.Attempt == 1 {
						return fail()
					}
				}
				return w.settle(ctx, l)
			}))
		})
	}
}

// A process that dies with a conversation keeps it from the others for no longer
// than its lease, which is well below 35 seconds by default.
func TestDeadOwnerIsTakenOver(t *testing.T) {
	t.Parallel()
	var w *world
	var taken []time.Duration
	bubble(t, func(made *world) {
		w = made
		w.hear("r")
		if l, err := w.store.Claim(w.Context(), "dead", w.gw.Lease); err != nil || l.Attempt != 1 {
			t.Fatalf("claimed %+v, %v", l, err)
		}
		w.run()
		w.pass(time.Minute)
		if len(taken) != 1 || taken[0] > 35*time.Second {
			t.Errorf("taken over at %v, want once within 35 s", taken)
		}
	}, withEngine(func(ctx, _ context.Context, l state.Lease) error {
		taken = append(taken, w.at())
		if l.Attempt != 2 {
			t.Errorf("attempt %d, want 2", l.Attempt)
		}
		return w.settle(ctx, l)
	}))
}

func TestClaimsThatFail(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	t.Run("claim", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(w *world) {
			var n atomic.Int32
			w.store.claim = func(ctx context.Context) (state.Lease, error) {
				if n.Add(1) <= claimers*3 {
					return state.Lease{}, broken
				}
				return w.store.Store.Claim(ctx, "here", time.Minute)
			}
			w.run()
			w.hear("r")
			w.pass(2500 * time.Millisecond)
			if n.Load() != claimers*3 {
				t.Errorf("%d claims in 2.5 s, want %d", n.Load(), claimers*3)
			}
			w.pass(time.Second)
			if c, err := w.store.Find(w.Context(), thread("r", "1")); err != nil || c.Inbox != 0 {
				t.Errorf("not answered after the store recovered: %d waiting (%v)", c.Inbox, err)
			}
		})
	})
	t.Run("wait", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(w *world) {
			var n atomic.Int32
			w.store.waitReady = func(context.Context) error { n.Add(1); return broken }
			w.run()
			w.pass(2500 * time.Millisecond)
			if n.Load() != claimers*3 {
				t.Errorf("%d waits in 2.5 s, want %d", n.Load(), claimers*3)
			}
		})
	})
}

// A claim that is under way when a drain begins is answered for: its turn
// runs to the next step boundary instead of lying leased and unknown.
func TestClaimUnderWayAtDrain(t *testing.T) {
	t.Parallel()
	var w *world
	var ran atomic.Int32
	bubble(t, func(made *world) {
		w = made
		proceed := make(chan struct{})
		var once atomic.Bool
		w.store.claim = func(ctx context.Context) (state.Lease, error) {
			if once.CompareAndSwap(false, true) {
				<-proceed
				if ctx.Err() != nil {
					return state.Lease{}, ctx.Err()
				}
				return w.store.Store.Claim(ctx, "here", time.Minute)
			}
			return state.Lease{}, state.ErrNone
		}
		w.store.waitReady = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		w.hear("r")
		w.run()
		w.stop()
		synctest.Wait()
		close(proceed)
		if _, err := w.drained(); err != nil {
			t.Error(err)
		}
		if ran.Load() != 1 {
			t.Errorf("the claimed turn ran %d times, want 1", ran.Load())
		}
	}, withEngine(func(ctx, soft context.Context, l state.Lease) error {
		ran.Add(1)
		if soft.Err() == nil {
			t.Error("soft has not ended")
		}
		return w.settle(ctx, l)
	}))
}

// A store that hangs at a claim does not keep the gateway from stopping.
func TestHangingClaimAtDrain(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		w.store.claim = func(ctx context.Context) (state.Lease, error) { <-ctx.Done(); return state.Lease{}, ctx.Err() }
		w.run()
		if took, err := w.drained(); err != nil || took > 10*time.Second {
			t.Errorf("stopped after %v with %v", took, err)
		}
	})
}

func TestDrain(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		run   func(ctx, soft context.Context) error // of the turn
		took  time.Duration
		want  error
		cause error
	}{
		{"at the boundary", func(ctx, soft context.Context) error { <-soft.Done(); return ctx.Err() }, 0, nil, nil},
		{"long step", func(ctx, soft context.Context) error { <-soft.Done(); sleep(ctx, 19*time.Second); return ctx.Err() }, 19 * time.Second, nil, nil},
		{"too long", func(ctx, _ context.Context) error { <-ctx.Done(); return context.Cause(ctx) }, 20 * time.Second, ErrDrainTimeout, ErrDraining},
		{"slow to end", func(ctx, _ context.Context) error { <-ctx.Done(); time.Sleep(time.Second); return context.Cause(ctx) }, 21 * time.Second, ErrDrainTimeout, ErrDraining},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var w *world
			var cause error
			var runs int
			bubble(t, func(made *world) {
				w = made
				w.run()
				w.hear("r")
				w.pass(time.Second)
				began := time.Now()
				w.stop()
				synctest.Wait()
				if tc.took > 0 {
					// What comes while draining is kept for the next start.
					w.hear("late")
					if status, text := w.get("/readyz"); status != 503 || text != "stopping\n" {
						t.Errorf("readyz says %d %q", status, text)
					}
					if status, _ := w.get("/livez"); status != 200 {
						t.Errorf("livez says %d", status)
					}
					if status := w.deliver(event("by the door", chat.Mention, thread("door", "1"))); status != 200 {
						t.Errorf("a delivery while draining got %d", status)
					}
				}
				_, err := w.drained()
				if took := time.Since(began); took != tc.took || !errors.Is(err, tc.want) {
					t.Errorf("stopped after %v with %v, want %v and %v", took, err, tc.took, tc.want)
				}
				if !errors.Is(cause, tc.cause) {
					t.Errorf("the turn was cut off with %v, want %v", cause, tc.cause)
				}
				if runs != 1 {
					t.Errorf("%d turns ran, want 1: a drain claims nothing", runs)
				}
				if tc.took > 0 {
					for _, room := range []string{"late", "door"} {
						if c, err := w.store.Find(w.Context(), thread(room, "1")); err != nil || c.Inbox != 1 {
							t.Errorf("%s: %d events are kept (%v)", room, c.Inbox, err)
						}
					}
				}
			}, withEngine(func(ctx, soft context.Context, l state.Lease) error {
				runs++
				err := tc.run(ctx, soft)
				if soft.Err() == nil {
					t.Error("ended before soft did")
				}
				cause = err
				if err != nil {
					return err
				}
				return w.settle(ctx, l)
			}))
		})
	}
}

// A listener that breaks ends the gateway in good order, with its error.
func TestListenerFails(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		w.run()
		if err := w.front.Close(); err != nil {
			t.Fatal(err)
		}
		err := <-w.ended
		w.stop = nil
		if err == nil || errors.Is(err, ErrDrainTimeout) {
			t.Errorf("ended with %v, want the listener's error", err)
		}
	})
}
