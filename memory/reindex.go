package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

// batch is how many texts are embedded at once.
const batch = 64

// Accounts lists those that remember something: "slack/T01".
func (m *Memory) Accounts(ctx context.Context) ([]string, error) {
	heads, err := m.heads(ctx)
	var out []string
	for _, h := range heads {
		out = append(out, h.account.String())
	}
	return out, err
}

// Reindex embeds what an account remembers by the present embedder. The new
// index is built beside the old one and takes its place when it is whole; a job
// that was interrupted goes on where it was. An index that the embedder made
// already only gets the vectors that it lacks, unless again is set. No gateway
// may run on the store meanwhile. It tells how many items were embedded so far.
func (m *Memory) Reindex(ctx context.Context, name string, again bool, progress func(done int)) error {
	h, err := m.named(ctx, name)
	if err != nil {
		return err
	}
	if h.Embedder == m.Embedder.Name() && !again {
		if h, err = m.abandon(ctx, h); err != nil {
			return err
		}
		return m.complete(ctx, h, progress)
	}
	if h, err = m.begin(ctx, h); err != nil {
		return err
	}
	for fresh := false; ; fresh = true {
		h, err = m.build(ctx, h, progress)
		if !errors.As(err, new(*MismatchError)) || fresh {
			break
		}
		// The model behind the name changed since the job was begun.
		if h, err = m.abandon(ctx, h); err != nil {
			return err
		}
		if h, err = m.begin(ctx, h); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	b := *h.Building
	h.Old, h.Building = h.Generation, nil
	h.Embedder, h.Dimension, h.Generation = b.Embedder, b.Dimension, b.Generation
	if err := m.putHead(ctx, h); err != nil {
		return err
	}
	_, err = m.sweep(ctx, h)
	return err
}

// build embeds the items that what is being built does not have yet.
func (m *Memory) build(ctx context.Context, h head, progress func(done int)) (head, error) {
	done := 0
	for {
		vs, err := m.Values.ListValues(ctx, h.space(h.Generation), h.Building.After, batch)
		if err != nil {
			return h, fmt.Errorf("reindex %s: %w", h.account, err)
		}
		if len(vs) == 0 {
			return h, nil
		}
		into := head{account: h.account, Embedder: h.Building.Embedder, Dimension: h.Building.Dimension}
		put, dimension, err := m.embedded(ctx, into, vs)
		if err != nil {
			return h, err
		}
		if err := m.Values.PutValues(ctx, h.space(h.Building.Generation), put...); err != nil {
			return h, fmt.Errorf("reindex %s: %w", h.account, err)
		}
		h.Building.Dimension, h.Building.After = dimension, vs[len(vs)-1].Key
		if err := m.putHead(ctx, h); err != nil {
			return h, err
		}
		done += len(vs)
		progress(done)
	}
}

// begin makes ready what is to be built, or finds it begun.
func (m *Memory) begin(ctx context.Context, h head) (head, error) {
	if h.Building != nil && h.Building.Embedder == m.Embedder.Name() {
		return h, nil
	}
	h, err := m.abandon(ctx, h)
	if err != nil {
		return h, err
	}
	h.Building = &building{Embedder: m.Embedder.Name(), Generation: h.Last + 1}
	h.Last++
	return h, m.putHead(ctx, h)
}

// abandon gives up what is being built and deletes what is not used.
func (m *Memory) abandon(ctx context.Context, h head) (head, error) {
	h, err := m.sweep(ctx, h)
	if err != nil || h.Building == nil {
		return h, err
	}
	h.Old, h.Building = h.Building.Generation, nil
	if err := m.putHead(ctx, h); err != nil {
		return h, err
	}
	return m.sweep(ctx, h)
}

// sweep deletes the generation that is not used any more.
func (m *Memory) sweep(ctx context.Context, h head) (head, error) {
	if h.Old == 0 {
		return h, nil
	}
	var keys []string
	for v, err := range pages(ctx, m.Values, h.space(h.Old), "") {
		if err != nil {
			return h, fmt.Errorf("reindex %s: %w", h.account, err)
		}
		keys = append(keys, v.Key)
	}
	if err := m.forget(ctx, newIndex(h.space(h.Old), 0), keys); err != nil {
		return h, err
	}
	h.Old = 0
	return h, m.putHead(ctx, h)
}

// embedded gives stored items new vectors. Items that are damaged are left out.
func (m *Memory) embedded(ctx context.Context, h head, vs []state.Value) ([]state.Value, int, error) {
	var items []Item
	var texts, keys []string
	for _, v := range vs {
		it, _, err := decode(v.Data)
		if err != nil {
			m.Log.Error("item left out", "key", v.Key, "err", err)
			continue
		}
		items, texts, keys = append(items, it), append(texts, it.Text), append(keys, v.Key)
	}
	if len(items) == 0 {
		return nil, h.Dimension, nil
	}
	vecs, err := m.embed(ctx, h, texts)
	if err != nil {
		return nil, 0, fmt.Errorf("reindex %s: %w", h.account, err)
	}
	var out []state.Value
	for i, it := range items {
		data, err := encode(it, vecs[i])
		if err != nil {
			return nil, 0, err
		}
		out = append(out, state.Value{Key: keys[i], Data: data})
		h.Dimension = max(h.Dimension, len(vecs[i]))
	}
	return out, h.Dimension, nil
}

// complete embeds the items that have no vector.
func (m *Memory) complete(ctx context.Context, h head, progress func(done int)) error {
	var bare []state.Value
	for v, err := range pages(ctx, m.Values, h.space(h.Generation), "") {
		if err != nil {
			return fmt.Errorf("reindex %s: %w", h.account, err)
		}
		if _, vec, err := decode(v.Data); err == nil && vec == nil {
			bare = append(bare, v)
		}
	}
	done := 0
	for vs := range slices.Chunk(bare, batch) {
		put, dimension, err := m.embedded(ctx, h, vs)
		if err != nil {
			return err
		}
		if dimension != h.Dimension {
			h.Dimension = dimension
			if err := m.putHead(ctx, h); err != nil {
				return err
			}
		}
		if err := m.Values.PutValues(ctx, h.space(h.Generation), put...); err != nil {
			return fmt.Errorf("reindex %s: %w", h.account, err)
		}
		done += len(vs)
		progress(done)
	}
	m.mu.Lock()
	delete(m.kept, h.account) // what it holds has no vectors
	m.used = slices.DeleteFunc(m.used, func(a account) bool { return a == h.account })
	m.mu.Unlock()
	return nil
}

// ErrAccount says that an account remembers nothing.
var ErrAccount = errors.New("no such account remembers anything")

// named finds the head of an account by its name.
func (m *Memory) named(ctx context.Context, name string) (head, error) {
	t, err := chat.ParseThread(name)
	if err != nil {
		return head{}, fmt.Errorf("account %q: want channel/account, such as slack/T01", name)
	}
	h, err := m.head(ctx, accountOf(t))
	if err == nil && h.Generation == 0 {
		err = fmt.Errorf("%s: %w", name, ErrAccount)
	}
	return h, err
}

// Stats tell what an account's memory takes.
type Stats struct {
	Account   string        `json:"account"`
	Embedder  string        `json:"embedder"`
	Dimension int           `json:"dimension"` // 0 if there is no vector yet
	Items     int           `json:"items"`
	Notes     int           `json:"notes"`          // of the items
	Bare      int           `json:"without_vector"` // of the items
	Stored    int           `json:"stored_bytes"`   // in the store
	InMemory  int           `json:"memory_bytes"`   // while it is searched
	Median    time.Duration `json:"p50_ns"`         // of a search, once the query is embedded
	P99       time.Duration `json:"p99_ns"`
}

// samples is how many searches are measured.
const samples = 200

// Stats measures an account's index, whatever embedder made it: items that it
// holds are searched for in it.
func (m *Memory) Stats(ctx context.Context, name string) (Stats, error) {
	h, err := m.named(ctx, name)
	if err != nil {
		return Stats{}, err
	}
	x := newIndex(h.space(h.Generation), h.Dimension)
	if err := m.read(ctx, x); err != nil {
		return Stats{}, fmt.Errorf("read memory of %s: %w", h.account, err)
	}
	s := Stats{
		Account: h.account.String(), Embedder: h.Embedder, Dimension: h.Dimension, Items: x.live, Notes: x.notes,
		Bare: x.bare, Stored: x.stored, InMemory: x.bytes(),
	}
	var took []time.Duration
	for n := range min(samples, len(x.rows)) {
		i := n * len(x.rows) / min(samples, len(x.rows))
		f, _, err := m.found(ctx, x, x.rows[i].key, &sight{m: m, q: Query{Everything: true}})
		if err != nil {
			return Stats{}, err
		}
		began := time.Now()
		x.rank(x.matrix[i*x.dimension:(i+1)*x.dimension], cut(f.Text, 200), 100, func(*row) bool { return true })
		took = append(took, time.Since(began))
	}
	if slices.Sort(took); len(took) > 0 {
		s.Median, s.P99 = took[len(took)/2], took[len(took)*99/100]
	}
	return s, nil
}
