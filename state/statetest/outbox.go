package statetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

func post(n int, key string) chat.Post {
	return chat.Post{
		Key: key, Thread: thread(n), Text: "*text* of " + key,
		Files: []chat.Attachment{{Name: key + ".bin", MediaType: "application/octet-stream", Data: []byte{0, 0xff, byte(n)}}},
	}
}

// queue commits posts in the conversation of the n-th thread.
func (k *kit) queue(n int, posts ...chat.Post) state.ID {
	k.Helper()
	a := ask(n, fmt.Sprintf("for %s in %d", posts[0].Key, n))
	k.admit(a)
	l := k.claim()
	k.same("conversation that posts", l.Conversation.Thread, a.Event.Thread)
	k.commit(l, state.Batch{Taken: 1 << 40, Posts: posts, Release: true})
	return l.Conversation.ID
}

func testPostOrder(t *testing.T, h Harness) {
	k := newKit(t, h)
	k.claimPosts(9)
	k.queue(1, post(1, "a1"), post(1, "a2"), post(2, "b1"))
	k.advance(time.Second)
	k.queue(2, post(2, "b2"), post(3, "c1"), post(1, "a3"))
	k.claimPosts(0)
	claimed := k.claimPosts(2, "a1", "b1")
	claimed = append(claimed, k.claimPosts(9, "c1")...)
	k.claimPosts(9)
	// Only the settled one lets the next of its thread go.
	k.settle(claimed[0], state.Outcome{State: state.Sent, Ref: "1"})
	a2 := k.claimPosts(9, "a2")[0]
	// One that is due later holds back those behind it, not other threads.
	k.settle(a2, state.Outcome{State: state.Due, Due: k.Now().Add(time.Hour)})
	k.settle(claimed[1], state.Outcome{State: state.Dead, Reason: "gone"})
	k.claimPosts(9, "b2")
	k.advance(time.Hour - time.Microsecond)
	k.claimPosts(9, "b2", "c1") // whose claims have run out meanwhile
	k.advance(time.Microsecond)
	a2 = k.claimPosts(9, "a2")[0]
	k.settle(a2, state.Outcome{State: state.Sent})
	k.claimPosts(9, "a3")
}

func testOutcomes(t *testing.T, h Harness) {
	k := newKit(t, h)
	id := k.queue(1, post(1, "p"))
	queued := k.Now()
	views := func(want state.PostView) {
		k.Helper()
		want.Conversation, want.Post, want.QueuedAt = id, post(1, "p"), queued
		got, err := k.Posts(k.ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		k.same("posts", got, []state.PostView{want})
	}
	views(state.PostView{State: state.Pending})
	k.advance(time.Second)
	first := k.Now()
	want := state.Effect{Post: post(1, "p"), Conversation: id, Attempt: 1, FirstAt: first, QueuedAt: queued}
	var last state.Effect
	for i, o := range []state.Outcome{
		{State: state.Due, Reason: "busy"},
		{State: state.Due, Reason: "timed out", DoubtAt: first},
		{State: state.Due, DoubtAt: first.Add(time.Millisecond)},
		{State: state.Due, Reason: "refused before it was made"},
	} {
		e := k.claimPosts(9, "p")[0]
		views(state.PostView{State: state.Sending, Attempts: i + 1, Reason: []string{"", "busy", "timed out", ""}[i]})
		if e.Epoch <= last.Epoch {
			t.Errorf("epoch %d follows %d", e.Epoch, last.Epoch)
		}
		last, want.Epoch = e, e.Epoch
		k.same("effect", e, want)
		k.advance(time.Second)
		k.settle(e, o)
		left := state.Pending
		if !o.DoubtAt.IsZero() {
			left = state.Unknown
		}
		views(state.PostView{State: left, Attempts: i + 1, Reason: o.Reason})
		k.fails("settling twice", k.SettlePost(k.ctx, e, o), state.ErrLeaseLost)
		want.Attempt, want.DoubtAt = want.Attempt+1, o.DoubtAt
	}
	e := k.claimPosts(9, "p")[0]
	for _, bad := range []state.Outcome{{}, {State: "lost"}, {State: state.Pending}, {State: state.Sent, Opened: chat.Thread{Channel: "slack"}}} {
		if err := k.SettlePost(k.ctx, e, bad); err == nil {
			t.Errorf("outcome %+v was taken", bad)
		}
	}
	k.settle(e, state.Outcome{State: state.Sent, Ref: "1721.5", Reason: "none"})
	views(state.PostView{State: state.Sent, Ref: "1721.5", Attempts: 5, SettledAt: k.Now()})
	k.fails("settling what is sent", k.SettlePost(k.ctx, e, state.Outcome{State: state.Dead}), state.ErrLeaseLost)
	k.queue(1, post(1, "q"))
	k.settle(k.claimPosts(9, "q")[0], state.Outcome{State: state.Dead, Ref: "none", Reason: "no such room"})
	got, err := k.Posts(k.ctx, id)
	if err != nil || len(got) != 2 || got[1].State != state.Dead || got[1].Reason != "no such room" || got[1].Ref != "" {
		t.Errorf("posts are %+v, %v; want the second dead", got, err)
	}
	k.advance(24 * time.Hour)
	k.claimPosts(9)
}

func testPostExpiry(t *testing.T, h Harness) {
	k := newKit(t, h)
	k.queue(1, post(1, "p"), post(1, "next"))
	first := k.claimPosts(9, "p")[0]
	k.advance(time.Minute - time.Microsecond)
	k.claimPosts(9)
	k.advance(time.Microsecond)
	second := k.claimPosts(9, "p")[0]
	if !first.DoubtAt.IsZero() || second.DoubtAt != start || second.Attempt != 2 || second.FirstAt != start {
		t.Errorf("claims are %+v, then %+v; want the second in doubt", first, second)
	}
	for _, o := range []state.Outcome{{State: state.Sent}, {State: state.Dead}, {State: state.Due}} {
		k.fails("settling a claim taken over", k.SettlePost(k.ctx, first, o), state.ErrLeaseLost)
	}
	nobody, other := second, second
	nobody.Conversation, other.Post.Key = "nobody", "other"
	k.fails("settling nobody's post", k.SettlePost(k.ctx, nobody, state.Outcome{State: state.Sent}), state.ErrLeaseLost)
	k.fails("settling a post that is not", k.SettlePost(k.ctx, other, state.Outcome{State: state.Sent}), state.ErrLeaseLost)
	// A claim that ran out and was not taken over can be settled.
	k.advance(time.Hour)
	k.settle(second, state.Outcome{State: state.Sent})
	k.claimPosts(9, "next")
}

func testPostKeys(t *testing.T, h Harness) {
	k := newKit(t, h)
	changed := post(1, "p")
	changed.Text = "changed"
	id := k.queue(1, post(1, "p"), changed, post(1, "q"))
	k.settle(k.claimPosts(9, "p")[0], state.Outcome{State: state.Sent})
	k.advance(time.Second)
	k.admit(ask(1, "again"))
	k.commit(k.claim(), state.Batch{Posts: []chat.Post{changed, post(1, "q"), post(1, "r")}, Taken: 9, Release: true})
	views, err := k.Posts(k.ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	var got []chat.Post
	for _, v := range views {
		got = append(got, v.Post)
	}
	k.same("posts", got, []chat.Post{post(1, "p"), post(1, "q"), post(1, "r")})
	k.settle(k.claimPosts(9, "q")[0], state.Outcome{State: state.Sent})
	k.settle(k.claimPosts(9, "r")[0], state.Outcome{State: state.Sent})
	k.claimPosts(9)
	// Another conversation has keys of its own.
	k.queue(2, post(2, "p"))
	k.claimPosts(9, "p")
}

func testReader(t *testing.T, h Harness) {
	k := newKit(t, h)
	for n := range 5 {
		k.admit(ask(n, string(rune('a'+n))))
		k.advance(time.Second)
	}
	k.admit(ask(1, "more"), state.Admit{Event: event(2, "x"), Ignored: "boring"})
	list := func(before time.Time, limit int, want ...int) {
		k.Helper()
		all, err := k.Conversations(k.ctx, before, limit)
		if err != nil {
			t.Fatal(err)
		}
		var got []chat.Thread
		for _, c := range all {
			got = append(got, c.Thread)
		}
		var threads []chat.Thread
		for _, n := range want {
			threads = append(threads, thread(n))
		}
		k.same("conversations", got, threads)
	}
	list(time.Time{}, 100, 1, 4, 3, 2, 0)
	list(time.Time{}, 2, 1, 4)
	list(time.Time{}, 0)
	list(start.Add(3*time.Second), 100, 2, 0)
	id := state.ConversationID("assistant", thread(1))
	for event, want := range map[string]state.Admission{
		"b": {Status: state.Admitted, Conversation: id, Seq: 1}, "more": {Status: state.Admitted, Conversation: id, Seq: 2},
		"x": {Status: state.Ignored, Reason: "boring"},
	} {
		got, err := k.Event(k.ctx, "slack", event)
		if err != nil {
			t.Fatal(err)
		}
		k.same("admission of "+event, got, want)
	}
	_, err := k.Event(k.ctx, "discord", "b")
	k.fails("an event of another channel", err, state.ErrNotFound)
	if posts, err := k.Posts(k.ctx, "nobody"); err != nil || len(posts) != 0 {
		t.Errorf("posts of nobody are %v, %v", posts, err)
	}
}

// What operators ask: which events told of what somebody did, and which posts
// are not sent.
func testQuestions(t *testing.T, h Harness) {
	k := newKit(t, h)
	heard, ignored, again := ask(1, "heard"), ask(1, "ignored"), ask(1, "later")
	heard.Event.Same, ignored.Event.Same, again.Event.Same = "act", "act", "other"
	ignored.Ignored = "boring"
	k.admit(ignored)
	k.advance(time.Second)
	k.admit(heard)
	k.admit(again)
	id := state.ConversationID("assistant", thread(1))
	acts := func(channel, same string, want ...state.Act) {
		t.Helper()
		got, err := k.Acts(k.ctx, channel, same)
		if err != nil {
			t.Fatal(err)
		}
		k.same("acts of "+same, got, want)
	}
	acts("slack", "act",
		state.Act{Event: "ignored", At: start, Admission: state.Admission{Status: state.Ignored, Reason: "boring"}},
		state.Act{Event: "heard", At: start.Add(time.Second), Admission: state.Admission{Status: state.Admitted, Conversation: id, Seq: 1}})
	acts("slack", "")
	acts("slack", "none")
	acts("discord", "act")

	k.commit(k.claim(), state.Batch{Taken: 9, Release: true, Posts: []chat.Post{post(1, "a"), post(1, "b"), post(2, "c")}})
	e, err := k.ClaimPosts(k.ctx, "sender", 9, time.Minute)
	if err != nil || len(e) != 2 {
		t.Fatal(len(e), err)
	}
	for i, o := range []state.Outcome{{State: state.Sent, Ref: "r"}, {State: state.Dead, Reason: "gone"}} {
		if err := k.SettlePost(k.ctx, e[i], o); err != nil {
			t.Fatal(err)
		}
	}
	unsent := func(limit int, want ...string) {
		t.Helper()
		got, err := k.Unsent(k.ctx, limit)
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, v := range got {
			lines = append(lines, fmt.Sprint(v.Conversation == id, " ", v.Post.Key, " ", v.State, " ", v.Reason))
		}
		k.same("unsent", lines, want)
	}
	unsent(9, "true b pending ", "true c dead gone")
	unsent(1, "true b pending ")
	unsent(0)
	k.advance(state.DedupeFor)
	acts("slack", "act")
}
