package sqlite

import (
	"context"
	"fmt"

	"github.com/heddlehq/heddle/state"
)

// PutValues replaces values.
func (s *Store) PutValues(ctx context.Context, space string, vs ...state.Value) error {
	for _, v := range vs {
		if err := v.Validate(); err != nil {
			return fmt.Errorf("put values of %s: %w", space, err)
		}
	}
	_, err := do(ctx, s.w, func(t *tx) (struct{}, error) {
		for _, v := range vs {
			if err := t.putValue(space, v); err != nil {
				return struct{}{}, err
			}
		}
		return struct{}{}, nil
	})
	if err != nil {
		return fmt.Errorf("put values of %s: %w", space, err)
	}
	return nil
}

func (t *tx) putValue(space string, v state.Value) (err error) {
	if v.Data == nil {
		_, err = t.exec(`DELETE FROM named_values WHERE space = ? AND key = ?`, space, v.Key)
	} else {
		_, err = t.exec(`INSERT INTO named_values (space, key, data) VALUES (?, ?, ?)
			ON CONFLICT (space, key) DO UPDATE SET data = excluded.data`, space, v.Key, v.Data)
	}
	return err
}

func (t *tx) count(c state.Count) error {
	data, err := t.value(c.Space, c.Key)
	if err != nil {
		return err
	}
	v, err := c.To(data)
	if err != nil {
		return err
	}
	return t.putValue(c.Space, v)
}

func (c *conn) value(space, key string) (data []byte, err error) {
	err = c.query(`SELECT data FROM named_values WHERE space = ? AND key = ?`,
		func(r row) error { data = r.value(0); return nil }, space, key)
	return data, err
}

// Value reads a value.
func (s *Store) Value(ctx context.Context, space, key string) (data []byte, err error) {
	err = s.read(ctx, func(c *conn) error {
		data, err = c.value(space, key)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read a value of %s: %w", space, err)
	}
	return data, nil
}

// ListValues lists values in the order of their keys.
func (s *Store) ListValues(ctx context.Context, space, after string, limit int) (out []state.Value, err error) {
	err = s.read(ctx, func(c *conn) error {
		return c.query(`SELECT key, data FROM named_values WHERE space = ? AND key > ? ORDER BY key LIMIT ?`,
			func(r row) error {
				out = append(out, state.Value{Key: r.text(0), Data: r.value(1)})
				return nil
			}, space, after, max(limit, 0))
	})
	if err != nil {
		return nil, fmt.Errorf("list values of %s: %w", space, err)
	}
	return out, nil
}
