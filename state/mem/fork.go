package mem

import (
	"context"
	"maps"
	"slices"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

// Fork makes a conversation that begins as another does.
func (s *Store) Fork(ctx context.Context, id state.ID, seq int64, agent string, to chat.Thread, own ...state.Record) (state.Conversation, error) {
	if err := state.ValidateFork(agent, to); err != nil {
		return state.Conversation{}, err
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return state.Conversation{}, err
	}
	defer unlock()
	from := s.byID[id]
	if from == nil || seq < 1 || seq > from.Seq {
		return state.Conversation{}, state.ErrNotFound
	}
	records := from.records[:seq]
	if c := s.byThread[to]; c != nil {
		if c == from || c.Thread != to || c.Agent != agent || c.Seq < seq || !slices.EqualFunc(c.records[:seq], records, same) {
			return state.Conversation{}, state.ErrExists
		}
		return c.view(), nil
	}
	c := s.create(agent, to, s.now())
	c.UpdatedAt, c.Seq = c.CreatedAt, seq
	c.arrived, c.loud, c.taken = from.arrived, from.arrived, from.arrived
	c.records, c.blobs = slices.Clone(records), maps.Clone(from.blobs) // their bytes never change
	c.add(own, c.CreatedAt)
	return c.view(), nil
}

func same(a, b state.Record) bool {
	return a.At.Equal(b.At) && a.Kind == b.Kind && string(a.Data) == string(b.Data)
}
