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

// In a fork, who spoke in the original is at most what they were when they were
// heard, and at most what they are there now. It is not paused when the original
// is, knows of newer files, and answers in its own thread.
func TestForkKeepsRoles(t *testing.T) {
	t.Parallel()
	var trusts []chat.Role
	w := newWorld(t, func(c *harness.Context) string {
		trusts = append(trusts, c.Trust())
		harness.UseModel(c, "fast")
		return "Help."
	}, scripted.Say("one"), scripted.Say("two"), scripted.Say("three"), scripted.Say("four"))
	role := chat.Maintainer
	w.opts.Role = func(_ context.Context, t chat.Thread, a chat.Author) (chat.Role, error) {
		switch {
		case a.Account == chat.APIAccount:
			return chat.Admin, nil
		case t.Channel == thread.Channel:
			return role, nil
		}
		return chat.Outsider, nil
	}
	w.restart()
	w.ask("U1", "hi")
	w.steer(chat.Pause, "")
	w.run()
	original := state.ConversationID("tested", thread)
	to := chat.Thread{Channel: "api", Account: "tested", Room: "fork"}
	v, err := w.store.Load(t.Context(), original, 0)
	if err != nil {
		t.Fatal(err)
	}
	own, err := record.Encode(record.Forked{From: original, Seq: v.Conversation.Seq, Thread: thread, NewerFiles: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Fork(t.Context(), original, v.Conversation.Seq, "tested", to, own); err != nil {
		t.Fatal(err)
	}
	for i, now := range []chat.Role{chat.Maintainer, chat.Member, chat.Admin} {
		role = now
		w.restart()
		trusts = nil
		w.event(chat.Event{ID: string(rune('a' + i)), Thread: to, Kind: chat.Message, Text: "go on", Author: chat.Author{ID: "token", Account: chat.APIAccount}}, false)
		w.run()
		if d := cmp.Diff([]chat.Role{min(now, chat.Maintainer)}, trusts[len(trusts)-1:]); d != "" {
			t.Errorf("trust while U1 is %s (-want +got):\n%s", now, d)
		}
	}
	if got := notices(w.request(-1)); len(got) != 1 || got[0] != "This conversation was continued from an earlier point. The files may be as they were left later: look at them before you rely on what you know of them." {
		t.Errorf("it was told %q", got)
	}
	w.ask("U1", "and here?")
	if n := len(of[record.Said](w.records())); n != 1 {
		t.Errorf("the original gave %d answers, though it is paused", n)
	}
}
