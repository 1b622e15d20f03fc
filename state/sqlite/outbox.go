package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

// queue adds a post, unless the conversation has used its key. Only the oldest
// unsettled post of a thread has a due time, so only that one is ever found.
func (t *tx) queue(n int64, p chat.Post) error {
	data, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("post %s: %w", p.Key, err)
	}
	_, err = t.exec(`INSERT INTO posts (conversation, key, thread, post, state, due_at, attempts, queued_at)
		VALUES (?1, ?2, ?3, ?4, 'due', CASE WHEN EXISTS (SELECT 1 FROM posts WHERE thread = ?3 AND state = 'due') THEN NULL ELSE ?5 END, 0, ?5)
		ON CONFLICT (conversation, key) DO NOTHING`, n, p.Key, queueOf(n, p), data, t.now)
	t.due.add(t.now)
	return err
}

// queueOf names what a post is made in the order of: the key of its thread or,
// if it is to open one, that of the place and who is to open it.
func queueOf(n int64, p chat.Post) string {
	if p.Open {
		return fmt.Sprintf("%s#%d", p.Thread.Key(), n) // no key has four parts and this at its end
	}
	return p.Thread.Key()
}

// ClaimPosts leases posts that are due.
func (s *Store) ClaimPosts(ctx context.Context, owner string, n int, ttl time.Duration) ([]state.Effect, error) {
	if s.w.due.none(s.w.now()) {
		return nil, ctx.Err()
	}
	out, err := do(ctx, s.w, func(t *tx) ([]state.Effect, error) { return t.claimPosts(owner, n, until(t.now, ttl)) })
	if err != nil {
		return nil, fmt.Errorf("claim posts: %w", err)
	}
	return out, nil
}

func (t *tx) claimPosts(owner string, n int, until time.Time) ([]state.Effect, error) {
	var out []state.Effect
	var rows, conversations []int64
	var next time.Time
	err := t.query(`SELECT n, due_at, post, conversation, attempts, iif(owner IS NULL, doubt_at, claimed_at), first_at, queued_at
		FROM posts WHERE due_at IS NOT NULL ORDER BY due_at, n LIMIT ?`, func(r row) error {
		if len(out) == n || r.time(1).After(t.now) {
			if next.IsZero() {
				next = r.time(1)
			}
			return nil
		}
		e := state.Effect{
			Attempt: int(r.int(4)) + 1, Epoch: r.int(4) + 1, DoubtAt: r.time(5), FirstAt: r.time(6), QueuedAt: r.time(7),
		}
		if e.FirstAt.IsZero() {
			e.FirstAt = t.now
		}
		rows, conversations = append(rows, r.int(0)), append(conversations, r.int(3))
		out = append(out, e)
		return json.Unmarshal(r.bytes(2), &out[len(out)-1].Post)
	}, n+1)
	if err != nil {
		return nil, err
	}
	t.due.reset(next)
	for i := range out {
		e := &out[i]
		h, err := t.byN(conversations[i])
		if err != nil {
			return nil, err
		}
		if h == nil {
			return nil, fmt.Errorf("%w: post %s has no conversation", state.ErrDamaged, e.Post.Key)
		}
		e.Conversation = h.id
		if e.Post.Open {
			if err := t.place(h.n, &e.Post); err != nil {
				return nil, err
			}
		}
		_, err = t.exec(`UPDATE posts SET owner = ?, due_at = ?, attempts = ?, doubt_at = ?, first_at = ?, claimed_at = ? WHERE n = ?`,
			owner, until, e.Attempt, e.DoubtAt, e.FirstAt, t.now, rows[i])
		if err != nil {
			return nil, err
		}
		t.due.add(until)
	}
	return out, nil
}

// place gives a post the thread that is open for it, if there is one.
func (t *tx) place(n int64, p *chat.Post) error {
	return t.query(`SELECT thread FROM threads WHERE conversation = ? AND place = ? ORDER BY n LIMIT 1`, func(r row) (err error) {
		p.Thread, err = chat.ParseThread(r.text(0))
		p.Open = false
		return err
	}, n, p.Thread.Key())
}

// own adds a thread to a conversation, unless it has an owner.
func (t *tx) own(n int64, thread, place chat.Thread) error {
	if thread == (chat.Thread{}) {
		return nil
	}
	h, err := t.byThread(thread.Key())
	if h != nil || err != nil {
		return err
	}
	_, err = t.exec(`INSERT INTO threads (conversation, thread, place) VALUES (?, ?, ?)`, n, thread.Key(), place.Key())
	return err
}

// WaitDue waits until ClaimPosts may find something.
func (s *Store) WaitDue(ctx context.Context) error { return s.w.due.wait(ctx, s.w.clock) }

// SettlePost records what became of a claimed post.
func (s *Store) SettlePost(ctx context.Context, e state.Effect, o state.Outcome) error {
	if err := o.Validate(); err != nil {
		return fmt.Errorf("settle post %s: %w", e.Post.Key, err)
	}
	_, err := do(ctx, s.w, func(t *tx) (struct{}, error) { return struct{}{}, t.settle(e, o) })
	if err != nil {
		return fmt.Errorf("settle post %s: %w", e.Post.Key, err)
	}
	return nil
}

// claimed is the condition that a claim of a post is live.
const claimed = ` WHERE conversation = ? AND key = ? AND owner IS NOT NULL AND attempts = ?`

func (t *tx) settle(e state.Effect, o state.Outcome) error {
	h, err := t.byID(e.Conversation)
	if err != nil {
		return err
	}
	if h == nil {
		return state.ErrLeaseLost
	}
	if o.State == state.Due {
		due := later(t.now, micro(o.Due))
		t.due.add(due)
		changed, err := t.exec(`UPDATE posts SET owner = NULL, due_at = ?, doubt_at = ?, reason = ?`+claimed,
			due, micro(o.DoubtAt), o.Reason, h.n, e.Post.Key, e.Epoch)
		if err == nil && changed == 0 {
			err = state.ErrLeaseLost
		}
		return err
	}
	ref, reason := o.Ref, ""
	if o.State == state.Dead {
		ref, reason = "", o.Reason
	}
	if err := t.open(); err != nil {
		return err
	}
	queue, p := "", chat.Post{}
	err = t.query(`UPDATE posts SET owner = NULL, due_at = NULL, state = ?, ref = ?, reason = ?, settled_at = ?`+claimed+` RETURNING thread, post`,
		func(r row) error { queue = r.text(0); return json.Unmarshal(r.bytes(1), &p) },
		string(o.State), ref, reason, t.now, h.n, e.Post.Key, e.Epoch)
	if err == nil && queue == "" {
		err = state.ErrLeaseLost
	}
	if err != nil {
		return err
	}
	if o.State == state.Dead {
		err = t.hole(h.n, queue, p.Key)
	} else {
		err = t.own(h.n, o.Opened, p.Thread)
	}
	if err != nil {
		return err
	}
	return t.next(queue)
}

// next makes the oldest unsettled post of a queue due, unless it is.
func (t *tx) next(queue string) error {
	next, err := t.exec(`UPDATE posts SET due_at = queued_at
		WHERE n = (SELECT min(n) FROM posts WHERE thread = ? AND state = 'due') AND due_at IS NULL`, queue)
	if next > 0 {
		t.due.add(t.now)
	}
	return err
}
