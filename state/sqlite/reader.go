package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

// read runs f on a connection that reads, in one snapshot.
func (s *Store) read(ctx context.Context, f func(*conn) error) (err error) {
	var c *conn
	select {
	case c = <-s.readers:
	case <-s.closing:
		return state.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { s.readers <- c }()
	if _, err := c.exec("BEGIN"); err != nil {
		return err
	}
	defer func() {
		if _, e := c.exec("COMMIT"); err == nil {
			err = e
		}
	}()
	return f(c)
}

// Conversations lists conversations, newest first.
func (s *Store) Conversations(ctx context.Context, before time.Time, limit int) (out []state.Conversation, err error) {
	last := int64(math.MaxInt64)
	if !before.IsZero() {
		last = before.UnixMicro()
	}
	err = s.read(ctx, func(c *conn) error {
		return c.query(`SELECT `+headColumns+` FROM conversations WHERE updated_at < ? ORDER BY updated_at DESC, n DESC LIMIT ?`,
			func(r row) error {
				var h head
				if err := h.scan(r); err != nil {
					return err
				}
				out = append(out, h.conversation())
				return nil
			}, last, max(limit, 0))
	})
	if err != nil {
		return nil, fmt.Errorf("list conversations: %w", err)
	}
	return out, nil
}

// Records reads a part of a log.
func (s *Store) Records(ctx context.Context, id state.ID, after int64, limit int) (out []state.Record, err error) {
	after = max(after, 0)
	err = s.read(ctx, func(c *conn) error {
		h, err := c.head(headByID, string(id))
		if h != nil && h.seq > after {
			out, err = c.records(h, after, after+min(h.seq-after, int64(max(limit, 0))))
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read records of %s: %w", id, err)
	}
	return out, nil
}

// Posts lists the posts of a conversation.
func (s *Store) Posts(ctx context.Context, id state.ID) (out []state.PostView, err error) {
	err = s.read(ctx, func(c *conn) error {
		out, err = c.posts(`p.conversation = (SELECT n FROM conversations WHERE id = ?2) ORDER BY p.n`, micro(s.clock()), string(id))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list posts of %s: %w", id, err)
	}
	return out, nil
}

// stateOf is what people see of a post p at a time, ?1.
const stateOf = `CASE WHEN p.state <> 'due' THEN p.state WHEN p.owner IS NOT NULL AND p.due_at > ?1 THEN 'sending'
	WHEN p.owner IS NOT NULL OR p.doubt_at IS NOT NULL THEN 'unknown' ELSE 'pending' END`

// Threads lists the threads that a conversation owns besides its own.
func (s *Store) Threads(ctx context.Context, id state.ID) (out []chat.Thread, err error) {
	err = s.read(ctx, func(c *conn) error {
		return c.query(`SELECT thread FROM threads WHERE conversation = (SELECT n FROM conversations WHERE id = ?) ORDER BY n`, func(r row) error {
			th, err := chat.ParseThread(r.text(0))
			out = append(out, th)
			return err
		}, string(id))
	})
	if err != nil {
		return nil, fmt.Errorf("list threads of %s: %w", id, err)
	}
	return out, nil
}

// Event says what became of an event.
func (s *Store) Event(ctx context.Context, channel, id string) (a state.Admission, err error) {
	err = s.read(ctx, func(c *conn) error {
		return c.query(`SELECT c.id, e.reason, e.seq FROM events e LEFT JOIN conversations c ON c.n = e.conversation
			WHERE e.channel = ? AND e.id = ? AND e.at > ?`, func(r row) error {
			a = state.Admission{Status: state.Admitted, Conversation: state.ID(r.text(0)), Seq: r.int(2), Reason: r.text(1)}
			if a.Conversation == "" {
				a.Status = state.Ignored
			}
			return nil
		}, channel, id, micro(s.clock()).Add(-state.DedupeFor))
	})
	if err == nil && a.Status == 0 {
		err = state.ErrNotFound
	}
	if err != nil {
		return state.Admission{}, fmt.Errorf("event %s of %s: %w", id, channel, err)
	}
	return a, nil
}

// Acts says what became of the events of one act.
func (s *Store) Acts(ctx context.Context, channel, same string) (out []state.Act, err error) {
	if same == "" {
		return nil, nil
	}
	err = s.read(ctx, func(c *conn) error {
		return c.query(`SELECT e.id, e.at, c.id, e.seq, e.reason
			FROM (SELECT * FROM events WHERE channel = ?1 AND same = ?2 UNION ALL SELECT * FROM events WHERE channel = ?1 AND act = ?2) e
			LEFT JOIN conversations c ON c.n = e.conversation WHERE e.at > ?3 ORDER BY e.at, e.id`, func(r row) error {
			a := state.Act{Event: r.text(0), At: r.time(1), Admission: state.Admission{
				Status: state.Admitted, Conversation: state.ID(r.text(2)), Seq: r.int(3), Reason: r.text(4),
			}}
			if a.Conversation == "" {
				a.Status = state.Ignored
			}
			out = append(out, a)
			return nil
		}, channel, same, micro(s.clock()).Add(-state.DedupeFor))
	})
	if err != nil {
		return nil, fmt.Errorf("events of an act in %s: %w", channel, err)
	}
	return out, nil
}

// Unsent lists the posts that are not sent.
func (s *Store) Unsent(ctx context.Context, limit int) (out []state.PostView, err error) {
	err = s.read(ctx, func(c *conn) error {
		out, err = c.posts(`p.n IN (SELECT n FROM posts WHERE state = 'due' UNION ALL SELECT n FROM posts WHERE state = 'dead')
			ORDER BY p.queued_at DESC, c.id, p.key LIMIT ?2`, micro(s.clock()), max(limit, 0))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list posts that are not sent: %w", err)
	}
	return out, nil
}

// posts reads posts p of conversations c as they are at a time, ?1.
func (c *conn) posts(which string, args ...any) (out []state.PostView, err error) {
	err = c.query(`SELECT p.post, `+stateOf+`, p.ref, p.reason, p.attempts, p.queued_at, p.settled_at, c.id
		FROM posts p JOIN conversations c ON c.n = p.conversation WHERE `+which, func(r row) error {
		v := state.PostView{
			State: state.PostState(r.text(1)), Ref: r.text(2), Reason: r.text(3),
			Attempts: int(r.int(4)), QueuedAt: r.time(5), SettledAt: r.time(6), Conversation: state.ID(r.text(7)),
		}
		if err := json.Unmarshal(r.bytes(0), &v.Post); err != nil {
			return err
		}
		out = append(out, v)
		return nil
	}, args...)
	return out, err
}

// Find returns the conversation of a thread.
func (s *Store) Find(ctx context.Context, t chat.Thread) (state.Conversation, error) {
	var h *head
	err := s.read(ctx, func(c *conn) (err error) {
		if h, err = c.head(headByThread, t.Key()); h == nil && err == nil {
			h, err = c.head(headByOpened, t.Key())
		}
		return err
	})
	if err == nil && h == nil {
		err = state.ErrNotFound
	}
	if err != nil {
		return state.Conversation{}, fmt.Errorf("find %s: %w", t, err)
	}
	return h.conversation(), nil
}
