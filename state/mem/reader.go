package mem

import (
	"cmp"
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
		out[i].Conversation = id
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

// Acts says what became of the events of one act.
func (s *Store) Acts(ctx context.Context, channel, same string) ([]state.Act, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	var out []state.Act
	for key, e := range s.events {
		if key[0] == channel && same != "" && e.act == same && s.known(s.events, key[0], key[1]) != nil {
			out = append(out, state.Act{Event: key[1], At: e.at, Admission: state.Admission{
				Status: e.status, Conversation: e.id, Seq: e.seq, Reason: e.reason,
			}})
		}
	}
	slices.SortFunc(out, func(a, b state.Act) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Event, b.Event)) })
	return out, nil
}

// Unsent lists the posts that are not sent.
func (s *Store) Unsent(ctx context.Context, limit int) ([]state.PostView, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	var out []state.PostView
	for _, c := range s.all {
		for _, p := range c.posts {
			if v := p.view(s.now()); v.State != state.Sent {
				v.Conversation = c.ID
				out = append(out, v)
			}
		}
	}
	slices.SortFunc(out, func(a, b state.PostView) int {
		return cmp.Or(b.QueuedAt.Compare(a.QueuedAt), cmp.Compare(a.Conversation, b.Conversation), cmp.Compare(a.Post.Key, b.Post.Key))
	})
	return out[:min(limit, len(out))], nil
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
