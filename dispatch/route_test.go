package dispatch

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

// TestDoor holds every kind of event to the door's decision.
func TestDoor(t *testing.T) {
	t.Parallel()
	routes := []Route{
		{On: []string{"fake.mention", "fake.dm"}, Agent: "first"},
		{On: []string{"fake.mention", "fake.thread"}, Agent: "second"},
		{On: []string{"fake.issues.*"}, Agent: "issues"},
		{On: []string{"hub.*"}, Agent: "hub"},
	}
	agent := func(name string) state.Admit { return state.Admit{Agent: name} }
	ignored := func(why string) state.Admit { return state.Admit{Ignored: why} }
	quiet := state.Admit{Follow: true, Quiet: true, Left: true}
	for _, tc := range []struct {
		channel string
		kind    chat.Kind
		topic   string
		bot     bool
		want    state.Admit
	}{
		{"fake", chat.Mention, "mention", false, agent("first")},
		{"fake", chat.Message, "dm", false, agent("first")},
		{"fake", chat.Message, "thread", false, state.Admit{Agent: "second", Follow: true}},
		{"fake", chat.Message, "message", false, ignored("no route")},
		{"fake", chat.Message, "mentions", false, ignored("no route")},
		{"fake", chat.Message, "", false, ignored("no route")},
		{"fake", chat.Notice, "issues.opened", false, agent("issues")},
		{"fake", chat.Notice, "issues.", false, agent("issues")},
		{"fake", chat.Notice, "issues", false, ignored("no route")},
		{"fake", chat.Reacted, "reaction", false, ignored("no route")},
		{"fake", chat.Action, "action", false, ignored("no route")},
		{"fake", chat.Command, "command", false, ignored("no route")},
		{"hub", chat.Reacted, "reaction", false, agent("hub")},
		{"hub", chat.Message, "thread", false, state.Admit{Agent: "hub", Follow: true}},
		{"hubs", chat.Mention, "mention", false, ignored("no route")},
		{"fake", chat.Edited, "mention", false, quiet},
		{"fake", chat.Deleted, "", false, quiet},
		{"none", chat.Edited, "thread", false, quiet},
		{"fake", chat.Mention, "mention", true, ignored("another bot")},
		{"fake", chat.Message, "thread", true, ignored("another bot")},
		{"hub", chat.Edited, "thread", true, ignored("another bot")},
		{"hub", chat.Control, "abort", false, ignored("not for a channel to say")},
	} {
		e := chat.Event{ID: "e", Kind: tc.kind, Topic: tc.topic, Thread: chat.Thread{Channel: tc.channel, Account: "A"}, Author: chat.Author{ID: "U1", Bot: tc.bot}}
		tc.want.Event = e
		o := &Options{Routes: routes}
		if diff := cmp.Diff(tc.want, o.door(e)); diff != "" {
			t.Errorf("%s %s %q bot=%v: %s", tc.channel, tc.kind, tc.topic, tc.bot, diff)
		}
	}
}

// A channel cannot pass for an operator, whatever its provider makes of accounts.
func TestDoorKeepsReservedAccounts(t *testing.T) {
	t.Parallel()
	e := event("e", chat.Mention, thread("r", "1"))
	e.Author.Account = chat.APIAccount
	if got := (&Options{Routes: []Route{{On: []string{"*"}, Agent: "a"}}}).door(e); got.Ignored == "" {
		t.Errorf("an author of account %s was admitted", e.Author.Account)
	}
}

// One message that comes as a mention and as a message of its thread is one
// turn, whichever comes first, and a message that is not for the bot does not
// stand in the mention's way.
func TestMentionAndMessageConverge(t *testing.T) {
	t.Parallel()
	mention := event("Ev1", chat.Mention, thread("r", "1"))
	message := event("Ev2", chat.Message, thread("r", "1"))
	mention.Same, message.Same = "A/r/1", "A/r/1"
	message.Topic = "thread"
	for name, tc := range map[string]struct {
		events   []chat.Event
		followed bool // the thread has a conversation already
		want     map[string]int
	}{
		"mention first":           {[]chat.Event{mention, message}, false, map[string]int{"duplicate": 1}},
		"message first":           {[]chat.Event{message, mention}, false, map[string]int{"ignored: not followed": 1}},
		"mention first, followed": {[]chat.Event{mention, message}, true, map[string]int{"duplicate": 1}},
		"message first, followed": {[]chat.Event{message, mention}, true, map[string]int{"duplicate": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var w *world
			var turns int
			bubble(t, func(made *world) {
				w = made
				want := 1
				if tc.followed {
					w.queue(thread("r", "1"), "earlier")
				}
				for _, e := range tc.events {
					if _, err := w.gw.admit(t.Context(), []chat.Event{e}); err != nil {
						t.Fatal(err)
					}
				}
				c, err := w.store.Find(t.Context(), thread("r", "1"))
				if err != nil || c.Inbox != want || c.Agent != "a" {
					t.Errorf("%d entries of %q wait (%v), want %d", c.Inbox, c.Agent, err, want)
				}
				w.run()
				if turns != 1 {
					t.Errorf("%d turns, want 1", turns)
				}
				if diff := cmp.Diff(tc.want, w.log.counted()); diff != "" {
					t.Error(diff)
				}
			}, withEngine(func(ctx, _ context.Context, l state.Lease) error {
				turns++
				return w.settle(ctx, l)
			}))
		})
	}
}

// TestThreadIsTheConversation pins that what is said in one thread is one
// conversation, over restarts and channels, and that an edit starts no turn.
func TestThreadIsTheConversation(t *testing.T) {
	t.Parallel()
	threads := []chat.Thread{
		{Channel: "slack", Account: "T01", Room: "C02", Root: "1721.0001"},
		{Channel: "slack", Account: "T01", Room: "C02", Root: "1721.0002"},
		{Channel: "slack", Account: "T01", Room: "D05"},
		{Channel: "discord", Account: "G1", Room: "C02", Root: "1721.0001"},
		{Channel: "github", Account: "octo/spoon", Room: "issues", Root: "42"},
		{Channel: "stripe", Account: "acct_1", Room: "cus_1"},
	}
	bubble(t, func(w *world) {
		seen := map[state.ID]chat.Thread{}
		for round := range 3 {
			for i, th := range threads {
				e := event(fmt.Sprint(round, i), chat.Mention, th)
				if round == 2 {
					e.Kind = chat.Edited
				}
				if _, err := w.gw.admit(t.Context(), []chat.Event{e}); err != nil {
					t.Fatal(err)
				}
				a, err := w.store.Event(t.Context(), th.Channel, e.ID)
				if err != nil {
					t.Fatal(err)
				}
				if other, ok := seen[a.Conversation]; ok != (round > 0) || ok && other != th || a.Conversation != state.ConversationID("a", th) {
					t.Errorf("round %d: %v is in conversation %q, as %v is", round, th, a.Conversation, other)
				}
				seen[a.Conversation] = th
			}
		}
	}, func(o *Options) { o.Routes = []Route{{On: []string{"*"}, Agent: "a"}} })
}

// An edit waits for the next turn and starts none; one of a thread without a
// conversation is nothing.
func TestEditsAreQuiet(t *testing.T) {
	t.Parallel()
	var w *world
	var inboxes []int
	bubble(t, func(made *world) {
		w = made
		w.run()
		edit := event("edit", chat.Edited, thread("r", "1"))
		stray := event("stray", chat.Deleted, thread("s", "1"))
		w.hear("r")
		synctest.Wait()
		w.deliver(edit, stray)
		synctest.Wait()
		if fmt.Sprint(inboxes) != "[1]" {
			t.Errorf("turns with %v entries, want [1]", inboxes)
		}
		w.deliver(event("more", chat.Mention, thread("r", "1")))
		synctest.Wait()
		if fmt.Sprint(inboxes) != "[1 2]" {
			t.Errorf("turns with %v entries, want [1 2]", inboxes)
		}
		if diff := cmp.Diff(map[string]int{"ignored: not followed": 1}, w.log.counted()); diff != "" {
			t.Error(diff)
		}
	}, withEngine(func(ctx, _ context.Context, l state.Lease) error {
		inboxes = append(inboxes, l.Conversation.Inbox)
		return w.settle(ctx, l)
	}))
}

// An event's policy is that of the route that takes it; of none, it joins.
func TestBusy(t *testing.T) {
	t.Parallel()
	busy := Busy([]Route{
		{On: []string{"slack.dm"}, Agent: "a", WhileBusy: chat.Queue},
		{On: []string{"slack.*"}, Agent: "b", WhileBusy: chat.Drop},
		{On: []string{"slack.mention"}, Agent: "a", WhileBusy: chat.Steer},
		{On: []string{"github.mention"}, Agent: "a"},
	})
	for topic, want := range map[string]chat.Policy{
		"slack.dm": chat.Queue, "slack.mention": chat.Drop, "github.mention": "", "discord.dm": chat.Join,
	} {
		channel, name, _ := strings.Cut(topic, ".")
		if got := busy(chat.Event{Thread: chat.Thread{Channel: channel}, Topic: name}); got != want {
			t.Errorf("%s: %q, want %q", topic, got, want)
		}
	}
}
