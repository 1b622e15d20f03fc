package statetest

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

// bubble runs a test on a store that has synctest's time.
func bubble(t *testing.T, h Harness, test func(*kit)) {
	synctest.Test(t, func(t *testing.T) {
		s := h.Open(t, Options{Now: time.Now})
		defer func() { _ = s.Close() }()
		test(&kit{T: t, Store: s, ctx: t.Context()})
	})
}

// A waiter waits in its own goroutine.
type waiter struct {
	done atomic.Bool
	err  error
}

func (k *kit) wait(ctx context.Context, wait func(context.Context) error) *waiter {
	w := new(waiter)
	go func() {
		w.err = wait(ctx)
		w.done.Store(true)
	}()
	return w
}

// waits checks that the waiter still waits.
func (k *kit) waits(what string, w *waiter) {
	k.Helper()
	synctest.Wait()
	if w.done.Load() {
		k.Fatalf("%s: waiting has ended, with %v", what, w.err)
	}
}

// woken checks that the waiter has been woken.
func (k *kit) woken(what string, w *waiter) {
	k.Helper()
	synctest.Wait()
	if !w.done.Load() {
		k.Fatalf("%s: still waits", what)
	}
	if w.err != nil {
		k.Fatalf("%s: waiting failed: %v", what, w.err)
	}
}

// idle makes the store find out that there is nothing to claim.
func (k *kit) idle() {
	k.Helper()
	k.noClaim()
	k.claimPosts(9)
}

func testWait(t *testing.T, h Harness) {
	t.Run("conversations", func(t *testing.T) {
		bubble(t, h, func(k *kit) {
			k.idle()
			w, due := k.wait(k.ctx, k.WaitReady), k.wait(k.ctx, k.WaitDue)
			k.waits("nothing is there", w)
			k.admit(ask(1, "a"))
			k.woken("an event came", w)
			k.woken("one is ready already", k.wait(k.ctx, k.WaitReady))
			k.waits("no post is there", due)
			l := k.claim()
			k.noClaim()
			w = k.wait(k.ctx, k.WaitReady)
			k.waits("all are leased", w)
			k.admit(ask(1, "b"))
			k.commit(l, state.Batch{Taken: 1, Release: true})
			k.woken("one was released with an event left", w)
			l = k.claim()
			k.commit(l, state.Batch{Taken: 2, Release: true, Wake: time.Now().Add(time.Hour)})
			// A store may look once more when a released lease would have ended.
			time.Sleep(30 * time.Minute)
			k.idle()
			w = k.wait(k.ctx, k.WaitReady)
			time.Sleep(30*time.Minute - time.Microsecond)
			k.waits("the time has not come", w)
			time.Sleep(time.Microsecond)
			k.woken("the time has come", w)
			k.claim()
			k.idle()
			w = k.wait(k.ctx, k.WaitReady)
			time.Sleep(time.Minute - time.Microsecond)
			k.waits("the lease is live", w)
			time.Sleep(time.Microsecond)
			k.woken("the lease is lost", w)
			k.same("attempt", k.claim().Attempt, 2)
			k.admit(ask(2, "c"))
			k.woken("it waits no longer for posts", k.wait(k.ctx, k.WaitReady))
			k.waits("still no post is there", due)
			_ = k.Store.Close()
			synctest.Wait()
			k.fails("waiting when the store was closed", due.err, state.ErrClosed)
		})
	})
	t.Run("posts", func(t *testing.T) {
		bubble(t, h, func(k *kit) {
			k.idle()
			w := k.wait(k.ctx, k.WaitDue)
			k.waits("nothing is there", w)
			k.queue(1, post(1, "p"), post(1, "q"))
			k.woken("a post came", w)
			p := k.claimPosts(9, "p")[0]
			k.idle()
			w = k.wait(k.ctx, k.WaitDue)
			k.waits("the oldest is claimed", w)
			k.settle(p, state.Outcome{State: state.Due, Due: time.Now().Add(time.Hour)})
			time.Sleep(30 * time.Minute)
			k.idle()
			w = k.wait(k.ctx, k.WaitDue)
			time.Sleep(30*time.Minute - time.Microsecond)
			k.waits("the oldest is due later", w)
			time.Sleep(time.Microsecond)
			k.woken("it is due", w)
			p = k.claimPosts(9, "p")[0]
			k.idle()
			w = k.wait(k.ctx, k.WaitDue)
			k.settle(p, state.Outcome{State: state.Sent})
			k.woken("the next one is the oldest", w)
			k.claimPosts(9, "q")
			k.idle()
			w = k.wait(k.ctx, k.WaitDue)
			time.Sleep(time.Minute - time.Microsecond)
			k.waits("the claim is live", w)
			time.Sleep(time.Microsecond)
			k.woken("the claim is lost", w)
			k.claimPosts(9, "q")
		})
	})
}

func testWaitEnds(t *testing.T, h Harness) {
	bubble(t, h, func(k *kit) {
		k.idle()
		ctx, cancel := context.WithCancel(k.ctx)
		defer cancel()
		waiters := []*waiter{k.wait(ctx, k.WaitReady), k.wait(ctx, k.WaitReady), k.wait(ctx, k.WaitDue)}
		others := []*waiter{k.wait(k.ctx, k.WaitReady), k.wait(k.ctx, k.WaitDue)}
		cancel()
		synctest.Wait()
		for _, w := range waiters {
			k.fails("waiting when cancelled", w.err, context.Canceled)
		}
		k.fails("waiting for conversations when cancelled before", k.WaitReady(ctx), context.Canceled)
		k.fails("waiting for posts when cancelled before", k.WaitDue(ctx), context.Canceled)
		for _, w := range others {
			k.waits("another was cancelled", w)
		}
		k.admit(ask(1, "a"))
		k.woken("many wait for conversations", others[0])
		l := k.claim()
		k.commit(l, state.Batch{Posts: []chat.Post{post(1, "p")}})
		k.woken("many wait for posts", others[1])
		_ = k.Store.Close()
		k.fails("waiting for conversations of a closed store", k.WaitReady(k.ctx), state.ErrClosed)
		k.fails("waiting for posts of a closed store", k.WaitDue(k.ctx), state.ErrClosed)
	})
}
