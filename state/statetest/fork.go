package statetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

func (k *kit) fork(id state.ID, seq int64, n int) state.Conversation {
	k.Helper()
	c, err := k.Fork(k.ctx, id, seq, "assistant", thread(n))
	if err != nil {
		k.Fatalf("fork: %v", err)
	}
	return c
}

// grow admits an event to the n-th thread and commits records in turn, one a
// second; the conversation keeps its lease, the last event and a post.
func (k *kit) grow(n, records int) state.Lease {
	k.Helper()
	k.admit(ask(n, fmt.Sprint("grow ", n)))
	l := k.claim()
	k.same("conversation that grows", l.Conversation.Thread, thread(n))
	for i := range records {
		k.advance(time.Second)
		l = k.commit(l, state.Batch{Records: []state.Record{{Kind: "said", Data: fmt.Append(nil, i)}}})
	}
	k.admit(ask(n, fmt.Sprint("left ", n)))
	return k.commit(l, state.Batch{
		Taken: 1, Posts: []chat.Post{post(n, "p")},
		Blobs: []state.Blob{{Name: "fold", Data: []byte("x")}, {Name: "files", Data: []byte{}}},
	})
}

func testFork(t *testing.T, h Harness) {
	k := newKit(t, h)
	l := k.grow(1, 5)
	from := l.Conversation.ID
	before, records := k.dump(), k.load(from).Records
	k.advance(time.Second)
	c := k.fork(from, 3, 2)
	want := state.Conversation{
		ID: state.ConversationID("assistant", thread(2)), Agent: "assistant", Thread: thread(2), Seq: 3,
		CreatedAt: k.Now(), UpdatedAt: k.Now(),
	}
	k.same("fork", c, want)
	k.same("view of the fork", k.load(c.ID), state.View{Conversation: want, Records: records[:3]})
	for name, want := range map[string]string{"fold": "x", "files": ""} {
		blob, err := k.Blob(k.ctx, c.ID, name)
		if err != nil || blob == nil || string(blob) != want {
			t.Errorf("blob %s of the fork is %#v, %v; want %q", name, blob, err, want)
		}
	}
	if posts, err := k.Posts(k.ctx, c.ID); err != nil || len(posts) != 0 {
		t.Errorf("posts of the fork are %v, %v; want none", posts, err)
	}
	k.noClaim()
	k.claimPosts(9, "p")
	// From here on each goes its own way, the new one like any other.
	k.advance(time.Second)
	in := k.admit(ask(2, "next"))[0]
	k.same("admission to the fork", in, state.Admission{Status: state.Admitted, Conversation: c.ID, Seq: 3})
	fl := k.claim()
	k.same("claim of the fork", []any{fl.Conversation.ID, fl.Epoch, fl.Attempt}, []any{c.ID, int64(1), 1})
	fl = k.commit(fl, state.Batch{
		Records: []state.Record{{Kind: "other"}}, Taken: in.Seq, Posts: []chat.Post{post(2, "p")},
		Blobs: []state.Blob{{Name: "fold"}}, Release: true,
	})
	k.same("fork that went on", []int64{fl.Conversation.Seq, int64(fl.Conversation.Inbox)}, []int64{4, 0})
	k.claimPosts(9, "p")
	after := k.dump()
	for _, what := range []string{"view ", "blob "} {
		k.same("original: "+what, after[what+string(from)], before[what+string(from)])
	}
	k.commit(l, state.Batch{Records: []state.Record{{Kind: "six"}}, Taken: 2, Release: true})
	v := k.load(c.ID)
	k.same("records of the fork", v.Records, append(records[:3:3], state.Record{Seq: 4, At: k.Now(), Kind: "other"}))
	k.same("the fork again", k.fork(from, 3, 2), v.Conversation)
	k.same("the fork again, of the fork", k.fork(from, 2, 2), v.Conversation)
	own := []state.Record{{Kind: "forked", Data: []byte("1")}, {Kind: "more"}}
	with, err := k.Fork(k.ctx, from, 2, "assistant", thread(4), own...)
	k.same("fork with records of its own", []any{with.Seq, err}, []any{int64(4), nil})
	own[0].Seq, own[0].At, own[1].Seq, own[1].At = 3, k.Now(), 4, k.Now()
	k.same("records of that fork", k.load(with.ID).Records, append(records[:2:2], own...))
	again, err := k.Fork(k.ctx, from, 2, "assistant", thread(4), own[:1]...)
	k.same("that fork again, though with others", []any{again, err}, []any{with, nil})
	k.same("a fork of the fork", k.load(k.fork(c.ID, 4, 3).ID).Records, v.Records)
	k.noClaim()
}

func testForkRefused(t *testing.T, h Harness) {
	k := newKit(t, h)
	from := k.grow(1, 3).Conversation.ID
	k.advance(time.Second)
	k.grow(2, 3) // the same words at other times
	k.admit(ask(3, "a"))
	forked := k.fork(from, 2, 4).ID
	short := map[string]state.ID{} // with a record of the same time
	for i, word := range []string{"one", "two"} {
		for j, kind := range []string{"heard", "said"} {
			a := ask(5+2*i+j, kind+word)
			short[kind+word] = k.admit(a)[0].Conversation
			l := k.claim()
			for l.Conversation.Thread != a.Event.Thread { // the one that waits is first
				l = k.claim()
			}
			k.commit(l, state.Batch{Records: []state.Record{{Kind: kind, Data: []byte(word)}}})
		}
	}
	k.claimPosts(9, "p", "p")
	before := k.dump()
	for name, c := range map[string]struct {
		from  state.ID
		seq   int64
		agent string
		to    chat.Thread
		want  error
	}{
		"nobody's":                   {"nobody", 1, "assistant", thread(9), state.ErrNotFound},
		"at no record":               {from, 0, "assistant", thread(9), state.ErrNotFound},
		"before the first":           {from, -1, "assistant", thread(9), state.ErrNotFound},
		"after the last":             {from, 4, "assistant", thread(9), state.ErrNotFound},
		"to its own thread":          {from, 3, "assistant", thread(1), state.ErrExists},
		"to another's thread":        {from, 3, "assistant", thread(2), state.ErrExists},
		"to one without records":     {from, 1, "assistant", thread(3), state.ErrExists},
		"further than the fork went": {from, 3, "assistant", thread(4), state.ErrExists},
		"to another agent's fork":    {from, 2, "billing", thread(4), state.ErrExists},
		"back to the original":       {forked, 2, "billing", thread(1), state.ErrExists},
		"to one of another kind":     {short["heardone"], 1, "assistant", thread(6), state.ErrExists},
		"to one with other words":    {short["heardone"], 1, "assistant", thread(7), state.ErrExists},
	} {
		_, err := k.Fork(k.ctx, c.from, c.seq, c.agent, c.to)
		k.fails("fork "+name, err, c.want)
		k.same("stores before and after a fork "+name, k.dump(), before)
	}
	for name, err := range map[string]error{
		"no agent":  func() error { _, err := k.Fork(k.ctx, from, 1, "", thread(9)); return err }(),
		"no thread": func() error { _, err := k.Fork(k.ctx, from, 1, "assistant", chat.Thread{}); return err }(),
	} {
		if err == nil || errors.Is(err, state.ErrExists) || errors.Is(err, state.ErrNotFound) {
			t.Errorf("fork with %s: got error %v", name, err)
		}
	}
	k.same("stores before and after bad forks", k.dump(), before)
}

// testForkRaces forks to few threads from many goroutines, while the original
// grows and events come to the same threads.
func testForkRaces(t *testing.T, h Harness) {
	k := newKit(t, h)
	const threads = 10
	l := k.grow(0, 4)
	records := k.load(l.Conversation.ID).Records
	var all sync.WaitGroup
	all.Go(func() {
		l := l
		for range 20 {
			var err error
			if l, err = k.Commit(k.ctx, l, state.Batch{Records: []state.Record{{Kind: "more"}}}); err != nil {
				t.Errorf("commit: %v", err)
			}
		}
	})
	forked := make([]bool, threads+1)
	var mu sync.Mutex
	for n := 1; n <= threads; n++ {
		for try := range 4 {
			all.Go(func() {
				if try == 0 && n%2 == 0 {
					if _, err := k.Admit(k.ctx, []state.Admit{ask(n, fmt.Sprint("race ", n))}); err != nil {
						t.Errorf("admit: %v", err)
					}
					return
				}
				c, err := k.Fork(k.ctx, l.Conversation.ID, 4, "assistant", thread(n))
				if errors.Is(err, state.ErrExists) && n%2 == 0 {
					return // the event came first
				}
				if err != nil || c.Seq != 4 {
					t.Errorf("fork to thread %d: %+v, %v", n, c, err)
				}
				mu.Lock()
				forked[n] = true
				mu.Unlock()
			})
		}
	}
	all.Wait()
	for n := 1; n <= threads; n++ {
		v, want := k.load(state.ConversationID("assistant", thread(n))), records
		if !forked[n] {
			want = nil
		}
		k.same(fmt.Sprintf("records in thread %d", n), v.Records, want)
		k.same(fmt.Sprintf("inbox of thread %d", n), len(v.Inbox), (n+1)%2)
	}
	k.same("records of the original", len(k.load(l.Conversation.ID).Records), 24)
}
