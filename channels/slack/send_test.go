package slack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
	fake "github.com/heddlehq/heddle/fakes/slack"
)

// workspace returns a fake workspace and a channel that speaks to it.
func workspace(t testing.TB, o fake.Options, a Access) (*fake.Workspace, *Channel) {
	t.Helper()
	w := fake.New(o)
	srv := httptest.NewServer(w)
	t.Cleanup(srv.Close)
	return w, newChannel(t, Options{SigningSecrets: []string{w.Options().SigningSecret}, BotToken: w.Options().BotToken, APIURL: srv.URL + "/api", Access: a})
}

func verdictOf(err error) channels.Verdict {
	var se *channels.SendError
	if !errors.As(err, &se) {
		return 255
	}
	return se.Verdict
}

// receive takes a delivery and returns its one event.
func receive(t *testing.T, c *Channel, d fake.Delivery) chat.Event {
	t.Helper()
	in, err := c.Receive("events", d.Header, d.Body, time.Now())
	if err != nil || len(in.Events) != 1 {
		t.Fatalf("%d events, ignored %v, error %v", len(in.Events), in.Ignored, err)
	}
	return in.Events[0]
}

// Where people speak is where they are answered: S23, S24, direct messages.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	w, c := workspace(t, fake.Options{}, Access{})
	if err := c.Identify(t.Context()); err != nil {
		t.Fatal(err)
	}
	top := w.Mention(fake.Words{User: "U0PERSON", Text: "look"})
	reply := w.Message(fake.Words{User: "U0PERSON", Text: "and?", Thread: top.TS})
	dm := w.Message(fake.Words{Channel: "D0PERSON", User: "U0PERSON", Text: "psst"})
	for _, tc := range []struct {
		d           fake.Delivery
		root, topic string
	}{{top, top.TS, "mention"}, {reply, top.TS, "thread"}, {dm, "", "dm"}} {
		e := receive(t, c, tc.d)
		if e.Thread.Root != tc.root || e.Topic != tc.topic || e.Ref != tc.d.TS {
			t.Errorf("%s: thread %v, topic %s", tc.topic, e.Thread, e.Topic)
		}
		key := "turn/" + tc.topic
		ref, err := c.Send(t.Context(), chat.Post{Key: key, Thread: e.Thread, Text: "an answer &amp; <https://x.test|a link>"})
		if err != nil {
			t.Fatal(err)
		}
		posts := w.Posts()
		p := posts[len(posts)-1]
		want := fake.Post{Channel: e.Thread.Room, TS: ref, Asked: tc.root, Thread: e.Thread, Text: "an answer &amp; <https://x.test|a link>", Key: key, At: p.At}
		if d := cmp.Diff(want, p); d != "" {
			t.Error(d)
		}
	}
	both := w.Message(fake.Words{User: "U0PERSON", Text: "<@U0BOT> look", TS: top.TS})
	a, b := receive(t, c, top), receive(t, c, both)
	if a.ID == b.ID || a.Same != b.Same || a.Thread != b.Thread || a.Kind != b.Kind || a.Text != b.Text {
		t.Errorf("one message under two ids: %+v and %+v", a, b)
	}
	if again := receive(t, c, w.Again(top, 1, "http_timeout")); cmp.Diff(a, again) != "" {
		t.Errorf("a retry differs: %s", cmp.Diff(a, again))
	}
	edit, err := w.Edit("C0GENERAL", reply.TS, "and now?")
	if err != nil {
		t.Fatal(err)
	}
	if e := receive(t, c, edit); e.Kind != chat.Edited || e.Ref != reply.TS || e.Text != "and now?" || e.Same != "" || e.Thread != a.Thread {
		t.Errorf("edit: %+v", e)
	}
	del, err := w.Delete("C0GENERAL", reply.TS)
	if err != nil {
		t.Fatal(err)
	}
	if e := receive(t, c, del); e.Kind != chat.Deleted || e.Ref != reply.TS || e.Thread != a.Thread {
		t.Errorf("deletion: %+v", e)
	}
}

// What is sent has the arguments that keep a post quiet and findable.
func TestSendArguments(t *testing.T) {
	t.Parallel()
	var got atomic.Pointer[fake.Call]
	_, c := workspace(t, fake.Options{Hook: func(c fake.Call) fake.Fault { got.Store(&c); return fake.Fault{} }}, Access{})
	if _, err := c.Send(t.Context(), chat.Post{Key: "k", Thread: chat.Thread{Channel: Name, Account: "T0FAKE", Room: "C0GENERAL"}, Text: "hi"}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"channel": "C0GENERAL", "text": "hi", "unfurl_links": "false", "unfurl_media": "false",
		"metadata": `{"event_type":"heddle_post","event_payload":{"key":"k"}}`,
	}
	if d := cmp.Diff(want, got.Load().Args); d != "" {
		t.Error(d)
	}
}

// A post whose thread is gone stands outside it: it is flagged, with its ref, and found.
func TestThreadGone(t *testing.T) {
	t.Parallel()
	w, c := workspace(t, fake.Options{}, Access{})
	e := receive(t, c, w.Mention(fake.Words{User: "U0PERSON", Text: "look"}))
	w.Remove("C0GENERAL", e.Ref)
	p := chat.Post{Key: "k", Thread: e.Thread, Text: "late"}
	ref, err := c.Send(t.Context(), p)
	if ref == "" || verdictOf(err) != channels.Rejected || len(w.Posts()) != 1 {
		t.Errorf("ref %q, error %v, %d posts", ref, err, len(w.Posts()))
	}
	if found, err := c.Find(t.Context(), p, time.Now()); found != ref || err != nil {
		t.Errorf("found %q, error %v, want %q", found, err, ref)
	}
}

// S33, S34: after a cut the message is found if it was made, and only then.
func TestFind(t *testing.T) {
	t.Parallel()
	var fault atomic.Pointer[fake.Fault]
	w, c := workspace(t, fake.Options{Hook: func(call fake.Call) fake.Fault {
		if f := fault.Load(); call.Method == "chat.postMessage" && f != nil {
			return *f
		}
		return fake.Fault{}
	}}, Access{})
	if err := c.Identify(t.Context()); err != nil {
		t.Fatal(err)
	}
	e := receive(t, c, w.Mention(fake.Words{User: "U0PERSON", Text: "look"}))
	for _, tc := range []struct {
		name   string
		thread chat.Thread
		fault  fake.Fault
		made   bool
	}{
		{"made in a thread", e.Thread, fake.Fault{Cut: true}, true},
		{"lost in a thread", e.Thread, fake.Fault{Lose: true}, false},
		{"made in a direct message", chat.Thread{Channel: Name, Account: "T0FAKE", Room: "D0PERSON"}, fake.Fault{Cut: true}, true},
		{"lost in a direct message", chat.Thread{Channel: Name, Account: "T0FAKE", Room: "D0PERSON"}, fake.Fault{Lose: true}, false},
	} {
		fault.Store(&tc.fault)
		p := chat.Post{Key: "key of " + tc.name, Thread: tc.thread, Text: "answer"}
		if _, err := c.Send(t.Context(), p); verdictOf(err) != channels.Unknown {
			t.Errorf("%s: %v", tc.name, err)
		}
		want := ""
		if tc.made {
			posts := w.Posts()
			want = posts[len(posts)-1].TS
		}
		fault.Store(nil)
		for range 700 { // several pages of other posts
			if _, err := c.Send(t.Context(), chat.Post{Key: "other", Thread: tc.thread, Text: "noise"}); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := c.Find(t.Context(), p, time.Now()); got != want || err != nil {
			t.Errorf("%s: found %q, error %v, want %q", tc.name, got, err, want)
		}
		if got, err := c.Find(t.Context(), p, time.Now().Add(time.Hour)); got != "" || err != nil {
			t.Errorf("%s: found %q an hour later, error %v", tc.name, got, err)
		}
	}
}

// Another app's copy of our key, and blocks that nobody can read, do not mislead Find.
func TestFindAmongOthers(t *testing.T) {
	t.Parallel()
	meta := `"metadata":{"event_type":"heddle_post","event_payload":{"key":"k"}}`
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "auth.test") {
			fmt.Fprint(w, `{"ok":true,"team_id":"T1","user_id":"U0BOT","bot_id":"B0BOT"}`)
			return
		}
		fmt.Fprint(w, `{"ok":true,"messages":[
			{"ts":"1.1","user":"U0OTHER","bot_id":"B0OTHER",`+meta+`},
			{"ts":"1.2","user":"U0BOT","metadata":{"event_type":"heddle_post","event_payload":[7]}},
			{"ts":"1.3","user":"U0X","blocks":[{"type":"actions","elements":[{"type":"teleporter","text":5}]}]},
			{"ts":"1.4","user":"U0BOT","metadata":{"event_type":"else","event_payload":{"key":"k"}}},
			{"ts":"1.5","bot_id":"B0BOT",`+meta+`}]}`)
	}))
	defer srv.Close()
	c := newChannel(t, Options{APIURL: srv.URL})
	if err := c.Identify(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := chat.Post{Key: "k", Thread: chat.Thread{Channel: Name, Account: "T1", Room: "C1", Root: "1.0"}}
	if ref, err := c.Find(t.Context(), p, time.Now()); ref != "1.5" || err != nil {
		t.Errorf("found %q, error %v", ref, err)
	}
}

func TestFindFaults(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		fault fake.Fault
		want  channels.Verdict
		after time.Duration
	}{
		{fake.Fault{Status: 429, RetryAfter: "7"}, channels.Limited, 7 * time.Second},
		{fake.Fault{Status: 429}, channels.Limited, defaultRetryAfter},
		{fake.Fault{Status: 503}, channels.Unknown, 0},
		{fake.Fault{Lose: true}, channels.Unknown, 0},
		{fake.Fault{Code: "missing_scope"}, channels.Rejected, 0},
		{fake.Fault{Code: "ratelimited"}, channels.Limited, defaultRetryAfter},
	} {
		_, c := workspace(t, fake.Options{Hook: func(fake.Call) fake.Fault { return tc.fault }}, Access{})
		_, err := c.Find(t.Context(), chat.Post{Key: "k", Thread: chat.Thread{Channel: Name, Account: "T0FAKE", Room: "C0GENERAL"}}, time.Now())
		var se *channels.SendError
		if !errors.As(err, &se) || se.Verdict != tc.want || se.RetryAfter != tc.after {
			t.Errorf("%+v: %v", tc.fault, err)
		}
	}
}

func TestIdentify(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		fault fake.Fault
		want  channels.Verdict
	}{
		{fake.Fault{Code: "invalid_auth"}, channels.Rejected},
		{fake.Fault{Code: "account_inactive"}, channels.Rejected},
		{fake.Fault{Status: 502}, channels.Unknown},
		{fake.Fault{Status: 429, RetryAfter: "1"}, channels.Limited},
		{fake.Fault{Lose: true}, channels.Unknown},
	} {
		_, c := workspace(t, fake.Options{Hook: func(fake.Call) fake.Fault { return tc.fault }}, Access{})
		if err := c.Identify(t.Context()); verdictOf(err) != tc.want {
			t.Errorf("%+v: %v", tc.fault, err)
		}
	}
	w := fake.New(fake.Options{BotToken: "xoxb-1-right-one"})
	srv := httptest.NewServer(w)
	defer srv.Close()
	c := newChannel(t, Options{BotToken: "xoxb-1-wrong-one", APIURL: srv.URL})
	if err := c.Identify(t.Context()); verdictOf(err) != channels.Rejected || strings.Contains(err.Error(), "wrong-one") {
		t.Errorf("wrong token: %v", err)
	}
}

// After Identify an own message is known without the help of the delivery.
func TestOwnAfterIdentify(t *testing.T) {
	t.Parallel()
	w, c := workspace(t, fake.Options{}, Access{})
	bodies := []string{
		`{"type":"event_callback","team_id":"T0FAKE","api_app_id":"A0FAKE","event_id":"E1","event":{"type":"message","channel":"C1","ts":"1.1","user":"U0BOT","text":"x"}}`,
		`{"type":"event_callback","team_id":"T0FAKE","api_app_id":"A0FAKE","event_id":"E2","event":{"type":"message","channel":"C1","ts":"1.1","user":"U0X","bot_id":"B0BOT","text":"x"}}`,
	}
	reasons := func() (out []string) {
		for _, b := range bodies {
			d := w.Sign([]byte(b))
			in, err := c.Receive("events", d.Header, d.Body, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range in.Ignored {
				out = append(out, i.Reason)
			}
		}
		return out
	}
	if d := cmp.Diff([]string(nil), reasons()); d != "" {
		t.Error(d)
	}
	if err := c.Identify(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"own message", "own message"}, reasons()); d != "" {
		t.Error(d)
	}
}

func TestRole(t *testing.T) {
	t.Parallel()
	o := fake.Options{
		Users: []fake.User{
			{ID: "U0FULL"},
			{ID: "U0OWNER", Admin: true},
			{ID: "U0GUEST", Restricted: true},
			{ID: "U0ONE", UltraRestricted: true},
			{ID: "U0MACHINE", Bot: true},
			{ID: "U0STRANGER", Stranger: true, Team: "T0OTHER"},
			{ID: "U0GONE", Deleted: true},
			{ID: "U0MAIN"},
			{ID: "U0ADMIN"},
			{ID: "U0INGROUP"},
			{ID: "U0PINNED", Restricted: true},
			{ID: "U0ALLY", Stranger: true, Team: "T0OTHER"},
			{ID: "U0GONEADMIN", Deleted: true},
			{ID: "U0GUESTGROUP", Restricted: true},
		},
		Groups: map[string][]string{"S0CREW": {"U0INGROUP", "U0GUESTGROUP"}},
	}
	all := Access{Members: []string{"all", "U0PINNED", "T0OTHER/U0ALLY"}, Maintainers: []string{"U0MAIN", "S0CREW"}, Admins: []string{"U0ADMIN", "U0GONEADMIN"}}
	_, c := workspace(t, o, all)
	_, closed := workspace(t, o, Access{})
	for _, tc := range []struct {
		id, team string
		bot      bool
		want     chat.Role
	}{
		{"U0FULL", "T0FAKE", false, chat.Member},
		{"U0FULL", "", false, chat.Member},
		{"U0FULL", "T0FAKE", true, chat.Outsider},
		{"U0FULL", "T0OTHER", false, chat.Outsider},
		{"U0OWNER", "T0FAKE", false, chat.Member},
		{"U0GUEST", "T0FAKE", false, chat.Outsider},
		{"U0ONE", "T0FAKE", false, chat.Outsider},
		{"U0MACHINE", "T0FAKE", false, chat.Outsider},
		{"U0STRANGER", "T0OTHER", false, chat.Outsider},
		{"U0STRANGER", "T0FAKE", false, chat.Outsider},
		{"U0GONE", "T0FAKE", false, chat.Outsider},
		{"U0GONEADMIN", "T0FAKE", false, chat.Outsider},
		{"U0MAIN", "T0FAKE", false, chat.Maintainer},
		{"U0INGROUP", "T0FAKE", false, chat.Maintainer},
		{"U0GUESTGROUP", "T0FAKE", false, chat.Outsider},
		{"U0ADMIN", "T0FAKE", false, chat.Admin},
		{"U0ADMIN", "T0OTHER", false, chat.Outsider},
		{"U0PINNED", "T0FAKE", false, chat.Member},
		{"U0ALLY", "T0OTHER", false, chat.Member},
		{"", "T0FAKE", false, chat.Outsider},
	} {
		a := chat.Author{ID: tc.id, Account: tc.team, Bot: tc.bot}
		if got, err := c.Role(t.Context(), "T0FAKE", a); got != tc.want || err != nil {
			t.Errorf("%+v: %v, error %v, want %v", a, got, err, tc.want)
		}
		if got, err := closed.Role(t.Context(), "T0FAKE", a); got != chat.Outsider || err != nil {
			t.Errorf("%+v with no access: %v, error %v", a, got, err)
		}
	}
	if got, err := c.Role(t.Context(), "T0FAKE", chat.Author{ID: "U0NOBODY"}); got != chat.Outsider || err == nil {
		t.Errorf("unknown user: %v, error %v", got, err)
	}
}

// No answer is no role, and the members of a group are asked for once a minute.
func TestRoleFailsClosed(t *testing.T) {
	t.Parallel()
	var faults atomic.Pointer[map[string]fake.Fault]
	faults.Store(&map[string]fake.Fault{})
	now := time.Unix(1700000000, 0)
	w := fake.New(fake.Options{Groups: map[string][]string{"S0CREW": {"U0PERSON"}}, Hook: func(c fake.Call) fake.Fault { return (*faults.Load())[c.Method] }})
	srv := httptest.NewServer(w)
	defer srv.Close()
	c := newChannel(t, Options{APIURL: srv.URL, Access: Access{Members: []string{"all"}, Admins: []string{"S0CREW"}}, Clock: func() time.Time { return now }})
	ask := func() (chat.Role, error) {
		return c.Role(t.Context(), "T0FAKE", chat.Author{ID: "U0PERSON", Account: "T0FAKE"})
	}
	for _, m := range []string{"users.info", "usergroups.users.list"} {
		for _, f := range []fake.Fault{{Status: 500}, {Status: 429, RetryAfter: "1"}, {Code: "missing_scope"}, {Lose: true}} {
			faults.Store(&map[string]fake.Fault{m: f})
			if m == "usergroups.users.list" && f.Code != "" {
				if r, err := ask(); r != chat.Member || err != nil {
					t.Errorf("group refused: %v, error %v; want what everybody is", r, err)
				}
				continue
			}
			if r, err := ask(); r != chat.Outsider || err == nil {
				t.Errorf("%s with %+v: %v, error %v", m, f, r, err)
			}
		}
	}
	faults.Store(&map[string]fake.Fault{})
	before := w.Calls()["usergroups.users.list"]
	for _, step := range []time.Duration{0, time.Second, groupAge} {
		now = now.Add(step)
		if r, err := ask(); r != chat.Admin || err != nil {
			t.Errorf("%v, error %v", r, err)
		}
	}
	if n := w.Calls()["usergroups.users.list"] - before; n != 2 {
		t.Errorf("group asked for %d times, want 2", n)
	}
}

// A provider that never answers ends by the client's own timeout.
func TestTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := channels.NewClient()
		client.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, context.Cause(r.Context())
		})
		c := newChannel(t, Options{Client: client})
		start := time.Now()
		_, err := c.Send(t.Context(), chat.Post{Key: "k", Thread: chat.Thread{Channel: Name, Account: "T", Room: "C1"}, Text: "x"})
		var se *channels.SendError
		if !errors.As(err, &se) || se.Verdict != channels.Unknown || se.Reason != "timeout" || time.Since(start) > 15*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func BenchmarkReceive(b *testing.B) {
	w, c := workspace(b, fake.Options{}, Access{})
	d := w.Mention(fake.Words{User: "U0PERSON", Text: "please look at this &amp; that"})
	b.ReportAllocs()
	for b.Loop() {
		if in, err := c.Receive("events", d.Header, d.Body, time.Now()); err != nil || len(in.Events) != 1 {
			b.Fatal(err)
		}
	}
}

// Against a server that does nothing but answer, on the same machine.
func BenchmarkSend(b *testing.B) {
	answer := []byte(`{"ok":true,"channel":"C1","ts":"1722.0001","message":{"type":"message","user":"U0BOT","bot_id":"B0BOT","app_id":"A0FAKE","text":"an answer","ts":"1722.0001","thread_ts":"1721.0001"}}`)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(answer) }))
	defer srv.Close()
	c := newChannel(b, Options{APIURL: srv.URL})
	p := chat.Post{Key: "0123456789abcdef/1/0", Thread: chat.Thread{Channel: Name, Account: "T1", Room: "C1", Root: "1721.0001"}, Text: "an answer of some words"}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Send(b.Context(), p); err != nil {
			b.Fatal(err)
		}
	}
}

// The part of BenchmarkSend that is HTTP on loopback.
func BenchmarkBarePost(b *testing.B) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"ok":true}`)) }))
	defer srv.Close()
	client := channels.NewClient()
	b.ReportAllocs()
	for b.Loop() {
		resp, err := client.Post(srv.URL, "application/x-www-form-urlencoded", strings.NewReader("channel=C1&text=an+answer"))
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body) // or the connection is not used again
		_ = resp.Body.Close()
	}
}

// Our clock may be ahead of Slack's by as much as a delivery may be early.
func TestFindWithClocksApart(t *testing.T) {
	t.Parallel()
	w, c := workspace(t, fake.Options{}, Access{})
	e := receive(t, c, w.Mention(fake.Words{User: "U0PERSON", Text: "look"}))
	p := chat.Post{Key: "k", Thread: e.Thread, Text: "answer"}
	ref, err := c.Send(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.Find(t.Context(), p, time.Now().Add(channels.Window)); got != ref || err != nil {
		t.Errorf("found %q, %v; want %q", got, err, ref)
	}
}
