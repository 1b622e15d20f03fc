package turn

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/scripted"
	"github.com/heddlehq/heddle/state"
)

var other = chat.Thread{Channel: "slack", Account: "T1", Room: "C2", Root: "7"}

// deliver brings what is due in the outbox to its conversations, each twice.
func (w *world) deliver() {
	w.t.Helper()
	for {
		due, err := w.store.ClaimPosts(context.Background(), "test", 100, time.Minute)
		if err != nil {
			w.t.Fatal(err)
		}
		if len(due) == 0 {
			return
		}
		for _, e := range due {
			for range 2 {
				var in state.Admit
				if e.Post.Thread.Channel != chat.ToConversation {
					break
				}
				if err := json.Unmarshal([]byte(e.Post.Text), &in); err != nil {
					w.t.Fatal(err)
				}
				if _, err := w.store.Admit(context.Background(), []state.Admit{in}); err != nil {
					w.t.Fatal(err)
				}
			}
			if err := w.store.SettlePost(context.Background(), e, state.Outcome{State: state.Sent, Ref: "x"}); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

// sender is an agent whose tool sends a text to a thread; it shows its trust.
func sender(to chat.Thread) harness.Agent {
	return func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		d := harness.UseDispatch(c)
		harness.UseTool(c, act("send", func(_ context.Context, call *harness.Call) (string, error) {
			return "sent", d.Send(call, to, "look <notice>here</notice>")
		}))
		return "Trust: " + c.Trust().String()
	}
}

// once calls the tool in its first turn and only answers in others.
func once(tool string) scripted.Step {
	return func(ctx context.Context, r model.Request) (model.Response, error) {
		if strings.Contains(transcript(r), "go!") && !strings.Contains(transcript(r), "[results]") {
			return call(tool)(ctx, r)
		}
		return scripted.Say("ok")(ctx, r)
	}
}

// A text that a call sends is heard once in the other conversation, whatever
// commit the process dies at and however often it is delivered, with the trust
// of who sent it.
func TestDispatch(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		died := true
		for n := 1; died; n++ {
			w := worldOf(t, sender(other), scripted.Play(once("send"), 0))
			w.wary.stable = false // two conversations
			w.setRole("U1", chat.Maintainer)
			w.say("U1", "go!")
			died = w.die(n, after)
			w.deliver()
			w.run()
			sent := of[record.Dispatched](w.records())
			if did := of[record.Did](w.records()); len(did) == 1 && did[0].End == record.Unknown {
				if len(sent) != 0 {
					t.Errorf("died at commit %d (after: %v): a call of unknown outcome has sent %+v", n, after, sent)
				}
				continue
			}
			heard := of[record.Heard](w.recordsOf(other))
			if len(sent) != 1 || len(heard) != 1 {
				t.Fatalf("died at commit %d (after: %v): sent %+v, heard %+v", n, after, sent, heard)
			}
			want := chat.Author{ID: string(state.ConversationID("tested", thread)), Account: chat.ConversationAccount}
			if h := heard[0]; h.Event.Author != want || h.Role != chat.Maintainer || h.Event.Text != "look <notice>here</notice>" || h.Event.ID != "dispatch/"+sent[0].Key {
				t.Errorf("heard %+v", h)
			}
			r := w.request(-1)
			if r.System != "Trust: maintainer" || strings.Contains(transcript(r), "<notice>here") {
				t.Errorf("the other one saw %s\n%s", r.System, transcript(r))
			}
		}
	}
}

// What a conversation sends is trusted as little as the weakest voice in it, also
// where everybody else is more.
func TestDispatchCarriesTrust(t *testing.T) {
	t.Parallel()
	w := worldOf(t, sender(other), scripted.Play(once("send"), 0))
	w.wary.stable = false
	w.opts.Talk = chat.Outsider
	w.setRole("stranger", chat.Outsider)
	w.setRole("boss", chat.Admin)
	w.admit("boss", "hello", other, false)
	w.run()
	if got := w.request(-1).System; got != "Trust: admin" {
		t.Fatalf("before: %s", got)
	}
	w.say("stranger", "hi")
	w.run()
	w.ask("boss", "go!")
	w.deliver()
	w.opts.Talk = chat.Member // who sends is not asked for: it was let in where it came from
	w.restart()
	w.run()
	if got := w.request(-1); got.System != "Trust: outsider" || !strings.Contains(transcript(got), `role="outsider"`) {
		t.Errorf("after: %s\n%s", got.System, transcript(got))
	}
	w.setRole("stranger", chat.Admin) // what was heard stays as weak as it was
	w.admit("boss", "and now", other, false)
	w.run()
	if got := w.request(-1).System; got != "Trust: outsider" {
		t.Errorf("later: %s", got)
	}
}

// What a call brings in from elsewhere counts for what it sends.
func TestDispatchCarriesVoicesOfTheCall(t *testing.T) {
	t.Parallel()
	w := worldOf(t, func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		d := harness.UseDispatch(c)
		harness.UseTool(c, act("send", func(_ context.Context, call *harness.Call) (string, error) {
			call.Hear(harness.Voice{Author: chat.Author{ID: "U9"}, Role: chat.Outsider})
			return "", d.Send(call, other, "found")
		}))
		return ""
	}, scripted.Play(once("send"), 0))
	w.wary.stable = false
	w.ask("U1", "go!")
	w.deliver()
	w.run()
	if h := of[record.Heard](w.recordsOf(other)); len(h) != 1 || h[0].Role != chat.Outsider {
		t.Errorf("heard %+v", h)
	}
}

// The zero thread is the conversation itself. A loop ends after so many hops.
func TestDispatchLoopEnds(t *testing.T) {
	t.Parallel()
	var failed []error
	w := worldOf(t, func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		d := harness.UseDispatch(c)
		harness.UseSettled(c, "again", func(_ context.Context, call *harness.Call, _ harness.Settled) error {
			if err := d.Send(call, chat.Thread{}, "once more"); err != nil {
				failed = append(failed, err)
			}
			return nil
		})
		return ""
	}, scripted.Play(scripted.Say("ok"), 0))
	w.say("U1", "go!")
	for range 2 * harness.MaxHops {
		w.run()
		w.deliver()
	}
	var hops []string
	for _, h := range of[record.Heard](w.records()) {
		hops = append(hops, h.Event.Facts[record.FactHops])
	}
	if d := cmp.Diff([]string{"", "1", "2", "3", "4", "5", "6", "7", "8"}, hops); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if len(failed) != 1 || failed[0].Error() != "dispatch: 8 conversations have woken each other already" {
		t.Errorf("failed %v", failed)
	}
	w.ask("U1", "by hand") // somebody's words begin anew
	w.deliver()
	w.run()
	if h := of[record.Heard](w.records()); h[len(h)-1].Event.Facts[record.FactHops] != "1" {
		t.Errorf("the last heard is %+v", h[len(h)-1])
	}
}

// A task may send as well; what it sends comes with its commit.
func TestDispatchFromATask(t *testing.T) {
	t.Parallel()
	w := worldOf(t, func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		harness.UseSubagent(c, harness.Subagent{Name: "sender", Doc: "sends", Agent: sender(other)})
		return "Help."
	}, scripted.Play(func(ctx context.Context, r model.Request) (model.Response, error) {
		switch {
		case strings.Contains(transcript(r), "[results]"):
			return scripted.Say("ok")(ctx, r)
		case strings.HasPrefix(r.System, "Trust"):
			return call("send")(ctx, r)
		}
		return scripted.Call("task", `{"agent":"sender","prompt":"send"}`)(ctx, r)
	}, 0))
	w.wary.stable = false
	w.ask("U1", "go")
	w.deliver()
	if v, err := w.store.Load(context.Background(), state.ConversationID("tested", other), 0); err != nil || len(v.Inbox) != 1 || v.Inbox[0].Event.Facts[record.FactTrust] != "member" {
		t.Errorf("the other one has %+v, %v", v.Inbox, err)
	}
}

// What cannot be sent is an error of the call.
func TestDispatchRefuses(t *testing.T) {
	t.Parallel()
	for want, send := range map[string]struct {
		to   chat.Thread
		text string
	}{
		"dispatch: thread has no account":                                            {chat.Thread{Channel: "slack"}, "x"},
		"dispatch: the text is empty":                                                {other, " \n"},
		"dispatch: the text has 65537 bytes, at most 65536 are sent":                 {other, strings.Repeat("x", 65537)},
		`no conversation is in the channel "conversation"; name the thread that one`: {chat.Thread{Channel: "conversation", Account: "c1"}, "x"},
	} {
		w := newWorld(t, func(c *harness.Context) string {
			harness.UseModel(c, "fast")
			d := harness.UseDispatch(c)
			harness.UseTool(c, act("send", func(_ context.Context, call *harness.Call) (string, error) {
				return "", d.Send(call, send.to, send.text)
			}))
			return ""
		}, call("send"), scripted.Say("ok"))
		w.ask("U1", "go")
		did := of[record.Did](w.records())
		if len(did) != 1 || did[0].End != record.Failed || !strings.Contains(did[0].Text, want) || len(w.posts()) != 1 {
			t.Errorf("%s: %+v, posts %q", want, did, w.posts())
		}
	}
	if got := record.Hops(chat.Event{Author: chat.Author{Account: chat.ConversationAccount}}); got != harness.MaxHops {
		t.Errorf("an event without its hops leads on: %d", got)
	}
	if got := fmt.Sprint(carried(chat.Event{Facts: map[string]string{"trust": "king"}})); got != "outsider" {
		t.Errorf("an unknown trust is %s", got)
	}
}
