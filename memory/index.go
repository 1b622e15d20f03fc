package memory

import (
	"cmp"
	"slices"
	"sync"

	"github.com/heddlehq/heddle/chat"
)

// An index is what an account remembers, as far as ranking needs it. Rows are
// only added; what is gone is marked, and the index is built anew when that is much.
type index struct {
	space     string // of the store, that it was read from
	dimension int

	mu     sync.RWMutex
	rows   []row
	matrix []float32      // one vector a row, zeros for none
	byName map[string]int // row of an item that is not gone
	words  map[string][]posting
	live   int // rows not gone
	notes  int // of them
	bare   int // of them, without a vector
	length int // words of all of them
	stored int // bytes of them in the store
	newest int64
	posted int // postings
}

// A row is an item without its text.
type row struct {
	key    string // in the store
	kind   Kind
	room   string
	role   chat.Role
	open   bool
	gone   bool
	bare   bool
	length int // words
	stored int
}

func newIndex(space string, dimension int) *index {
	return &index{space: space, dimension: dimension, byName: map[string]int{}, words: map[string][]posting{}}
}

// add takes an item up unless the index has it. A vector of another length is
// as good as none.
func (x *index) add(key string, at int64, it Item, vec []float32, stored int) {
	id := name(it.ID)
	if _, ok := x.byName[id]; ok {
		return
	}
	if x.dimension == 0 {
		x.dimension = len(vec)
		x.matrix = make([]float32, len(x.rows)*x.dimension)
	}
	n := len(x.rows)
	list := words(it.Text)
	r := row{key: key, kind: it.Kind, room: it.Thread.Room, role: it.Role, open: it.Open, bare: len(vec) != x.dimension || len(vec) == 0, length: len(list), stored: stored}
	x.rows = append(x.rows, r)
	if r.bare {
		vec = make([]float32, x.dimension)
	}
	x.matrix = append(x.matrix, vec...)
	x.byName[id] = n
	times := map[string]int32{}
	for _, w := range list {
		times[w]++
	}
	for w, t := range times {
		x.words[w] = append(x.words[w], posting{int32(n), t})
	}
	x.posted += len(times)
	x.count(&x.rows[n], 1)
	x.newest = max(x.newest, at)
}

// drop takes an item out of every search.
func (x *index) drop(id string) {
	n, ok := x.byName[id]
	if !ok {
		return
	}
	delete(x.byName, id)
	x.rows[n].gone = true
	x.count(&x.rows[n], -1)
}

func (x *index) count(r *row, by int) {
	x.live += by
	x.length += by * r.length
	x.stored += by * r.stored
	if r.kind == Note {
		x.notes += by
	}
	if r.bare {
		x.bare += by
	}
}

// bytes is about what the index takes in memory.
func (x *index) bytes() int { return 4*len(x.matrix) + 8*x.posted + 160*len(x.rows) + 64*len(x.words) }

// A hit is a row and how well it fits.
type hit struct {
	row   int
	score float64
}

// nearest returns the k rows whose vectors have the greatest cosine with q, a
// vector of length one: exactly those, as every row is looked at.
func (x *index) nearest(q []float32, k int, ok func(*row) bool) []hit {
	if len(q) == 0 || len(q) != x.dimension {
		return nil
	}
	var hits []hit
	for i := range x.rows {
		if r := &x.rows[i]; !r.gone && !r.bare && ok(r) {
			hits = append(hits, hit{i, float64(dot(q, x.matrix[i*x.dimension:(i+1)*x.dimension]))})
		}
	}
	return first(k, hits)
}

// dot is the inner product of two vectors of one length.
func dot(a, b []float32) float32 {
	var s0, s1, s2, s3 float32
	b = b[:len(a)]
	for len(a) >= 4 {
		s0 += a[0] * b[0]
		s1 += a[1] * b[1]
		s2 += a[2] * b[2]
		s3 += a[3] * b[3]
		a, b = a[4:], b[4:]
	}
	for i := range a {
		s0 += a[i] * b[i]
	}
	return s0 + s1 + s2 + s3
}

// fuse joins two orders: what stands high in either does so in the whole. Where
// that is equal, the later item goes first.
func fuse(orders ...[]hit) []hit {
	const k = 60
	scores := map[int]float64{}
	for _, o := range orders {
		for rank, h := range o {
			scores[h.row] += 1 / float64(k+rank+1)
		}
	}
	var hits []hit
	for i, s := range scores {
		hits = append(hits, hit{i, s})
	}
	return first(len(hits), hits)
}

// first sorts hits, the greatest score first and of equal ones the later row,
// and keeps k of them.
func first(k int, hits []hit) []hit {
	slices.SortFunc(hits, func(a, b hit) int {
		if c := cmp.Compare(b.score, a.score); c != 0 {
			return c
		}
		return b.row - a.row
	})
	return hits[:min(k, len(hits))]
}
