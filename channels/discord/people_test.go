package discord

import (
	"context"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
	fake "github.com/heddlehq/heddle/fakes/discord"
)

func TestRoles(t *testing.T) {
	t.Parallel()
	o := fake.Options{Users: []fake.User{
		{ID: "301"},
		{ID: "302", Roles: []string{"51"}},
		{ID: "303", Roles: []string{"50", "52"}},
		{ID: "304"},
		{ID: "305", Bot: true, Roles: []string{"51"}},
		{ID: "306", Pending: true, Roles: []string{"51"}},
		{ID: "307", Gone: true},
	}}
	named := Access{Members: []string{"51"}, Maintainers: []string{"52"}, Admins: []string{"304"}}
	for _, tc := range []struct {
		name    string
		access  Access
		account string
		author  chat.Author
		want    chat.Role
	}{
		{"nobody is named", Access{}, guild, chat.Author{ID: "302"}, chat.Outsider},
		{"without a role", named, guild, chat.Author{ID: "301"}, chat.Outsider},
		{"a role", named, guild, chat.Author{ID: "302"}, chat.Member},
		{"the higher of two", named, guild, chat.Author{ID: "303"}, chat.Maintainer},
		{"by id", named, guild, chat.Author{ID: "304"}, chat.Admin},
		{"a bot", named, guild, chat.Author{ID: "305"}, chat.Outsider},
		{"known to be a bot", named, guild, chat.Author{ID: "302", Bot: true}, chat.Outsider},
		{"has not agreed to the rules", named, guild, chat.Author{ID: "306"}, chat.Outsider},
		{"not in the guild", named, guild, chat.Author{ID: "307"}, chat.Outsider},
		{"not known at all", named, guild, chat.Author{ID: "399"}, chat.Outsider},
		{"no author", named, guild, chat.Author{}, chat.Outsider},
		{"all", Access{Members: []string{"all"}}, guild, chat.Author{ID: "301"}, chat.Member},
		{"all, but not in the guild", Access{Members: []string{"all"}}, guild, chat.Author{ID: "307"}, chat.Outsider},
		{"the guild's own id", Access{Members: []string{guild}}, guild, chat.Author{ID: "301"}, chat.Member},
		{"another guild", Access{Members: []string{"all"}}, "5", chat.Author{ID: "301"}, chat.Outsider},
		{"direct, a role of a guild", named, direct, chat.Author{ID: "303"}, chat.Maintainer},
		{"direct, by id", named, direct, chat.Author{ID: "304"}, chat.Admin},
		{"direct, all", Access{Members: []string{"all"}}, direct, chat.Author{ID: "301"}, chat.Member},
		{"direct, in no guild", Access{Members: []string{"all"}}, direct, chat.Author{ID: "307"}, chat.Outsider},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, o, func(o *Options) { o.Access = tc.access })
			got, err := w.c.Role(w.ctx, tc.account, tc.author)
			if err != nil || got != tc.want {
				t.Errorf("%v, error %v; want %v", got, err, tc.want)
			}
		})
	}
}

func TestRoleFailsClosed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Options{Hook: faults(map[string][]fake.Fault{"GET /guilds/{}/members/{}": {{Status: 500}, {Status: 500}}})},
		func(o *Options) { o.Access.Members = []string{"all"} })
	for _, account := range []string{guild, direct} {
		if r, err := w.c.Role(w.ctx, account, chat.Author{ID: anna}); r != chat.Outsider || err == nil {
			t.Errorf("%s: %v, error %v", account, r, err)
		}
	}
}

// A mark is put once, and taken away at the end, wherever the message stands.
func TestMarks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Options{})
	root := w.Mention(fake.Words{Text: "hello"})
	th := chat.Thread{Channel: Name, Account: guild, Room: fake.General, Root: root}
	topic := w.Topic(fake.Words{Text: "how?"})
	for _, tc := range []struct {
		name  string
		th    chat.Thread
		in    string // where the message stands
		id    string
		first func()
	}{
		{"before the thread is open", th, fake.General, root, nil},
		{"root of an open thread", th, fake.General, root, func() { w.send(chat.Post{Key: "k", Thread: th, Text: "hi"}) }},
		{"forum", chat.Thread{Channel: Name, Account: guild, Room: fake.Help, Root: topic}, topic, topic, func() {
			w.send(chat.Post{Key: "t", Thread: chat.Thread{Channel: Name, Account: guild, Room: fake.Help, Root: topic}, Text: "hi"})
		}},
	} {
		if tc.first != nil {
			tc.first()
		}
		marks := func() []string {
			ms := w.Messages(tc.in)
			return ms[slices.IndexFunc(ms, func(m fake.Message) bool { return m.ID == tc.id })].Reactions
		}
		for _, p := range []channels.Progress{channels.Working, channels.Working} {
			if err := w.c.Mark(w.ctx, tc.th, tc.id, p); err != nil {
				t.Fatalf("%s: %v", tc.name, err)
			}
		}
		if d := cmp.Diff([]string{bot + " 👀"}, marks(), cmp.Transformer("late", func(s []string) []string { return s[max(0, len(s)-1):] })); d != "" {
			t.Errorf("%s: %s", tc.name, d)
		}
		for p, want := range map[channels.Progress]string{channels.Answered: "✅", channels.Failed: "❌"} {
			if err := w.c.Mark(w.ctx, tc.th, tc.id, p); err != nil {
				t.Fatalf("%s: %v", tc.name, err)
			}
			if m := marks(); m[len(m)-1] != bot+" "+want || slices.Contains(m, bot+" 👀") {
				t.Errorf("%s: %v", tc.name, m)
			}
		}
	}
	puts := w.Calls("PUT /channels/{}/messages/{}/reactions/{}/@me")
	if err := w.c.Mark(w.ctx, chat.Thread{Channel: Name, Account: direct, Room: fake.DM}, "i5", channels.Working); err != nil {
		t.Error(err)
	}
	if n := w.Calls("PUT /channels/{}/messages/{}/reactions/{}/@me"); n != puts {
		t.Errorf("a command got a reaction")
	}
	if err := w.c.Mark(w.ctx, th, "12345", channels.Working); verdictOf(err) != channels.Rejected {
		t.Errorf("a message that is gone: %v", err)
	}
}

// A channel that lets us mark nothing is not asked every few seconds.
func TestNoMarks(t *testing.T) {
	t.Parallel()
	const put = "PUT /channels/{}/messages/{}/reactions/{}/@me"
	w := newWorld(t, fake.Options{Hook: faults(map[string][]fake.Fault{put: {{Status: 403, Code: 50013}}})})
	id := w.Mention(fake.Words{Text: "hello"})
	th := chat.Thread{Channel: Name, Account: guild, Room: fake.General, Root: id}
	if err := w.c.Mark(w.ctx, th, id, channels.Working); verdictOf(err) != channels.Rejected {
		t.Errorf("error %v", err)
	}
	for _, p := range []channels.Progress{channels.Working, channels.Answered} {
		if err := w.c.Mark(w.ctx, th, id, p); err != nil {
			t.Error(err)
		}
	}
	if n := w.Calls(put); n != 1 {
		t.Errorf("%d requests", n)
	}
	w.c.forget(fake.General) // it was changed
	if err := w.c.Mark(w.ctx, th, id, channels.Working); err != nil || w.Calls(put) != 2 {
		t.Errorf("error %v, %d requests", err, w.Calls(put))
	}
}

// What is whispered is seen by its author only.
func TestWhisper(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Options{Users: []fake.User{{ID: anna}, {ID: "302", NoDM: true}}})
	d := w.Ask(fake.Words{Text: "what?"})
	in, err := w.c.Receive("interactions", d.Header, d.Body, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Reply(d, in.Reply); err != nil {
		t.Fatal(err)
	}
	if err := w.c.Whisper(w.ctx, in.Events[0], "not for you"); err != nil {
		t.Fatal(err)
	}
	if p := w.onlyPost(); p.Flags&64 == 0 || p.Via != "follow-up" || p.Text != "not for you" {
		t.Errorf("post %+v", p)
	}
	if n := len(w.Messages(fake.General)); n != 1 {
		t.Errorf("%d messages are left, the coming answer among them", n)
	}
	if err := w.c.Whisper(w.ctx, chat.Event{Author: chat.Author{ID: anna}}, "hush"); err != nil {
		t.Fatal(err)
	}
	if p := w.Posts()[1]; p.Channel != fake.DM || p.Text != "hush" {
		t.Errorf("post %+v", p)
	}
	for _, e := range []chat.Event{{Author: chat.Author{ID: "302"}}, {Author: chat.Author{ID: "399"}}, {}} {
		if err := w.c.Whisper(w.ctx, e, "hush"); verdictOf(err) != channels.Rejected {
			t.Errorf("author %q: %v", e.Author.ID, err)
		}
	}
}

func TestFetch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Options{})
	id := w.Mention(fake.Words{Text: "see", Files: []fake.File{
		{Name: "a.txt", Type: "text/plain", Data: []byte("hello")},
		{Name: "big", Bytes: 5000},
		{Name: "lie", Bytes: 1, Data: make([]byte, 5000)},
		{Name: "empty", Data: nil},
		{Name: "elsewhere", URL: "http://127.0.0.1:1/x", Data: []byte("x")},
	}})
	m := w.Messages(fake.General)[0]
	file := func(i int) chat.File { return chat.File{ID: fake.General + "/" + id + "/" + m.Files[i].ID} }
	got, err := w.c.Fetch(w.ctx, guild, file(0), 1000)
	if d := cmp.Diff(chat.Attachment{Name: "a.txt", MediaType: "text/plain", Data: []byte("hello")}, got); d != "" || err != nil {
		t.Errorf("error %v: %s", err, d)
	}
	for i := 1; i < 5; i++ {
		if got, err := w.c.Fetch(w.ctx, guild, file(i), 1000); verdictOf(err) != channels.Rejected || got.Data != nil {
			t.Errorf("%s: %v", m.Files[i].Name, err)
		}
	}
	for _, id := range []string{"", "x", "1/2", "../1/2/3", "1/2/3", fake.General + "/" + id + "/1"} {
		if _, err := w.c.Fetch(w.ctx, guild, chat.File{ID: id}, 1000); verdictOf(err) != channels.Rejected {
			t.Errorf("file %q: %v", id, err)
		}
	}
	for at, ok := range map[string]bool{
		"https://cdn.discordapp.com/attachments/1/2/a.txt?ex=1": true, "https://media.discordapp.net/a": true, "http://cdn.discordapp.com/a": false,
		"https://cdn.discordapp.com.evil.test/a": false, "https://u@cdn.discordapp.com/a": false, "https://cdn.discordapp.com:444/a": false, "file:///etc/passwd": false,
	} {
		if w.c.pinned(at) != ok {
			t.Errorf("%s: %v", at, !ok)
		}
	}
}

// What was said while nobody listened is found: with the ids that the Gateway
// would have told, oldest first, and once.
func TestMissed(t *testing.T) {
	t.Parallel()
	w := connected(t, fake.Options{})
	before := w.Mention(fake.Words{Text: "before"})
	th := w.heard(before).Thread
	w.send(chat.Post{Key: "k", Thread: th, Text: "answer"})
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	since := time.Now()
	said := []string{
		w.Say(fake.Words{Channel: before, Text: "in the thread"}),
		w.Mention(fake.Words{Text: "in a channel"}),
		w.Say(fake.Words{Channel: fake.DM, Text: "direct"}),
		w.Topic(fake.Words{Text: "in the forum"}),
	}
	if err := w.Edit(before, said[0], "changed"); err != nil {
		t.Fatal(err)
	}
	w.Say(fake.Words{Channel: before, User: bot, Text: "mine"})
	w.c = w.channel(w.c.apiURL)
	var got []string
	err := w.c.Missed(w.ctx, since, []chat.Thread{th, {Channel: Name, Account: direct, Room: fake.DM}}, func(_ context.Context, in channels.Inbound) error {
		for _, e := range in.Events {
			if e.Ref != before {
				got = append(got, e.ID)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 5 {
		t.Fatalf("events %v", got)
	}
	changed := got[4]
	if d := cmp.Diff(said, got[:4]); d != "" {
		t.Error(d)
	}
	w.listen()
	for _, id := range append(said, changed) {
		w.heard(id) // the Gateway tells the same when the session is resumed
	}
}

// A history that cannot be read is told, and what was found stays.
func TestMissedInPart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Options{Hook: faults(map[string][]fake.Fault{"GET /guilds/{}/channels": {{Status: 500}}})})
	id := w.Say(fake.Words{Channel: fake.DM, Text: "direct"})
	if err := w.c.Missed(w.ctx, time.Now().Add(-time.Hour), []chat.Thread{{Channel: Name, Account: direct, Room: fake.DM}}, w.take); err == nil {
		t.Error("nothing was missing")
	}
	if len(w.events) != 1 || w.events[0].ID != id {
		t.Errorf("events %+v", w.events)
	}
}

// A link that people copy leads to the event.
func TestLinked(t *testing.T) {
	t.Parallel()
	w := connected(t, fake.Options{})
	id := w.Mention(fake.Words{Text: "x"})
	for link, want := range map[string]string{
		"https://discord.com/channels/" + guild + "/" + fake.General + "/" + id:           w.heard(id).Same,
		"https://ptb.discord.com/channels/@me/" + fake.DM + "/5":                          "@me/" + fake.DM + "/5",
		"https://discord.com.evil.test/channels/" + guild + "/" + fake.General + "/" + id: "",
		"https://discord.com/channels/" + guild + "/" + fake.General:                      "",
		"https://discord.com/channels/" + guild + "/" + fake.General + "/../" + id:        "",
		"https://discord.com/users/" + guild + "/" + fake.General + "/" + id:              "",
	} {
		u, err := url.Parse(link)
		if err != nil {
			t.Fatal(err)
		}
		if same, err := w.c.Linked(w.ctx, u); same != want || err != nil {
			t.Errorf("%s: %q, error %v", link, same, err)
		}
	}
}

// What was missed is looked for once there is a session, so that nothing falls
// between the two.
func TestMissedWaitsForTheSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Options{})
	w.c.link.lost = 1
	w.c.pulse.again, w.c.pulse.longest = 100*time.Millisecond, 100*time.Millisecond
	w.listen()
	for w.c.expected() == nil {
		<-time.After(time.Millisecond)
	}
	if err := w.c.Missed(w.ctx, time.Now(), nil, w.take); err != nil {
		t.Fatal(err)
	}
	if _, begun, _ := w.Links(); begun != 1 {
		t.Error("there is no session")
	}
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	if err := w.c.Missed(w.ctx, time.Now(), nil, w.take); err != nil { // none is expected any more
		t.Error(err)
	}
}
