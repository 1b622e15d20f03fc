package memory

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/memory/embedder"
)

// fill remembers n notes and returns their store.
func fill(t *testing.T, n int) *store {
	s := newStore()
	w := newWorld(t, s, Options{})
	for i := range n {
		w.note(in("T1", "C1"), "U1", chat.Member, fmt.Sprintf("payments of customer %d failed", i))
	}
	return s
}

// TestMismatch refuses every way to use an index by another embedder.
func TestMismatch(t *testing.T) {
	t.Parallel()
	s := fill(t, 3)
	before := s.dump(t)
	for name, e := range map[string]*shifted{
		"other name":      {name: "other/model", n: 64},
		"other dimension": {name: embedder.NGram{}.Name(), n: 64},
	} {
		w := newWorld(t, s, Options{Embedder: e})
		_, search := w.Search(context.Background(), Query{Text: "payments", Thread: in("T1", "C1")})
		remember := w.Remember(context.Background(), Item{ID: "a", Kind: Note, Thread: in("T1", "C1"), Text: "text"})
		for what, err := range map[string]error{"search": search, "remember": remember} {
			var m *MismatchError
			if !errors.As(err, &m) {
				t.Errorf("%s: %s: %v", name, what, err)
				continue
			}
			for _, word := range []string{"slack/T1", "ngram/1 with 1024 dimensions", e.name, "gateway memory reindex"} {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%s: %s: %q does not say %q", name, what, err, word)
				}
			}
			if same := name == "other dimension"; same != strings.Contains(err.Error(), "reindex --again,") {
				t.Errorf("%s: %q", name, err)
			}
			if name == "other dimension" && !strings.Contains(err.Error(), "64 dimensions") {
				t.Errorf("%s: %q does not say 64 dimensions", what, err)
			}
		}
		if err := w.Check(context.Background()); (err != nil) != (name == "other name") {
			t.Errorf("%s: check: %v", name, err)
		}
	}
	if err := newWorld(t, s, Options{}).Check(context.Background()); err != nil {
		t.Error(err)
	}
	if diff := gocmp.Diff(before, s.dump(t)); diff != "" {
		t.Error("the store was changed")
	}
}

// TestReindex swaps the embedder and breaks the job at every write: the old
// index can be used until the new one is whole, and the repeated job ends with
// the same store as one that was not interrupted.
func TestReindex(t *testing.T) {
	t.Parallel()
	const items = 100
	job := func(s *store, e Embedder) error {
		return newWorld(t, s, Options{Embedder: e}).Reindex(context.Background(), "slack/T1", false, func(int) {})
	}
	other := &shifted{name: "other/model", n: 64}
	whole := fill(t, items)
	if err := job(whole, other); err != nil {
		t.Fatal(err)
	}
	uses := func(s *store, e Embedder, n int) {
		t.Helper()
		w := newWorld(t, s, Options{Embedder: e})
		if got := w.find(in("T1", "C1"), chat.Member, "paying"); len(got) != 20 {
			t.Errorf("write %d: %s finds %d", n, e.Name(), len(got))
		}
	}
	uses(whole, other, 0)
	broken := 0
	for n := range 100 {
		s := fill(t, items)
		s.left = n
		err := job(s, other)
		s.left = -1
		if err == nil {
			break
		}
		if !errors.Is(err, errStore) {
			t.Fatal(err)
		}
		broken++
		if newWorld(t, s, Options{}).Check(context.Background()) == nil {
			uses(s, embedder.NGram{}, n)
		} else {
			uses(s, other, n)
		}
		if err := job(s, other); err != nil {
			t.Fatal(err)
		}
		uses(s, other, n)
		if diff := gocmp.Diff(whole.used(t), s.used(t)); diff != "" {
			t.Errorf("write %d: spaces (-whole +interrupted):\n%s", n, diff)
		}
		if diff := gocmp.Diff(whole.dump(t)["memory/slack/T1/2"], s.dump(t)["memory/slack/T1/2"]); diff != "" {
			t.Errorf("write %d: the index is another", n)
		}
	}
	if broken < 8 {
		t.Errorf("broken at %d writes only", broken)
	}
}

// TestReindexTurns goes for another embedder in the middle of a job, and back.
func TestReindexTurns(t *testing.T) {
	t.Parallel()
	s := fill(t, 100)
	run := func(e Embedder, again bool, left int) error {
		s.left = left
		defer func() { s.left = -1 }()
		return newWorld(t, s, Options{Embedder: e}).Reindex(context.Background(), "slack/T1", again, func(int) {})
	}
	one, two := &shifted{name: "one", n: 64}, &shifted{name: "two", n: 32}
	if run(one, false, 3) == nil {
		t.Fatal("the job was not interrupted")
	}
	if run(two, false, 4) == nil {
		t.Fatal("the job was not interrupted")
	}
	if err := run(embedder.NGram{}, false, -1); err != nil { // nothing to do but to clean up
		t.Fatal(err)
	}
	if diff := gocmp.Diff([]string{"memory", "memory/slack/T1/1"}, s.used(t)); diff != "" {
		t.Errorf("back to the old one (-want +got):\n%s", diff)
	}
	if err := run(one, false, -1); err != nil {
		t.Fatal(err)
	}
	one.n = 16 // the model behind the name has changed
	if run(one, true, 2) == nil {
		t.Fatal("the job was not interrupted")
	}
	if err := run(one, true, -1); err != nil {
		t.Fatal(err)
	}
	if n := len(s.used(t)); n != 2 {
		t.Errorf("the store uses %v", s.used(t))
	}
	if got := newWorld(t, s, Options{Embedder: one}).find(in("T1", "C1"), chat.Member, "payments"); len(got) != 20 {
		t.Errorf("found %d", len(got))
	}
	if err := newWorld(t, s, Options{}).Reindex(context.Background(), "slack/T9", false, nil); !errors.Is(err, ErrAccount) {
		t.Error(err)
	}
}

// TestReindexFails leaves the old index in use when the new embedder fails.
func TestReindexFails(t *testing.T) {
	t.Parallel()
	s := fill(t, 3)
	w := newWorld(t, s, Options{Embedder: &shifted{name: "other", n: 8, away: true}})
	if err := w.Reindex(context.Background(), "slack/T1", false, func(int) {}); !errors.Is(err, errAwake) {
		t.Fatal(err)
	}
	if got := newWorld(t, s, Options{}).find(in("T1", "C1"), chat.Member, "paying"); len(got) != 3 {
		t.Errorf("found %d of 3", len(got))
	}
}

// TestStats reports what an index takes and how long a search in it.
func TestStats(t *testing.T) {
	t.Parallel()
	for _, dimension := range []int{64, 1024} {
		s := newStore()
		w := newWorld(t, s, Options{Embedder: &shifted{name: "e", n: dimension}})
		const items = 600
		for i := range items {
			w.note(in("T1", "C1"), "U1", chat.Member, fmt.Sprintf("note %d of customer %d", i, i%7))
		}
		got, err := w.Stats(context.Background(), "slack/T1")
		if err != nil {
			t.Fatal(err)
		}
		if got.Items != items || got.Notes != items || got.Bare != 0 || got.Dimension != dimension || got.Embedder != "e" {
			t.Errorf("%+v", got)
		}
		if least := items * 4 * dimension; got.Stored < least || got.Stored > least+items*1000 || got.InMemory < least {
			t.Errorf("%d bytes stored, %d in memory; the vectors alone take %d", got.Stored, got.InMemory, least)
		}
		if got.Median <= 0 || got.P99 < got.Median {
			t.Errorf("p50 %v, p99 %v", got.Median, got.P99)
		}
		t.Logf("%d dimensions: %d items, %d bytes stored, %d in memory, p50 %v, p99 %v", dimension, got.Items, got.Stored, got.InMemory, got.Median, got.P99)
	}
}

// TestReindexOfAChangedModel begins anew where a job was interrupted and the
// model behind the name has changed since.
func TestReindexOfAChangedModel(t *testing.T) {
	t.Parallel()
	s := fill(t, 150)
	other := &shifted{name: "other/model", n: 64}
	job := func(again bool) error {
		return newWorld(t, s, Options{Embedder: other}).Reindex(context.Background(), "slack/T1", again, func(int) {})
	}
	s.left = 3 // the head, a batch and the head
	if err := job(false); !errors.Is(err, errStore) {
		t.Fatal(err)
	}
	s.left, other.n = -1, 32
	if err := job(false); err != nil {
		t.Fatal(err)
	}
	if got := newWorld(t, s, Options{Embedder: other}).find(in("T1", "C1"), chat.Member, "payments"); len(got) != 20 {
		t.Errorf("%d are found", len(got))
	}
	if used := s.used(t); len(used) != 2 {
		t.Errorf("spaces %q", used)
	}
	other.n = 16
	if err := job(true); err != nil {
		t.Error(err)
	}
}
