// Package statetest is the suite of the store family: what every store does,
// and that it does so in races, after failures and after a restart.
package statetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

// A Harness opens the stores that the suite tries.
type Harness struct {
	// Open opens an empty store, which the suite closes.
	Open func(t *testing.T, o Options) state.Store
	// Reopen ends the store as the end of its process would and opens what it
	// has left, with the options it was opened with.
	Reopen func(t *testing.T, s state.Store) state.Store
	// Takeover says that Reopen ends all leases and claims.
	Takeover bool
	// Faults says that stores obey Options.Fault.
	Faults bool
}

// Options of a store under test.
type Options struct {
	Now func() time.Time
	// Fault is called before each step of a write; an error from it is what
	// happens instead. nil means that none is to fail.
	Fault func() error
}

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	for name, test := range map[string]func(*testing.T, Harness){
		"admit: what becomes of an event":        testAdmit,
		"admit: one of many at once":             testAdmitRaces,
		"admit: all or nothing":                  testAdmitWhole,
		"admit: events come back exactly":        testEventRoundTrip,
		"admit: repeats are forgotten in time":   testDedupeFor,
		"conversation: agent and thread":         testOneConversation,
		"claim: ready longest first":             testClaimOrder,
		"claim: quiet, pause and wake":           testReady,
		"claim: lost leases and attempts":        testAttempts,
		"claim: one of many at once":             testClaimRaces,
		"commit: a batch":                        testCommit,
		"commit: a lost lease writes nothing":    testFencing,
		"commit: inbox in order":                 testInbox,
		"fork: a conversation of its own":        testFork,
		"fork: what is refused":                  testForkRefused,
		"fork: one of many at once":              testForkRaces,
		"threads: those that posts have opened":  testOpened,
		"threads: one owner":                     testOneOwner,
		"threads: one of many at once":           testOpenRaces,
		"threads: left and followed again":       testLeft,
		"threads: an author who goes on":         testHold,
		"posts: order within a thread":           testPostOrder,
		"posts: no holes":                        testHoles,
		"posts: tried again and dropped":         testRevise,
		"posts: outcomes":                        testOutcomes,
		"posts: claims that run out":             testPostExpiry,
		"posts: keys":                            testPostKeys,
		"reader: conversations, posts, events":   testReader,
		"reader: what operators ask":             testQuestions,
		"values: put, read and listed":           testValues,
		"values: whole calls are seen":           testValueRaces,
		"values: counts add up":                  testCounts,
		"wait: something becomes ready":          testWait,
		"wait: closed and cancelled":             testWaitEnds,
		"reopen: all is there":                   testReopen,
		"faults: whole or not at all":            testFaults,
		"check and close":                        testCheck,
		"walk: the same as the reference store":  testWalk,
		"storm: many conversations, every event": testStorm,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, h)
		})
	}
}

// start is when tests begin: in whole microseconds, so that stores keep it.
var start = time.Date(2026, 5, 4, 3, 2, 1, 123456000, time.UTC)

// A clock is set by hand.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: start} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// A kit is a store under test and short ways to use it, which fail the test.
type kit struct {
	*testing.T
	state.Store
	*clock
	ctx context.Context
}

func newKit(t *testing.T, h Harness) *kit {
	c := newClock()
	s := h.Open(t, Options{Now: c.Now})
	k := &kit{T: t, Store: s, clock: c, ctx: t.Context()}
	t.Cleanup(func() {
		if err := k.Store.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return k
}

// thread is the n-th thread of a channel.
func thread(n int) chat.Thread {
	return chat.Thread{Channel: "slack", Account: "T01", Room: "C/02", Root: fmt.Sprint(n)}
}

// event is a mention in the n-th thread.
func event(n int, id string) chat.Event {
	return chat.Event{ID: id, Thread: thread(n), Kind: chat.Mention, Topic: "mention", Text: "hello " + id, At: start}
}

func ask(n int, id string) state.Admit { return state.Admit{Event: event(n, id), Agent: "assistant"} }

func (k *kit) admit(in ...state.Admit) []state.Admission {
	k.Helper()
	out, err := k.Admit(k.ctx, in)
	if err != nil {
		k.Fatalf("admit: %v", err)
	}
	if len(out) != len(in) {
		k.Fatalf("admit answered %d of %d events", len(out), len(in))
	}
	return out
}

func (k *kit) claim() state.Lease {
	k.Helper()
	l, err := k.Claim(k.ctx, "worker", time.Minute)
	if err != nil {
		k.Fatalf("claim: %v", err)
	}
	return l
}

func (k *kit) noClaim() {
	k.Helper()
	if l, err := k.Claim(k.ctx, "worker", time.Minute); !errors.Is(err, state.ErrNone) {
		k.Fatalf("claim got %v, %v; want ErrNone", l, err)
	}
}

func (k *kit) commit(l state.Lease, b state.Batch) state.Lease {
	k.Helper()
	l, err := k.Commit(k.ctx, l, b)
	if err != nil {
		k.Fatalf("commit: %v", err)
	}
	return l
}

func (k *kit) load(id state.ID) state.View {
	k.Helper()
	v, err := k.Load(k.ctx, id, 0)
	if err != nil {
		k.Fatalf("load: %v", err)
	}
	return v
}

// claimPosts claims up to n posts and checks their keys.
func (k *kit) claimPosts(n int, keys ...string) []state.Effect {
	k.Helper()
	out, err := k.ClaimPosts(k.ctx, "worker", n, time.Minute)
	if err != nil {
		k.Fatalf("claim posts: %v", err)
	}
	var got []string
	for _, e := range out {
		got = append(got, e.Post.Key)
	}
	k.same("keys of claimed posts", got, keys)
	return out
}

func (k *kit) settle(e state.Effect, o state.Outcome) {
	k.Helper()
	if err := k.SettlePost(k.ctx, e, o); err != nil {
		k.Fatalf("settle post %s: %v", e.Post.Key, err)
	}
}

// same fails the test unless two values are equal.
func (k *kit) same(what string, got, want any) {
	k.Helper()
	if d := cmp.Diff(want, got, equal...); d != "" {
		k.Fatalf("%s differ (-want +got):\n%s", what, d)
	}
}

// fails fails the test unless err is want.
func (k *kit) fails(what string, err, want error) {
	k.Helper()
	if !errors.Is(err, want) {
		k.Fatalf("%s: got error %v, want %v", what, err, want)
	}
}

var equal = []cmp.Option{cmpopts.EquateEmpty()}

func testReopen(t *testing.T, h Harness) {
	k := newKit(t, h)
	k.admit(ask(1, "a"), state.Admit{Event: event(2, "b"), Ignored: "boring"})
	l := k.commit(k.claim(), state.Batch{
		Records: []state.Record{{Kind: "said", Data: []byte(`"hi"`)}},
		Posts:   []chat.Post{post(1, "p1"), post(1, "p2")},
		Blobs:   []state.Blob{{Name: "fold", Data: []byte("x")}},
	})
	k.claimPosts(9, "p1")
	k.put(spaces[0], state.Value{Key: "k", Data: []byte("v")})
	before := k.dump()
	k.Store = h.Reopen(t, k.Store)
	if h.Takeover { // the claim is over
		before["posts "+string(l.Conversation.ID)].([]state.PostView)[0].State = state.Unknown
	}
	k.same("stores before and after", k.dump(), before)
	if !h.Takeover {
		k.noClaim()
		k.claimPosts(9)
		k.advance(time.Minute)
	}
	again := k.claim()
	if again.Epoch <= l.Epoch || again.Attempt != 2 {
		t.Errorf("claim after reopening has epoch %d, attempt %d; want more than %d, 2", again.Epoch, again.Attempt, l.Epoch)
	}
	_, err := k.Commit(k.ctx, l, state.Batch{Release: true})
	k.fails("commit with the old lease", err, state.ErrLeaseLost)
	if e := k.claimPosts(9, "p1")[0]; e.DoubtAt.IsZero() || e.Attempt != 2 {
		t.Errorf("post after reopening is %+v; want it in doubt, at attempt 2", e)
	}
	k.same("a repeat", k.admit(ask(1, "a"))[0], state.Admission{Status: state.Duplicate, Conversation: l.Conversation.ID, Seq: 1})
}

func testCheck(t *testing.T, h Harness) {
	k := newKit(t, h)
	if err := k.Check(k.ctx); err != nil {
		t.Errorf("check: %v", err)
	}
	gone, cancel := context.WithCancel(k.ctx)
	cancel()
	k.fails("check when cancelled", k.Check(gone), context.Canceled)
	if err := k.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	k.fails("check of a closed store", k.Check(k.ctx), state.ErrClosed)
	_, err := k.Admit(k.ctx, []state.Admit{ask(1, "a")})
	k.fails("admit to a closed store", err, state.ErrClosed)
	_, err = k.Claim(k.ctx, "worker", time.Minute)
	k.fails("claim in a closed store", err, state.ErrClosed)
	_, err = k.ClaimPosts(k.ctx, "worker", 1, time.Minute)
	k.fails("claim posts in a closed store", err, state.ErrClosed)
	_, err = k.Find(k.ctx, thread(1))
	k.fails("find in a closed store", err, state.ErrClosed)
	_, err = k.Records(k.ctx, "nobody", 0, 1)
	k.fails("records of a closed store", err, state.ErrClosed)
	_, err = k.Threads(k.ctx, "nobody")
	k.fails("list threads of a closed store", err, state.ErrClosed)
	k.fails("retry in a closed store", k.RetryPost(k.ctx, "nobody", "p"), state.ErrClosed)
	_, err = k.Fork(k.ctx, "nobody", 1, "assistant", thread(1))
	k.fails("fork in a closed store", err, state.ErrClosed)
	k.fails("put in a closed store", k.PutValues(k.ctx, "s", state.Value{Key: "k"}), state.ErrClosed)
	_, err = k.Value(k.ctx, "s", "k")
	k.fails("read a value of a closed store", err, state.ErrClosed)
	_, err = k.ListValues(k.ctx, "s", "", 1)
	k.fails("list values of a closed store", err, state.ErrClosed)
}

// dump is everything that can be read from a store.
func (k *kit) dump() map[string]any {
	k.Helper()
	out := map[string]any{}
	all, err := k.Conversations(k.ctx, time.Time{}, 1000)
	if err != nil {
		k.Fatalf("list conversations: %v", err)
	}
	out["conversations"] = all
	for _, c := range all {
		v := k.load(c.ID)
		posts, err := k.Posts(k.ctx, c.ID)
		if err != nil {
			k.Fatalf("list posts: %v", err)
		}
		blob, err := k.Blob(k.ctx, c.ID, "fold")
		if err != nil {
			k.Fatalf("read blob: %v", err)
		}
		threads, err := k.Threads(k.ctx, c.ID)
		if err != nil {
			k.Fatalf("list threads: %v", err)
		}
		out["view "+string(c.ID)], out["posts "+string(c.ID)], out["blob "+string(c.ID)], out["threads "+string(c.ID)] = v, posts, blob, threads
	}
	for _, space := range spaces {
		out["values "+space] = k.list(space, "", 1000)
	}
	return out
}
