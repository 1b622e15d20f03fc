package dispatch

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

// What is answered in a room decides what its messages are.
func TestRooms(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	o := &Options{
		Clock: func() time.Time { return now }, Silence: time.Hour,
		Routes: []Route{{On: []string{"fake.mention", "fake.dm", "fake.thread"}, Agent: "a"}},
		Rooms: map[chat.Thread]Answer{
			{Channel: "fake", Account: "A", Room: "quiet"}: Mentions, {Channel: "fake", Account: "A", Room: "open"}: All,
			{Channel: "fake", Account: "B"}: Off, {Channel: "fake", Account: "B", Room: "on"}: Follow, {Channel: "fax"}: Off,
		},
	}
	followed := state.Admit{Agent: "a", Follow: true, Since: now.Add(-time.Hour)}
	ignored := func(why string) state.Admit { return state.Admit{Ignored: why} }
	for _, c := range []struct {
		room, topic, to string
		want            state.Admit
	}{
		{"fake/A/usual", "mention", "", state.Admit{Agent: "a"}},
		{"fake/A/usual", "thread", "", followed},
		{"fake/A/usual", "thread", "U2", followed},
		{"fake/A/usual", "message", "", ignored("no route")},
		{"fake/A/usual", "mention", "U2", state.Admit{Agent: "a"}},
		{"fake/A/usual", "dm", "U2", state.Admit{Agent: "a"}},
		{"fake/A/quiet", "mention", "", state.Admit{Agent: "a"}},
		{"fake/A/quiet", "thread", "", state.Admit{Agent: "a", Ignored: "only mentions are answered in the room"}},
		{"fake/A/open", "mention", "", state.Admit{Agent: "a"}},
		{"fake/A/open", "message", "", state.Admit{Agent: "a", Event: chat.Event{Topic: "mention"}}},
		{"fake/A/open", "message", "U2", state.Admit{Agent: "a", Ignored: "said to somebody else", Event: chat.Event{Topic: "mention"}}},
		{"fake/A/open", "thread", "", state.Admit{Agent: "a"}},
		{"fake/A/open", "thread", "U2", followed},
		{"fake/B/any", "mention", "", ignored("the room is off")},
		{"fake/B/any", "dm", "", ignored("the room is off")},
		{"fake/B/on", "thread", "", followed},
		{"fax/C/any", "mention", "", ignored("the room is off")},
	} {
		at, err := chat.ParseThread(c.room)
		if err != nil {
			t.Fatal(err)
		}
		e := chat.Event{ID: "e", Kind: chat.Message, Topic: c.topic, Thread: at, Author: chat.Author{ID: "U1"}}
		if c.to != "" {
			e.Facts = map[string]string{chat.Addressed: c.to}
		}
		topic := c.want.Event.Topic
		if c.want.Event = e; topic != "" {
			c.want.Event.Topic = topic
		}
		if d := cmp.Diff(c.want, o.door(e)); d != "" {
			t.Errorf("%s %s to %q (-want +got):\n%s", c.room, c.topic, c.to, d)
		}
	}
	edit := chat.Event{ID: "e", Kind: chat.Deleted, Thread: chat.Thread{Channel: "fax", Account: "C"}}
	if got := o.door(edit).Ignored; got != "the room is off" {
		t.Errorf("a deletion in a room that is off: ignored as %q", got)
	}
}

// Who talks may go on; who gives an order, a file or is a machine is answered at once.
func TestDebounce(t *testing.T) {
	t.Parallel()
	o := &Options{Routes: []Route{{On: []string{"slow.*"}, Agent: "a", Debounce: time.Second}, {On: []string{"fast.*"}, Agent: "a"}}, Bots: map[Bot]bool{{"slow", "B1"}: true}}
	for name, c := range map[string]struct {
		change func(*chat.Event)
		held   bool
	}{
		"a message in a thread": {func(*chat.Event) {}, true},
		"a direct message":      {func(e *chat.Event) { e.Topic = "dm" }, true},
		"a mention":             {func(e *chat.Event) { e.Topic, e.Kind = "mention", chat.Mention }, false},
		"a message of a room":   {func(e *chat.Event) { e.Topic = "message" }, false},
		"a file":                {func(e *chat.Event) { e.Files = []chat.File{{ID: "F1"}} }, false},
		"a button":              {func(e *chat.Event) { e.Kind = chat.Action }, false},
		"a command":             {func(e *chat.Event) { e.Kind = chat.Command }, false},
		"an order":              {func(e *chat.Event) { e.Text = " Stop! " }, false},
		"a machine":             {func(e *chat.Event) { e.Author = chat.Author{} }, false},
		"a bot":                 {func(e *chat.Event) { e.Author = chat.Author{ID: "B1", Bot: true} }, false},
		"an edit":               {func(e *chat.Event) { e.Kind = chat.Edited }, false},
		"another route":         {func(e *chat.Event) { e.Thread.Channel = "fast" }, false},
		"to somebody else":      {func(e *chat.Event) { e.Facts = map[string]string{chat.Addressed: "U2"} }, false},
	} {
		e := event("e", chat.Message, chat.Thread{Channel: "slow", Account: "A"})
		e.Topic = "thread"
		c.change(&e)
		a := o.door(e)
		if a.Ignored != "" || a.Hold > 0 != c.held {
			t.Errorf("%s: held for %v, ignored as %q; want it held: %v", name, a.Hold, a.Ignored, c.held)
		}
	}
}

// Bots are let in one by one, by channel and id.
func TestBots(t *testing.T) {
	t.Parallel()
	o := &Options{Routes: []Route{{On: []string{"*"}, Agent: "a"}}, Bots: map[Bot]bool{{"fake", "B1"}: true}}
	for author, in := range map[chat.Author]bool{
		{ID: "B1", Bot: true}: true, {ID: "B2", Bot: true}: false, {Bot: true}: false, {ID: "B2", Name: "B1", Bot: true}: false, {ID: "U1"}: true,
	} {
		e := event("e", chat.Mention, thread("r", "1"))
		e.Author = author
		if got := o.door(e).Ignored == ""; got != in {
			t.Errorf("%+v is let in: %v, want %v", author, got, in)
		}
		e.Thread.Channel = "other"
		if author.Bot && o.door(e).Ignored == "" {
			t.Errorf("%+v is let in by another channel", author)
		}
	}
}

func TestAnswerNames(t *testing.T) {
	t.Parallel()
	var a Answer
	for _, name := range []string{"", "mention", "follow", "all", "off"} {
		if err := a.UnmarshalText([]byte(name)); err != nil || string(a) != name {
			t.Errorf("%q is read as %q, %v", name, a, err)
		}
	}
	if err := a.UnmarshalText([]byte("some")); err == nil {
		t.Error("an answer that there is not was read")
	}
}
