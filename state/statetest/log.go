package statetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

func testClaimOrder(t *testing.T, h Harness) {
	k := newKit(t, h)
	k.noClaim()
	for n := range 4 {
		k.admit(ask(n, fmt.Sprint(n)))
		k.advance(time.Second)
	}
	k.admit(ask(0, "more"))
	// The first releases with an event left, so it is ready since then.
	first := k.claim()
	k.same("first", first.Conversation.Thread, thread(0))
	k.commit(first, state.Batch{Taken: 1, Release: true})
	for _, n := range []int{1, 2, 3, 0} {
		k.same("next", k.claim().Conversation.Thread, thread(n))
	}
	k.noClaim()
}

func testReady(t *testing.T, h Harness) {
	quiet := func(id string) state.Admit { a := ask(1, id); a.Quiet = true; return a }
	after := func(d time.Duration) time.Time { return start.Add(d) }
	for name, c := range map[string]struct {
		in    []state.Admit // before the first claim
		batch state.Batch   // that releases
		then  []state.Admit // after it
		ready time.Duration // since the start, -1 for never
	}{
		"nothing left":                        {in: []state.Admit{ask(1, "a")}, batch: state.Batch{Taken: 1}, ready: -1},
		"an event left":                       {in: []state.Admit{ask(1, "a"), ask(1, "b")}, batch: state.Batch{Taken: 1}},
		"an event not taken":                  {in: []state.Admit{ask(1, "a")}},
		"a quiet one left":                    {in: []state.Admit{ask(1, "a"), quiet("b")}, batch: state.Batch{Taken: 1}, ready: -1},
		"a quiet one behind which one is":     {in: []state.Admit{ask(1, "a"), quiet("b"), ask(1, "c")}, batch: state.Batch{Taken: 1}},
		"a quiet one comes":                   {in: []state.Admit{ask(1, "a")}, batch: state.Batch{Taken: 1}, then: []state.Admit{quiet("b")}, ready: -1},
		"one comes":                           {in: []state.Admit{ask(1, "a")}, batch: state.Batch{Taken: 1}, then: []state.Admit{ask(1, "b")}},
		"paused with one left":                {in: []state.Admit{ask(1, "a"), ask(1, "b")}, batch: state.Batch{Taken: 1, Pause: after(time.Hour)}, ready: time.Hour},
		"paused and one comes":                {in: []state.Admit{ask(1, "a")}, batch: state.Batch{Taken: 1, Pause: after(time.Hour)}, then: []state.Admit{ask(1, "b")}, ready: time.Hour},
		"paused with nothing left":            {in: []state.Admit{ask(1, "a")}, batch: state.Batch{Taken: 1, Pause: after(time.Hour)}, ready: -1},
		"a pause that is over":                {in: []state.Admit{ask(1, "a")}, batch: state.Batch{Pause: after(-time.Hour)}},
		"wakes":                               {in: []state.Admit{ask(1, "a")}, batch: state.Batch{Taken: 1, Wake: after(time.Hour)}, ready: time.Hour},
		"wakes at once":                       {in: []state.Admit{ask(1, "a")}, batch: state.Batch{Taken: 1, Wake: after(-time.Hour)}},
		"wakes, and a quiet one comes":        {in: []state.Admit{ask(1, "a")}, batch: state.Batch{Taken: 1, Wake: after(time.Hour)}, then: []state.Admit{quiet("b")}, ready: time.Hour},
		"wakes, but one comes before":         {in: []state.Admit{ask(1, "a")}, batch: state.Batch{Taken: 1, Wake: after(time.Hour)}, then: []state.Admit{ask(1, "b")}},
		"wakes within the pause":              {in: []state.Admit{ask(1, "a")}, batch: state.Batch{Taken: 1, Wake: after(time.Hour), Pause: after(2 * time.Hour)}, ready: 2 * time.Hour},
		"wakes after the pause":               {in: []state.Admit{ask(1, "a")}, batch: state.Batch{Taken: 1, Wake: after(2 * time.Hour), Pause: after(time.Hour)}, ready: 2 * time.Hour},
		"wakes after the pause, but one came": {in: []state.Admit{ask(1, "a")}, batch: state.Batch{Taken: 1, Wake: after(2 * time.Hour), Pause: after(time.Hour)}, then: []state.Admit{ask(1, "b")}, ready: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, h)
			k.admit(c.in...)
			c.batch.Release = true
			k.commit(k.claim(), c.batch)
			k.admit(c.then...)
			if c.ready < 0 {
				k.advance(24 * time.Hour)
				k.noClaim()
				return
			}
			if c.ready > 0 {
				k.advance(c.ready - time.Microsecond)
				k.noClaim()
				k.advance(time.Microsecond)
			}
			// A claim forgets pause and wake; without them, nothing is left.
			l := k.claim()
			k.commit(l, state.Batch{Taken: 100, Release: true})
			k.admit(ask(1, "z"))
			k.same("attempt", k.claim().Attempt, 1)
		})
	}
	t.Run("only a quiet one", func(t *testing.T) {
		t.Parallel()
		k := newKit(t, h)
		k.admit(quiet("a"))
		k.noClaim()
		k.admit(ask(1, "b"))
		k.same("inbox", k.claim().Conversation.Inbox, 2)
	})
}

func testAttempts(t *testing.T, h Harness) {
	k := newKit(t, h)
	k.admit(ask(1, "a"))
	l := k.claim()
	want := state.Lease{Conversation: l.Conversation, Owner: "worker", Epoch: l.Epoch, Attempt: 1, Until: start.Add(time.Minute)}
	k.same("lease", l, want)
	k.noClaim()
	k.advance(59 * time.Second)
	l, err := k.Renew(k.ctx, l, time.Minute)
	if err != nil {
		t.Fatalf("renew: %v", err)
	}
	want.Until = start.Add(119 * time.Second)
	k.same("renewed lease", l, want)
	k.advance(time.Minute - time.Microsecond)
	k.noClaim()
	// An expired lease that nobody took is live.
	k.advance(time.Second)
	l = k.commit(l, state.Batch{Records: []state.Record{{Kind: "a"}}})
	if l, err = k.Renew(k.ctx, l, time.Minute); err != nil {
		t.Fatalf("renew: %v", err)
	}
	for attempt := 2; attempt < 5; attempt++ {
		k.advance(time.Minute)
		next := k.claim()
		if next.Attempt != attempt || next.Epoch <= l.Epoch || next.Conversation.Inbox != 1 {
			t.Fatalf("claim %d is %+v after epoch %d", attempt, next, l.Epoch)
		}
		_, err := k.Renew(k.ctx, l, time.Minute)
		k.fails("renew of a lease taken over", err, state.ErrLeaseLost)
		l = next
	}
	// Without anything in the inbox, a lost lease is ready all the same.
	k.commit(l, state.Batch{Taken: 1})
	k.advance(time.Minute)
	l = k.claim()
	k.same("attempt", l.Attempt, 5)
	l = k.commit(l, state.Batch{Release: true})
	k.same("end of a released lease", l.Until, time.Time{})
	_, err = k.Renew(k.ctx, l, time.Minute)
	k.fails("renew of a released lease", err, state.ErrLeaseLost)
	k.noClaim()
	k.admit(ask(1, "b"))
	k.same("attempt after a release", k.claim().Attempt, 1)
}

func testClaimRaces(t *testing.T, h Harness) {
	k := newKit(t, h)
	const n = 40
	for i := range n {
		k.admit(ask(i, fmt.Sprint(i)))
	}
	var mu sync.Mutex
	got := map[state.ID]int{}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for {
				l, err := k.Claim(k.ctx, "worker", time.Minute)
				if errors.Is(err, state.ErrNone) {
					return
				}
				if err != nil {
					t.Errorf("claim: %v", err)
					return
				}
				mu.Lock()
				got[l.Conversation.ID]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	for id, times := range got {
		if times != 1 {
			t.Errorf("%s was claimed %d times", id, times)
		}
	}
	k.same("claimed conversations", len(got), n)
}

func testCommit(t *testing.T, h Harness) {
	k := newKit(t, h)
	k.admit(ask(1, "a"), ask(1, "b"))
	l := k.claim()
	at1 := start.Add(time.Second)
	k.advance(time.Second)
	l = k.commit(l, state.Batch{
		Records: []state.Record{{Kind: "heard", Data: []byte(`{"a":1}`), Seq: 7, At: start.Add(-time.Hour)}, {Kind: "said", Data: []byte(`2`)}},
		Taken:   1,
		Blobs:   []state.Blob{{Name: "fold", Data: []byte("one")}, {Name: "files", Data: []byte{0, 255}}, {Name: "empty", Data: []byte{}}},
	})
	k.same("seq and inbox", []int{int(l.Conversation.Seq), l.Conversation.Inbox}, []int{2, 1})
	at2 := start.Add(2 * time.Second)
	k.advance(time.Second)
	l = k.commit(l, state.Batch{
		Records: []state.Record{{Kind: "settled"}},
		Taken:   2, Release: true,
		Blobs: []state.Blob{{Name: "fold", Data: []byte("two")}, {Name: "files"}, {Name: "never"}},
	})
	records := []state.Record{
		{Seq: 1, At: at1, Kind: "heard", Data: []byte(`{"a":1}`)},
		{Seq: 2, At: at1, Kind: "said", Data: []byte(`2`)},
		{Seq: 3, At: at2, Kind: "settled"},
	}
	v := k.load(l.Conversation.ID)
	k.same("records", v.Records, records)
	k.same("conversation", v.Conversation, l.Conversation)
	k.same("inbox", v.Inbox, []state.Entry(nil))
	k.same("time of the last commit", v.Conversation.UpdatedAt, at2)
	for after := int64(-1); after < 5; after++ {
		v, err := k.Load(k.ctx, l.Conversation.ID, after)
		if err != nil {
			t.Fatal(err)
		}
		rest := records[min(max(after, 0), 3):]
		k.same(fmt.Sprintf("records after %d", after), v.Records, rest)
		for limit := -1; limit < 5; limit++ {
			got, err := k.Records(k.ctx, l.Conversation.ID, after, limit)
			if err != nil {
				t.Fatal(err)
			}
			k.same(fmt.Sprintf("%d records after %d", limit, after), got, rest[:min(max(limit, 0), len(rest))])
		}
	}
	for name, want := range map[string][]byte{"fold": []byte("two"), "files": nil, "empty": {}, "never": nil} {
		b, err := k.Blob(k.ctx, l.Conversation.ID, name)
		if err != nil || string(b) != string(want) || (b == nil) != (want == nil) {
			t.Errorf("blob %s is %#v, %v; want %#v", name, b, err, want)
		}
	}
	if rs, err := k.Records(k.ctx, "nobody", 0, 9); rs != nil || err != nil {
		t.Errorf("records of nobody are %v, %v; want none", rs, err)
	}
	if b, err := k.Blob(k.ctx, "nobody", "fold"); b != nil || err != nil {
		t.Errorf("blob of nobody is %q, %v; want nothing", b, err)
	}
}

// testFencing lets every kind of lost lease try to write everything.
func testFencing(t *testing.T, h Harness) {
	k := newKit(t, h)
	k.admit(ask(1, "a"), ask(2, "b"))
	stale := k.claim()
	k.claim()
	k.advance(time.Minute)
	held := k.claim()
	k.same("conversation claimed again", held.Conversation.ID, stale.Conversation.ID)
	held = k.commit(held, state.Batch{Records: []state.Record{{Kind: "a"}}, Posts: []chat.Post{post(1, "p")}, Blobs: []state.Blob{{Name: "fold", Data: []byte("x")}}})
	released := k.claim()
	k.commit(released, state.Batch{Release: true, Pause: k.Now().Add(time.Hour)})
	future := held
	future.Epoch++
	unknown := held
	unknown.Conversation.ID = "nobody"
	before := k.dump()
	for name, l := range map[string]state.Lease{"stale": stale, "released": released, "future": future, "unknown": unknown, "zero": {}} {
		_, err := k.Commit(k.ctx, l, state.Batch{
			Records: []state.Record{{Kind: "x"}}, Taken: 100, Posts: []chat.Post{post(1, "x")},
			Blobs: []state.Blob{{Name: "fold", Data: []byte("y")}}, Release: true,
		})
		k.fails("commit with a lease that is "+name, err, state.ErrLeaseLost)
		_, err = k.Renew(k.ctx, l, time.Hour)
		k.fails("renew of a lease that is "+name, err, state.ErrLeaseLost)
		k.same("stores before and after a lease that is "+name, k.dump(), before)
	}
	k.commit(held, state.Batch{Taken: 1, Release: true})
	k.noClaim()
}

func testInbox(t *testing.T, h Harness) {
	k := newKit(t, h)
	seqs := func() (out []int64) {
		for _, e := range k.load(state.ConversationID("assistant", thread(1))).Inbox {
			out = append(out, e.Seq)
		}
		return out
	}
	k.admit(ask(1, "a"), ask(1, "b"), ask(1, "c"))
	l := k.claim()
	k.same("inbox", seqs(), []int64{1, 2, 3})
	l = k.commit(l, state.Batch{Taken: 2})
	k.same("after two were taken", seqs(), []int64{3})
	l = k.commit(l, state.Batch{Taken: 1})
	k.same("after the first was taken again", seqs(), []int64{3})
	k.admit(ask(1, "d"))
	l = k.commit(l, state.Batch{Taken: 100})
	k.same("after more were taken than there are", seqs(), []int64(nil))
	k.admit(ask(1, "e"))
	k.same("a later entry", seqs(), []int64{5})
	k.same("inbox of the conversation", k.load(l.Conversation.ID).Conversation.Inbox, 1)
	texts := slices.Collect(func(yield func(string) bool) {
		for _, e := range k.load(l.Conversation.ID).Inbox {
			yield(e.Event.ID)
		}
	})
	k.same("the later event", texts, []string{"e"})
	for i, id := range []string{"a", "b", "c", "d", "e"} {
		want := state.Admission{Status: state.Admitted, Conversation: l.Conversation.ID, Seq: int64(i) + 1}
		got, err := k.Event(k.ctx, "slack", id)
		if err != nil {
			t.Fatal(err)
		}
		k.same("what became of "+id, got, want)
		want.Status = state.Duplicate
		k.same("a repeat of "+id, k.admit(ask(1, id))[0], want)
	}
}
