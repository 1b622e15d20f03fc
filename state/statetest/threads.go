package statetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

// place is where posts open threads: a room.
func place() chat.Thread { return chat.Thread{Channel: "slack", Account: "T01", Room: "C09"} }

func opening(key string) chat.Post {
	return chat.Post{Key: key, Thread: place(), Text: key, Open: true}
}

// threads checks what a conversation owns besides its own thread.
func (k *kit) threads(id state.ID, want ...chat.Thread) {
	k.Helper()
	got, err := k.Threads(k.ctx, id)
	if err != nil {
		k.Fatalf("list threads: %v", err)
	}
	k.same("threads", got, want)
}

// testOpened lets a conversation open a thread: posts for the place go there
// from then on, and what is said there is the conversation's.
func testOpened(t *testing.T, h Harness) {
	k := newKit(t, h)
	id := k.queue(1, opening("a"), opening("b"))
	other := k.queue(2, opening("a"))
	posts := k.claimPosts(9, "a", "a") // those of another conversation do not wait
	for _, e := range posts {
		if e.Post.Thread != place() || !e.Post.Open {
			t.Errorf("post is %+v; want it to open a thread", e.Post)
		}
	}
	k.threads(id)
	k.settle(posts[0], state.Outcome{State: state.Sent, Ref: "100", Opened: thread(100)})
	k.threads(id, thread(100))
	k.settle(posts[1], state.Outcome{State: state.Due, Reason: "lost"})
	k.Store = h.Reopen(t, k.Store)
	posts = k.claimPosts(9, "b", "a")
	if p := posts[0].Post; p.Thread != thread(100) || p.Open {
		t.Errorf("post is %+v; want it in the thread that is open", p)
	}
	if p := posts[1].Post; p.Thread != place() || !p.Open {
		t.Errorf("post is %+v; want it to open a thread of its own", p)
	}
	k.settle(posts[1], state.Outcome{State: state.Sent, Opened: thread(101)})
	k.settle(posts[0], state.Outcome{State: state.Sent, Opened: thread(100)})
	k.threads(id, thread(100))
	k.threads(other, thread(101))
	in := ask(100, "reply")
	in.Follow, in.Agent = true, ""
	k.same("a reply in the thread", k.admit(in)[0], state.Admission{Status: state.Admitted, Conversation: id, Seq: 2})
	mention := ask(101, "mention")
	mention.Agent = "somebody else"
	k.same("a mention in the thread", k.admit(mention)[0], state.Admission{Status: state.Admitted, Conversation: other, Seq: 2})
	for n, want := range map[int]state.ID{1: id, 100: id, 2: other, 101: other} {
		c, err := k.Find(k.ctx, thread(n))
		if err != nil || c.ID != want {
			t.Errorf("thread %d is of %s, %v; want %s", n, c.ID, err, want)
		}
	}
	_, err := k.Fork(k.ctx, other, 1, "assistant", thread(100))
	k.fails("a fork into a thread that has an owner", err, state.ErrNotFound) // nothing was recorded to fork
	l := k.commit(k.claim(), state.Batch{Records: []state.Record{{Kind: "said"}}, Taken: 9, Posts: []chat.Post{opening("c")}, Release: true})
	_, err = k.Fork(k.ctx, l.Conversation.ID, 1, "assistant", thread(101))
	k.fails("a fork into a thread that has an owner", err, state.ErrExists)
	if p := k.claimPosts(9, "c")[0].Post; p.Open {
		t.Errorf("post is %+v; want it in the thread that is open", p)
	}
}

// testOneOwner lets a thread have the first owner it gets.
func testOneOwner(t *testing.T, h Harness) {
	k := newKit(t, h)
	id := k.queue(1, opening("a"))
	own := k.queue(100, post(100, "p"))
	for _, e := range k.claimPosts(9, "a", "p") {
		k.settle(e, state.Outcome{State: state.Sent, Opened: thread(100)})
	}
	k.threads(id)
	k.threads(own)
	k.same("a mention there", k.admit(ask(100, "x"))[0], state.Admission{Status: state.Admitted, Conversation: own, Seq: 2})
	k.threads("nobody")
}

// testOpenRaces lets conversations open one thread at once, and people speak in it.
func testOpenRaces(t *testing.T, h Harness) {
	k := newKit(t, h)
	const n = 8
	for i := range n {
		k.queue(i, opening("a"))
	}
	var all sync.WaitGroup
	posts, err := k.ClaimPosts(k.ctx, "worker", n, time.Minute)
	if err != nil || len(posts) != n {
		t.Fatalf("%d posts, %v; want %d", len(posts), err, n)
	}
	for _, e := range posts {
		all.Go(func() {
			if err := k.SettlePost(k.ctx, e, state.Outcome{State: state.Sent, Opened: thread(100)}); err != nil {
				t.Errorf("settle: %v", err)
			}
		})
	}
	said := make([]state.Admission, n)
	for i := range n {
		all.Go(func() {
			in := ask(100, fmt.Sprint("said ", i))
			in.Follow = true
			out, err := k.Admit(k.ctx, []state.Admit{in})
			if err != nil {
				t.Errorf("admit: %v", err)
				return
			}
			said[i] = out[0]
		})
	}
	all.Wait()
	owner, err := k.Find(k.ctx, thread(100))
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range said {
		if a.Status == state.Admitted && a.Conversation != owner.ID || a.Status == state.Ignored && a.Reason != state.NotFollowed {
			t.Errorf("%+v; want it admitted to %s, or not followed", a, owner.ID)
		}
	}
	for i := range n {
		id := state.ConversationID("assistant", thread(i))
		if id == owner.ID {
			k.threads(id, thread(100))
		} else {
			k.threads(id)
		}
	}
}

// testLeft lets a conversation leave its threads, and come back.
func testLeft(t *testing.T, h Harness) {
	k := newKit(t, h)
	id, n := state.ConversationID("assistant", thread(1)), 0
	said := func(what string, followed bool, change func(*state.Admit)) {
		k.Helper()
		n++
		in := ask(1, fmt.Sprint(n))
		in.Follow = true
		change(&in)
		got := k.admit(in)[0]
		want := state.Admission{Status: state.Ignored, Reason: state.NotFollowed}
		if followed {
			want = state.Admission{Status: state.Admitted, Conversation: id, Seq: got.Seq}
		}
		k.same(what, got, want)
	}
	plain := func(*state.Admit) {}
	mention := func(a *state.Admit) { a.Follow = false }
	said("before there is a conversation", false, plain)
	said("a mention", true, mention)
	said("what follows", true, plain)
	k.commit(k.claim(), state.Batch{Taken: 2, Leave: true, Release: true})
	said("after it has left", false, plain)
	said("an edit of what was heard", true, func(a *state.Admit) { a.Left, a.Quiet = true, true })
	said("something quiet that does not follow", true, func(a *state.Admit) { a.Follow, a.Quiet = false, true })
	said("still", false, plain)
	k.Store = h.Reopen(t, k.Store)
	said("still, after a restart", false, plain)
	said("a mention brings it back", true, mention)
	said("what follows then", true, plain)
	// A commit leaves, unless somebody has spoken meanwhile.
	l := k.claim()
	k.commit(l, state.Batch{Taken: 5, Leave: true})
	said("because of what is in the inbox", true, plain)
	k.commit(l, state.Batch{Taken: 99, Leave: true, Release: true})
	said("after the commit", false, plain)
	said("a mention", true, mention)
	// Silence.
	k.advance(time.Hour)
	since := func(d time.Duration) func(*state.Admit) {
		return func(a *state.Admit) { a.Since = k.Now().Add(-d) }
	}
	said("after too long a silence", false, since(time.Hour-time.Microsecond))
	said("an edit after it", true, func(a *state.Admit) { since(time.Minute)(a); a.Left, a.Quiet = true, true })
	k.advance(time.Hour)
	said("in time", true, since(time.Hour))
}

// testHold lets authors say more before a turn begins.
func testHold(t *testing.T, h Harness) {
	k := newKit(t, h)
	n := 0
	say := func(author string, hold time.Duration) {
		k.Helper()
		n++
		in := ask(1, fmt.Sprint(n))
		in.Event.Author = chat.Author{ID: author, Account: "T01"}
		in.Hold = hold
		k.admit(in)
	}
	taken := func() {
		k.Helper()
		k.commit(k.claim(), state.Batch{Taken: 1 << 40, Release: true})
	}
	say("U1", time.Second)
	taken() // what creates a conversation is not held
	say("U1", time.Second)
	k.noClaim()
	k.advance(900 * time.Millisecond)
	say("U1", time.Second)
	k.advance(900 * time.Millisecond)
	k.noClaim()
	k.Store = h.Reopen(t, k.Store)
	k.advance(99 * time.Millisecond)
	k.noClaim()
	k.advance(time.Millisecond)
	taken()
	// Another author does not wait for the first one's next words, nor the first for theirs.
	say("U1", time.Second)
	k.advance(500 * time.Millisecond)
	say("U2", time.Second)
	k.advance(500 * time.Millisecond)
	taken()
	say("U1", time.Second)
	k.advance(500 * time.Millisecond)
	say("U1", 0) // a command
	taken()
	// Who never stops is answered all the same.
	for range 6 {
		say("U1", time.Second)
		k.noClaim()
		k.advance(time.Second - time.Microsecond)
	}
	taken()
	// Nor does it matter what they say once a turn may begin, and nobody has time for it.
	say("U1", time.Second)
	k.advance(time.Second)
	say("U1", time.Second)
	taken()
	// While it is leased nothing is held.
	say("U1", 0)
	l := k.claim()
	say("U1", time.Second)
	k.commit(l, state.Batch{Taken: 1, Release: true})
	taken()
	// A time to wake is no hold.
	say("U1", 0)
	k.commit(k.claim(), state.Batch{Taken: 1 << 40, Release: true, Wake: k.Now().Add(time.Hour)})
	say("U1", time.Second)
	k.advance(time.Second)
	taken()
}

// testHoles lets the parts after a dead one die with it.
func testHoles(t *testing.T, h Harness) {
	k := newKit(t, h)
	after := func(p chat.Post, key string) chat.Post { p.After = key; return p }
	id := k.queue(1, post(1, "a0"), after(post(1, "a1"), "a0"), after(post(1, "a2"), "a1"), post(1, "b0"), after(post(1, "b1"), "b0"))
	k.queue(2, after(post(2, "a1"), "a0")) // of another conversation
	states := func(want ...state.PostState) {
		k.Helper()
		views, err := k.Posts(k.ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		var got []state.PostState
		for _, v := range views {
			got = append(got, v.State)
			if v.State == state.Dead && v.SettledAt.IsZero() {
				t.Errorf("%+v has no time", v)
			}
		}
		k.same("states", got, want)
	}
	posts := k.claimPosts(9, "a0", "a1")
	k.settle(posts[0], state.Outcome{State: state.Sent})
	k.settle(k.claimPosts(9, "a1")[0], state.Outcome{State: state.Dead, Reason: "gone"})
	states(state.Sent, state.Dead, state.Dead, state.Pending, state.Pending)
	k.settle(k.claimPosts(9, "b0")[0], state.Outcome{State: state.Dead, Reason: "gone"})
	states(state.Sent, state.Dead, state.Dead, state.Dead, state.Dead)
	k.claimPosts(9)
	views, err := k.Posts(k.ctx, id)
	if err != nil || views[1].Reason != "gone" || views[2].Reason != state.Holed {
		t.Errorf("posts are %+v, %v", views, err)
	}
	k.settle(posts[1], state.Outcome{State: state.Sent})
}

// testRevise lets people try dead posts again, and drop others.
func testRevise(t *testing.T, h Harness) {
	k := newKit(t, h)
	after := func(p chat.Post, key string) chat.Post { p.After = key; return p }
	id := k.queue(1, post(1, "a"), after(post(1, "b"), "a"), post(1, "c"), post(1, "d"))
	do := func(what string, f func(key string) error, key string, want error) {
		k.Helper()
		err := f(key)
		if want == nil && err != nil {
			t.Fatalf("%s %s: %v", what, key, err)
		}
		k.fails(what+" "+key, err, want)
	}
	retry := func(key string) error { return k.RetryPost(k.ctx, id, key) }
	drop := func(key string) error { return k.DropPost(k.ctx, id, key) }
	k.fails("retry of nobody's", k.RetryPost(k.ctx, "nobody", "a"), state.ErrNotFound)
	k.fails("drop of nobody's", k.DropPost(k.ctx, "nobody", "a"), state.ErrNotFound)
	do("retry of a pending one", retry, "a", state.ErrNotFound)
	do("retry of none", retry, "x", state.ErrNotFound)
	do("drop of a pending one", drop, "c", nil)
	a := k.claimPosts(9, "a")[0]
	do("drop of one being sent", drop, "a", state.ErrNotFound)
	k.settle(a, state.Outcome{State: state.Dead, Reason: "gone"})
	k.claimPosts(9, "d")
	claimed := k.Now()
	k.advance(time.Second)
	do("drop of a dead one", drop, "a", state.ErrNotFound)
	do("retry of a dead one", retry, "a", nil)
	do("again", retry, "a", state.ErrNotFound)
	do("retry of what was dropped", retry, "c", nil)
	k.claimPosts(9) // d is under way
	views, err := k.Posts(k.ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range views {
		got = append(got, v.Post.Key+" "+string(v.State))
	}
	k.same("posts", got, []string{"d sending", "a unknown", "b pending", "c pending"})
	k.advance(time.Minute)
	do("drop of one whose claim is over", drop, "d", nil)
	a = k.claimPosts(9, "a")[0]
	if a.Attempt != 2 || a.DoubtAt != claimed || a.FirstAt != k.Now() {
		t.Errorf("claim is %+v; want the second, in doubt since the first, and begun anew", a)
	}
	k.settle(a, state.Outcome{State: state.Sent})
	do("retry of a sent one", retry, "a", state.ErrNotFound)
	do("drop of a sent one", drop, "a", state.ErrNotFound)
	do("drop of a part", drop, "b", nil)
	k.settle(k.claimPosts(9, "c")[0], state.Outcome{State: state.Sent})
	k.claimPosts(9)
}
