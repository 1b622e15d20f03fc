package turn

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model/scripted"
	"github.com/heddlehq/heddle/state"
)

// A conversation with threads in two channels answers where its route says, and
// looks up people where they spoke.
func TestAnswersWhereTheRouteSays(t *testing.T) {
	t.Parallel()
	bill := chat.Thread{Channel: "stripe", Account: "acct_1", Root: "cus_1"}
	room := chat.Thread{Channel: "slack", Account: "T1", Room: "C1"}
	var trusts []chat.Role
	w := newWorld(t, func(c *harness.Context) string {
		trusts = append(trusts, c.Trust())
		harness.UseModel(c, "fast")
		return "Help."
	}, scripted.Say("one\n---\ntwo"), scripted.Say("three"), scripted.Say("four"))
	w.opts.Where = func(e chat.Event) (chat.Thread, bool) {
		if e.Thread.Channel == "stripe" {
			return room, true
		}
		return e.Thread, false
	}
	w.opts.Role = func(_ context.Context, at chat.Thread, a chat.Author) (chat.Role, error) {
		return map[string]chat.Role{"slack/T1 U1": chat.Maintainer, "stripe/acct_1 U1": chat.Admin}[at.Channel+"/"+at.Account+" "+a.ID], nil
	}
	w.restart()
	event := func(id string, at chat.Thread, text string) {
		w.event(chat.Event{ID: id, Ref: "ref of " + id, Thread: at, Kind: chat.Message, Topic: "thread", Text: text, Author: chat.Author{ID: "U1"}}, false)
		w.run()
	}
	event("E1", bill, "a payment failed")
	opened := room
	opened.Root = "100"
	posts, err := w.store.ClaimPosts(t.Context(), "test", 9, 1)
	if err != nil || len(posts) != 1 {
		t.Fatalf("%d posts, %v", len(posts), err)
	}
	if err := w.store.SettlePost(t.Context(), posts[0], state.Outcome{State: state.Sent, Opened: opened}); err != nil {
		t.Fatal(err)
	}
	event("E2", opened, "whose is it?")
	event("E3", bill, "it failed again")
	id := state.ConversationID("tested", bill)
	views, err := w.store.Posts(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var got []chat.Post
	for _, v := range views {
		got = append(got, v.Post)
	}
	key := func(first int64, n int) string { return state.PostKey(state.TurnID(id, first), 1, n) }
	want := []chat.Post{
		{Key: key(1, 0), Thread: room, Open: true, Text: "one"},
		{Key: key(1, 1), Thread: room, Open: true, Text: "two", After: key(1, 0)},
		{Key: key(2, 0), Thread: opened, Text: "three", ReplyTo: "ref of E2"},
		{Key: key(3, 0), Thread: room, Open: true, Text: "four"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("posts (-want +got):\n%s", d)
	}
	var roles []chat.Role
	for _, h := range of[record.Heard](w.recordsOf(bill)) {
		roles = append(roles, h.Role)
	}
	if d := cmp.Diff([]chat.Role{chat.Admin, chat.Maintainer, chat.Admin}, roles); d != "" {
		t.Errorf("roles (-want +got):\n%s", d)
	}
	if last := trusts[len(trusts)-1]; last != chat.Maintainer {
		t.Errorf("the context is trusted as %s, want maintainer: the weakest of both places", last)
	}
}
