package mem

import (
	"context"
	"slices"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

// Conversations lists conversations, newest first.
func (s *Store) Conversations(ctx context.Context, before time.Time, limit int) ([]state.Conversation, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	var out []state.Conversation
	before = micro(before)
	for _, c := range slices.Backward(s.all) {
		if before.IsZero() || c.UpdatedAt.Before(before) {
			out = append(out, c.view())
		}
	}
	slices.SortStableFunc(out, func(a, b state.Conversation) int { return b.UpdatedAt.Compare(a.UpdatedAt) })
	return out[:min(limit, len(out))], nil
}

// Records reads a part of a log.
func (s *Store) Records(ctx context.Context, id state.ID, after int64, limit int) ([]state.Record, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if c := s.byID[id]; c != nil {
		return c.after(after, limit), nil
	}
	return nil, nil
}

// Posts lists the posts of a conversation.
func (s *Store) Posts(ctx context.Context, id state.ID) ([]state.PostView, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	c := s.byID[id]
	if c == nil {
		return nil, nil
	}
	out := make([]state.PostView, len(c.posts))
	for i, p := range c.posts {
		out[i] = p.view(s.now())
	}
	return out, nil
}

// Threads lists the threads that a conversation owns besides its own.
func (s *Store) Threads(ctx context.Context, id state.ID) ([]chat.Thread, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	c := s.byID[id]
	if c == nil {
		return nil, nil
	}
	var out []chat.Thread
	for _, o := range c.opened {
		out = append(out, o.thread)
	}
	return out, nil
}

// Event says what became of an event.
func (s *Store) Event(ctx context.Context, channel, id string) (state.Admission, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return state.Admission{}, err
	}
	defer unlock()
	e := s.known(s.events, channel, id)
	if e == nil {
		return state.Admission{}, state.ErrNotFound
	}
	return state.Admission{Status: e.status, Conversation: e.id, Seq: e.seq, Reason: e.reason}, nil
}

// Find returns the conversation of a thread.
func (s *Store) Find(ctx context.Context, t chat.Thread) (state.Conversation, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return state.Conversation{}, err
	}
	defer unlock()
	c := s.byThread[t]
	if c == nil {
		return state.Conversation{}, state.ErrNotFound
	}
	return c.view(), nil
}
