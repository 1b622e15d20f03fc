package dispatch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
	"github.com/heddlehq/heddle/state/mem"
)

func refused(v channels.Verdict, after time.Duration) error {
	return &channels.SendError{Verdict: v, RetryAfter: after, Reason: "said no"}
}

// script answers one call after the other, the last one for ever. A nil error
// stands for a post that was made.
func script(answers ...error) func(context.Context, chat.Post) (string, error) {
	var n atomic.Int32
	return func(context.Context, chat.Post) (string, error) {
		switch err := answers[min(int(n.Add(1)), len(answers))-1]; {
		case errors.Is(err, errNothing):
			return "", nil
		case errors.Is(err, errPanic):
			panic("words")
		case err != nil:
			return "", err
		}
		return "found", nil
	}
}

var errNothing = errors.New("nothing was found")

// TestVerdicts holds every verdict, of a send and of a look, to its consequence.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	unknown, notMade, rejected := refused(channels.Unknown, 0), refused(channels.NotMade, 0), refused(channels.Rejected, 0)
	limited := refused(channels.Limited, 7*time.Second)
	for _, tc := range []struct {
		name   string
		send   []error
		find   []error
		calls  string // operation@time; ~ is a time of the back-off
		state  state.PostState
		reason string
	}{
		{"made", []error{nil}, nil, "send@0s", state.Sent, ""},
		{"not made", []error{notMade, nil}, nil, "send@0s send~", state.Sent, ""},
		{"rejected", []error{rejected}, nil, "send@0s", state.Dead, "said no"},
		{"limited", []error{limited, nil}, nil, "send@0s send@7s", state.Sent, ""},
		{"limited without a time", []error{refused(channels.Limited, 0), nil}, nil, "send@0s send@1s", state.Sent, ""},
		{"unknown, found", []error{unknown}, []error{nil}, "send@0s find~", state.Sent, ""},
		{"unknown, not found", []error{unknown, nil}, []error{errNothing}, "send@0s find~ find@3s send@3s", state.Sent, ""},
		{"unknown, found late", []error{unknown}, []error{errNothing, nil}, "send@0s find~ find@3s", state.Sent, ""},
		{"unclassed", []error{errors.New("x"), nil}, []error{errNothing}, "send@0s find~ find@3s send@3s", state.Sent, ""},
		{"panic", []error{errPanic, nil}, []error{errNothing}, "send@0s find~ find@3s send@3s", state.Sent, ""},
		{"look unknown", []error{unknown, nil}, []error{unknown, errNothing}, "send@0s find~ find~ find@3s send@3s", state.Sent, ""},
		{"look not made", []error{unknown, nil}, []error{notMade, errNothing}, "send@0s find~ find~ find@3s send@3s", state.Sent, ""},
		{"look rejected", []error{unknown, nil}, []error{rejected, errNothing}, "send@0s find~ find~ find@3s send@3s", state.Sent, ""},
		{"look panics", []error{unknown, nil}, []error{errPanic, errNothing}, "send@0s find~ find~ find@3s send@3s", state.Sent, ""},
		{"look unclassed", []error{unknown}, []error{errors.New("x"), nil}, "send@0s find~ find~", state.Sent, ""},
		{"look limited", []error{unknown}, []error{limited, nil}, "send@0s find~ find~", state.Sent, ""},
		{"not made after a doubt", []error{unknown, notMade, nil}, []error{errNothing}, "send@0s find~ find@3s send@3s send~", state.Sent, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(w *world) {
				w.chat.limits = channels.Limits{RoomEvery: time.Second, SettleAfter: 3 * time.Second}
				w.chat.send = script(tc.send...)
				if tc.find != nil {
					w.chat.find = script(tc.find...)
				}
				w.queue(thread("r", "1"), "one")
				w.run()
				w.pass(time.Minute)
				var got []string
				for i, c := range w.chat.made() {
					mark := fmt.Sprintf("%s@%v", c.Op, c.At)
					if want := strings.Fields(tc.calls); i < len(want) && strings.HasSuffix(want[i], "~") {
						mark = c.Op + "~"
					}
					got = append(got, mark)
				}
				if diff := cmp.Diff(tc.calls, strings.Join(got, " ")); diff != "" {
					t.Error(diff)
				}
				p := w.posts(thread("r", "1"))[0]
				if p.State != tc.state || p.Reason != tc.reason {
					t.Errorf("the post is %s %q, want %s %q", p.State, p.Reason, tc.state, tc.reason)
				}
				if (p.Ref != "") != (tc.state == state.Sent) {
					t.Errorf("ref %q of a post that is %s", p.Ref, p.State)
				}
				if n := len(w.log.find("post is dead")); (n == 1) != (tc.state == state.Dead) {
					t.Errorf("%d deaths were logged", n)
				}
			})
		})
	}
}

// A look that is limited makes the room wait, exactly as a send does.
func TestLimitedLook(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		w.chat.send = script(refused(channels.Unknown, 0))
		w.chat.find = script(refused(channels.Limited, 7*time.Second), nil)
		w.queue(thread("r", "1"), "one")
		w.run()
		w.pass(time.Minute)
		c := w.chat.made()
		if len(c) != 3 || c[2].At-c[1].At != 7*time.Second {
			t.Errorf("calls %v, want the second look 7 s after the first", c)
		}
	})
}

// A post in doubt that has to wait for its room is still looked for first.
func TestDoubtInLimitedRoom(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		w.chat.find = script(nil)
		w.chat.send = func(_ context.Context, p chat.Post) (string, error) {
			switch {
			case p.Text == "lost":
				return "", refused(channels.Unknown, 0)
			case time.Since(w.began) == 0:
				time.Sleep(time.Millisecond) // after the other
				return "", refused(channels.Limited, 7*time.Second)
			}
			return "ref", nil
		}
		w.queue(thread("r", "1"), "lost")
		w.queue(thread("r", "2"), "limited")
		w.run()
		w.pass(time.Minute)
		for _, c := range w.chat.made()[2:] {
			if c.Op == "send" && c.Text == "lost" || c.At < 7*time.Second {
				t.Errorf("%v", c)
			}
		}
		if p := w.posts(thread("r", "1"))[0]; p.Ref != "found" {
			t.Errorf("the post is %s %q", p.State, p.Reason)
		}
	})
}

// A post in doubt is never sent by a channel that cannot look.
func TestDoubtWithoutFinder(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		w.chat.send = script(refused(channels.Unknown, 0), nil)
		w.queue(thread("r", "1"), "one", "two")
		w.run()
		w.pass(time.Second)
		if diff := cmp.Diff([]state.PostState{state.Dead, state.Sent}, states(w.posts(thread("r", "1")))); diff != "" {
			t.Error(diff)
		}
		if p := w.posts(thread("r", "1"))[0]; p.Reason != "outcome unknown and the channel cannot look" {
			t.Errorf("reason %q", p.Reason)
		}
	}, func(o *Options) { o.Channels = []channels.Channel{blind{o.Channels[0].(*fake)}} })
}

func states(ps []state.PostView) (out []state.PostState) {
	for _, p := range ps {
		out = append(out, p.State)
	}
	return out
}

func TestUnknownChannel(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		gone := chat.Thread{Channel: "gone", Account: "A", Room: "r"}
		w.queue(gone, "one")
		w.queue(thread("r", "1"), "two")
		w.run()
		p := w.posts(gone)[0]
		if p.State != state.Dead || p.Reason != "no such channel" {
			t.Errorf("the post is %s %q", p.State, p.Reason)
		}
		if p := w.posts(thread("r", "1"))[0]; p.State != state.Sent {
			t.Errorf("the other post is %s", p.State)
		}
	})
}

func TestGivesUp(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name        string
		send, find  error
		once        bool // it is sent once and then only looked for
		least, most time.Duration
	}{
		{"not made", refused(channels.NotMade, 0), nil, false, postFor, postFor + maxBackoff},
		{"looks fail", refused(channels.Unknown, 0), refused(channels.Rejected, 0), true, postFor, postFor + maxBackoff},
		{"limited for ever", refused(channels.Limited, 10*time.Minute), nil, false, limitedFor, limitedFor + time.Hour},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(w *world) {
				w.chat.send, w.chat.find = script(tc.send, tc.send), script(tc.find)
				w.queue(thread("r", "1"), "one")
				w.run()
				w.pass(30 * time.Hour)
				sends, calls := 0, w.chat.made()
				for _, c := range calls {
					if c.Op == "send" {
						sends++
					}
				}
				if (sends == 1) != tc.once || len(calls) < 10 || len(calls) > 200 {
					t.Errorf("%d calls, %d of them sends", len(calls), sends)
				}
				if at := calls[len(calls)-1].At; at < tc.least || at > tc.most {
					t.Errorf("given up after %v", at)
				}
				p := w.posts(thread("r", "1"))[0]
				if p.State != state.Dead || p.Reason != "gave up: said no" || len(w.log.find("post is dead")) != 1 {
					t.Errorf("the post is %s %q", p.State, p.Reason)
				}
			})
		})
	}
}

// A provider that limits for hours is waited for.
func TestLimitedIsNotGivenUp(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		limited := refused(channels.Limited, 10*time.Minute)
		answers := make([]error, 40, 41)
		for i := range answers {
			answers[i] = limited
		}
		w.chat.send = script(append(answers, nil)...)
		w.queue(thread("r", "1"), "one")
		w.run()
		w.pass(10 * time.Hour)
		if p := w.posts(thread("r", "1"))[0]; p.State != state.Sent {
			t.Errorf("the post is %s %q after %d attempts", p.State, p.Reason, p.Attempts)
		}
	})
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	for _, since := range []time.Duration{0, time.Millisecond, time.Second, time.Minute, maxBackoff, time.Hour} {
		most := min(max(since, 500*time.Millisecond), maxBackoff)
		seen := map[time.Duration]bool{}
		for range 50 {
			d := backoff(since)
			if d < most/2 || d > most {
				t.Fatalf("after %v it waits %v, want %v to %v", since, d, most/2, most)
			}
			seen[d] = true
		}
		if len(seen) < 10 {
			t.Errorf("after %v there is no jitter", since)
		}
	}
}

// Having been put off many times does not use up the patience with a failure.
func TestPutOffsAreNoFailures(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		var answers []error
		for range 40 {
			answers = append(answers, refused(channels.Limited, time.Second))
		}
		w.chat.send = script(append(answers, refused(channels.NotMade, 0), nil)...)
		w.queue(thread("r", "1"), "one")
		w.run()
		w.pass(10 * time.Minute)
		if p := w.posts(thread("r", "1"))[0]; p.State != state.Sent {
			t.Errorf("the post is %s %q after %d attempts", p.State, p.Reason, p.Attempts)
		}
	})
}

// Posts of a thread go out one after the other and in order, whatever fails,
// and threads do not wait for each other.
func TestOrderWithinThreads(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		var mu sync.Mutex
		under, most, made := map[chat.Thread]bool{}, 0, map[chat.Thread][]string{}
		r := rand.New(rand.NewPCG(1, 2))
		w.chat.limits.SettleAfter = time.Second
		w.chat.find = func(_ context.Context, p chat.Post) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			for _, text := range made[p.Thread] {
				if text == p.Text {
					return "found", nil
				}
			}
			return "", nil
		}
		w.chat.send = func(_ context.Context, p chat.Post) (string, error) {
			mu.Lock()
			if under[p.Thread] {
				t.Errorf("two posts to %s at once", p.Thread)
			}
			under[p.Thread] = true
			most = max(most, len(under))
			wait, fate := time.Duration(r.IntN(900))*time.Millisecond, r.IntN(4)
			mu.Unlock()
			time.Sleep(wait)
			mu.Lock()
			defer mu.Unlock()
			delete(under, p.Thread)
			switch fate {
			case 0:
				return "", refused(channels.NotMade, 0)
			case 1:
				return "", refused(channels.Unknown, 0)
			case 2:
				made[p.Thread] = append(made[p.Thread], p.Text)
				return "", refused(channels.Unknown, 0)
			}
			made[p.Thread] = append(made[p.Thread], p.Text)
			return "ref", nil
		}
		want := map[chat.Thread][]string{}
		for i := range 8 {
			th := thread(fmt.Sprint("r", i/2), fmt.Sprint(i))
			want[th] = []string{"one", "two", "three", "four", "five"}
			w.queue(th, want[th]...)
		}
		w.run()
		w.pass(time.Hour)
		if diff := cmp.Diff(want, made); diff != "" {
			t.Error(diff)
		}
		if most != 8 {
			t.Errorf("at most %d posts were under way at once, want 8", most)
		}
	})
}

func TestSenders(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		var under, most atomic.Int32
		w.chat.send = func(context.Context, chat.Post) (string, error) {
			most.Store(max(most.Load(), under.Add(1)))
			time.Sleep(time.Second)
			under.Add(-1)
			return "ref", nil
		}
		w.store.claimPosts = func(ctx context.Context, n int) ([]state.Effect, error) {
			if n+int(under.Load()) > senders {
				t.Errorf("%d claimed beside %d under way", n, under.Load())
			}
			return w.store.Store.ClaimPosts(ctx, "here", n, postLease)
		}
		for i := range 3 * senders {
			w.queue(thread("r", fmt.Sprint(i)), "one")
		}
		w.run()
		w.pass(3500 * time.Millisecond)
		if n := len(w.chat.made()); n != 3*senders || most.Load() != senders {
			t.Errorf("%d posts made, at most %d at once; want %d and %d", n, most.Load(), 3*senders, senders)
		}
	})
}

// What was claimed by a process that died, or whose claim could not be
// settled, is looked for before it is sent.
func TestUnsettledClaimIsLookedFor(t *testing.T) {
	t.Parallel()
	t.Run("dead process", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(w *world) {
			w.chat.limits.SettleAfter = time.Second
			w.queue(thread("r", "1"), "one")
			if _, err := w.store.ClaimPosts(w.Context(), "dead", 1, time.Minute); err != nil {
				t.Fatal(err)
			}
			w.store.Store.(*mem.Store).Expire()
			w.run()
			w.pass(time.Minute)
			if diff := cmp.Diff([]call{{0, "find", "one"}, {time.Second, "find", "one"}, {time.Second, "send", "one"}}, w.chat.made()); diff != "" {
				t.Error(diff)
			}
		})
	})
	t.Run("not settled", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(w *world) {
			var n atomic.Int32
			w.store.settle = func(context.Context) error {
				if n.Add(1) == 1 {
					return errors.New("broken")
				}
				return nil
			}
			w.chat.find = script(nil)
			w.queue(thread("r", "1"), "one")
			w.run()
			w.pass(time.Hour)
			if diff := cmp.Diff([]call{{0, "send", "one"}, {time.Minute, "find", "one"}}, w.chat.made()); diff != "" {
				t.Error(diff)
			}
			if p := w.posts(thread("r", "1"))[0]; p.State != state.Sent || p.Ref != "found" {
				t.Errorf("the post is %s, ref %q", p.State, p.Ref)
			}
		})
	})
}

// A request that takes too long is cut off and in doubt.
func TestSlowRequestIsCut(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		w.chat.send = func(ctx context.Context, _ chat.Post) (string, error) { <-ctx.Done(); return "", ctx.Err() }
		w.chat.find = script(nil)
		w.queue(thread("r", "1"), "one")
		w.run()
		w.pass(time.Minute)
		c := w.chat.made()
		if len(c) != 2 || c[1].Op != "find" || c[1].At < postTime || c[1].At > postTime+time.Second {
			t.Errorf("calls %v, want a look after 30 s", c)
		}
	})
}

func TestClaimOfPostsFails(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		var n atomic.Int32
		var broken atomic.Bool
		broken.Store(true)
		w.store.claimPosts = func(ctx context.Context, most int) ([]state.Effect, error) {
			n.Add(1)
			if broken.Load() {
				return nil, errors.New("broken")
			}
			return w.store.Store.ClaimPosts(ctx, "here", most, time.Minute)
		}
		w.queue(thread("r", "1"), "one")
		w.run()
		w.pass(2500 * time.Millisecond)
		if n.Load() != 3 {
			t.Errorf("%d claims in 2.5 s, want 3", n.Load())
		}
		broken.Store(false)
		w.pass(time.Second)
		if diff := cmp.Diff([]call{{3 * time.Second, "send", "one"}}, w.chat.made()); diff != "" {
			t.Error(diff)
		}
		broken.Store(true)
		n.Store(0)
		if took, err := w.drained(); took != 0 || err != nil || n.Load() > 2 {
			t.Errorf("stopped after %v with %v and %d claims", took, err, n.Load())
		}
	})
}

func TestFlush(t *testing.T) {
	t.Parallel()
	t.Run("all that is due", func(t *testing.T) {
		t.Parallel()
		var w *world
		bubble(t, func(made *world) {
			w = made
			w.chat.send = func(_ context.Context, p chat.Post) (string, error) {
				if p.Text == "later" {
					return "", refused(channels.Limited, time.Minute)
				}
				time.Sleep(time.Second)
				return "ref", nil
			}
			w.queue(thread("limited", "1"), "later", "after it")
			w.run()
			w.hear("r", "s")
			w.pass(time.Second)
			took, err := w.drained()
			if err != nil || took != 3*time.Second {
				t.Errorf("stopped after %v with %v, want 3s: three posts, one after the other", took, err)
			}
			for _, room := range []string{"r", "s"} {
				if diff := cmp.Diff([]state.PostState{state.Sent, state.Sent, state.Sent}, states(w.posts(thread(room, "1")))); diff != "" {
					t.Errorf("%s: %s", room, diff)
				}
			}
			if diff := cmp.Diff([]state.PostState{state.Pending, state.Pending}, states(w.posts(thread("limited", "1")))); diff != "" {
				t.Error(diff)
			}
		}, withEngine(func(ctx, soft context.Context, l state.Lease) error {
			<-soft.Done() // the last turns post when the drain has begun
			return w.settle(ctx, l, "one", "two", "three")
		}))
	})
	t.Run("what follows one that is under way", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(w *world) {
			w.chat.send = func(context.Context, chat.Post) (string, error) { time.Sleep(time.Second); return "ref", nil }
			w.queue(thread("r", "1"), "one", "two", "three")
			w.run()
			if took, err := w.drained(); took != 3*time.Second || err != nil {
				t.Errorf("stopped after %v with %v", took, err)
			}
			if diff := cmp.Diff([]state.PostState{state.Sent, state.Sent, state.Sent}, states(w.posts(thread("r", "1")))); diff != "" {
				t.Error(diff)
			}
		})
	})
	t.Run("no longer than it may", func(t *testing.T) {
		t.Parallel()
		var w *world
		bubble(t, func(made *world) {
			w = made
			w.chat.send = func(ctx context.Context, p chat.Post) (string, error) {
				if p.Text == "hangs" {
					<-ctx.Done()
					return "", refused(channels.Unknown, 0)
				}
				return "ref", nil
			}
			w.queue(thread("r", "1"), "hangs", "next")
			w.run()
			w.hear("s")
			synctest.Wait()
			took, err := w.drained()
			if took != flushTime || err != nil {
				t.Errorf("stopped after %v with %v, want %v", took, err, flushTime)
			}
			if diff := cmp.Diff([]state.PostState{state.Sent}, states(w.posts(thread("s", "1")))); diff != "" {
				t.Errorf("beside a post that hangs: %s", diff)
			}
			if p := w.posts(thread("r", "1"))[0]; p.Reason != "said no" {
				t.Errorf("what became of the hanging post was not recorded: %+v", p)
			}
			w.store.Store.(*mem.Store).Expire()
			w.pass(time.Second)
			es, err := w.store.ClaimPosts(w.Context(), "next start", 9, time.Minute)
			if err != nil || len(es) == 0 || es[0].Post.Text != "hangs" || !es[0].DoubtAt.Equal(w.began) || es[0].Attempt != 2 {
				t.Errorf("the next start claims %+v (%v), want the hanging post in doubt since the start", es, err)
			}
		}, withEngine(func(ctx, soft context.Context, l state.Lease) error {
			<-soft.Done()
			return w.settle(ctx, l, "quick")
		}))
	})
}

// TestLimitedRoom pins that a room that was refused is left alone until the
// provider's time has come, that its posts then come back one by one, and
// that no other room notices.
func TestLimitedRoom(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		w.chat.limits = channels.Limits{RoomEvery: time.Second}
		w.chat.send = func(_ context.Context, p chat.Post) (string, error) {
			if p.Thread.Room == "busy" && time.Since(w.began) < 7*time.Second {
				return "", refused(channels.Limited, 7*time.Second-time.Since(w.began))
			}
			return "ref", nil
		}
		for i := range 4 {
			w.queue(thread("busy", fmt.Sprint(i)), fmt.Sprint("busy ", i))
		}
		w.queue(thread("other", "1"), "other 0", "other 1", "other 2")
		w.run()
		w.pass(500 * time.Millisecond)
		w.queue(thread("busy", "new"), "busy new", "busy last")
		w.queue(thread("other", "2"), "other new")
		w.pass(7 * time.Second) // 7.5 s: comes last in the row
		w.queue(thread("busy", "late"), "busy late")
		w.pass(time.Minute)
		var busy []time.Duration
		for _, c := range w.chat.made() {
			switch {
			case c.At == 0:
			case strings.HasPrefix(c.Text, "busy"):
				busy = append(busy, c.At/time.Millisecond)
			case c.Text == "other new" && c.At == 500*time.Millisecond:
			default:
				t.Errorf("delayed: %v", c)
			}
		}
		if diff := cmp.Diff([]time.Duration{7000, 8000, 9000, 10000, 11000, 12000, 13000}, busy); diff != "" {
			t.Errorf("milliseconds of the limited room's requests: %s", diff)
		}
		for _, p := range w.posts(thread("busy", "0")) {
			if p.State != state.Sent || p.Attempts != 2 {
				t.Errorf("a post is %s after %d attempts", p.State, p.Attempts)
			}
		}
	})
}
