package memory

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/memory/embedder"
	"github.com/heddlehq/heddle/state"
	"github.com/heddlehq/heddle/state/mem"
)

// store is a store whose values cannot be written any more after a while.
type store struct {
	*mem.Store
	left   int // writes until all of them fail, negative for never
	spaces map[string]bool
}

var errStore = errors.New("the disk is gone")

func newStore() *store {
	return &store{Store: mem.Open(time.Now), left: -1, spaces: map[string]bool{}}
}

func (s *store) PutValues(ctx context.Context, space string, vs ...state.Value) error {
	if s.left == 0 {
		return errStore
	}
	s.left--
	s.spaces[space] = true
	return s.Store.PutValues(ctx, space, vs...)
}

// dump is all that the store holds, by space.
func (s *store) dump(t *testing.T) map[string][]state.Value {
	t.Helper()
	out := map[string][]state.Value{}
	for space := range s.spaces {
		vs, err := s.ListValues(context.Background(), space, "", 10_000)
		if err != nil {
			t.Fatal(err)
		}
		if len(vs) > 0 {
			out[space] = vs
		}
	}
	return out
}

// used are the spaces that hold anything.
func (s *store) used(t *testing.T) []string {
	t.Helper()
	return slices.Sorted(maps.Keys(s.dump(t)))
}

// shifted is an embedder of another name and dimension; it can be away.
type shifted struct {
	name  string
	n     int
	away  bool
	hangs bool
}

var errAwake = errors.New("the server is away")

func (e *shifted) Name() string { return e.name }

func (e *shifted) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if e.away {
		return nil, errAwake
	}
	if e.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	vs, err := embedder.NGram{}.Embed(ctx, texts)
	for i := range vs {
		vs[i] = vs[i][:e.n]
	}
	return vs, err
}

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// world is a memory whose surroundings the test controls. Rooms whose names
// begin with C are open.
type world struct {
	*Memory
	t     *testing.T
	store *store
	roles map[string]chat.Role
	blind bool // nobody can be looked up
	now   time.Time
}

func newWorld(t *testing.T, s *store, o Options) *world {
	w := &world{t: t, store: s, roles: map[string]chat.Role{}, now: start}
	o.Values = s
	if o.Embedder == nil {
		o.Embedder = embedder.NGram{}
	}
	o.Clock = func() time.Time { w.now = w.now.Add(time.Second); return w.now }
	o.Role = func(_ context.Context, _ chat.Thread, a chat.Author) (chat.Role, error) {
		if w.blind {
			return chat.Outsider, errors.New("nobody can be looked up")
		}
		if r, ok := w.roles[a.ID]; ok {
			return r, nil
		}
		return chat.Admin, nil
	}
	o.Open = func(_ context.Context, t chat.Thread) (bool, error) {
		if w.blind {
			return true, errors.New("no room can be looked up")
		}
		return strings.HasPrefix(t.Room, "C"), nil
	}
	w.Memory = New(o)
	return w
}

func in(account, room string) chat.Thread {
	return chat.Thread{Channel: "slack", Account: account, Room: room, Root: "1"}
}

// note remembers one, by its text.
func (w *world) note(t chat.Thread, author string, role chat.Role, text string) {
	w.t.Helper()
	it := Item{ID: text, Kind: Note, Thread: t, Text: text, Author: chat.Author{ID: author}, Role: role, At: start}
	if err := w.Remember(context.Background(), it); err != nil {
		w.t.Fatal(err)
	}
}

// find returns the texts of what is found, in alphabetical order.
func (w *world) find(t chat.Thread, trust chat.Role, text string) []string {
	w.t.Helper()
	r, err := w.Search(context.Background(), Query{Text: text, Thread: t, Trust: trust, Limit: 20})
	if err != nil {
		w.t.Fatal(err)
	}
	out := []string{}
	for _, f := range r.Found {
		out = append(out, f.Text)
	}
	slices.SortFunc(out, cmp.Compare[string])
	return out
}
