package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

// hole makes the parts after a dead post dead as well.
func (t *tx) hole(n int64, queue, key string) error {
	rows, err := t.parts(n, queue, key, `state = 'due'`)
	if err != nil {
		return err
	}
	for _, r := range rows {
		_, err := t.exec(`UPDATE posts SET owner = NULL, due_at = NULL, state = 'dead', ref = '', reason = ?, settled_at = ? WHERE n = ?`, state.Holed, t.now, r)
		if err != nil {
			return err
		}
	}
	return nil
}

// parts lists the posts of a queue that follow a post, one after the other,
// among those of which a condition holds.
func (t *tx) parts(n int64, queue, key, condition string) (rows []int64, err error) {
	keys := []string{key}
	err = t.query(`SELECT n, post FROM posts WHERE thread = ? AND conversation = ? AND `+condition+` ORDER BY n`, func(r row) error {
		var p chat.Post
		if err := json.Unmarshal(r.bytes(1), &p); err != nil {
			return err
		}
		if slices.Contains(keys, p.After) {
			keys, rows = append(keys, p.Key), append(rows, r.int(0))
		}
		return nil
	}, queue, n)
	return rows, err
}

// RetryPost queues a dead post again.
func (s *Store) RetryPost(ctx context.Context, id state.ID, key string) error {
	return s.revise(ctx, "retry", id, key, `state = 'dead'`, func(t *tx, n, row int64, queue string) error {
		rows, err := t.parts(n, queue, key, `state = 'dead' AND reason = '`+state.Holed+`'`)
		if err != nil {
			return err
		}
		for _, r := range append([]int64{row}, rows...) {
			_, err := t.exec(`UPDATE posts SET n = (SELECT max(n) + 1 FROM posts), state = 'due', ref = NULL, reason = NULL, settled_at = NULL,
				doubt_at = claimed_at, first_at = NULL WHERE n = ?`, r)
			if err != nil {
				return err
			}
		}
		return t.next(queue)
	})
}

// DropPost makes a post dead that nobody is sending.
func (s *Store) DropPost(ctx context.Context, id state.ID, key string) error {
	return s.revise(ctx, "drop", id, key, `state = 'due' AND (owner IS NULL OR due_at <= ?3)`, func(t *tx, n, row int64, queue string) error {
		_, err := t.exec(`UPDATE posts SET owner = NULL, due_at = NULL, state = 'dead', ref = '', reason = ?, settled_at = ? WHERE n = ?`,
			state.Dropped, t.now, row)
		if err == nil {
			err = t.hole(n, queue, key)
		}
		if err == nil {
			err = t.next(queue)
		}
		return err
	})
}

// revise changes a post of which a condition holds.
func (s *Store) revise(ctx context.Context, what string, id state.ID, key, condition string, f func(t *tx, n, row int64, queue string) error) error {
	_, err := do(ctx, s.w, func(t *tx) (struct{}, error) {
		h, err := t.byID(id)
		if err == nil && h == nil {
			err = state.ErrNotFound
		}
		if err != nil {
			return struct{}{}, err
		}
		found, queue := int64(0), ""
		err = t.query(`SELECT n, thread FROM posts WHERE conversation = ?1 AND key = ?2 AND ?3 IS NOT NULL AND `+condition,
			func(r row) error { found, queue = r.int(0), r.text(1); return nil }, h.n, key, t.now)
		if err == nil && found == 0 {
			err = state.ErrNotFound
		}
		if err != nil {
			return struct{}{}, err
		}
		return struct{}{}, f(t, h.n, found, queue)
	})
	if err != nil {
		return fmt.Errorf("%s post %s: %w", what, key, err)
	}
	return nil
}
