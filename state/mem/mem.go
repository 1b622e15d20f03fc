// Package mem is the reference store: maps under one mutex, gone when the
// process ends. It is for tests, trials and for checking the other stores.
package mem

import (
	"context"
	"sync"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

// A Store keeps conversations in memory.
type Store struct {
	clock func() time.Time

	mu       sync.Mutex
	closed   bool
	changed  chan struct{} // closed and replaced by everything that may make something ready
	all      []*conversation
	byID     map[state.ID]*conversation
	byThread map[chat.Thread]*conversation // own threads and opened ones
	events   map[[2]string]*event          // by channel and ID
	same     map[[2]string]*event          // by channel and Same; never of an ignored event
	open     []*post                       // unsettled, oldest first
	spaces   map[string]*space
}

var _ state.Store = (*Store)(nil)

// Open returns an empty store whose time is clock's, time.Now if nil.
func Open(clock func() time.Time) *Store {
	if clock == nil {
		clock = time.Now
	}
	return &Store{
		clock:    clock,
		changed:  make(chan struct{}),
		byID:     map[state.ID]*conversation{},
		byThread: map[chat.Thread]*conversation{},
		events:   map[[2]string]*event{},
		same:     map[[2]string]*event{},
		spaces:   map[string]*space{},
	}
}

// Expire ends every lease and claim now, as the restart of a store with one
// owner does.
func (s *Store) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for _, c := range s.all {
		if c.leased && c.readyAt.After(now) {
			c.readyAt = now
		}
	}
	for _, p := range s.open {
		if p.claimed && p.due.After(now) {
			p.due = now
		}
	}
	s.announce()
}

// Check fails only when the store is closed.
func (s *Store) Check(ctx context.Context) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	unlock()
	return nil
}

// Close makes every other call fail with ErrClosed.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.announce()
	return nil
}

// lock begins a call; the caller unlocks.
func (s *Store) lock(ctx context.Context) (unlock func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, state.ErrClosed
	}
	return s.mu.Unlock, nil
}

// announce wakes everybody who waits. The mutex is held.
func (s *Store) announce() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// wait returns when the time that next finds has come. next runs under the
// mutex; zero is never.
func (s *Store) wait(ctx context.Context, next func() time.Time) error {
	for {
		unlock, err := s.lock(ctx)
		if err != nil {
			return err
		}
		at, now, changed := next(), s.now(), s.changed
		unlock()
		if !at.IsZero() && !at.After(now) {
			return nil
		}
		var timeout <-chan time.Time
		if !at.IsZero() {
			timer := time.NewTimer(at.Sub(now))
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

func (s *Store) now() time.Time { return micro(s.clock()) }

// micro is t in UTC with the precision that stores keep.
func micro(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return time.UnixMicro(t.UnixMicro()).UTC()
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
