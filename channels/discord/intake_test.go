package discord

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/chat"
	fake "github.com/heddlehq/heddle/fakes/discord"
)

// What is said in every kind of place belongs to the conversation it should.
func TestPlaces(t *testing.T) {
	t.Parallel()
	w := connected(t, fake.Options{Channels: []fake.Channel{
		{ID: fake.General},
		{ID: fake.Help, Kind: fake.Forum},
		{ID: fake.DM, Kind: fake.Direct},
		{ID: "201", Kind: fake.Public, Parent: fake.General},
		{ID: "202", Kind: fake.Voice},
		{ID: "203", Kind: fake.Private, Parent: fake.General},
	}})
	in := func(room, root string) chat.Thread {
		return chat.Thread{Channel: Name, Account: guild, Room: room, Root: root}
	}
	dm := chat.Thread{Channel: Name, Account: direct, Room: fake.DM}
	made, err := w.c.Send(w.ctx, chat.Post{Key: "k", Thread: in("202", "77"), Text: "mine"}) // a plain message: 77 is not there
	if err != nil {
		t.Fatal(err)
	}
	mention := w.Mention(fake.Words{Text: "hello"})
	topic := w.Topic(fake.Words{Text: "how?"})
	for _, tc := range []struct {
		name, id, topic string
		kind            chat.Kind
		want            chat.Thread
	}{
		{"mention in a channel", mention, "mention", chat.Mention, in(fake.General, mention)},
		{"first message of a forum's thread", topic, "post", chat.Message, in(fake.Help, topic)},
		{"in a forum's thread", w.Say(fake.Words{Channel: topic, Text: "so"}), "thread", chat.Message, in(fake.Help, topic)},
		{"in a thread", w.Say(fake.Words{Channel: "201", Text: "so"}), "thread", chat.Message, in(fake.General, "201")},
		{"mention in a thread", w.Mention(fake.Words{Channel: "203", Text: "so"}), "mention", chat.Mention, in(fake.General, "203")},
		{"direct message", w.Say(fake.Words{Channel: fake.DM, Text: "so"}), "dm", chat.Message, dm},
		{"direct message with a mention", w.Mention(fake.Words{Channel: fake.DM, Text: "so"}), "dm", chat.Mention, dm},
		{"reply to the bot", w.Say(fake.Words{Channel: "202", Text: "so", Reply: made}), "mention", chat.Mention, in("202", made)},
	} {
		e := w.heard(tc.id)
		if d := cmp.Diff(tc.want, e.Thread); d != "" || e.Topic != tc.topic || e.Kind != tc.kind || e.Ref != tc.id {
			t.Errorf("%s: %s, %s, ref %s: %s", tc.name, e.Kind, e.Topic, e.Ref, d)
		}
	}
	if e := w.heard(mention); e.Text != "hello" || e.Author.ID != w.Options().Users[0].ID || e.Author.Account != guild || e.At.IsZero() {
		t.Errorf("event %+v", e)
	}
	plain := w.Say(fake.Words{Text: "just talking"})
	if e := w.heard(plain); e.Topic != "message" || e.Thread != in(fake.General, plain) {
		t.Errorf("event %+v", e)
	}
}

// A reply that does not notify the bot goes on with the conversation that its
// message belongs to, however long the chain is.
func TestChains(t *testing.T) {
	t.Parallel()
	w := connected(t, fake.Options{Channels: []fake.Channel{{ID: fake.General, NoThreads: true}}})
	root := w.Mention(fake.Words{Text: "one"})
	th := w.heard(root).Thread
	for range 3 {
		made, err := w.c.Send(w.ctx, chat.Post{Key: "k", Thread: th, Text: "answer", ReplyTo: root})
		if err != nil {
			t.Fatal(err)
		}
		id := w.Say(fake.Words{Text: "and?", Reply: made, More: map[string]any{"mentions": []any{}}})
		if e := w.heard(id); e.Thread != th || e.Topic != "thread" || e.Kind != chat.Message {
			t.Fatalf("event %+v, want thread %v", e, th)
		}
	}
}

// The bot's own role, and not the everyone of a guild, is a mention.
func TestMentions(t *testing.T) {
	t.Parallel()
	w := connected(t, fake.Options{})
	for _, tc := range []struct {
		name string
		more map[string]any
		want chat.Kind
	}{
		{"own role", map[string]any{"mention_roles": []string{fake.BotRole}}, chat.Mention},
		{"another role", map[string]any{"mention_roles": []string{"5"}}, chat.Message},
		{"everyone", map[string]any{"mention_everyone": true}, chat.Message},
	} {
		if e := w.heard(w.Say(fake.Words{Text: "hi", More: tc.more})); e.Kind != tc.want {
			t.Errorf("%s: %s", tc.name, e.Kind)
		}
	}
	if e := w.heard(w.Say(fake.Words{Text: "the text <@" + bot + "> alone", More: map[string]any{"mentions": []any{}}})); e.Kind != chat.Message {
		t.Errorf("%s by text", e.Kind)
	}
}

// A process that resumes a session is told of no guilds, threads and roles, and
// finds out what it needs.
func TestNothingKnown(t *testing.T) {
	t.Parallel()
	w := connected(t, fake.Options{Channels: []fake.Channel{{ID: fake.General}, {ID: "201", Kind: fake.Public, Parent: fake.General}}})
	w.heard(w.Say(fake.Words{Text: "x"}))
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	w.c = w.channel(w.c.apiURL, func(o *Options) { o.Access.Members = []string{"all"} })
	w.listen()
	byRole := w.heard(w.Say(fake.Words{Text: "<@&" + fake.BotRole + "> hi", More: map[string]any{"mention_roles": []string{fake.BotRole}}}))
	if byRole.Kind != chat.Mention || byRole.Text != "hi" {
		t.Errorf("event %+v", byRole)
	}
	if e := w.heard(w.Say(fake.Words{Channel: "201", Text: "x"})); e.Thread.Room != fake.General {
		t.Errorf("event %+v", e)
	}
	if r, err := w.c.Role(w.ctx, direct, byRole.Author); r != chat.Member || err != nil {
		t.Errorf("role %v, error %v", r, err)
	}
	if _, begun, _ := w.Links(); begun != 1 {
		t.Errorf("%d sessions", begun)
	}
}

// TestIgnored has what leads to nothing, and why.
func TestIgnored(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, reason string
		say          fake.Words
	}{
		{"own message", "own message", fake.Words{User: bot, Text: "x"}},
		{"own application", "own message", fake.Words{User: "5", App: app, Webhook: app, Text: "x"}},
		{"thread was created", "kind of message", fake.Words{Type: 18, Text: "x"}},
		{"thread starter", "kind of message", fake.Words{Type: 21, Text: "x"}},
		{"pin", "kind of message", fake.Words{Type: 6, Text: "x"}},
		{"copy of an announcement", "copy of an announcement", fake.Words{Text: "x", More: map[string]any{"flags": 2}}},
		{"system", "system message", fake.Words{Text: "x", More: map[string]any{"author": map[string]any{"id": "5", "system": true}}}},
		{"empty", "no content", fake.Words{}},
		{"no author", "no author", fake.Words{Text: "x", More: map[string]any{"author": nil}}},
		{"odd types", "malformed", fake.Words{Text: "x", More: map[string]any{"type": "seven"}}},
		{"odd ids", "malformed", fake.Words{Text: "x", More: map[string]any{"channel_id": "../1"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := connected(t, fake.Options{})
			id := w.Say(tc.say)
			w.passed(tc.reason)
			if n := w.counted(id); n != 0 {
				t.Errorf("%d events", n)
			}
		})
	}
}

// Bots and webhooks are marked as such: whether they are heard is not decided here.
func TestBots(t *testing.T) {
	t.Parallel()
	w := connected(t, fake.Options{Users: []fake.User{{ID: anna}, {ID: "6", Name: "other", Bot: true}}})
	for _, say := range []fake.Words{{User: "6", Text: "x"}, {User: "7", Webhook: "7", Text: "x"}} {
		if e := w.heard(w.Say(say)); !e.Author.Bot || e.Author.ID != say.User {
			t.Errorf("author %+v", e.Author)
		}
	}
}

// Components of kinds that are not known yet harm nothing.
func testUnknownComponents(t *testing.T) {
	t.Parallel()
	w := connected(t, fake.Options{})
	id := w.Mention(fake.Words{Text: "hi", More: map[string]any{"components": []any{
		map[string]any{"type": 18, "component": map[string]any{"type": 21}}, map[string]any{"type": 99},
	}}})
	if e := w.heard(id); e.Text != "hi" {
		t.Errorf("event %+v", e)
	}
}

func TestContents(t *testing.T) {
	t.Parallel()
	w := connected(t, fake.Options{})
	id := w.Say(fake.Words{
		Text: "see", Files: []fake.File{{Name: "a.png", Type: "image/png", Bytes: 12}},
		More: map[string]any{
			"message_snapshots": []any{map[string]any{"message": map[string]any{"content": "one\ntwo"}}}, "sticker_items": []any{map[string]any{"name": "wave"}},
			"poll": map[string]any{"question": map[string]any{"text": "when?"}},
		},
	})
	e := w.heard(id)
	if want := "see\n\n> one\n> two\n\n[sticker: wave]\n\n[poll: when?]"; e.Text != want {
		t.Errorf("text %q, want %q", e.Text, want)
	}
	if len(e.Files) != 1 || e.Files[0].Name != "a.png" || e.Files[0].MediaType != "image/png" || e.Files[0].Bytes != 12 {
		t.Errorf("files %+v", e.Files)
	}
}

func testEdits(t *testing.T) {
	t.Parallel()
	w := connected(t, fake.Options{})
	id := w.Mention(fake.Words{Text: "one"})
	th := w.heard(id).Thread
	w.Tell("MESSAGE_UPDATE", map[string]any{
		"id": id, "channel_id": fake.General, "guild_id": guild, "content": "<@" + bot + "> one", "edited_timestamp": nil, "author": map[string]any{"id": anna},
		"mentions": []map[string]any{}, "embeds": []any{map[string]any{"type": "link"}},
	})
	w.passed("text unchanged")
	if err := w.Edit(fake.General, id, "<@"+bot+"> two"); err != nil {
		t.Fatal(err)
	}
	if err := w.Delete(fake.General, id); err != nil {
		t.Fatal(err)
	}
	gone := w.heard(id + "/deleted")
	w.mu.Lock()
	defer w.mu.Unlock()
	changed := w.events[len(w.events)-2]
	if changed.Kind != chat.Edited || changed.Ref != id || changed.Text != "two" || changed.Thread != th {
		t.Errorf("change %+v", changed)
	}
	if gone.Kind != chat.Deleted || gone.Ref != id || gone.Thread != th {
		t.Errorf("deletion %+v", gone)
	}
}

func TestDeletedTogether(t *testing.T) {
	t.Parallel()
	w := connected(t, fake.Options{})
	w.Tell("MESSAGE_DELETE_BULK", map[string]any{"ids": []string{"11", "12"}, "channel_id": fake.General, "guild_id": guild})
	for _, id := range []string{"11", "12"} {
		if e := w.heard(id + "/deleted"); e.Ref != id {
			t.Errorf("event %+v", e)
		}
	}
}

func TestReactions(t *testing.T) {
	t.Parallel()
	w := connected(t, fake.Options{})
	react := func(user, author, emoji string) {
		w.Tell("MESSAGE_REACTION_ADD", map[string]any{
			"user_id": user, "message_id": "55", "message_author_id": author, "channel_id": fake.General, "guild_id": guild, "emoji": map[string]any{"id": nil, "name": emoji},
		})
	}
	react(anna, bot, "👍")
	if e := w.heard("55/" + anna + "/👍"); e.Kind != chat.Reacted || e.Topic != "reaction" || e.Text != "👍" || e.Ref != "55" || e.Author.ID != anna {
		t.Errorf("event %+v", e)
	}
	react(anna, anna, "👍")
	w.passed("reaction to others")
	react(bot, bot, "👀")
	w.passed("own reaction")
}

// A thread of which nothing is known is asked for; one that is not shown is left.
func TestUnknownThread(t *testing.T) {
	t.Parallel()
	w := connected(t, fake.Options{})
	w.Set(fake.Channel{ID: "301", Kind: fake.Public, Parent: fake.General})
	if e := w.heard(w.Say(fake.Words{Channel: "301", Text: "x"})); e.Thread.Room != fake.General || e.Thread.Root != "301" {
		t.Errorf("event %+v", e)
	}
	w.Set(fake.Channel{ID: "302", Kind: fake.Public, Parent: fake.General, Absent: true})
	w.Say(fake.Words{Channel: "302", Text: "x"})
	w.passed("place not visible")
}

// Out of order is not gone: what is known of a guild stays. Being removed is.
func testGuilds(t *testing.T) {
	t.Parallel()
	w := connected(t, fake.Options{Channels: []fake.Channel{{ID: fake.General}, {ID: "201", Kind: fake.Public, Parent: fake.General}}})
	w.heard(w.Say(fake.Words{Text: "x"}))
	w.Tell("GUILD_DELETE", map[string]any{"id": guild, "unavailable": true})
	w.passed("guild out of order")
	if _, ok := w.c.known("201"); !ok || w.c.enter(guild, nil) != fake.BotRole {
		t.Error("an outage cost what was known")
	}
	w.Tell("GUILD_DELETE", map[string]any{"id": guild})
	w.passed("removed from a guild")
	if _, ok := w.c.known("201"); ok || w.c.enter(guild, nil) != "" {
		t.Error("the guild is still known")
	}
	w.Tell("THREAD_LIST_SYNC", map[string]any{"guild_id": guild, "threads": []any{map[string]any{"id": "201", "type": 11, "parent_id": fake.General}}})
	w.Tell("THREAD_DELETE", map[string]any{"id": "201", "guild_id": guild, "parent_id": fake.General, "type": 11})
	w.passed("place is gone")
	w.Tell("VOICE_STATE_UPDATE", map[string]any{"guild_id": guild})
	w.passed("unknown type")
}

// Without the intent what is said to the bot can be read, and nothing else; it
// is said once.
func testWithoutContent(t *testing.T) {
	t.Parallel()
	w := connected(t, fake.Options{NoContent: true})
	if n := w.c.Notes(); len(n) != 1 {
		t.Errorf("notes %q", n)
	}
	w.Say(fake.Words{Text: "not for you"})
	w.passed("no content")
	if e := w.heard(w.Mention(fake.Words{Text: "for you"})); e.Text != "for you" {
		t.Errorf("event %+v", e)
	}
	if e := w.heard(w.Say(fake.Words{Channel: fake.DM, Text: "direct"})); e.Text != "direct" {
		t.Errorf("event %+v", e)
	}
	if n := connected(t, fake.Options{}).c.Notes(); n != nil {
		t.Errorf("notes with the intent: %q", n)
	}
}

func FuzzEvent(f *testing.F) {
	for _, kind := range []string{"MESSAGE_CREATE", "MESSAGE_UPDATE", "MESSAGE_DELETE_BULK", "MESSAGE_REACTION_ADD", "GUILD_CREATE", "THREAD_CREATE", "CHANNEL_DELETE", "GUILD_ROLE_CREATE"} {
		f.Add(kind, []byte(`{"id":"1","ids":["2"],"channel_id":"3","channel_type":0,"guild_id":"4","author":{"id":"5"},"content":"hi","edited_timestamp":"2026-01-01T00:00:00Z",`+
			`"message_reference":{"message_id":"6"},"referenced_message":{"author":{"id":"2"}},"type":19,"user_id":"7","message_id":"8","message_author_id":"2","emoji":{"name":"x"},"threads":[{"id":"9","type":11}]}`))
	}
	c, err := New(Options{BotToken: "token-5e1d", APIURL: "http://127.0.0.1:1"})
	if err != nil {
		f.Fatal(err)
	}
	c.self.Store(&identity{user: "2", app: "1", known: true})
	f.Fuzz(func(t *testing.T, kind string, data []byte) {
		in, err := c.event(t.Context(), kind, data)
		if err != nil {
			return // Discord had to be asked
		}
		for _, e := range in.Events {
			if e.Thread.Validate() != nil || e.ID == "" || e.Topic == "" || e.Kind == "" {
				t.Errorf("event %+v", e)
			}
		}
	})
}
