package model

import (
	"errors"
	"sync"
	"time"
)

// A Breaker keeps calls away from a provider that is down. It is closed while
// calls go well. After failures in a row it opens and lets none through for a
// time; then one call may try, and closes it or keeps it open for as long
// again. It may be used by many at once, has no goroutine and waits for nothing.
type Breaker struct {
	after int
	rest  time.Duration
	clock func() time.Time

	mu       sync.Mutex
	failures int       // in a row
	until    time.Time // while open: when the next call may try
}

// NewBreaker returns a closed breaker that opens after that many failures in a
// row and rests for that long.
func NewBreaker(after int, rest time.Duration, clock func() time.Time) *Breaker {
	return &Breaker{after: after, rest: rest, clock: clock}
}

// Allow says whether a call may be made now, and if not, how long until one
// may. Who was allowed a call reports its end to Done; the one call that tries
// keeps the others out for as long as the breaker rests, whether it reports or not.
func (b *Breaker) Allow() (wait time.Duration, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures < b.after {
		return 0, true
	}
	now := b.clock()
	if wait = b.until.Sub(now); wait > 0 {
		return wait, false
	}
	b.until = now.Add(b.rest)
	return 0, true
}

// Done takes the end of a call. Transient, Limited and Stalled count as
// failures. An answer, or a refusal that is about the request or the key, shows
// that the provider is up and closes the breaker. Anything else tells nothing.
func (b *Breaker) Done(err error) {
	var e *Error
	if err != nil && !errors.As(err, &e) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		b.failures = 0
		return
	}
	switch e.Fault {
	case Overflow, Denied, Missing, Invalid:
		b.failures = 0
	case Transient, Limited, Stalled:
		b.failures++
		if b.failures >= b.after {
			b.until = b.clock().Add(b.rest)
		}
	}
}
