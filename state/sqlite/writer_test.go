package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

var errFault = errors.New("injected fault")

// A gate is a fault hook that can hold the writer at the begin of a
// transaction, counts commits, and fails statements.
type gate struct {
	mu      sync.Mutex
	hold    chan struct{} // closed to let the writer go; nil: it is not held
	reached chan struct{} // closed when the writer is held
	commits int
	fails   func(statement string, commits int) bool
}

func (g *gate) fault(statement string) error {
	g.mu.Lock()
	hold := g.hold
	g.mu.Unlock()
	if hold != nil && statement == "BEGIN IMMEDIATE" {
		close(g.reached)
		<-hold
	}
	g.mu.Lock()
	fails, commits := g.fails, g.commits
	if statement == "COMMIT" {
		g.commits++
	}
	g.mu.Unlock()
	if fails != nil && fails(statement, commits) {
		return errFault
	}
	return nil
}

func (g *gate) set(change func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change()
}

func openStore(t *testing.T, path string, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), path, o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func ask(n int, id string) []state.Admit {
	return []state.Admit{{Agent: "assistant", Event: chat.Event{
		ID: id, Thread: chat.Thread{Channel: "slack", Account: "T01", Root: fmt.Sprint(n)}, Kind: chat.Mention,
	}}}
}

// held runs operations that come together while the writer is busy with
// another, and returns their errors.
func held(t *testing.T, s *Store, g *gate, ops ...func() error) []error {
	t.Helper()
	hold := make(chan struct{})
	g.set(func() { g.hold, g.reached = hold, make(chan struct{}) })
	errs := make([]error, len(ops))
	var all sync.WaitGroup
	all.Go(func() {
		if err := s.Check(t.Context()); err != nil {
			t.Errorf("the operation before: %v", err)
		}
	})
	waiting := func(n int) {
		for deadline := time.Now().Add(time.Minute); ; runtime.Gosched() {
			s.w.mu.Lock()
			now := len(s.w.queue)
			s.w.mu.Unlock()
			if now == n {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d operations wait, want %d", now, n)
			}
		}
	}
	<-g.reached
	for i, op := range ops {
		all.Go(func() { errs[i] = op() })
		waiting(i + 1)
	}
	g.set(func() { g.hold, g.commits = nil, 0 })
	close(hold)
	all.Wait()
	return errs
}

func TestManyShareACommit(t *testing.T) {
	t.Parallel()
	g := new(gate)
	s := openStore(t, filepath.Join(t.TempDir(), "heddle.db"), Options{Fault: g.fault})
	ctx, cancel := context.WithCancel(t.Context())
	var ops []func() error
	for n := range maxBatch + 10 {
		ops = append(ops, func() error {
			_, err := s.Admit(t.Context(), ask(n, fmt.Sprint(n)))
			return err
		})
	}
	// One whose caller has gone is not done, and does not disturb the others.
	gone := make(chan struct{})
	ops[5] = func() error {
		defer close(gone)
		_, err := s.Admit(ctx, ask(5, "gone"))
		return err
	}
	ops[6] = func() error {
		cancel()
		<-gone
		_, err := s.Admit(t.Context(), ask(6, "6"))
		return err
	}
	for i, err := range held(t, s, g, ops...) {
		if i == 5 && !errors.Is(err, context.Canceled) || i != 5 && err != nil {
			t.Errorf("operation %d: %v", i, err)
		}
	}
	if g.commits != 3 {
		t.Errorf("%d commits, want 3: of the one before, of %d, of the rest", g.commits, maxBatch)
	}
	all, err := s.Conversations(t.Context(), time.Time{}, 1000)
	if err != nil || len(all) != len(ops)-1 {
		t.Errorf("%d conversations, %v; want %d", len(all), err, len(ops)-1)
	}
}

func TestOneFailsAlone(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"INSERT INTO blobs", "COMMIT", "BEGIN"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			g := new(gate)
			s := openStore(t, filepath.Join(t.TempDir(), "heddle.db"), Options{Fault: g.fault})
			if _, err := s.Admit(t.Context(), ask(0, "first")); err != nil {
				t.Fatal(err)
			}
			l, err := s.Claim(t.Context(), "worker", time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			// The operation fails when it shares a transaction and when it does not.
			once := at != "INSERT INTO blobs"
			armed := false
			g.set(func() {
				g.fails = func(statement string, commits int) bool {
					if !strings.HasPrefix(statement, at) || !armed || commits == 0 {
						return false // among them the operation that is held
					}
					armed = !once
					return true
				}
			})
			admit := func(n int) func() error {
				return func() error {
					_, err := s.Admit(t.Context(), ask(n, fmt.Sprint(n)))
					return err
				}
			}
			errs := held(t, s, g, admit(1), func() error {
				armed = true // while the writer is held
				_, err := s.Commit(t.Context(), l, state.Batch{
					Records: []state.Record{{Kind: "said"}}, Taken: 1, Blobs: []state.Blob{{Name: "fold", Data: []byte("x")}},
				})
				return err
			}, admit(2), admit(1))
			for i, err := range errs {
				if want := i == 1 && !once; errors.Is(err, errFault) != want || !want && err != nil {
					t.Errorf("operation %d: %v", i, err)
				}
			}
			v, err := s.Load(t.Context(), l.Conversation.ID, 0)
			if err != nil || len(v.Inbox) == len(v.Records) {
				t.Errorf("%d records and %d entries, %v; want one of one", len(v.Records), len(v.Inbox), err)
			}
			for range 2 {
				if _, err := s.Claim(t.Context(), "worker", time.Minute); err != nil {
					t.Errorf("claim: %v", err)
				}
			}
		})
	}
}

// TestDiskFull lets the file reach a bound and then lifts it.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	s := openStore(t, filepath.Join(t.TempDir(), "heddle.db"), Options{})
	limit := func(pages int) {
		_, err := do(t.Context(), s.w, func(t *tx) (struct{}, error) {
			return struct{}{}, t.query(fmt.Sprintf("PRAGMA max_page_count = %d", pages), func(row) error { return nil })
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	limit(60)
	admitted := 0
	for ; ; admitted++ {
		in := ask(admitted, fmt.Sprint(admitted))
		in[0].Event.Text = strings.Repeat("x", 1000)
		if _, err := s.Admit(t.Context(), in); err != nil {
			break
		}
	}
	if _, err := s.Admit(t.Context(), ask(0, "one more")); err != nil {
		t.Logf("what still fits: %v", err)
	}
	lease, err := s.Claim(t.Context(), "worker", time.Minute)
	if err != nil {
		t.Fatalf("claim, which needs no space: %v", err)
	}
	big := state.Batch{Records: []state.Record{{Kind: "a"}, {Kind: "b", Data: make([]byte, 1<<20)}}, Taken: 1, Posts: []chat.Post{{Key: "p"}}}
	if _, err := s.Commit(t.Context(), lease, big); err == nil {
		t.Fatal("a commit that does not fit was made")
	}
	v, err := s.Load(t.Context(), lease.Conversation.ID, 0)
	if err != nil || len(v.Records) != 0 || len(v.Inbox) == 0 {
		t.Fatalf("after the failure: %d records, %d entries, %v", len(v.Records), len(v.Inbox), err)
	}
	limit(1 << 20)
	if _, err := s.Commit(t.Context(), lease, big); err != nil {
		t.Errorf("commit with space again: %v", err)
	}
	if err := s.Check(t.Context()); err != nil {
		t.Errorf("check with space again: %v", err)
	}
	all, err := s.Conversations(t.Context(), time.Time{}, 1<<20)
	if err != nil || len(all) != admitted {
		t.Errorf("%d conversations, %v; want the %d admitted", len(all), err, admitted)
	}
}
