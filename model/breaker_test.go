package model_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddlehq/heddle/model"
)

func failure(f model.Fault) error { return fmt.Errorf("call: %w", &model.Error{Fault: f}) }

func TestBreaker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := model.NewBreaker(3, 30*time.Second, time.Now)
		allowed := func(want bool, wait time.Duration) {
			t.Helper()
			if got, ok := b.Allow(); ok != want || got != wait {
				t.Fatalf("allowed %v, wait %s; want %v, %s", ok, got, want, wait)
			}
		}
		for _, f := range []model.Fault{model.Transient, model.Limited, model.Truncated, model.Garbled, model.Canceled} {
			b.Done(failure(f))
			allowed(true, 0)
		}
		b.Done(failure(model.Stalled)) // the third that counts
		allowed(false, 30*time.Second)
		time.Sleep(20 * time.Second)
		allowed(false, 10*time.Second)
		time.Sleep(10 * time.Second)
		allowed(true, 0) // tries
		allowed(false, 30*time.Second)
		time.Sleep(5 * time.Second)
		b.Done(failure(model.Transient))
		allowed(false, 30*time.Second)
		time.Sleep(30 * time.Second)
		allowed(true, 0) // tries, and never reports
		time.Sleep(30 * time.Second)
		allowed(true, 0)
		b.Done(nil)
		allowed(true, 0)
		b.Done(failure(model.Transient))
		b.Done(failure(model.Transient))
		allowed(true, 0)
	})
}

// TestBreakerCloses: what proves a provider to be up ends a row of failures.
func TestBreakerCloses(t *testing.T) {
	t.Parallel()
	for _, up := range []error{nil, failure(model.Overflow), failure(model.Denied), failure(model.Missing), failure(model.Invalid)} {
		b := model.NewBreaker(2, time.Minute, time.Now)
		b.Done(failure(model.Transient))
		b.Done(up)
		b.Done(failure(model.Transient))
		if _, ok := b.Allow(); !ok {
			t.Errorf("%v did not end the row", up)
		}
	}
	for _, nothing := range []error{errors.New("x"), context.Canceled, failure(model.Canceled), failure(model.Truncated), failure(model.Garbled)} {
		b := model.NewBreaker(2, time.Minute, time.Now)
		b.Done(failure(model.Transient))
		b.Done(nothing)
		b.Done(failure(model.Transient))
		if _, ok := b.Allow(); ok {
			t.Errorf("%v ended the row", nothing)
		}
	}
}

// TestBreakerLetsOneTry: of many at once.
func TestBreakerLetsOneTry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := model.NewBreaker(1, time.Second, time.Now)
		b.Done(failure(model.Transient))
		time.Sleep(time.Second)
		var tries atomic.Int32
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if _, ok := b.Allow(); ok {
					tries.Add(1)
				}
			})
		}
		all.Wait()
		if tries.Load() != 1 {
			t.Errorf("%d calls tried", tries.Load())
		}
	})
}
