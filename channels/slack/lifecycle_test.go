package slack

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
	fake "github.com/heddlehq/heddle/fakes/slack"
)

// memory keeps values for a test.
type memory struct {
	values map[string][]byte
	fail   error
}

func (m *memory) Load(_ context.Context, name string) ([]byte, error) {
	return m.values[name], m.fail
}

func (m *memory) Save(_ context.Context, name string, value []byte) error {
	if m.fail != nil {
		return m.fail
	}
	m.values[name] = value
	return nil
}

// take receives an event and does what the channel has to do then.
func take(t *testing.T, c *Channel, inner map[string]any) channels.Inbound {
	t.Helper()
	d := fake.New(fake.Options{}).Event(inner)
	in, err := c.Receive("events", d.Header, d.Body, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if in.Then != nil {
		if err := in.Then(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return in
}

// A channel that gets another id, twice, and over a restart, keeps the keys of
// its threads, and is asked for by its last id.
func TestChannelIDChanged(t *testing.T) {
	t.Parallel()
	w, c := workspace(t, fake.Options{Channels: []fake.Channel{{ID: "C0THIRD"}}}, Access{})
	kept := &memory{values: map[string][]byte{}}
	c.Remember(kept, nil)
	if err := c.Identify(t.Context()); err != nil {
		t.Fatal(err)
	}
	change := func(before, after string) map[string]any {
		return map[string]any{"type": "channel_id_changed", "old_channel_id": before, "new_channel_id": after, "event_ts": "1.1"}
	}
	take(t, c, change("C0FIRST", "C0SECOND"))
	take(t, c, change("C0SECOND", "C0THIRD"))
	take(t, c, change("C0SECOND", "C0THIRD")) // again
	_, later := workspace(t, fake.Options{}, Access{})
	later.apiURL, later.home = c.apiURL, c.home
	later.Remember(kept, nil)
	if err := later.Identify(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*Channel{c, later} {
		e := receive(t, c, w.Mention(fake.Words{Channel: "C0THIRD", User: "U0PERSON", Text: "still here?"}))
		if e.Thread.Room != "C0FIRST" {
			t.Errorf("room %s", e.Thread.Room)
		}
		if e.Same != "T0FAKE/C0FIRST/"+e.Ref {
			t.Errorf("an act of its own after the change: %s", e.Same)
		}
		if at := c.Opened(chat.Post{Thread: chat.Thread{Channel: Name, Account: "T0FAKE", Room: "C0THIRD"}, Open: true}, e.Ref); at != e.Thread {
			t.Errorf("answers to a post come in %v, and are expected in %v", e.Thread, at)
		}
		if u, err := url.Parse("https://fake.slack.com/archives/C0THIRD/p" + strings.Replace(e.Ref, ".", "", 1)); err != nil {
			t.Fatal(err)
		} else if same, err := c.Linked(t.Context(), u); same != e.Same || err != nil {
			t.Errorf("a link leads to %q, %v", same, err)
		}
		p := chat.Post{Key: "k" + e.ID, Thread: e.Thread, Text: "yes"}
		ref, err := c.Send(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if found, err := c.Find(t.Context(), p, time.Now()); found != ref || err != nil {
			t.Errorf("found %q, %v", found, err)
		}
		if open, err := c.Open(t.Context(), e.Thread); !open || err != nil {
			t.Errorf("open %v, %v", open, err)
		}
		if err := c.Mark(t.Context(), e.Thread, e.Ref, channels.Working); err != nil || len(w.Reactions("C0THIRD", e.Ref)) != 1 {
			t.Errorf("mark: %v", err)
		}
	}
	if e := inbound(t, c, w.Command("C0SECOND", "U0PERSON", "/agent", "hi")).Events[0]; e.Thread.Room != "C0FIRST" {
		t.Errorf("command in %v", e.Thread)
	}
	kept.fail = errors.New("disk full")
	d := w.Event(change("C0THIRD", "C0FOURTH"))
	in, err := c.Receive("events", d.Header, d.Body, time.Now())
	if err != nil || in.Then == nil || in.Then(t.Context()) == nil {
		t.Error("acknowledged what was not kept")
	}
	if c.origin("C0FOURTH") != "C0FOURTH" {
		t.Error("in force before it was kept")
	}
}

// Reactions to our own posts come in the thread in which they stand.
func TestReactions(t *testing.T) {
	t.Parallel()
	w, c := workspace(t, fake.Options{}, Access{})
	if err := c.Identify(t.Context()); err != nil {
		t.Fatal(err)
	}
	e := receive(t, c, w.Mention(fake.Words{User: "U0PERSON", Text: "look"}))
	answer, err := c.Send(t.Context(), chat.Post{Key: "k", Thread: e.Thread, Text: "yes"})
	if err != nil {
		t.Fatal(err)
	}
	reaction := func(kind, user, by, ts string) map[string]any {
		room := "C0GENERAL"
		if ts == "5.5" {
			room = "D0PERSON"
		}
		return map[string]any{
			"type": kind, "user": by, "reaction": "thumbsup", "item_user": user, "event_ts": "1722.0001", "item": map[string]any{"type": "message", "channel": room, "ts": ts},
		}
	}
	in := take(t, c, reaction("reaction_added", "U0BOT", "U0PERSON", answer))
	if len(in.Events) != 1 {
		t.Fatalf("%+v", in)
	}
	got := in.Events[0]
	if got.Kind != chat.Reacted || got.Topic != "reaction" || got.Thread != e.Thread || got.Ref != answer || got.Author.ID != "U0PERSON" || got.Text != ":thumbsup:" || got.Facts["reaction"] != "thumbsup" || got.At.IsZero() {
		t.Errorf("%+v", got)
	}
	if got := take(t, c, reaction("reaction_removed", "U0BOT", "U0PERSON", answer)).Events[0]; got.Facts["removed"] != "true" {
		t.Errorf("%+v", got)
	}
	if got := take(t, c, reaction("reaction_added", "U0BOT", "U0PERSON", "9.9")).Events[0]; got.Thread.Root != "9.9" {
		t.Errorf("at a message that is not known: %v", got.Thread)
	}
	if got := take(t, c, reaction("reaction_added", "U0BOT", "U0PERSON", "5.5")).Events[0]; got.Thread.Root != "" {
		t.Errorf("in a direct message: %v", got.Thread)
	}
	_, stranger := workspace(t, fake.Options{}, Access{}) // that was not told who it is, but by the event
	if got := take(t, stranger, reaction("reaction_added", "U0BOT", "U0PERSON", answer)); len(got.Events) != 1 {
		t.Errorf("before it is known who we are: %+v", got)
	}
	for _, in := range []channels.Inbound{
		take(t, c, reaction("reaction_added", "U0OTHER", "U0PERSON", answer)),
		take(t, c, reaction("reaction_added", "", "U0PERSON", answer)),
		take(t, c, reaction("reaction_added", "U0BOT", "U0BOT", answer)),
	} {
		if len(in.Events) > 0 || len(in.Ignored) != 1 {
			t.Errorf("%+v", in)
		}
	}
}

// The stop button of an agent thread is a stop of its user.
func TestStopButton(t *testing.T) {
	t.Parallel()
	_, c := workspace(t, fake.Options{}, Access{})
	e := take(t, c, map[string]any{"type": "agent_session_stopped", "channel": "D0PERSON", "thread_ts": "1.1", "user": "U0PERSON", "event_ts": "2.2"}).Events[0]
	if !chat.IsOrder(e.Text) || e.Kind != chat.Message || e.Topic != "dm" || e.Thread.Root != "1.1" || e.Author.ID != "U0PERSON" {
		t.Errorf("%+v", e)
	}
	if in := take(t, c, map[string]any{"type": "agent_session_stopped"}); len(in.Events) > 0 {
		t.Errorf("%+v", in)
	}
}

// S40 and its like: what happens to an app leads to nothing else.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	_, c := workspace(t, fake.Options{}, Access{})
	for _, kind := range []string{
		"app_uninstalled", "tokens_revoked", "app_uninstalled", "app_home_opened", "assistant_thread_started", "member_joined_channel", "channel_rename", "channel_id_changed",
	} {
		in := take(t, c, map[string]any{"type": kind, "channel": map[string]any{"id": "C1", "name": "new"}, "tokens": map[string]any{"bot": []string{"U0BOT"}}})
		if len(in.Events) > 0 || len(in.Ignored) != 1 || in.Ignored[0].Reason == "unknown type" {
			t.Errorf("%s: %+v", kind, in)
		}
	}
}

// S20: another bot's words say that they are a bot's; whether it is let in, the
// settings say.
func TestOtherBots(t *testing.T) {
	t.Parallel()
	w, c := workspace(t, fake.Options{}, Access{})
	for _, subtype := range []string{"", "bot_message"} {
		in := take(t, c, map[string]any{"type": "message", "subtype": subtype, "channel": "C0GENERAL", "channel_type": "channel", "ts": "1.1", "bot_id": "B0OTHER", "user": "U0OTHERBOT", "text": "done"})
		if len(in.Events) != 1 || in.Events[0].Author != (chat.Author{ID: "B0OTHER", Account: w.Options().Team, Bot: true}) {
			t.Errorf("%q: %+v", subtype, in)
		}
	}
}
