package slack

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/channels/channeltest"
	"github.com/heddlehq/heddle/chat"
	fake "github.com/heddlehq/heddle/fakes/slack"
)

// webhookOnly hides what the suite has tested by another route.
type webhookOnly struct{ channels.Webhook }

// further is the suite's harness for a route of forms.
func further(route, good string) channeltest.Harness {
	h := harness()
	newChannel := h.New
	h.New = func(t testing.TB, apiURL string) channeltest.Channel { return webhookOnly{newChannel(t, apiURL)} }
	h.Route, h.Good, h.Payloads = route, []byte(good), ""
	return h
}

func interactions() channeltest.Harness {
	return further("interactions", "payload="+url.QueryEscape(`{"type":"block_actions","api_app_id":"A1","team":{"id":"T1"},"user":{"id":"U1"},"container":{"channel_id":"C1","message_ts":"1721.0001"},`+
		`"actions":[{"action_id":"yes","block_id":"b","action_ts":"1722.1","value":"`+channeltest.Canary+`"}]}`))
}

func commands() channeltest.Harness {
	return further("commands", "command=%2Fagent&text="+channeltest.Canary+"&api_app_id=A1&team_id=T1&channel_id=C1&user_id=U1&trigger_id=1.2.3")
}

func TestSuiteOfForms(t *testing.T) {
	t.Parallel()
	for _, h := range []channeltest.Harness{interactions(), commands()} {
		t.Run(h.Route, func(t *testing.T) {
			t.Parallel()
			channeltest.Run(t, h)
		})
	}
}

func FuzzInteractions(f *testing.F) { channeltest.Fuzz(f, interactions()) }

func FuzzCommands(f *testing.F) { channeltest.Fuzz(f, commands()) }

// inbound takes a delivery over HTTP, and checks that a socket would say the same.
func inbound(t *testing.T, c *Channel, d fake.Delivery) channels.Inbound {
	t.Helper()
	in, err := c.Receive(d.Route, d.Header, d.Body, time.Now())
	if err != nil {
		t.Fatalf("%s: %v", d.Route, err)
	}
	form, err := url.ParseQuery(string(d.Body))
	if err != nil {
		t.Fatal(err)
	}
	at := in
	switch d.Route {
	case "interactions", "options":
		at, err = c.interaction([]byte(form.Get("payload")), time.Now())
	case "commands":
		body := strings.NewReplacer("=", `":"`, "&", `","`).Replace(`{"` + string(d.Body) + `"}`)
		if body, err = url.QueryUnescape(body); err == nil {
			at, err = c.command([]byte(body), time.Now())
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range []channels.Inbound{in, at} {
		for i := range in.Events { // it ends a moment later
			if h := in.Events[i].Handle; h.Secret != "" && (h.Until.Before(time.Now().Add(29*time.Minute)) || h.Until.After(time.Now().Add(31*time.Minute))) {
				t.Errorf("handle until %v", h.Until)
			}
			in.Events[i].Handle.Until = time.Time{}
		}
	}
	if d := cmp.Diff(in, at); d != "" {
		t.Errorf("by a socket: %s", d)
	}
	return in
}

// A button below an answer is an action in the answer's thread.
func TestAction(t *testing.T) {
	t.Parallel()
	w, c := workspace(t, fake.Options{}, Access{})
	if err := c.Identify(t.Context()); err != nil {
		t.Fatal(err)
	}
	root := w.Mention(fake.Words{User: "U0PERSON", Text: "look"})
	thread := receive(t, c, root).Thread
	ref, err := c.Send(t.Context(), chat.Post{Key: "k", Thread: thread, Text: "shall I?"})
	if err != nil {
		t.Fatal(err)
	}
	dm, err := c.Send(t.Context(), chat.Post{Key: "k2", Thread: chat.Thread{Channel: Name, Account: "T0FAKE", Room: "D0PERSON"}, Text: "shall I?"})
	if err != nil {
		t.Fatal(err)
	}
	first := w.Interact(fake.Click{Channel: "C0GENERAL", User: "U0PERSON", TS: ref, Action: "approve", Value: "yes, do"})
	e := inbound(t, c, first).Events[0]
	want := chat.Event{
		ID: e.ID, Thread: thread, Kind: chat.Action, Topic: "action", Ref: ref, Author: chat.Author{ID: "U0PERSON", Account: "T0FAKE"}, Text: "yes, do", At: e.At,
		Facts: map[string]string{"channel": "C0GENERAL", "ts": ref, "user": "U0PERSON", "action": "approve", "block": "b1"}, Handle: e.Handle,
	}
	if d := cmp.Diff(want, e); d != "" || e.At.IsZero() || e.Handle.Secret == "" {
		t.Errorf("%s", d)
	}
	if again := inbound(t, c, w.Again(first, 1, "x")).Events[0]; again.ID != e.ID {
		t.Error("the same click has two ids")
	}
	if second := inbound(t, c, w.Interact(fake.Click{Channel: "C0GENERAL", User: "U0PERSON", TS: ref, Action: "approve"})).Events[0]; second.ID == e.ID || second.Text != "approve" {
		t.Errorf("another click: %+v", second)
	}
	if e := inbound(t, c, w.Interact(fake.Click{Channel: "D0PERSON", User: "U0PERSON", TS: dm, Action: "a"})).Events[0]; e.Thread.Root != "" || e.Thread.Room != "D0PERSON" {
		t.Errorf("in a direct message: %v", e.Thread)
	}
}

// What is chosen in other elements is the text as well.
func TestChoices(t *testing.T) {
	t.Parallel()
	c := newChannel(t, Options{})
	for element, want := range map[string]string{
		`"value":"v"`:                                                   "v",
		`"selected_option":{"value":"o"}`:                               "o",
		`"selected_options":[{"value":"a"},{"value":"b"}]`:              "a, b",
		`"selected_user":"U1"`:                                          "U1",
		`"selected_users":["U1","U2"]`:                                  "U1, U2",
		`"selected_channel":"C1"`:                                       "C1",
		`"selected_conversation":"D1"`:                                  "D1",
		`"selected_date":"2026-01-02"`:                                  "2026-01-02",
		`"selected_time":"10:00"`:                                       "10:00",
		`"text":{"text":"Press &amp; go"}`:                              "Press & go",
		`"text":{"text":"x"},"value":7`:                                 "x", // a value of a wrong type
		`"brand_new_choice":"c","text":{"type":"plain_text","text":""}`: "",
	} {
		in, err := c.interaction([]byte(`{"type":"block_actions","api_app_id":"A1","team":{"id":"T1"},"user":{"id":"U1"},"container":{"channel_id":"C1","message_ts":"1.1"},"actions":[{`+element+`}]}`), time.Now())
		if err != nil || len(in.Events) != 1 || in.Events[0].Text != want {
			t.Errorf("%s: %v, %v; want %q", element, in.Events, err, want)
		}
	}
}

// S26, S27: only the body's one payload counts. S25: odd blocks do no harm.
func TestInteractionForms(t *testing.T) {
	t.Parallel()
	c := newChannel(t, Options{})
	good := `{"type":"block_actions","api_app_id":"A1","team":{"id":"T1"},"user":{"id":"U1"},"container":{"channel_id":"C1","message_ts":"1.1"},"actions":[{"value":"right"}],` +
		`"message":{"ts":"1.1","text":"q","blocks":[{"type":"teleporter"},{"type":"actions","elements":[{"type":"teleporter","text":5}]}]}}`
	for body, want := range map[string]string{
		"payload=" + url.QueryEscape(good):                                       "right",
		"payload=" + url.QueryEscape(good) + "&other=1":                          "right",
		"payload=" + url.QueryEscape(good) + "&payload=" + url.QueryEscape(good): "",
		"other=1":                          "",
		"":                                 "",
		"payload=":                         "",
		"payload=%7B":                      "",
		"payload=[]":                       "",
		"payload=null":                     "",
		"%zz":                              "",
		"payload={}":                       "",
		`payload={"type":"block_actions"}`: "",
	} {
		in, err := c.Receive("interactions", sign("fake-signing-secret", []byte(body), time.Unix(1700000000, 0)), []byte(body), time.Unix(1700000000, 0))
		switch {
		case want == "" && (!errors.Is(err, channels.ErrMalformed) || len(in.Events) > 0):
			t.Errorf("%q: %v", body, err)
		case want != "" && (err != nil || len(in.Events) != 1 || in.Events[0].Text != want):
			t.Errorf("%q: %+v, %v", body, in.Events, err)
		}
	}
	for _, payload := range []string{`{"type":"view_closed"}`, `{"type":"brand_new"}`} {
		if in, err := c.interaction([]byte(payload), time.Now()); err != nil || len(in.Events) > 0 || len(in.Ignored) != 1 {
			t.Errorf("%s: %+v, %v", payload, in, err)
		}
	}
}

// A form goes to the thread that the app has put into it, within its workspace.
func TestSubmission(t *testing.T) {
	t.Parallel()
	w, c := workspace(t, fake.Options{}, Access{})
	values := map[string]map[string]any{"b2": {"why": map[string]any{"value": "because"}}, "b1": {"who": map[string]any{"selected_user": "U1"}}}
	in := inbound(t, c, w.Interact(fake.Click{Type: "view_submission", User: "U0PERSON", Callback: "ask", Private: "slack/T0FAKE/C0GENERAL/1.1", Values: values}))
	if e := in.Events[0]; e.Thread.Key() != "slack/T0FAKE/C0GENERAL/1.1" || e.Text != "who: U1\nwhy: because" || e.Facts["callback"] != "ask" || e.Kind != chat.Action {
		t.Errorf("%+v", e)
	}
	for _, private := range []string{"", "no thread", "slack/T0OTHER/C1/1.1", "discord/T0FAKE/C1/1.1"} {
		in := inbound(t, c, w.Interact(fake.Click{Type: "view_submission", User: "U0PERSON", Private: private, Values: values}))
		if len(in.Events) > 0 || len(in.Ignored) != 1 {
			t.Errorf("%q: %+v", private, in)
		}
	}
}

// A menu that asks for options gets an answer, and it leads to nothing.
func TestOptionsOfMenus(t *testing.T) {
	t.Parallel()
	w, c := workspace(t, fake.Options{}, Access{})
	in := inbound(t, c, w.Interact(fake.Click{Type: "block_suggestion", User: "U0PERSON", Action: "pick", Value: "a"}))
	if string(in.Reply) != `{"options":[]}` || in.ReplyType != "application/json" || len(in.Events) > 0 {
		t.Errorf("%+v", in)
	}
}

// A shortcut on a message asks about it; the message keeps its own author.
func TestShortcuts(t *testing.T) {
	t.Parallel()
	w, c := workspace(t, fake.Options{}, Access{})
	if err := c.Identify(t.Context()); err != nil {
		t.Fatal(err)
	}
	d := w.Message(fake.Words{User: "U0OTHER", Text: "obey &amp; me"})
	in := inbound(t, c, w.Interact(fake.Click{Type: "message_action", Channel: "C0GENERAL", User: "U0PERSON", TS: d.TS, Callback: "ask_agent"}))
	if len(in.Events) != 2 {
		t.Fatalf("%+v", in)
	}
	asks, said := in.Events[0], in.Events[1]
	if asks.Kind != chat.Mention || asks.Topic != "mention" || asks.Author.ID != "U0PERSON" || strings.Contains(asks.Text, "obey") || asks.Handle.Secret == "" {
		t.Errorf("asks: %+v", asks)
	}
	seen := receive(t, c, w.Message(fake.Words{User: "U0OTHER", Text: "obey &amp; me", TS: d.TS}))
	if said.Author.ID != "U0OTHER" || said.Topic != "thread" || said.Text != "obey & me" || said.Same != seen.Same || said.Thread != asks.Thread || said.Handle.Secret != "" {
		t.Errorf("said: %+v", said)
	}
	// Whom it was for does not matter to who asks about it now.
	d = w.Message(fake.Words{User: "U0OTHER", Text: "<@U0THIRD> can you look?"})
	in = inbound(t, c, w.Interact(fake.Click{Type: "message_action", Channel: "C0GENERAL", User: "U0PERSON", TS: d.TS}))
	if len(in.Events) != 2 || in.Events[1].Facts[chat.Addressed] != "" {
		t.Errorf("a message to somebody else: %+v", in.Events)
	}
	ref, err := c.Send(t.Context(), chat.Post{Key: "k", Thread: asks.Thread, Text: "mine"})
	if err != nil {
		t.Fatal(err)
	}
	if in := inbound(t, c, w.Interact(fake.Click{Type: "message_action", Channel: "C0GENERAL", User: "U0PERSON", TS: ref})); len(in.Events) != 1 || in.Events[0].Thread != asks.Thread {
		t.Errorf("on an own message: %+v", in)
	}
	in = inbound(t, c, w.Interact(fake.Click{Type: "shortcut", User: "U0PERSON", Callback: "hello"}))
	if e := in.Events[0]; e.Topic != "shortcut" || e.Text != "hello" || e.Thread.Room != "U0PERSON" {
		t.Errorf("global: %+v", e)
	}
	ref, err = c.Send(t.Context(), chat.Post{Key: "k", Thread: in.Events[0].Thread, Text: "hi"})
	if err != nil {
		t.Fatal(err)
	}
	if posts := w.Posts(); posts[len(posts)-1].Channel != "D0PERSON" || w.Calls()["conversations.open"] != 1 {
		t.Errorf("answered at %+v", posts[len(posts)-1])
	}
	if got := c.Opened(chat.Post{Thread: in.Events[0].Thread}, ref); got.Room != "D0PERSON" || got.Root != "" {
		t.Errorf("goes on in %v", got)
	}
}

// A command in a room is a conversation of its own, whose answer opens the thread.
func TestCommand(t *testing.T) {
	t.Parallel()
	w, c := workspace(t, fake.Options{}, Access{})
	if err := c.Identify(t.Context()); err != nil {
		t.Fatal(err)
	}
	in := inbound(t, c, w.Command("C0GENERAL", "U0PERSON", "/agent", "what's <#C1|new> &amp; <@U0BOT> hot?"))
	e := in.Events[0]
	if e.Kind != chat.Command || e.Topic != "command" || e.Text != "what's #new & hot?" || e.Author.ID != "U0PERSON" || e.Thread.Room != "C0GENERAL" || e.Thread.Root == "" ||
		e.Ref != e.Thread.Root || e.Handle.Secret == "" || string(in.Reply) != `{"response_type":"in_channel"}` {
		t.Errorf("%+v", e)
	}
	if other := inbound(t, c, w.Command("C0GENERAL", "U0PERSON", "/agent", "again")).Events[0]; other.Thread == e.Thread || other.ID == e.ID {
		t.Error("two commands share a conversation")
	}
	p := chat.Post{Key: "k", Thread: e.Thread, Text: "this"}
	ref, err := c.Send(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if posts := w.Posts(); posts[0].Asked != "" || c.Opened(p, ref) != posts[0].Thread {
		t.Errorf("posted as %+v, opened %v", posts[0], c.Opened(p, ref))
	}
	if got, err := c.Find(t.Context(), p, time.Now()); got != ref || err != nil {
		t.Errorf("found %q, %v", got, err)
	}
	if e := inbound(t, c, w.Command("D0PERSON", "U0PERSON", "/agent", "stop")).Events[0]; e.Kind != chat.Message || e.Topic != "dm" || e.Text != "stop" || e.Thread.Root != "" {
		t.Errorf("in a direct message: %+v", e)
	}
	for text, want := range map[string]string{"": "Write what you want after `/agent`", " Help ": "/agent stop", "stop": "Say `stop` in the thread", "cancel": "Say `stop`"} {
		in := inbound(t, c, w.Command("C0GENERAL", "U0PERSON", "/agent", text))
		if len(in.Events) > 0 || !strings.Contains(string(in.Reply), want) || !strings.Contains(string(in.Reply), `"ephemeral"`) || len(in.Ignored) != 1 {
			t.Errorf("%q: %s", text, in.Reply)
		}
	}
	check := []byte("ssl_check=1&token=x")
	if in, err := c.Receive("commands", sign("fake-signing-secret", check, time.Now()), check, time.Now()); err != nil || len(in.Ignored) != 1 {
		t.Errorf("check of the certificate: %+v, %v", in, err)
	}
	for _, body := range []string{"ssl_check=1", "ssl_check=10"} { // signed by nobody
		if _, err := c.Receive("commands", http.Header{}, []byte(body), time.Now()); !errors.Is(err, channels.ErrUnverified) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// Where the bot is no member it answers by the response URL, once.
func TestResponseURL(t *testing.T) {
	t.Parallel()
	var fault atomic.Pointer[fake.Fault]
	w, c := workspace(t, fake.Options{Channels: []fake.Channel{{ID: "C0GENERAL"}, {ID: "C0FAR", Absent: true}}, Hook: func(call fake.Call) fake.Fault {
		if f := fault.Load(); f != nil && call.Method == "response" {
			return *f
		}
		return fake.Fault{}
	}}, Access{})
	if err := c.Identify(t.Context()); err != nil {
		t.Fatal(err)
	}
	in, err := c.Receive("commands", nil, nil, time.Now())
	if !errors.Is(err, channels.ErrUnverified) || len(in.Events) > 0 {
		t.Fatal(err)
	}
	d := w.Command("C0FAR", "U0PERSON", "/agent", "hello")
	in, err = c.Receive(d.Route, d.Header, d.Body, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	e := in.Events[0]
	p := chat.Post{Key: "k", Thread: e.Thread, ReplyTo: e.Ref, Text: "hi", Handle: e.Handle}
	if _, err := c.Send(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if posts := w.Posts(); len(posts) != 1 || !posts[0].Response || posts[0].Text != "hi" || posts[0].Channel != "C0FAR" {
		t.Errorf("%+v", posts)
	}
	if got := c.Opened(p, ""); got != e.Thread {
		t.Errorf("opened %v", got)
	}
	if err := c.Whisper(t.Context(), e, "psst"); err != nil {
		t.Error(err)
	}
	for _, f := range []fake.Fault{{Lose: true}, {Cut: true}, {Status: 500}} {
		fault.Store(&f)
		if _, err := c.Send(t.Context(), p); verdictOf(err) != channels.Rejected || strings.Contains(err.Error(), "trigger") {
			t.Errorf("%+v: %v", f, err)
		}
	}
	fault.Store(&fake.Fault{Status: 429, RetryAfter: "3"})
	if _, err := c.Send(t.Context(), p); verdictOf(err) != channels.Limited {
		t.Error(err)
	}
	fault.Store(&fake.Fault{})
	for range 10 {
		_, err = c.Send(t.Context(), p)
	}
	if verdictOf(err) != channels.Rejected {
		t.Errorf("used up: %v", err)
	}
	p.Handle = chat.Handle{}
	if _, err := c.Send(t.Context(), p); verdictOf(err) != channels.Rejected {
		t.Errorf("without a handle: %v", err)
	}
	want := []fake.Whisper{{Channel: "C0FAR", User: "U0PERSON", Text: "psst"}}
	if d := cmp.Diff(want, w.Whispers()); d != "" {
		t.Error(d)
	}
}

// S29: an answer goes to Slack's hosts only, whatever a payload says.
func TestResponseHosts(t *testing.T) {
	t.Parallel()
	asked := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer other.Close()
	c := newChannel(t, Options{})
	for address, want := range map[string]bool{
		"https://hooks.slack.com/commands/T1/2/x":     true,
		"https://hooks.slack-gov.com/commands/T1/2/x": true,
		"http://hooks.slack.com/commands/T1/2/x":      false,
		"https://hooks.slack.com:8443/x":              false,
		"https://hooks.slack.com.evil.test/x":         false,
		"https://me@hooks.slack.com/x":                false,
		"https://169.254.169.254/latest":              false,
		"http://slack.com/x":                          false,
		other.URL:                                     false,
		"javascript:alert(1)":                         false,
		"://":                                         false,
		"":                                            false,
	} {
		body := []byte(url.Values{
			"command": {"/a"}, "text": {"x"}, "api_app_id": {"A1"}, "team_id": {"T1"}, "channel_id": {"C1"}, "user_id": {"U1"}, "trigger_id": {"1"}, "response_url": {address},
		}.Encode())
		in, err := c.Receive("commands", sign("fake-signing-secret", body, time.Now()), body, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if got := in.Events[0].Handle.Secret != ""; got != want {
			t.Errorf("%s: handle %v, want %v", address, got, want)
		}
		if !want {
			if err := c.respond(t.Context(), address, response{Text: "secret"}); verdictOf(err) != channels.Rejected {
				t.Errorf("%s: %v", address, err)
			}
		}
	}
	if asked {
		t.Error("another host was asked")
	}
}

func TestWhisper(t *testing.T) {
	t.Parallel()
	w, c := workspace(t, fake.Options{Channels: []fake.Channel{{ID: "C0GENERAL"}, {ID: "C0FAR", Absent: true}}}, Access{})
	e := receive(t, c, w.Mention(fake.Words{User: "U0PERSON", Text: "look"}))
	if err := c.Whisper(t.Context(), e, "not for you"); err != nil {
		t.Fatal(err)
	}
	want := []fake.Whisper{{Channel: "C0GENERAL", Thread: e.Thread.Root, User: "U0PERSON", Text: "not for you"}}
	if d := cmp.Diff(want, w.Whispers()); d != "" {
		t.Error(d)
	}
	for name, change := range map[string]func(*chat.Event){
		"nobody":     func(e *chat.Event) { e.Author = chat.Author{} },
		"a bot":      func(e *chat.Event) { e.Author.Bot = true },
		"not there":  func(e *chat.Event) { e.Thread.Room = "C0FAR" },
		"a stranger": func(e *chat.Event) { e.Author.ID = "U0NOBODY" },
		"late handle": func(e *chat.Event) {
			e.Thread.Room = "C0FAR"
			e.Handle = chat.Handle{Secret: "https://hooks.slack.com/x", Until: time.Now().Add(-time.Hour)}
		},
	} {
		e := e
		change(&e)
		if err := c.Whisper(t.Context(), e, "x"); verdictOf(err) != channels.Rejected {
			t.Errorf("%s: %v", name, err)
		}
	}
	if posts := w.Posts(); len(posts) > 0 {
		t.Errorf("the room was told: %v", fmt.Sprint(posts))
	}
}
