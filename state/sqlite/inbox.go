package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/heddlehq/heddle/state"
)

// Admit stores events.
func (s *Store) Admit(ctx context.Context, in []state.Admit) ([]state.Admission, error) {
	data := make([][]byte, len(in))
	for i, a := range in {
		if err := a.Validate(); err != nil {
			return nil, err
		}
		var err error
		if data[i], err = json.Marshal(a.Event); err != nil {
			return nil, fmt.Errorf("event %s: %w", a.Event.ID, err)
		}
	}
	return do(ctx, s.w, func(t *tx) ([]state.Admission, error) {
		out := make([]state.Admission, len(in))
		for i, a := range in {
			var err error
			if out[i], err = t.admit(a, data[i]); err != nil {
				return nil, fmt.Errorf("admit %s: %w", a.Event.ID, err)
			}
		}
		return out, t.prune()
	})
}

func (t *tx) admit(a state.Admit, data []byte) (state.Admission, error) {
	digest := digest(data)
	if dup, err := t.repeat(a, digest); dup.Status != 0 || err != nil {
		return dup, err
	}
	h, err := t.byThread(a.Event.Thread.Key())
	if err != nil {
		return state.Admission{}, err
	}
	reason := a.Ignored
	if reason == "" && a.Follow && (h == nil || !a.Left && (h.left || h.updatedAt.Before(micro(a.Since)))) {
		reason = state.NotFollowed
	}
	if reason != "" {
		_, err := t.exec(`INSERT INTO events (at, channel, id, act, reason, digest) VALUES (?, ?, ?, ?, ?, ?)`,
			t.now, a.Event.Thread.Channel, a.Event.ID, orNull(a.Event.Same), reason, digest)
		return state.Admission{Status: state.Ignored, Reason: reason}, err
	}
	if h == nil {
		h = &head{id: state.ConversationID(a.Agent, a.Event.Thread), agent: a.Agent, thread: a.Event.Thread, createdAt: t.now}
	}
	if err := t.put(h, a, data); err != nil {
		return state.Admission{}, err
	}
	_, err = t.exec(`INSERT INTO events (at, channel, id, same, conversation, seq, digest) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		t.now, a.Event.Thread.Channel, a.Event.ID, orNull(a.Event.Same), h.n, h.arrived, digest)
	return state.Admission{Status: state.Admitted, Conversation: h.id, Seq: h.arrived}, err
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// put adds the event to the inbox of its conversation, which may be new.
func (t *tx) put(h *head, a state.Admit, data []byte) error {
	h.arrived++
	h.updatedAt = t.now
	if !a.Quiet {
		h.loud = h.arrived
		h.hold(a, t.now)
	}
	h.left = h.left && (a.Follow || a.Quiet)
	var err error
	if h.n == 0 {
		err = t.create(h)
	} else {
		err = t.save(h)
	}
	if err != nil {
		return err
	}
	_, err = t.exec(`INSERT INTO inbox (key, at, quiet, event) VALUES (?, ?, ?, ?)`, key(h.n, h.arrived), t.now, a.Quiet, data)
	return err
}

// hold sets when the conversation is ready for an event of now.
func (h *head) hold(a state.Admit, now time.Time) {
	if h.leased() || !h.readyAt.IsZero() && !h.readyAt.After(now) { // what is ready stays so
		return
	}
	ready, at := later(now, h.pauseAt), time.Time{}
	var by any
	if a.Hold > 0 && h.n != 0 {
		by, at = a.Event.Author.Account+"/"+a.Event.Author.ID, now
		if h.heldBy == by {
			at = h.heldAt
		}
		ready = later(ready, micro(state.HeldUntil(now, at, a.Hold)))
	}
	if h.readyAt.IsZero() || ready.Before(h.readyAt) || by != nil && h.heldBy == by {
		h.readyAt, h.heldBy, h.heldAt = ready, by, at
	}
}

// repeat looks for an earlier admission of the same event. One that is too old
// to count is forgotten here, should pruning not have come to it yet.
func (t *tx) repeat(a state.Admit, digest int64) (found state.Admission, err error) {
	var conversation int64
	var old []int64
	err = t.query(`SELECT n, at, conversation, reason, digest, seq, 1 FROM events WHERE channel = ?1 AND id = ?2
		UNION ALL SELECT n, at, conversation, reason, digest, seq, 0 FROM events WHERE channel = ?1 AND same = ?3`,
		func(r row) error {
			switch {
			case !r.time(1).After(t.now.Add(-state.DedupeFor)):
				old = append(old, r.int(0))
			case found.Status == 0:
				found = state.Admission{
					Status: state.Duplicate, Seq: r.int(5), Reason: r.text(3),
					Conflict: r.int(6) == 1 && r.int(4) != digest,
				}
				conversation = r.int(2)
			}
			return nil
		}, a.Event.Thread.Channel, a.Event.ID, a.Event.Same)
	if err != nil {
		return found, err
	}
	if found.Status == 0 {
		for _, n := range old {
			if _, err := t.exec(`DELETE FROM events WHERE n = ?`, n); err != nil {
				return found, err
			}
		}
		return found, nil
	}
	if conversation != 0 {
		h, err := t.byN(conversation)
		if err != nil {
			return found, err
		}
		found.Conversation = h.id
	}
	return found, nil
}

// prune forgets the oldest events, a few at a time, once they are too old.
func (t *tx) prune() error {
	limit := t.now.Add(-state.DedupeFor)
	if t.w.oldest.After(limit) {
		return nil
	}
	var first int64
	oldest := t.now
	err := t.query(`SELECT n, at FROM events ORDER BY n LIMIT 1`, func(r row) error {
		first, oldest = r.int(0), r.time(1)
		return nil
	})
	if err != nil {
		return fmt.Errorf("prune events: %w", err)
	}
	if t.w.oldest = oldest; oldest.After(limit) {
		return nil
	}
	t.w.oldest = time.Time{}
	if _, err := t.exec(`DELETE FROM events WHERE n < ? AND at <= ?`, first+64, limit); err != nil {
		return fmt.Errorf("prune events: %w", err)
	}
	return nil
}

func digest(data []byte) int64 {
	h := fnv.New64a()
	h.Write(data)
	return int64(h.Sum64())
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
