package discord

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
	fake "github.com/heddlehq/heddle/fakes/discord"
)

// TestTable has a case for everything that Discord, or somebody in its place, may
// do to us from outside.
func TestTable(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		test func(*testing.T)
	}{
		{"D01 ping", testVector},
		{"D02 wrong signatures", wrongSignatures},
		{"D03 headers missing or twice", wrongHeaders},
		{"D04 signed ten minutes ago", signedLongAgo},
		{"D05 time written otherwise", otherTime},
		{"D06 D07 media type and size", mediaAndSize},
		{"D08 signed nonsense", signedNonsense},
		{"D09 D39 answers to a command, and after its end", testAnswerToACommand},
		{"D10 D11 the same interaction again", sameInteraction},
		{"D12 unknown interaction", unknownInteraction},
		{"D13 autocomplete", autocomplete},
		{"D14 D15 webhook events", webhookEvents},
		{"D16 another application", anotherApplication},
		{"D17 own and other bots", botsAndOwn},
		{"D18 D19 a thread for a mention", testThreadIsOpened},
		{"D20 no thread", testNoThread},
		{"D21 in a thread that is followed", inThread},
		{"D22 forum, in both orders", forumOrders},
		{"D23 direct message", directMessage},
		{"D24 only a preview was added", testEdits},
		{"D25 without message content", testWithoutContent},
		{"D26 unknown components", testUnknownComponents},
		{"D27 D32 order and replay", testOrder},
		{"D28 reconnect before a session", testReconnectAtOnce},
		{"D29 sessions that are ended", testSessionsAreSpared},
		{"D30 no acknowledgement", testDeadLink},
		{"D31 hopeless close codes", testHopeless},
		{"D33 mass mentions", testNobodyIsNotified},
		{"D34 long answer", testLongAnswer},
		{"D35 limits", limits},
		{"D36 D37 D38 unknown outcomes", testUnknownOutcome},
		{"D40 a guild out of order, and one that is left", testGuilds},
	} {
		t.Run(row.name, row.test)
	}
}

// receiver is a channel that takes interactions.
func receiver(t *testing.T) *Channel {
	t.Helper()
	return harness().New(t, "").(*Channel)
}

func (c *Channel) give(t *testing.T, body string, change func(http.Header)) (channels.Inbound, error) {
	t.Helper()
	now := time.Unix(1700000000, 0)
	h := sign("key", []byte(body), now)
	if change != nil {
		change(h)
	}
	return c.Receive("interactions", h, []byte(body), now)
}

const (
	signature = "X-Signature-Ed25519"
	timestamp = "X-Signature-Timestamp"
	ping      = `{"type":1}`
)

func wrongSignatures(t *testing.T) {
	t.Parallel()
	c := receiver(t)
	for name, change := range map[string]func(string) string{
		"a digit":   func(s string) string { return s[:5] + string("10"[s[5]&1]) + s[6:] },
		"zero":      func(string) string { return strings.Repeat("0", 128) },
		"126":       func(s string) string { return s[2:] },
		"no digits": func(s string) string { return "zz" + s[2:] },
		"empty":     func(string) string { return "" },
	} {
		if _, err := c.give(t, ping, func(h http.Header) { h.Set(signature, change(h.Get(signature))) }); !errors.Is(err, channels.ErrUnverified) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func wrongHeaders(t *testing.T) {
	t.Parallel()
	c := receiver(t)
	for _, name := range []string{signature, timestamp} {
		if _, err := c.give(t, ping, func(h http.Header) { h.Del(name) }); !errors.Is(err, channels.ErrUnverified) {
			t.Errorf("without %s: %v", name, err)
		}
		if _, err := c.give(t, ping, func(h http.Header) { h.Add(name, h.Get(name)) }); !errors.Is(err, channels.ErrUnverified) {
			t.Errorf("%s twice: %v", name, err)
		}
	}
}

func signedLongAgo(t *testing.T) {
	t.Parallel()
	now := time.Unix(1700000000, 0)
	in, err := receiver(t).Receive("interactions", sign("key", []byte(ping), now.Add(-10*time.Minute)), []byte(ping), now)
	if !errors.Is(err, channels.ErrStale) || in.Reply != nil {
		t.Errorf("reply %s, error %v", in.Reply, err)
	}
}

func otherTime(t *testing.T) {
	t.Parallel()
	c := receiver(t)
	for _, change := range []string{"0", " ", "+"} {
		if _, err := c.give(t, ping, func(h http.Header) { h.Set(timestamp, change+h.Get(timestamp)) }); !errors.Is(err, channels.ErrUnverified) {
			t.Errorf("%q: %v", change, err)
		}
	}
}

func mediaAndSize(t *testing.T) {
	t.Parallel()
	if r := receiver(t).Routes(); len(r) != 1 || !slices.Equal(r[0].MediaTypes, []string{"application/json"}) || r[0].MaxBytes != 1<<20 {
		t.Errorf("routes %+v", r)
	}
	c, err := New(Options{BotToken: "token-5e1d"})
	if err != nil || c.Routes() != nil {
		t.Errorf("routes without a key: %+v, error %v", c.Routes(), err)
	}
}

func signedNonsense(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"type":`, "null", "", "[]", `{"type":"2"}`} {
		if _, err := receiver(t).give(t, body, nil); !errors.Is(err, channels.ErrMalformed) {
			t.Errorf("%q: %v", body, err)
		}
	}
}

// command is an interaction of an application.
func command(app, text string) string {
	return `{"id":"9","application_id":"` + app + `","type":2,"token":"t","channel_id":"200","user":{"id":"5"},"data":{"name":"ask","options":[{"name":"text","type":3,"value":"` + text + `"}]}}`
}

func sameInteraction(t *testing.T) {
	t.Parallel()
	c := receiver(t)
	var ids []string
	for _, text := range []string{"a", "a", "b"} {
		in, err := c.give(t, command(app, text), nil)
		if err != nil || string(in.Reply) != `{"type":5}` || len(in.Events) != 1 {
			t.Fatalf("%+v, error %v", in, err)
		}
		ids = append(ids, in.Events[0].ID)
	}
	if ids[0] != ids[1] || ids[1] != ids[2] { // the inbox takes one, and tells of other content
		t.Errorf("ids %v", ids)
	}
}

func unknownInteraction(t *testing.T) {
	t.Parallel()
	in, err := receiver(t).give(t, strings.Replace(command(app, "x"), `"type":2`, `"type":99`, 1), nil)
	if !errors.Is(err, channels.ErrMalformed) || in.Events != nil {
		t.Errorf("%+v, error %v", in, err)
	}
}

func autocomplete(t *testing.T) {
	t.Parallel()
	in, err := receiver(t).give(t, strings.Replace(command(app, "x"), `"type":2`, `"type":4`, 1), nil)
	if err != nil || string(in.Reply) != `{"data":{"choices":[]},"type":8}` || in.Events != nil {
		t.Errorf("%+v, error %v", in, err)
	}
}

func webhookEvents(t *testing.T) {
	t.Parallel()
	c := receiver(t)
	for _, body := range []string{
		`{"version":1,"application_id":"` + app + `","type":0}`,
		`{"version":1,"application_id":"` + app + `","type":1,"event":{"type":"APPLICATION_DEAUTHORIZED","data":{}}}`,
	} {
		for range 2 {
			if in, err := c.give(t, body, nil); err != nil || !in.Empty || in.Reply != nil || in.Events != nil {
				t.Errorf("%+v, error %v", in, err)
			}
		}
	}
}

func anotherApplication(t *testing.T) {
	t.Parallel()
	if in, err := receiver(t).give(t, command("901", "x"), nil); !errors.Is(err, channels.ErrMalformed) || in.Events != nil {
		t.Errorf("%+v, error %v", in, err)
	}
}

func botsAndOwn(t *testing.T) {
	t.Parallel()
	w := connected(t, fake.Options{Users: []fake.User{{ID: anna}, {ID: "6", Bot: true}}})
	own := []string{w.Say(fake.Words{User: bot, Text: "x"}), w.Say(fake.Words{User: "5", App: app, Text: "x"})}
	others := []string{w.Say(fake.Words{User: "7", Webhook: "7", Text: "x"}), w.Say(fake.Words{User: "6", Text: "x"})}
	for _, id := range others {
		if e := w.heard(id); !e.Author.Bot { // passed over at the door, unless it is let in
			t.Errorf("author %+v", e.Author)
		}
	}
	for _, id := range own {
		if n := w.counted(id); n != 0 {
			t.Errorf("%d events", n)
		}
	}
}

func inThread(t *testing.T) {
	t.Parallel()
	w := connected(t, fake.Options{Channels: []fake.Channel{{ID: fake.General}, {ID: "201", Kind: fake.Public, Parent: fake.General}}})
	e := w.heard(w.Say(fake.Words{Channel: "201", Text: "x"}))
	if e.Topic != "thread" || e.Thread.Root != "201" {
		t.Errorf("event %+v", e)
	}
}

func forumOrders(t *testing.T) {
	t.Parallel()
	w := connected(t, fake.Options{})
	first := w.heard(w.Topic(fake.Words{Text: "thread, then message"}))
	w.Set(fake.Channel{ID: "1", Kind: fake.Public, Parent: fake.Help})
	second := w.heard(w.Say(fake.Words{Channel: "1", Text: "message, then thread"}))
	w.Tell("THREAD_CREATE", map[string]any{"id": "1", "type": 11, "parent_id": fake.Help, "guild_id": guild, "newly_created": true})
	for _, e := range []chat.Event{first, second} {
		if e.Thread.Room != fake.Help || w.counted(e.ID) != 1 {
			t.Errorf("event %+v", e)
		}
	}
}

func directMessage(t *testing.T) {
	t.Parallel()
	w := connected(t, fake.Options{})
	e := w.heard(w.Say(fake.Words{Channel: fake.DM, Text: "x"}))
	if e.Thread != (chat.Thread{Channel: Name, Account: direct, Room: fake.DM}) {
		t.Errorf("event %+v", e)
	}
	w.send(chat.Post{Key: "k", Thread: e.Thread, Text: "y", ReplyTo: e.Ref})
	if n := w.Calls(openThread); n != 0 || w.onlyPost().Channel != fake.DM {
		t.Errorf("%d threads", n)
	}
}

func limits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Options{Hook: faults(map[string][]fake.Fault{postMessage: {{Status: 429, RetryAfter: 0.05}}})})
	p := chat.Post{Key: "k", Thread: chat.Thread{Channel: Name, Account: direct, Room: fake.DM}, Text: "x"}
	_, err := w.c.Send(w.ctx, p)
	var se *channels.SendError
	if !errors.As(err, &se) || se.Verdict != channels.Limited || se.RetryAfter != 50*time.Millisecond {
		t.Fatalf("error %v", err)
	}
	<-time.After(se.RetryAfter)
	w.send(p)
	w.onlyPost()
}
