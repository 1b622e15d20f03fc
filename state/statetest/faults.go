package statetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
	"github.com/heddlehq/heddle/state/mem"
)

var errFault = errors.New("injected fault")

// testFaults does one thing after the other, each again and again with the
// failure one step later, until nothing is left to fail. What failed left no
// trace; what did not gives the answer of the reference store.
func testFaults(t *testing.T, h Harness) {
	if !h.Faults {
		t.Skip("this store has no medium that could fail")
	}
	left := new(atomic.Int64) // steps before the failure; negative: there is none
	left.Store(-1)
	c := newClock()
	s := h.Open(t, Options{Now: c.Now, Fault: func() error {
		if left.Load() >= 0 && left.Add(-1) < 0 {
			return errFault
		}
		return nil
	}})
	defer func() { _ = s.Close() }()
	w := &walk{kit: &kit{T: t, Store: s, clock: c, ctx: t.Context()}, h: h, ref: mem.Open(c.Now)}
	try := func(name string, least int, do func(state.Store) (any, error)) any {
		t.Helper()
		before := w.dump()
		for n := 0; ; n++ {
			left.Store(int64(n))
			got, err := do(s)
			if left.Swap(-1) >= 0 {
				want, wantErr := do(w.ref)
				w.same(name, got, want)
				if kind(err) != kind(wantErr) {
					t.Fatalf("%s: got error %v, want %v", name, err, wantErr)
				}
				w.both(name+": everything", func(s state.Store) (any, error) {
					return (&kit{T: t, Store: s, ctx: w.ctx}).dump(), nil
				})
				if n < least {
					t.Errorf("%s could fail at %d steps, want at least %d", name, n, least)
				}
				c.advance(time.Second)
				return want
			}
			if !errors.Is(err, errFault) {
				t.Fatalf("%s: got error %v from failure %d, want the injected one", name, err, n)
			}
			w.same(fmt.Sprintf("%s: stores before and after failure %d", name, n), w.dump(), before)
		}
	}
	faultScript(w, try)
}

func faultScript(w *walk, try func(name string, least int, do func(state.Store) (any, error)) any) {
	admit := func(in ...state.Admit) func(state.Store) (any, error) {
		return func(s state.Store) (any, error) { return s.Admit(w.ctx, in) }
	}
	claim := func(s state.Store) (any, error) { return s.Claim(w.ctx, "worker", time.Minute) }
	claimPosts := func(s state.Store) (any, error) { return s.ClaimPosts(w.ctx, "worker", 9, time.Minute) }
	act := ask(1, "a")
	act.Event.Same = "s"
	try("admit", 3, admit(act, ask(2, "b"), state.Admit{Event: event(3, "c"), Ignored: "boring"}, ask(1, "d")))
	try("admit again", 1, admit(act, ask(1, "e"), state.Admit{Event: event(3, "f"), Follow: true}))
	l := try("claim", 2, claim).(state.Lease)
	l = try("renew", 2, func(s state.Store) (any, error) { return s.Renew(w.ctx, l, time.Hour) }).(state.Lease)
	l = try("commit", 6, func(s state.Store) (any, error) {
		return s.Commit(w.ctx, l, state.Batch{
			Records: []state.Record{{Kind: "heard", Data: []byte("1")}, {Kind: "said", Data: []byte("2")}},
			Taken:   2, Posts: []chat.Post{post(1, "p"), post(1, "q"), post(2, "r")},
			Blobs:  []state.Blob{{Name: "fold", Data: []byte("x")}, {Name: "files", Data: []byte("y")}},
			Counts: []state.Count{{Space: spaces[0], Key: "n", Add: 3}, {Space: spaces[0], Key: "n", Add: -1}},
		})
	}).(state.Lease)
	try("release", 2, func(s state.Store) (any, error) {
		return s.Commit(w.ctx, l, state.Batch{
			Records: []state.Record{{Kind: "settled"}}, Taken: 3, Posts: []chat.Post{post(1, "q"), post(1, "z")},
			Blobs: []state.Blob{{Name: "fold"}}, Release: true, Wake: w.Now().Add(time.Hour),
		})
	})
	try("commit to a lost lease", 0, func(s state.Store) (any, error) {
		return s.Commit(w.ctx, l, state.Batch{Records: []state.Record{{Kind: "x"}}})
	})
	fork := func(seq int64, n int) func(state.Store) (any, error) {
		return func(s state.Store) (any, error) {
			return s.Fork(w.ctx, l.Conversation.ID, seq, "assistant", thread(n), state.Record{Kind: "forked"})
		}
	}
	try("fork", 5, fork(2, 3))
	try("fork again", 1, fork(2, 3))
	try("fork to a thread that has another", 0, fork(2, 2))
	try("fork at a record that is not", 0, fork(4, 4))
	put := func(vs ...state.Value) func(state.Store) (any, error) {
		return func(s state.Store) (any, error) { return nil, s.PutValues(w.ctx, spaces[1], vs...) }
	}
	try("put values", 4, put(state.Value{Key: "a", Data: []byte("1")}, state.Value{Key: "b", Data: []byte{}}))
	try("replace and delete values", 4, put(state.Value{Key: "a", Data: []byte("2")}, state.Value{Key: "b"}))
	posts := try("claim posts", 2, claimPosts).([]state.Effect)
	settle := func(e state.Effect, o state.Outcome) func(state.Store) (any, error) {
		return func(s state.Store) (any, error) { return nil, s.SettlePost(w.ctx, e, o) }
	}
	try("settle as sent", 2, settle(posts[0], state.Outcome{State: state.Sent, Ref: "1", Opened: thread(7)}))
	try("settle as due", 2, settle(posts[1], state.Outcome{State: state.Due, DoubtAt: start}))
	posts = try("claim posts again", 2, claimPosts).([]state.Effect)
	try("settle as dead", 3, settle(posts[0], state.Outcome{State: state.Dead, Reason: "gone"}))
	try("retry what is dead", 3, func(s state.Store) (any, error) {
		return nil, s.RetryPost(w.ctx, posts[0].Conversation, posts[0].Post.Key)
	})
	try("drop it", 2, func(s state.Store) (any, error) {
		return nil, s.DropPost(w.ctx, posts[0].Conversation, posts[0].Post.Key)
	})
	try("admit to a thread that was opened", 2, admit(ask(7, "g")))
	try("claim the other", 2, claim)
	try("claim nothing", 0, claim)
	try("check", 2, func(s state.Store) (any, error) { return nil, s.Check(w.ctx) })
	w.advance(state.DedupeFor)
	try("claim what was lost", 2, claim)
	try("admit what was forgotten", 4, admit(act, ask(2, "b")))
}

// testStorm lets workers and senders loose on a store that events keep coming
// to: each event is taken once and in order, each post sent once and in order.
func testStorm(t *testing.T, h Harness) {
	k := newKit(t, h)
	const threads, events, hands = 6, 20, 4
	st := &storm{kit: k, heard: map[state.ID][]string{}, sent: map[chat.Thread][]string{}}
	var all, in sync.WaitGroup
	for n := range threads {
		in.Go(func() {
			for i := range events {
				if _, err := k.Admit(k.ctx, []state.Admit{ask(n, fmt.Sprintf("%d/%02d", n, i))}); err != nil {
					t.Errorf("admit: %v", err)
				}
			}
		})
	}
	admitted := make(chan struct{})
	go func() { in.Wait(); close(admitted) }()
	for range hands {
		all.Go(func() { st.until(admitted, st.turn) })
		all.Go(func() { st.until(admitted, st.send) })
	}
	all.Wait()
	for st.turn() || st.send() {
	}
	for n := range threads {
		var want []string
		for i := range events {
			want = append(want, fmt.Sprintf("%d/%02d", n, i))
		}
		k.same("events taken", st.heard[state.ConversationID("assistant", thread(n))], want)
		k.same("posts sent", st.sent[thread(n)], want)
	}
}

type storm struct {
	*kit
	mu    sync.Mutex
	heard map[state.ID][]string
	sent  map[chat.Thread][]string
}

// until works until there is nothing to do and nothing more to come.
func (st *storm) until(end <-chan struct{}, work func() bool) {
	for {
		ended := false
		select {
		case <-end:
			ended = true
		default:
		}
		if !work() && ended {
			return
		}
	}
}

// turn takes one event of one conversation, notes it and posts it.
func (st *storm) turn() bool {
	l, err := st.Claim(st.ctx, "worker", time.Hour)
	if err != nil {
		if !errors.Is(err, state.ErrNone) {
			st.Errorf("claim: %v", err)
		}
		return false
	}
	v, err := st.Load(st.ctx, l.Conversation.ID, 0)
	if err != nil || len(v.Inbox) == 0 {
		st.Errorf("load: %v, with %d in the inbox", err, len(v.Inbox))
		return false
	}
	e := v.Inbox[0]
	st.mu.Lock()
	st.heard[l.Conversation.ID] = append(st.heard[l.Conversation.ID], e.Event.ID)
	st.mu.Unlock()
	if v.Conversation.Seq != e.Seq-1 {
		st.Errorf("entry %d is heard after record %d", e.Seq, v.Conversation.Seq)
	}
	_, err = st.Commit(st.ctx, l, state.Batch{
		Records: []state.Record{{Kind: "heard"}}, Taken: e.Seq, Release: true,
		Posts: []chat.Post{{Key: e.Event.ID, Thread: e.Event.Thread}},
	})
	if err != nil {
		st.Errorf("commit: %v", err)
	}
	return true
}

func (st *storm) send() bool {
	posts, err := st.ClaimPosts(st.ctx, "sender", 2, time.Hour)
	if err != nil {
		st.Errorf("claim posts: %v", err)
	}
	for _, e := range posts {
		st.mu.Lock()
		st.sent[e.Post.Thread] = append(st.sent[e.Post.Thread], e.Post.Key)
		st.mu.Unlock()
		if err := st.SettlePost(st.ctx, e, state.Outcome{State: state.Sent}); err != nil {
			st.Errorf("settle post: %v", err)
		}
	}
	return len(posts) > 0
}
