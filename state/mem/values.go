package mem

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"github.com/heddlehq/heddle/state"
)

type space struct {
	data map[string][]byte
	keys []string // of data, in order; nil when they are to be sorted again
}

// PutValues replaces values.
func (s *Store) PutValues(ctx context.Context, name string, vs ...state.Value) error {
	for _, v := range vs {
		if err := v.Validate(); err != nil {
			return err
		}
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	s.put(name, vs...)
	return nil
}

func (s *Store) put(name string, vs ...state.Value) {
	sp := s.spaces[name]
	if sp == nil {
		sp = &space{data: map[string][]byte{}}
		s.spaces[name] = sp
	}
	sp.keys = nil
	for _, v := range vs {
		if v.Data == nil {
			delete(sp.data, v.Key)
		} else {
			sp.data[v.Key] = bytes.Clone(v.Data)
		}
	}
}

// counted is what values are after counts.
func (s *Store) counted(cs []state.Count) ([]state.Value, error) {
	now := map[[2]string][]byte{}
	vs := make([]state.Value, len(cs))
	for i, c := range cs {
		at := [2]string{c.Space, c.Key}
		data, ok := now[at]
		if sp := s.spaces[c.Space]; !ok && sp != nil {
			data = sp.data[c.Key]
		}
		v, err := c.To(data)
		if err != nil {
			return nil, err
		}
		vs[i], now[at] = v, v.Data
	}
	return vs, nil
}

// Value reads a value.
func (s *Store) Value(ctx context.Context, name, key string) ([]byte, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if sp := s.spaces[name]; sp != nil {
		return bytes.Clone(sp.data[key]), nil
	}
	return nil, nil
}

// ListValues lists values in the order of their keys.
func (s *Store) ListValues(ctx context.Context, name, after string, limit int) ([]state.Value, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	sp := s.spaces[name]
	if sp == nil {
		return nil, nil
	}
	if sp.keys == nil {
		sp.keys = slices.Sorted(maps.Keys(sp.data))
	}
	first, found := slices.BinarySearch(sp.keys, after)
	if found {
		first++
	}
	var out []state.Value
	for _, key := range sp.keys[first:min(first+max(limit, 0), len(sp.keys))] {
		out = append(out, state.Value{Key: key, Data: bytes.Clone(sp.data[key])})
	}
	return out, nil
}
