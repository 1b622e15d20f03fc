package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/heddlehq/heddle/state"
)

// Claim leases the conversation that has been ready longest.
func (s *Store) Claim(ctx context.Context, owner string, ttl time.Duration) (state.Lease, error) {
	if s.w.ready.none(s.w.now()) {
		return state.Lease{}, state.ErrNone
	}
	return do(ctx, s.w, func(t *tx) (state.Lease, error) {
		l, err := t.claim(owner, until(t.now, ttl))
		if err != nil {
			return state.Lease{}, fmt.Errorf("claim: %w", err)
		}
		return l, nil
	})
}

func (t *tx) claim(owner string, until time.Time) (state.Lease, error) {
	var first int64
	var at [2]time.Time // when the first and the second are ready
	i := 0
	err := t.query(`SELECT n, ready_at FROM conversations WHERE ready_at IS NOT NULL ORDER BY ready_at, n LIMIT 2`, func(r row) error {
		if i == 0 {
			first = r.int(0)
		}
		at[i] = r.time(1)
		i++
		return nil
	})
	if err != nil {
		return state.Lease{}, err
	}
	if first == 0 || at[0].After(t.now) {
		t.ready.reset(at[0])
		return state.Lease{}, state.ErrNone
	}
	t.ready.reset(at[1])
	h, err := t.byN(first)
	if err != nil {
		return state.Lease{}, err
	}
	h.owner, h.readyAt, h.heldBy, h.heldAt = owner, until, nil, time.Time{}
	h.epoch++
	h.attempt++
	return h.lease(), t.save(h)
}

// WaitReady waits until Claim may find something.
func (s *Store) WaitReady(ctx context.Context) error { return s.w.ready.wait(ctx, s.w.clock) }

// Renew makes a lease last longer.
func (s *Store) Renew(ctx context.Context, l state.Lease, ttl time.Duration) (state.Lease, error) {
	return do(ctx, s.w, func(t *tx) (state.Lease, error) {
		h, err := t.held(l)
		if err != nil {
			return state.Lease{}, fmt.Errorf("renew %s: %w", l.Conversation.ID, err)
		}
		h.readyAt = until(t.now, ttl)
		if err := t.save(h); err != nil {
			return state.Lease{}, fmt.Errorf("renew %s: %w", h.id, err)
		}
		return h.lease(), nil
	})
}

// held reads the conversation of a lease that is live.
func (t *tx) held(l state.Lease) (*head, error) {
	h, err := t.byID(l.Conversation.ID)
	if err == nil && (h == nil || !h.leased() || h.epoch != l.Epoch) {
		err = state.ErrLeaseLost
	}
	return h, err
}

// Commit makes a batch true.
func (s *Store) Commit(ctx context.Context, l state.Lease, b state.Batch) (state.Lease, error) {
	return do(ctx, s.w, func(t *tx) (state.Lease, error) {
		l, err := t.write(l, b)
		if err != nil {
			return state.Lease{}, fmt.Errorf("commit to %s: %w", l.Conversation.ID, err)
		}
		return l, nil
	})
}

// insertRecords are the statements that insert so many records at once.
var insertRecords = func() (all [9]string) {
	for n := range all {
		all[n] = `INSERT INTO records (key, at, kind, data) VALUES ` + strings.TrimSuffix(strings.Repeat(`(?, ?, ?, ?), `, n), `, `)
	}
	return all
}()

// append adds records after a Seq.
func (t *tx) append(n, seq int64, records []state.Record) error {
	args := make([]any, 0, 4*min(len(records), len(insertRecords)-1))
	for len(records) > 0 {
		some := records[:min(len(records), len(insertRecords)-1)]
		args = args[:0]
		for _, r := range some {
			seq++
			args = append(args, key(n, seq), t.now, r.Kind, r.Data)
		}
		if _, err := t.exec(insertRecords[len(some)], args...); err != nil {
			return err
		}
		records = records[len(some):]
	}
	return nil
}

func (t *tx) write(l state.Lease, b state.Batch) (state.Lease, error) {
	h, err := t.held(l)
	if err != nil {
		return l, err
	}
	if err := t.append(h.n, h.seq, b.Records); err != nil {
		return l, err
	}
	h.seq += int64(len(b.Records))
	if taken := min(b.Taken, h.arrived); taken > h.taken {
		_, err := t.exec(`DELETE FROM inbox WHERE key BETWEEN ? AND ?`, key(h.n, h.taken+1), key(h.n, taken))
		if err != nil {
			return l, err
		}
		h.taken = taken
	}
	for _, p := range b.Posts {
		if err := t.queue(h.n, p); err != nil {
			return l, err
		}
	}
	for _, v := range b.Blobs {
		if err := t.setBlob(h.n, v); err != nil {
			return l, err
		}
	}
	for _, c := range b.Counts {
		if err := t.count(c); err != nil {
			return l, err
		}
	}
	h.updatedAt = t.now
	h.left = h.left || b.Leave && h.loud <= h.taken
	answer := h.lease()
	if b.Release {
		h.release(b, t.now)
		answer.Until = time.Time{}
	}
	return answer, t.save(h)
}

func (h *head) release(b state.Batch, now time.Time) {
	h.owner, h.attempt, h.pauseAt = nil, 0, micro(b.Pause)
	switch {
	case h.loud > h.taken:
		h.readyAt = later(now, h.pauseAt)
	case !b.Wake.IsZero():
		h.readyAt = later(later(now, h.pauseAt), micro(b.Wake))
	default:
		h.readyAt = time.Time{}
	}
}

func (t *tx) setBlob(n int64, b state.Blob) (err error) {
	if b.Data == nil {
		_, err = t.exec(`DELETE FROM blobs WHERE conversation = ? AND name = ?`, n, b.Name)
	} else {
		_, err = t.exec(`INSERT INTO blobs (conversation, name, data) VALUES (?, ?, ?)
			ON CONFLICT (conversation, name) DO UPDATE SET data = excluded.data`, n, b.Name, b.Data)
	}
	return err
}

// Loads of more than shortLoad rows do not keep the writer: it says errLong.
const shortLoad = 256

var errLong = errors.New("too long for the writer")

// Load reads a conversation. A short one is read by the writer, between
// commits: its cache is warm, where another connection has to read every page
// anew after every commit.
func (s *Store) Load(ctx context.Context, id state.ID, after int64) (state.View, error) {
	after = max(after, 0)
	v, err := do(ctx, s.w, func(t *tx) (state.View, error) {
		h, err := t.byID(id)
		if h != nil && h.seq-after+h.arrived-h.taken > shortLoad {
			err = errLong
		}
		if err != nil {
			return state.View{}, err
		}
		return t.load(h, after)
	})
	if errors.Is(err, errLong) || errors.Is(err, errReadOnly) {
		err = s.read(ctx, func(c *conn) error {
			h, err := c.head(headByID, string(id))
			if err == nil {
				v, err = c.load(h, after)
			}
			return err
		})
	}
	if err != nil {
		return state.View{}, fmt.Errorf("load %s: %w", id, err)
	}
	return v, nil
}

func (c *conn) load(h *head, after int64) (state.View, error) {
	if h == nil {
		return state.View{}, state.ErrNotFound
	}
	v := state.View{Conversation: h.conversation()}
	var err error
	if v.Records, err = c.records(h, after, h.seq); err != nil || h.arrived == h.taken {
		return v, err
	}
	err = c.query(`SELECT key, at, quiet, event FROM inbox WHERE key > ? AND key <= ? ORDER BY key`, func(r row) error {
		e := state.Entry{Seq: seqOf(r.int(0)), At: r.time(1), Quiet: r.int(2) != 0}
		v.Inbox = append(v.Inbox, e)
		return json.Unmarshal(r.bytes(3), &v.Inbox[len(v.Inbox)-1].Event)
	}, key(h.n, h.taken), lastKey(h.n))
	return v, err
}

// records reads those after a Seq up to another.
func (c *conn) records(h *head, after, to int64) ([]state.Record, error) {
	if to <= after {
		return nil, nil
	}
	out := make([]state.Record, 0, to-after)
	err := c.query(`SELECT key, at, kind, data FROM records WHERE key > ? AND key <= ? ORDER BY key`, func(r row) error {
		out = append(out, state.Record{Seq: seqOf(r.int(0)), At: r.time(1), Kind: r.text(2), Data: r.bytes(3)})
		return nil
	}, key(h.n, after), key(h.n, to))
	return out, err
}

// Blob reads a named value.
func (s *Store) Blob(ctx context.Context, id state.ID, name string) (data []byte, err error) {
	err = s.read(ctx, func(c *conn) error {
		return c.query(`SELECT data FROM blobs WHERE name = ? AND conversation = (SELECT n FROM conversations WHERE id = ?)`,
			func(r row) error { data = r.value(0); return nil }, name, string(id))
	})
	if err != nil {
		return nil, fmt.Errorf("read blob %s of %s: %w", name, id, err)
	}
	return data, nil
}

func until(now time.Time, ttl time.Duration) time.Time { return micro(now.Add(ttl)) }

// micro is t in UTC with the precision that is kept.
func micro(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return time.UnixMicro(t.UnixMicro()).UTC()
}
