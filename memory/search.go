package memory

import (
	"context"
	"fmt"

	"github.com/heddlehq/heddle/chat"
)

// A Query asks for what fits a text.
type Query struct {
	Text   string
	Thread chat.Thread // from where; its account's memory is searched
	Trust  chat.Role   // of the weakest voice that will see the results
	Limit  int         // most results, 0 for 5, at most 20
	// Everything leaves nothing out, for an operator: neither rooms nor roles count.
	Everything bool
}

// Results are what was found, the best first.
type Results struct {
	Found     []Found
	WordsOnly bool // the query has no vector: it could not be embedded now, or says nothing
}

// A Found is an item that fits. Its Role is the least of what the item has and
// what its author is now.
type Found struct {
	Item
	Name  string  // by which Forget knows it
	Score float64 // good for comparing within one search only
}

// Search finds items of the thread's account, of those that may be seen from
// the thread and of which no voice has less trust than Query.Trust. It fails
// with a *MismatchError if another embedder made the index.
func (m *Memory) Search(ctx context.Context, q Query) (Results, error) {
	if q.Limit <= 0 {
		q.Limit = 5
	}
	q.Limit = min(q.Limit, 20)
	h, x, err := m.load(ctx, accountOf(q.Thread))
	if err != nil || x == nil {
		return Results{}, err
	}
	vec, err := m.soon(ctx, h, cut(q.Text, MaxText))
	if err != nil {
		return Results{}, err
	}
	out := Results{WordsOnly: vec == nil}
	s := sight{m: m, q: q, rooms: map[string]bool{q.Thread.Room: true}, roles: map[chat.Author]chat.Role{}}
	x.mu.RLock()
	hits := x.rank(vec, q.Text, max(100, 5*q.Limit), s.may)
	keys := make([]string, len(hits))
	for i, h := range hits {
		keys[i] = x.rows[h.row].key
	}
	x.mu.RUnlock()
	for i, key := range keys {
		if len(out.Found) == q.Limit {
			break
		}
		f, ok, err := m.found(ctx, x, key, &s)
		if err != nil {
			return Results{}, err
		}
		if ok {
			f.Score = hits[i].score
			out.Found = append(out.Found, f)
		}
	}
	return out, nil
}

// rank joins the orders by meaning and by words.
func (x *index) rank(vec []float32, text string, k int, ok func(*row) bool) []hit {
	return fuse(x.nearest(vec, k, ok), x.byWords(words(text), k, ok))
}

// found reads an item, if it may be seen.
func (m *Memory) found(ctx context.Context, x *index, key string, s *sight) (Found, bool, error) {
	data, err := m.Values.Value(ctx, x.space, key)
	if err != nil {
		return Found{}, false, fmt.Errorf("search: %w", err)
	}
	if data == nil { // another process has forgotten it
		x.mu.Lock()
		x.drop(nameOf(key))
		x.mu.Unlock()
		return Found{}, false, nil
	}
	it, _, err := decode(data)
	if err != nil {
		return Found{}, false, fmt.Errorf("search: %w", err)
	}
	ok := s.sees(ctx, &it)
	return Found{Item: it, Name: nameOf(key)}, ok, nil
}

// sight is what one search may see. What others are now is asked once each.
type sight struct {
	m     *Memory
	q     Query
	rooms map[string]bool // by name, whether it may be looked into
	roles map[chat.Author]chat.Role
}

// may says by what was stored whether a row may be seen.
func (s *sight) may(r *row) bool {
	if s.q.Everything {
		return true
	}
	return r.role >= s.q.Trust && (r.room == s.q.Thread.Room || r.open && s.q.Trust > chat.Outsider)
}

// sees says by what is so now whether an item that may be seen is. It lowers
// the item's role to what its author is.
func (s *sight) sees(ctx context.Context, it *Item) bool {
	if s.q.Everything {
		return true
	}
	open, ok := s.rooms[it.Thread.Room]
	if !ok {
		open = s.m.isOpen(ctx, it.Thread)
		s.rooms[it.Thread.Room] = open
	}
	if !open {
		return false
	}
	// A conversation that has sent something is no person: what it may counts as
	// of then.
	if s.m.Role != nil && it.Author.ID != "" && it.Author.Account != chat.ConversationAccount {
		role, ok := s.roles[it.Author]
		if !ok {
			role, _ = s.m.Role(ctx, it.Thread, it.Author) // not known is Outsider
			s.roles[it.Author] = role
		}
		it.Role = min(it.Role, role)
	}
	return it.Role >= s.q.Trust
}
