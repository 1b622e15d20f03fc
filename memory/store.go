package memory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

// Where things lie: a head for each account, and its items in a space of their
// own, in the order of the times at which they were remembered.
const (
	headSpace = "memory"
	page      = 500
	// overlap is how far the clocks of replicas may be apart, in milliseconds.
	overlap = 2 * 60 * 1000
)

// A head says how the items of an account were embedded and where they lie.
type head struct {
	account account

	Embedder   string    `json:"embedder"`
	Dimension  int       `json:"dimension,omitempty"` // 0 before the first vector
	Generation int       `json:"generation"`          // of the index in use
	Last       int       `json:"last"`                // the greatest generation so far
	Old        int       `json:"old,omitempty"`       // generation still to be deleted
	Building   *building `json:"building,omitempty"`
}

// building is an index that is to take the place of the present one.
type building struct {
	Embedder   string `json:"embedder"`
	Dimension  int    `json:"dimension,omitempty"`
	Generation int    `json:"generation"`
	After      string `json:"after,omitempty"` // key of the last item that is in it
}

func (h head) space(generation int) string {
	return headSpace + "/" + h.account.String() + "/" + strconv.Itoa(generation)
}

// head reads the account's, one with Generation 0 if there is none.
func (m *Memory) head(ctx context.Context, a account) (head, error) {
	h := head{account: a}
	data, err := m.Values.Value(ctx, headSpace, a.String())
	if err != nil {
		return h, fmt.Errorf("read memory of %s: %w", a, err)
	}
	if data == nil {
		return h, nil
	}
	if err := json.Unmarshal(data, &h); err != nil {
		return h, fmt.Errorf("read memory of %s: %w", a, err)
	}
	return h, nil
}

func (m *Memory) putHead(ctx context.Context, h head) error {
	data, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("write memory of %s: %w", h.account, err)
	}
	if err := m.Values.PutValues(ctx, headSpace, state.Value{Key: h.account.String(), Data: data}); err != nil {
		return fmt.Errorf("write memory of %s: %w", h.account, err)
	}
	return nil
}

// heads reads those of all accounts.
func (m *Memory) heads(ctx context.Context) ([]head, error) {
	var out []head
	for v, err := range pages(ctx, m.Values, headSpace, "") {
		if err != nil {
			return nil, fmt.Errorf("list memories: %w", err)
		}
		t, err := chat.ParseThread(v.Key)
		if err != nil {
			return nil, fmt.Errorf("list memories: %w", err)
		}
		h := head{account: accountOf(t)}
		if err := json.Unmarshal(v.Data, &h); err != nil {
			return nil, fmt.Errorf("read memory of %s: %w", v.Key, err)
		}
		out = append(out, h)
	}
	return out, nil
}

// pages lists a space after a key to its end.
func pages(ctx context.Context, values state.Values, space, after string) func(func(state.Value, error) bool) {
	return func(yield func(state.Value, error) bool) {
		for {
			vs, err := values.ListValues(ctx, space, after, page)
			if err != nil {
				yield(state.Value{}, err)
				return
			}
			for _, v := range vs {
				if !yield(v, nil) {
					return
				}
				after = v.Key
			}
			if len(vs) < page {
				return
			}
		}
	}
}

// keyOf is the place of an item: by the time at which it was remembered, in
// milliseconds.
func keyOf(at int64, id string) string { return fmt.Sprintf("%015x/%s", max(at, 0), name(id)) }

// Remember stores an item, unless it is there already. What the embedder cannot
// turn into a vector now is stored without and found by its words, until the
// next reindex. It fails with a *MismatchError if another embedder made the index.
func (m *Memory) Remember(ctx context.Context, it Item) error {
	if err := it.check(); err != nil {
		return err
	}
	h, x, err := m.load(ctx, accountOf(it.Thread))
	if err != nil {
		return err
	}
	if h.Generation == 0 {
		h.Embedder, h.Generation, h.Last = m.Embedder.Name(), 1, 1
		if err := m.putHead(ctx, h); err != nil {
			return err
		}
		x = newIndex(h.space(1), 0)
		m.keep(h.account, x)
	}
	if x.has(it.ID) {
		return nil
	}
	vec, err := m.soon(ctx, h, it.Text)
	if err != nil {
		return err
	}
	if h.Dimension == 0 && vec != nil {
		h.Dimension = len(vec)
		if err := m.putHead(ctx, h); err != nil {
			return err
		}
	}
	it.Open = m.isOpen(ctx, it.Thread)
	data, err := encode(it, vec)
	if err != nil {
		return err
	}
	at := m.Clock().UnixMilli()
	v := state.Value{Key: keyOf(at, it.ID), Data: data}
	if err := m.Values.PutValues(ctx, x.space, v); err != nil {
		return fmt.Errorf("remember in %s: %w", h.account, err)
	}
	x.mu.Lock()
	x.add(v.Key, at, it, vec, len(v.Key)+len(v.Data))
	over := x.oldest(x.live - m.Items)
	x.mu.Unlock()
	m.keep(h.account, x)
	return m.forget(ctx, x, over)
}

// isOpen says whether everybody in the account may read the room. Where that is
// not known, nobody may.
func (m *Memory) isOpen(ctx context.Context, t chat.Thread) bool {
	if m.Open == nil {
		return false
	}
	open, err := m.Open(ctx, t)
	if err != nil {
		m.Log.Warn("room taken for a private one", "thread", t.Key(), "err", err)
		return false
	}
	return open
}

// forget deletes items by their keys.
func (m *Memory) forget(ctx context.Context, x *index, keys []string) error {
	for some := range slices.Chunk(keys, page) {
		var vs []state.Value
		for _, k := range some {
			vs = append(vs, state.Value{Key: k})
		}
		if err := m.Values.PutValues(ctx, x.space, vs...); err != nil {
			return fmt.Errorf("forget: %w", err)
		}
		x.mu.Lock()
		for _, k := range some {
			x.drop(nameOf(k))
		}
		x.mu.Unlock()
	}
	return nil
}

// Forget deletes items by their names, see [Found]. It fails, deleting nothing,
// if the account has no item of a name.
func (m *Memory) Forget(ctx context.Context, account string, names ...string) error {
	h, err := m.named(ctx, account)
	if err != nil {
		return err
	}
	_, x, err := m.load(ctx, h.account)
	if err != nil {
		return err
	}
	var keys []string
	x.mu.RLock()
	for _, n := range names {
		i, ok := x.byName[n]
		if !ok {
			err = errors.Join(err, fmt.Errorf("%s remembers nothing of the name %q", account, n))
			continue
		}
		keys = append(keys, x.rows[i].key)
	}
	x.mu.RUnlock()
	if err != nil {
		return err
	}
	return m.forget(ctx, x, keys)
}

// oldest are the keys of n items that are to be forgotten: turns first.
func (x *index) oldest(n int) []string {
	var keys []string
	for _, kind := range []Kind{Turn, Note} {
		for i := range x.rows {
			if len(keys) >= n {
				return keys
			}
			if r := &x.rows[i]; !r.gone && r.kind == kind {
				keys = append(keys, r.key)
			}
		}
	}
	return keys
}

// load brings the account's index in memory up to the store: what other
// processes remembered meanwhile is read. An account without memory has none.
func (m *Memory) load(ctx context.Context, a account) (head, *index, error) {
	h, err := m.head(ctx, a)
	if err != nil || h.Generation == 0 {
		return h, nil, err
	}
	if err := m.match(h); err != nil {
		return h, nil, err
	}
	x := m.find(a, h)
	if err := m.read(ctx, x); err != nil {
		return h, nil, fmt.Errorf("read memory of %s: %w", a, err)
	}
	m.keep(a, x)
	return h, x, nil
}

// read adds what the store has beyond the index.
func (m *Memory) read(ctx context.Context, x *index) error {
	x.mu.RLock()
	after := keyOf(x.newest-overlap, "")[:15]
	x.mu.RUnlock()
	for v, err := range pages(ctx, m.Values, x.space, after) {
		if err != nil {
			return err
		}
		x.mu.RLock()
		_, known := x.byName[nameOf(v.Key)]
		x.mu.RUnlock()
		if known {
			continue
		}
		it, vec, err := decode(v.Data)
		if err != nil {
			m.Log.Error("item left out", "key", v.Key, "err", err)
			continue
		}
		at, _ := strconv.ParseInt(v.Key[:min(15, len(v.Key))], 16, 64)
		x.mu.Lock()
		x.add(v.Key, at, it, vec, len(v.Key)+len(v.Data))
		x.mu.Unlock()
	}
	return nil
}

// nameOf is the item's part of its key.
func nameOf(key string) string { return key[strings.IndexByte(key, '/')+1:] }

// find returns the account's index in memory, or a new one to be read.
func (m *Memory) find(a account, h head) *index {
	m.mu.Lock()
	defer m.mu.Unlock()
	space := h.space(h.Generation)
	if x := m.kept[a]; x != nil && x.space == space && !x.thin() {
		return x
	}
	return newIndex(space, h.Dimension)
}

// thin says whether much of the index is gone.
func (x *index) thin() bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.rows) > 1000 && x.live < len(x.rows)*3/4
}

// keep holds an index in memory and lets go of those that were not used for
// longest, if all together take more than the cache may.
func (m *Memory) keep(a account, x *index) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept[a] = x
	m.used = append(slices.DeleteFunc(m.used, func(o account) bool { return o == a }), a)
	sum := 0
	for _, a := range slices.Backward(m.used) {
		o := m.kept[a]
		o.mu.RLock()
		sum += o.bytes()
		o.mu.RUnlock()
		if sum > m.Cache && o != x {
			delete(m.kept, a)
		}
	}
	m.used = slices.DeleteFunc(m.used, func(a account) bool { return m.kept[a] == nil })
}

// has says whether the index has an item.
func (x *index) has(id string) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	_, ok := x.byName[name(id)]
	return ok
}
