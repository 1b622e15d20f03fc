package sqlite

import (
	"context"
	"fmt"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

// Fork makes a conversation that begins as another does.
func (s *Store) Fork(ctx context.Context, id state.ID, seq int64, agent string, to chat.Thread, own ...state.Record) (c state.Conversation, err error) {
	if err = state.ValidateFork(agent, to); err == nil {
		c, err = do(ctx, s.w, func(t *tx) (state.Conversation, error) { return t.fork(id, seq, agent, to, own) })
	}
	if err != nil {
		return state.Conversation{}, fmt.Errorf("fork %s at record %d: %w", id, seq, err)
	}
	return c, nil
}

func (t *tx) fork(id state.ID, seq int64, agent string, to chat.Thread, own []state.Record) (none state.Conversation, err error) {
	from, err := t.byID(id)
	if err != nil {
		return none, err
	}
	if from == nil || seq < 1 || seq > from.seq {
		return none, state.ErrNotFound
	}
	h, err := t.byThread(to.Key())
	if err != nil {
		return none, err
	}
	if h != nil {
		repeat, err := t.begins(h, from, seq)
		if err == nil && (!repeat || h.n == from.n || h.thread != to || h.agent != agent) {
			err = state.ErrExists
		}
		return h.conversation(), err
	}
	h = &head{
		id: state.ConversationID(agent, to), agent: agent, thread: to, createdAt: t.now, updatedAt: t.now,
		seq: seq + int64(len(own)), arrived: from.arrived, loud: from.arrived, taken: from.arrived,
	}
	if err := t.create(h); err != nil {
		return none, err
	}
	_, err = t.exec(`INSERT INTO records (key, at, kind, data) SELECT key + ?, at, kind, data FROM records WHERE key BETWEEN ? AND ? ORDER BY key`,
		key(h.n-from.n, 0), key(from.n, 1), key(from.n, seq))
	if err != nil {
		return none, err
	}
	if err := t.append(h.n, seq, own); err != nil {
		return none, err
	}
	_, err = t.exec(`INSERT INTO blobs (conversation, name, data) SELECT ?, name, data FROM blobs WHERE conversation = ?`, h.n, from.n)
	return h.conversation(), err
}

// begins says whether a conversation has the first records of another.
func (t *tx) begins(h, from *head, seq int64) (bool, error) {
	equal := int64(0)
	err := t.query(`SELECT count(*) FROM records a JOIN records b ON b.key = a.key + ?
		WHERE a.key BETWEEN ? AND ? AND b.at = a.at AND b.kind = a.kind AND b.data IS a.data`,
		func(r row) error { equal = r.int(0); return nil },
		key(h.n-from.n, 0), key(from.n, 1), key(from.n, seq))
	return equal == seq, err
}
