package statetest

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heddlehq/heddle/state"
)

// testCounts has many conversations count at once: all of it adds up, over a
// restart as well, and a commit that is refused counts nothing.
func testCounts(t *testing.T, h Harness) {
	k := newKit(t, h)
	const threads, rounds = 8, 10
	count := func(key string, n int64) state.Count { return state.Count{Space: spaces[0], Key: key, Add: n} }
	var leases []state.Lease
	for n := range threads {
		k.admit(ask(n, fmt.Sprint(n)))
		leases = append(leases, k.claim())
	}
	var all sync.WaitGroup
	for i, l := range leases {
		all.Go(func() {
			for range rounds {
				next, err := k.Commit(k.ctx, l, state.Batch{Counts: []state.Count{count("sum", 1<<40), count("sum", 5), count(fmt.Sprint("own ", i), -2)}})
				if err != nil {
					t.Errorf("commit: %v", err)
					return
				}
				l = next
			}
		})
	}
	all.Wait()
	k.Store = h.Reopen(t, k.Store)
	number := func(key string) string {
		t.Helper()
		data, err := k.Value(k.ctx, spaces[0], key)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	k.same("the sum", number("sum"), fmt.Sprint(int64(threads*rounds)*(1<<40+5)))
	k.same("one conversation's", number("own 3"), fmt.Sprint(-2*rounds))

	k.advance(time.Hour)
	l := k.claim() // the first, which was lost
	k.put(spaces[0], state.Value{Key: "words", Data: []byte("no number")}, state.Value{Key: "seven", Data: []byte("7")})
	before := k.dump()
	_, err := k.Commit(k.ctx, leases[0], state.Batch{Counts: []state.Count{count("sum", 1)}})
	k.fails("commit with a lost lease", err, state.ErrLeaseLost)
	for _, bad := range []state.Count{count("words", 1), count("", 1)} {
		_, err := k.Commit(k.ctx, l, state.Batch{Records: []state.Record{{Kind: "x"}}, Counts: []state.Count{count("sum", 1), bad}})
		if err == nil || strings.Contains(err.Error(), "no number") {
			t.Errorf("commit with %+v: %v; want an error without the value", bad, err)
		}
	}
	k.same("stores before and after refused commits", k.dump(), before)
	k.commit(l, state.Batch{Counts: []state.Count{count("seven", -8)}})
	k.same("a value that was put", number("seven"), "-1")
}
