package github

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
	fake "github.com/heddlehq/heddle/fakes/github"
)

// hub returns a fake GitHub and a channel that is an App there, or a user if the
// hub has a token.
func hub(t testing.TB, o fake.Options, a Access) (*fake.Hub, *Channel) {
	t.Helper()
	h := fake.New(o)
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	oo := Options{APIURL: srv.URL, Access: a, Clock: o.Clock}
	if o.Token != "" {
		oo.Token = o.Token
	} else {
		oo.AppID, oo.PrivateKey = fmt.Sprint(h.Options().AppID), h.PrivateKey()
	}
	c := newChannel(t, oo)
	if err := c.Identify(t.Context()); err != nil {
		t.Fatal(err)
	}
	return h, c
}

func receive(c *Channel, d fake.Delivery) (channels.Inbound, error) {
	return c.Receive(routeWebhook, d.Header, d.Body, time.Now())
}

// last takes a delivery and returns its last event.
func last(t *testing.T, c *Channel, d fake.Delivery) chat.Event {
	t.Helper()
	in, err := receive(c, d)
	if err != nil || len(in.Events) == 0 {
		t.Fatalf("%d events, ignored %v, error %v", len(in.Events), in.Ignored, err)
	}
	return in.Events[len(in.Events)-1]
}

func ignoredFor(t *testing.T, c *Channel, d fake.Delivery, want string) {
	t.Helper()
	in, err := receive(c, d)
	if err != nil || len(in.Events) != 0 || len(in.Ignored) != 1 || in.Ignored[0].Reason != want {
		t.Errorf("events %v, ignored %v, error %v; want %q", in.Events, in.Ignored, err, want)
	}
}

func verdictOf(err error) channels.Verdict {
	var se *channels.SendError
	if !errors.As(err, &se) {
		return 255
	}
	return se.Verdict
}

// G01-G04, G06-G09, G11-G14, G18, G19: what is taken and what is refused.
func TestDeliveries(t *testing.T) {
	t.Parallel()
	h, c := hub(t, fake.Options{}, Access{})
	doc := newChannel(t, Options{WebhookSecrets: []string{"It's a Secret to Everybody", "other-secret-1"}, Token: "github_pat_x1"})
	good := h.Say(fake.Words{Text: "@heddle look"})
	with := func(change func(http.Header)) fake.Delivery {
		d := good
		d.Header = d.Header.Clone()
		change(d.Header)
		return d
	}
	sig := good.Header.Get("X-Hub-Signature-256")
	for _, tc := range []struct {
		name string
		d    fake.Delivery
		want error
	}{
		{"good", good, nil},
		{"G02 wrong", with(func(h http.Header) { h.Set("X-Hub-Signature-256", fake.Signature("x", good.Body)) }), channels.ErrUnverified},
		{"G03 sha1 only", with(func(h http.Header) {
			h.Del("X-Hub-Signature-256")
			h.Set("X-Hub-Signature", "sha1=0123")
		}), channels.ErrUnverified},
		{"G04 sha1 in the place of sha256", with(func(h http.Header) { h.Set("X-Hub-Signature-256", "sha1="+sig[len("sha256="):]) }), channels.ErrUnverified},
		{"G04 sha512", with(func(h http.Header) { h.Set("X-Hub-Signature-256", "sha512="+sig[len("sha256="):]) }), channels.ErrUnverified},
		{"G06 two", with(func(h http.Header) { h.Add("X-Hub-Signature-256", "sha256=00") }), channels.ErrUnverified},
		{"G07 upper case", with(func(h http.Header) { h.Set("x-hub-signature-256", "sha256="+strings.ToUpper(sig[7:])) }), nil},
		{"G08 form", h.Form(good), nil},
		{"G08 form, wrongly signed", fake.Delivery{Header: h.Form(good).Header, Body: good.Body}, channels.ErrUnverified},
		{"form without payload", h.Form(fake.Delivery{Header: good.Header}), channels.ErrMalformed},
		{"G11 broken", h.Sign("issues", []byte(`{"a":`)), channels.ErrMalformed},
		{"G12 no event", with(func(h http.Header) { h.Del("X-GitHub-Event") }), channels.ErrMalformed},
		{"G12 no GUID", with(func(h http.Header) { h.Del("X-GitHub-Delivery") }), channels.ErrMalformed},
		{"G12 long GUID", with(func(h http.Header) { h.Set("X-GitHub-Delivery", strings.Repeat("a", 10_000)) }), channels.ErrMalformed},
		{"G12 GUID of lines", with(func(h http.Header) { h.Set("X-GitHub-Delivery", "a\nb") }), channels.ErrMalformed},
		{"two GUIDs", with(func(h http.Header) { h.Add("X-GitHub-Delivery", "b") }), channels.ErrMalformed},
		{"G18 as issues", with(func(h http.Header) { h.Set("X-GitHub-Event", "issues") }), channels.ErrMalformed},
		{"G18 as a review", with(func(h http.Header) { h.Set("X-GitHub-Event", "pull_request_review") }), channels.ErrMalformed},
		{"G19 another app", with(func(h http.Header) { h.Set("X-GitHub-Hook-Installation-Target-ID", "8") }), channels.ErrUnverified},
		{"G13 ping", h.Sign("ping", []byte(`{"zen":"x","hook_id":1}`)), nil},
		{"G14 unknown event", h.Sign("sub_issues", []byte(`{"action":"x"}`)), nil},
		{"unknown event with our names", h.Sign("deployment_review", []byte(`{"comment":"text","action":7}`)), nil},
	} {
		in, err := receive(c, tc.d)
		if !errors.Is(err, tc.want) || err == nil && len(in.Events)+len(in.Ignored) == 0 {
			t.Errorf("%s: %v, want %v", tc.name, err, tc.want)
		}
	}
	hello := http.Header{"X-Hub-Signature-256": {"sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"}}
	if err := doc.verify(hello, []byte("Hello, World!")); err != nil {
		t.Errorf("G01: %v", err)
	}
	hello.Set("X-GitHub-Event", "push")
	hello.Set("X-GitHub-Delivery", "1")
	if _, err := doc.Receive(routeWebhook, hello, []byte("Hello, World!"), time.Now()); !errors.Is(err, channels.ErrMalformed) {
		t.Errorf("G01: %v, want malformed", err)
	}
	form, _ := receive(c, h.Form(good))
	plain, _ := receive(c, good)
	if d := cmp.Diff(plain, form); d != "" {
		t.Errorf("a form says something else: %s", d)
	}
	signed := good
	signed.Header = good.Header.Clone()
	signed.Header["X-Hub-Signature-256"] = c.Sign(routeWebhook, good.Body, time.Now())["X-Hub-Signature-256"]
	if _, err := receive(c, signed); err != nil {
		t.Errorf("signed by ourselves: %v", err)
	}
}

// G15, G17: redeliveries and replays have the same identity, G29: and edits another.
func TestIdentity(t *testing.T) {
	t.Parallel()
	h, c := hub(t, fake.Options{}, Access{})
	d := h.Say(fake.Words{Text: "@heddle look"})
	first := last(t, c, d)
	if again := last(t, c, d); cmp.Diff(first, again) != "" {
		t.Errorf("G15: %s", cmp.Diff(first, again))
	}
	if replay := last(t, c, h.Replay(d)); replay.ID == first.ID || replay.Same != first.Same || first.Same == "" {
		t.Errorf("G17: %q %q, first %q", replay.ID, replay.Same, first.Same)
	}
	seen := map[string]bool{first.Same: true}
	for i, text := range []string{"look @nobody", "@heddle look", "@heddle look again", "@heddle look again"} {
		edit, err := h.Edit(d.NodeID, text, 77)
		if err != nil {
			t.Fatal(err)
		}
		if i == 3 {
			ignoredFor(t, c, edit, "text unchanged")
			break
		}
		e := last(t, c, edit)
		if seen[e.Same] || e.Ref != first.Ref || e.Thread != first.Thread || (e.Kind == chat.Mention) != (i == 1) || (e.Kind == chat.Edited) == (i == 1) {
			t.Errorf("G29, edit %d: %+v", i, e)
		}
		seen[e.Same] = true
	}
	gone, err := h.Delete(d.NodeID, 77)
	if err != nil {
		t.Fatal(err)
	}
	if e := last(t, c, gone); e.Kind != chat.Deleted || e.Ref != first.Ref {
		t.Errorf("G30: %+v", e)
	}
	click := h.Event("check_run", "requested_action", 77, map[string]any{
		"check_run":        map[string]any{"id": 50, "node_id": "CR_50", "head_sha": strings.Repeat("b", 40)},
		"requested_action": map[string]any{"identifier": "fix"},
	})
	if a, b := last(t, c, click), last(t, c, h.Replay(click)); a.Same == "" || a.Same != b.Same {
		t.Errorf("a button's replay: %q, %q", a.Same, b.Same)
	}
}

// G20-G25: whose words are taken, and where they are.
func TestWhoAndWhere(t *testing.T) {
	t.Parallel()
	h, c := hub(t, fake.Options{Users: []fake.User{{ID: 77, Login: "person", Permission: "write"}, {ID: 9, Login: "dependabot[bot]", Bot: true}}}, Access{})
	ignoredFor(t, c, h.Say(fake.Words{User: 7000, Text: "@heddle me"}), "own message")
	ignoredFor(t, c, h.Event("issue_comment", "created", 77, map[string]any{ // by a person through our App
		"issue": map[string]any{"id": 1, "node_id": "I_1", "number": 1, "user": map[string]any{"id": 77}},
		"comment": map[string]any{
			"id": 2, "node_id": "IC_2", "user": map[string]any{"id": 77}, "body": "@heddle", "performed_via_github_app": map[string]any{"id": 7},
		},
	}), "own message")
	if e := last(t, c, h.Say(fake.Words{User: 9, Text: "@heddle"})); !e.Author.Bot || e.Author.ID != "9" {
		t.Errorf("G21: %+v", e.Author)
	}
	for _, text := range []string{"`@heddle`", "> @heddle", "x@heddle.com", "@heddle-other", "```\n@heddle\n```"} {
		if e := last(t, c, h.Say(fake.Words{Text: text})); e.Kind != chat.Message || e.Topic != "thread" || e.Text != text {
			t.Errorf("G23 %q: %+v", text, e)
		}
	}
	pull := last(t, c, h.Say(fake.Words{Kind: "pr", Number: 8, Text: "@heddle"}))
	opened := last(t, c, h.Do("opened", fake.Words{Kind: "pr", Number: 8, Text: "text"}, nil))
	if pull.Thread != opened.Thread || pull.Thread.Key() != "github/5/pr:8/" {
		t.Errorf("G24: %s, %s", pull.Thread, opened.Thread)
	}
	root := h.Say(fake.Words{Kind: "pr", Number: 8, Review: true, Text: "@heddle why?"})
	reply := last(t, c, h.Say(fake.Words{Kind: "pr", Number: 8, Review: true, Root: root.ID, Text: "because"}))
	if want := fmt.Sprintf("github/5/pr:8/%d", root.ID); last(t, c, root).Thread.Key() != want || reply.Thread.Key() != want || reply.Topic != "thread" {
		t.Errorf("G25: %s, want %s", reply.Thread, want)
	}
	for name, e := range map[string]chat.Event{
		"labeled.good-first-issue": last(t, c, h.Do("labeled", fake.Words{}, map[string]any{"label": map[string]any{"id": 1, "name": "Good first issue"}})),
		"assigned":                 last(t, c, h.Do("assigned", fake.Words{}, map[string]any{"assignee": map[string]any{"id": 7000, "login": "heddle[bot]", "type": "Bot"}})),
		"review_requested":         last(t, c, h.Do("review_requested", fake.Words{Kind: "pr"}, map[string]any{"requested_reviewer": map[string]any{"id": 7000}})),
	} {
		if e.Topic != name || e.Kind != chat.Notice || e.Author.ID != "77" {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// What we say comes where people spoke, G26 in discussions as well, once, and is found.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	h, c := hub(t, fake.Options{}, Access{})
	review := h.Say(fake.Words{Kind: "pr", Number: 8, Review: true, Text: "@heddle"})
	top := h.Say(fake.Words{Kind: "discussion", Number: 9, Text: "@heddle"})
	for range 120 { // more than a page of comments before the one that is replied to
		h.Say(fake.Words{Kind: "discussion", Number: 10, Text: "noise"})
	}
	far := h.Say(fake.Words{Kind: "discussion", Number: 10, Text: "@heddle"})
	for name, d := range map[string]fake.Delivery{
		"issue": h.Say(fake.Words{Text: "@heddle"}), "pull request": h.Say(fake.Words{Kind: "pr", Number: 8, Text: "@heddle"}),
		"review": review, "review reply": h.Say(fake.Words{Kind: "pr", Number: 8, Review: true, Root: review.ID, Text: "@heddle"}),
		"discussion":         h.Do("created", fake.Words{Kind: "discussion", Number: 9, Text: "@heddle"}, nil),
		"discussion comment": top, "discussion reply": h.Say(fake.Words{Kind: "discussion", Number: 9, Root: top.ID, Text: "@heddle"}), "far discussion comment": far,
		"commit": h.Event("check_run", "requested_action", 77, map[string]any{
			"check_run": map[string]any{"id": 50, "node_id": "CR_50", "head_sha": strings.Repeat("b", 40)}, "requested_action": map[string]any{"identifier": "fix"},
		}),
	} {
		e := last(t, c, d)
		p := chat.Post{Key: "turn/" + name, Thread: e.Thread, Text: "an answer"}
		if ref, err := c.Find(t.Context(), p, time.Now()); ref != "" || err != nil {
			t.Errorf("%s: found %q before, %v", name, ref, err)
		}
		ref, err := c.Send(t.Context(), p)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		posts := h.Posts()
		got := posts[len(posts)-1]
		if got.Thread != e.Thread || got.Key != p.Key || got.Text != p.Text || got.Ref != ref || (got.ReplyTo == "") != (e.Thread.Root == "") {
			t.Errorf("%s: %+v", name, got)
		}
		if found, err := c.Find(t.Context(), p, time.Now()); found != ref || err != nil {
			t.Errorf("%s: found %q, %v, want %q", name, found, err, ref)
		}
		other := p
		other.Key = "another"
		if found, err := c.Find(t.Context(), other, time.Now()); found != "" || err != nil {
			t.Errorf("%s: another post is found as %q, %v", name, found, err)
		}
	}
	if n := h.Calls()["token"]; n != 1 {
		t.Errorf("%d tokens for one installation", n)
	}
}

// G27: after a renaming the answer goes to the right repository, and no token goes elsewhere.
func TestRenamed(t *testing.T) {
	t.Parallel()
	h, c := hub(t, fake.Options{}, Access{})
	e := last(t, c, h.Say(fake.Words{Text: "@heddle"}))
	p := chat.Post{Key: "k", Thread: e.Thread, Text: "an answer"}
	if _, _, _, err := c.place(t.Context(), "5"); err != nil { // its name is known
		t.Fatal(err)
	}
	h.Rename(5, "fake/other")
	if _, err := c.Send(t.Context(), p); verdictOf(err) != channels.NotMade {
		t.Errorf("%v, want not made", err)
	}
	if ref, err := c.Send(t.Context(), p); err != nil || ref == "" || len(h.Posts()) != 1 || h.Posts()[0].Repo != "fake/other" {
		t.Errorf("%q %v, posts %v", ref, err, h.Posts())
	}

	var leaked atomic.Bool
	evil := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { leaked.Store(true) }))
	defer evil.Close()
	_, c = hub(t, fake.Options{Hook: func(call fake.Call) fake.Fault {
		if call.Name == "comment" {
			return fake.Fault{Status: 307, Header: http.Header{"Location": {evil.URL}}}
		}
		return fake.Fault{}
	}}, Access{})
	if _, err := c.Send(t.Context(), p); verdictOf(err) != channels.NotMade || leaked.Load() {
		t.Errorf("%v, leaked %v", err, leaked.Load())
	}
}

// G32: a limit is obeyed, and by its installation only.
func TestLimits(t *testing.T) {
	t.Parallel()
	var fault atomic.Pointer[fake.Fault]
	h, c := hub(t, fake.Options{
		Repos: []fake.Repo{{ID: 5, FullName: "fake/repo", Installation: 9}, {ID: 6, FullName: "other/repo", Installation: 10}},
		Hook: func(call fake.Call) fake.Fault {
			if f := fault.Load(); f != nil && call.Name == "comment" && strings.Contains(call.Path, "fake/repo") {
				return *f
			}
			return fake.Fault{}
		},
	}, Access{})
	h.Say(fake.Words{Text: "x"})
	h.Say(fake.Words{Repo: 6, Text: "x"})
	post := func(account string) *channels.SendError {
		_, err := c.Send(t.Context(), chat.Post{Key: "k", Thread: chat.Thread{Channel: Name, Account: account, Room: "issue:1"}, Text: "x"})
		var se *channels.SendError
		if !errors.As(err, &se) {
			return &channels.SendError{Verdict: 255}
		}
		return se
	}
	for _, tc := range []struct {
		fault fake.Fault
		after time.Duration
	}{
		{fake.Fault{Status: 429, Header: http.Header{"Retry-After": {"2"}}}, 2 * time.Second},
		{fake.Fault{Status: 403, Message: "You have exceeded a secondary rate limit"}, time.Minute},
	} {
		fault.Store(&tc.fault)
		if se := post("5"); se.Verdict != channels.Limited || se.RetryAfter < tc.after || se.RetryAfter > tc.after+time.Second {
			t.Errorf("%+v: %v after %s", tc.fault, se, se.RetryAfter)
		}
		if se := post("6"); se.Verdict != 255 {
			t.Errorf("another installation: %v", se)
		}
	}
}

// G33, G34: after a cut the comment is found if it was made, and nobody else's is taken for it.
func TestFindAfterCut(t *testing.T) {
	t.Parallel()
	var fault atomic.Pointer[fake.Fault]
	h, c := hub(t, fake.Options{Hook: func(call fake.Call) fake.Fault {
		if f := fault.Load(); f != nil && call.Name == "comment" {
			return *f
		}
		return fake.Fault{}
	}}, Access{})
	e := last(t, c, h.Say(fake.Words{Text: "@heddle"}))
	for name, tc := range map[string]struct {
		fault fake.Fault
		made  bool
	}{"made": {fake.Fault{Cut: true}, true}, "lost": {fake.Fault{Lose: true}, false}} {
		fault.Store(&tc.fault)
		p := chat.Post{Key: name, Thread: e.Thread, Text: "answer"}
		if _, err := c.Send(t.Context(), p); verdictOf(err) != channels.Unknown {
			t.Errorf("%s: %v", name, err)
		}
		fault.Store(nil)
		h.Say(fake.Words{Text: "I am it <!-- heddle:" + name + ":0123456789abcdef0123456789abcdef -->"})
		h.Say(fake.Words{Text: "so am I " + c.marker(p)}) // copied: another's all the same
		h.Say(fake.Words{User: 7000, Text: "no <!-- heddle:" + name + ":00 -->"})
		for range 150 {
			h.Say(fake.Words{Text: "noise"})
		}
		ref, err := c.Find(t.Context(), p, time.Now())
		if err != nil || (ref != "") != tc.made {
			t.Errorf("%s: found %q, %v", name, ref, err)
		}
		if posts := h.Posts(); tc.made && ref != posts[len(posts)-1].Ref {
			t.Errorf("%s: found %q, want %q", name, ref, posts[len(posts)-1].Ref)
		}
		if ref, err := c.Find(t.Context(), p, time.Now().Add(time.Hour)); ref != "" || err != nil {
			t.Errorf("%s: found %q an hour later, %v", name, ref, err)
		}
	}
}

// G35, G36: long answers are cut to what fits, and nothing in them acts.
func TestCompose(t *testing.T) {
	t.Parallel()
	c := newChannel(t, Options{Token: "github_pat_x1"})
	parts := c.Compose(strings.Repeat("word and another word\n\n", 3200), chat.Member)
	if len(parts) < 2 {
		t.Errorf("%d parts", len(parts))
	}
	for _, p := range parts {
		if n := len([]rune(p + "\n\n" + c.marker(chat.Post{Key: strings.Repeat("k", 80)}))); n > 65536 {
			t.Errorf("a part of %d characters", n)
		}
	}
	got := strings.Join(c.Compose("@org/team fixes #1 ![x](https://evil.test/?q=secret) and /command", chat.Member), "")
	for _, bad := range []string{"@org", "fixes #1", "!["} {
		if strings.Contains(got, bad) {
			t.Errorf("%q holds %q", got, bad)
		}
	}
}

// G38, G39: tokens of any length, their end, and installations that are suspended.
func TestTokens(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	now := time.Now()
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	pass := func(d time.Duration) { mu.Lock(); defer mu.Unlock(); now = now.Add(d) }
	h, c := hub(t, fake.Options{Clock: clock}, Access{})
	e := last(t, c, h.Say(fake.Words{Text: "@heddle"}))
	p := chat.Post{Key: "k", Thread: e.Thread, Text: "answer"}
	send := func(want channels.Verdict, tokens int) *channels.SendError {
		t.Helper()
		_, err := c.Send(t.Context(), p)
		var se *channels.SendError
		if errors.As(err, &se); err == nil && want != 255 || err != nil && verdictOf(err) != want || h.Calls()["token"] != tokens {
			t.Errorf("%v, %d tokens; want %v and %d", err, h.Calls()["token"], want, tokens)
		}
		return se
	}
	send(255, 1)
	pass(54 * time.Minute)
	send(255, 1)
	pass(2 * time.Minute) // it ends in four minutes
	send(255, 2)
	h.Revoke()
	send(channels.NotMade, 2)
	send(255, 3)
	h.Suspend(9, true)
	send(channels.NotMade, 3)
	if se := send(channels.Limited, 4); se == nil || se.RetryAfter < time.Minute {
		t.Errorf("suspended: %v", se)
	}
	h.Suspend(9, false)
	send(255, 5)

	var wg sync.WaitGroup
	h.Revoke()
	send(channels.NotMade, 5)
	for range 20 { // who needs a token at once waits for one
		wg.Go(func() { _, _ = c.client(context.Background(), 9) })
	}
	wg.Wait()
	if n := h.Calls()["token"]; n != 6 {
		t.Errorf("%d tokens, want 6", n)
	}
}

// G31: what never arrived is asked for again, once, oldest first.
func TestRedeliver(t *testing.T) {
	t.Parallel()
	h, c := hub(t, fake.Options{}, Access{})
	since := time.Now().Add(-time.Hour)
	for range 250 {
		h.Tried(h.Sign("push", []byte(`{}`)), 200)
	}
	a, b, ok, often := h.Say(fake.Words{Text: "a"}), h.Say(fake.Words{Text: "b"}), h.Say(fake.Words{Text: "ok"}), h.Say(fake.Words{Text: "often"})
	for _, d := range []fake.Delivery{a, ok, b, often, often, often, often, often} {
		h.Tried(d, 502)
	}
	h.Tried(ok, 200)
	none := func(context.Context, channels.Inbound) error { t.Error("handed on"); return nil }
	if err := c.Missed(t.Context(), since, nil, none); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range h.Redelivered() {
		got = append(got, d.GUID)
	}
	if d := cmp.Diff([]string{a.GUID, b.GUID}, got); d != "" {
		t.Error(d)
	}
	if err := c.Missed(t.Context(), time.Now().Add(time.Hour), nil, none); err != nil || len(h.Redelivered()) != 2 {
		t.Errorf("after it: %v, %d", err, len(h.Redelivered()))
	}
}

// With a token what was said is read, and is what the webhook would have said.
func TestReread(t *testing.T) {
	t.Parallel()
	h, c := hub(t, fake.Options{Token: "github_pat_x1"}, Access{})
	since := time.Now().Add(-time.Minute)
	said := []fake.Delivery{
		h.Do("opened", fake.Words{Number: 3, Text: "@heddle new"}, nil),
		h.Say(fake.Words{Number: 3, Text: "and more"}),
		h.Say(fake.Words{Kind: "pr", Number: 8, Text: "@heddle look"}),
		h.Say(fake.Words{Kind: "pr", Number: 8, Review: true, Text: "@heddle why"}),
	}
	h.Say(fake.Words{User: 7000, Text: "our own"})
	want := map[string]chat.Event{}
	for _, d := range said {
		in, err := receive(c, d)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range in.Events {
			want[e.Topic+" "+e.Same+" "+e.Thread.Key()] = e
		}
	}
	seen := map[string]chat.Event{}
	take := func(_ context.Context, in channels.Inbound) error {
		for _, e := range in.Events {
			seen[e.Topic+" "+e.Same+" "+e.Thread.Key()] = e
		}
		return nil
	}
	if err := c.Missed(t.Context(), since, []chat.Thread{{Channel: Name, Account: "5", Room: "issue:3"}}, take); err != nil {
		t.Fatal(err)
	}
	for k, w := range want {
		got, ok := seen[k]
		if !ok {
			t.Errorf("not read: %s", k)
			continue
		}
		w.ID, got.ID = "", ""
		if d := cmp.Diff(w, got); d != "" {
			t.Errorf("%s: %s", k, d)
		}
	}
	for k, e := range seen {
		if e.Author.ID == "7000" {
			t.Errorf("our own was read: %s", k)
		}
	}
	if err := c.Missed(t.Context(), time.Now().Add(time.Hour), nil, take); err != nil {
		t.Error(err)
	}
}

// G22 and roles: what somebody may do is asked, by id.
func TestRole(t *testing.T) {
	t.Parallel()
	_, c := hub(t, fake.Options{Users: []fake.User{
		{ID: 77, Login: "person", Permission: "write"},
		{ID: 1, Login: "reader", Permission: "read"},
		{ID: 2, Login: "triager", Permission: "triage"},
		{ID: 3, Login: "keeper", Permission: "maintain"},
		{ID: 4, Login: "boss", Permission: "admin"},
		{ID: 5, Login: "nobody", Permission: "none"},
		{ID: 6, Login: "taken", Permission: "admin"},
		{ID: 8, Login: "renamed", Permission: "write"},
	}}, Access{Members: "write", Maintainers: "admin", Admins: []string{"99"}})
	for _, tc := range []struct {
		id, name string
		want     chat.Role
	}{
		{"77", "person", chat.Member},
		{"1", "reader", chat.Outsider},
		{"2", "triager", chat.Outsider},
		{"3", "keeper", chat.Member},
		{"4", "boss", chat.Maintainer},
		{"5", "nobody", chat.Outsider},
		{"99", "whoever", chat.Admin},
		{"8", "oldname", chat.Member},
		{"8", "taken", chat.Member}, // somebody else has the old login by now
		{"77", "boss", chat.Member}, // a name is only text
		{"12345", "gone", chat.Outsider},
		{"77", "", chat.Member},
		{"", "boss", chat.Outsider},
		{"x", "boss", chat.Outsider},
	} {
		if got, err := c.Role(t.Context(), "5", chat.Author{ID: tc.id, Name: tc.name}); got != tc.want || err != nil {
			t.Errorf("%s %s: %v, %v; want %v", tc.id, tc.name, got, err, tc.want)
		}
	}
	if got, err := c.Role(t.Context(), "6", chat.Author{ID: "77", Name: "person"}); got != chat.Outsider || err == nil {
		t.Errorf("in an unknown repository: %v, %v", got, err)
	}
	if got, err := c.Role(t.Context(), "5", chat.Author{ID: "4", Name: "boss", Bot: true}); got != chat.Outsider || err != nil {
		t.Errorf("a bot: %v, %v", got, err)
	}
	if open, err := c.Open(t.Context(), chat.Thread{}); !open || err != nil {
		t.Errorf("open: %v, %v", open, err)
	}
}

// The event shows how far its answer is, by one reaction.
func TestMark(t *testing.T) {
	t.Parallel()
	h, c := hub(t, fake.Options{}, Access{})
	for _, d := range []fake.Delivery{
		h.Say(fake.Words{Text: "@heddle"}), h.Do("opened", fake.Words{Number: 2, Text: "@heddle"}, nil),
		h.Say(fake.Words{Kind: "pr", Number: 8, Review: true, Text: "@heddle"}), h.Say(fake.Words{Kind: "discussion", Number: 9, Text: "@heddle"}),
	} {
		e := last(t, c, d)
		for _, step := range []struct {
			p    channels.Progress
			want []string
		}{
			{channels.Working, []string{"EYES"}},
			{channels.Working, []string{"EYES"}},
			{channels.Answered, []string{"ROCKET"}},
			{channels.Working, []string{"EYES"}},
			{channels.Failed, []string{"CONFUSED"}},
			{channels.Cleared, []string{}},
		} {
			if err := c.Mark(t.Context(), e.Thread, e.Ref, step.p); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(step.want, h.Reactions(e.Ref)); d != "" {
				t.Errorf("%s, %d: %s", e.Ref, step.p, d)
			}
		}
	}
	if err := c.Mark(t.Context(), chat.Thread{Channel: Name, Account: "5", Room: "issue:1"}, "IC_0", channels.Working); verdictOf(err) != channels.Rejected {
		t.Errorf("of a comment that is gone: %v", err)
	}
	if n := h.Calls()["graphql"]; n != 4*5+1 {
		t.Errorf("%d calls", n)
	}
}

// Writes of one installation are one after the other and a time apart; who is
// put off is told when.
func TestLane(t *testing.T) {
	t.Parallel()
	start := time.Unix(1_800_000_000, 0)
	l := lane{every: time.Second}
	at := func(d time.Duration) time.Time { return start.Add(d) }
	if w := l.enter(start); w != 0 {
		t.Fatalf("first waits %s", w)
	}
	if w := l.enter(start); w != time.Second {
		t.Errorf("while one is under way: %s", w)
	}
	l.leave(at(200 * time.Millisecond))
	for i, want := range []time.Duration{1700, 2700, 3700} {
		if w := l.enter(at(300 * time.Millisecond)); w != want*time.Millisecond {
			t.Errorf("number %d waits %s, want %s", i, w, want*time.Millisecond)
		}
	}
	if w := l.enter(at(1200 * time.Millisecond)); w != 0 {
		t.Errorf("after a second: %s", w)
	}
	l.leave(at(1200 * time.Millisecond))
	if w := l.enter(at(20 * time.Second)); w != 0 {
		t.Errorf("much later: %s", w)
	}
	if w := (&lane{}).enter(start); w != 0 {
		t.Errorf("without a pace: %s", w)
	}
}

// A strict server takes all of a burst in the end, and refuses none of it.
func TestPace(t *testing.T) {
	t.Parallel()
	const every = 20 * time.Millisecond
	h := fake.New(fake.Options{Gap: every})
	srv := httptest.NewServer(h)
	defer srv.Close()
	c := newChannel(t, Options{APIURL: srv.URL, AppID: "7", PrivateKey: h.PrivateKey(), WriteEvery: every + 5*time.Millisecond})
	h.Say(fake.Words{Text: "x"})
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			p := chat.Post{Key: fmt.Sprint(i), Thread: chat.Thread{Channel: Name, Account: "5", Room: "issue:1"}, Text: "x"}
			for {
				_, err := c.Send(context.Background(), p)
				var se *channels.SendError
				if !errors.As(err, &se) {
					return
				}
				if se.Verdict != channels.Limited || se.Reason != "one write at a time" {
					t.Error(err)
					return
				}
				<-time.After(se.RetryAfter)
			}
		})
	}
	wg.Wait()
	if len(h.Posts()) != 10 {
		t.Errorf("%d posts", len(h.Posts()))
	}
}

// G28: an issue that is transferred keeps its conversation, over a restart too.
func TestTransferred(t *testing.T) {
	t.Parallel()
	kept := memory{}
	o := fake.Options{Repos: []fake.Repo{{ID: 5, FullName: "fake/repo", Installation: 9}, {ID: 6, FullName: "fake/other", Installation: 9}}}
	h, c := hub(t, o, Access{})
	c.Remember(kept, nil)
	first := last(t, c, h.Say(fake.Words{Number: 7, Text: "@heddle"}))
	from, to := h.Transfer(fake.Words{Number: 7}, 6, 3)
	for _, d := range []fake.Delivery{from, to} {
		in, err := receive(c, d)
		if err != nil || len(in.Events) != 0 || in.Then == nil || len(in.Ignored) != 1 {
			t.Fatalf("%+v, %v", in, err)
		}
		if err := in.Then(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	srv := httptest.NewServer(h)
	defer srv.Close()
	again := newChannel(t, Options{APIURL: srv.URL, AppID: "7", PrivateKey: h.PrivateKey()})
	again.Remember(kept, nil)
	if err := again.Identify(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*Channel{c, again} {
		e := last(t, c, h.Say(fake.Words{Repo: 6, Number: 3, Text: "go on"}))
		if e.Thread != first.Thread {
			t.Errorf("it is in %s, began in %s", e.Thread, first.Thread)
		}
		p := chat.Post{Key: fmt.Sprint(c == again), Thread: e.Thread, Text: "an answer"}
		ref, err := c.Send(t.Context(), p)
		posts := h.Posts()
		if err != nil || posts[len(posts)-1].Thread.Key() != "github/6/issue:3/" {
			t.Errorf("%v: %+v", err, posts)
		}
		if found, err := c.Find(t.Context(), p, time.Now()); found != ref || err != nil {
			t.Errorf("found %q, %v", found, err)
		}
	}
	if e := last(t, c, h.Say(fake.Words{Repo: 6, Number: 4, Text: "another"})); e.Thread.Key() != "github/6/issue:4/" {
		t.Errorf("another issue is in %s", e.Thread)
	}
	f2, _ := h.Transfer(fake.Words{Repo: 6, Number: 3}, 5, 90)
	in, err := receive(c, f2)
	if err != nil || in.Then == nil || in.Then(t.Context()) != nil {
		t.Fatalf("%+v, %v", in, err)
	}
	if e := last(t, c, h.Say(fake.Words{Number: 90, Text: "twice"})); e.Thread != first.Thread {
		t.Errorf("after a second move it is in %s", e.Thread)
	}
}

// Links to what was said lead to the event.
func TestLinked(t *testing.T) {
	t.Parallel()
	h, c := hub(t, fake.Options{}, Access{})
	issue := h.Do("opened", fake.Words{Number: 7, Text: "text"}, nil)
	comment := h.Say(fake.Words{Number: 7, Text: "x"})
	review := h.Say(fake.Words{Kind: "pr", Number: 8, Review: true, Text: "x"})
	base := c.api.Scheme + "://" + c.api.Host + "/fake/repo/"
	for link, want := range map[string]string{
		"issues/7": issue.NodeID + "/created",
		fmt.Sprintf("issues/7#issuecomment-%d", comment.ID): comment.NodeID + "/created",
		fmt.Sprintf("pull/8#discussion_r%d", review.ID):     review.NodeID + "/created",
		fmt.Sprintf("pull/8/files#r%d", review.ID):          review.NodeID + "/created",
		"issues/7#issuecomment-1":                           "",
		"issues/7#event-1":                                  "",
		"issues/99":                                         "",
		"wiki/7":                                            "",
	} {
		u, err := url.Parse(base + link)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.Linked(t.Context(), u); got != want || err != nil {
			t.Errorf("%s: %q, %v; want %q", link, got, err, want)
		}
	}
	if got, err := c.Linked(t.Context(), &url.URL{Scheme: "https", Host: "evil.test", Path: "/fake/repo/issues/7"}); got != "" || err != nil {
		t.Errorf("another host: %q, %v", got, err)
	}
}

// Now and then what failed is asked for again.
func TestListen(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 100)
	h, c := hub(t, fake.Options{Hook: func(call fake.Call) fake.Fault {
		if call.Name == "redeliver" {
			asked <- struct{}{}
		}
		return fake.Fault{}
	}}, Access{})
	c.sweep = time.Millisecond
	d := h.Say(fake.Words{Text: "x"})
	h.Tried(d, 502)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- c.Listen(ctx, nil) }()
	<-asked
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	_, user := hub(t, fake.Options{Token: "github_pat_x1"}, Access{})
	if err := user.Listen(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// Before GitHub has said who we are nothing is taken, because nobody knows what
// mentions us; listening finds it out.
func TestUnknownSelf(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	asked := make(chan struct{}, 100)
	h, c := hub(t, fake.Options{Hook: func(call fake.Call) fake.Fault {
		if down.Load() && call.Path == "/app" {
			return fake.Fault{Status: 502}
		}
		if call.Name == "redeliver" {
			asked <- struct{}{}
		}
		return fake.Fault{}
	}}, Access{})
	c.self.Store(nil)
	down.Store(true)
	c.sweep = time.Millisecond
	d := h.Say(fake.Words{Text: "@heddle hi"})
	if in, err := receive(c, d); err != nil || in.Then == nil || in.Then(t.Context()) == nil {
		t.Errorf("%+v, %v", in, err)
	}
	if err := c.Listen(t.Context(), nil); err == nil {
		t.Error("listens, and does not know as whom")
	}
	down.Store(false)
	h.Tried(d, 503)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- c.Listen(ctx, nil) }()
	<-asked
	if in, err := receive(c, d); err != nil || in.Then != nil || len(in.Events) == 0 || in.Events[len(in.Events)-1].Kind != chat.Mention {
		t.Errorf("%+v, %v", in, err)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestAddressed(t *testing.T) {
	t.Parallel()
	h, c := hub(t, fake.Options{}, Access{})
	for text, want := range map[string]string{"@bob look": "@bob", "look @bob": "", "@heddle ask @bob": "", "@bob and @heddle": "", "@ bob": "", "plain": ""} {
		if got := last(t, c, h.Say(fake.Words{Text: text})).Facts[chat.Addressed]; got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// memory keeps values in memory.
type memory map[string][]byte

func (m memory) Load(ctx context.Context, name string) ([]byte, error) { return m[name], ctx.Err() }
func (m memory) Save(_ context.Context, name string, b []byte) error   { m[name] = b; return nil }

func TestIdentify(t *testing.T) {
	t.Parallel()
	kept := memory{}
	h, c := hub(t, fake.Options{}, Access{})
	c.Remember(kept, nil)
	if err := c.Identify(t.Context()); err != nil || c.identity() != (identity{"heddle", 7000}) {
		t.Errorf("%+v, %v", c.identity(), err)
	}
	_, user := hub(t, fake.Options{Token: "github_pat_x1", Slug: "helper", BotUser: 12}, Access{})
	if user.identity() != (identity{"helper", 12}) {
		t.Errorf("%+v", user.identity())
	}
	srv := httptest.NewServer(h)
	defer srv.Close()
	wrong := newChannel(t, Options{APIURL: srv.URL, AppID: "8", PrivateKey: h.PrivateKey()})
	wrong.Remember(kept, nil)
	if err := wrong.Identify(t.Context()); verdictOf(err) != channels.Rejected || wrong.identity() != (identity{}) {
		t.Errorf("another app: %v", err)
	}
	down := newChannel(t, Options{APIURL: "http://127.0.0.1:1", AppID: "7", PrivateKey: h.PrivateKey()})
	down.Remember(kept, nil)
	if err := down.Identify(t.Context()); verdictOf(err) != channels.NotMade || down.identity() != (identity{"heddle", 7000}) {
		t.Errorf("not reached: %v, %+v", err, down.identity())
	}
	hanging := httptest.NewServer(fake.New(fake.Options{Hook: func(fake.Call) fake.Fault { return fake.Fault{Hang: true} }}))
	defer hanging.Close()
	slow := newChannel(t, Options{APIURL: hanging.URL, AppID: "7", PrivateKey: h.PrivateKey()})
	slow.Remember(kept, nil)
	short, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if err := slow.Identify(short); err == nil || slow.identity() != (identity{"heddle", 7000}) {
		t.Errorf("no answer in time: %v, %+v", err, slow.identity())
	}
	other := fake.New(fake.Options{Hook: func(call fake.Call) fake.Fault {
		if call.Name == "login" {
			return fake.Fault{Status: 502}
		}
		return fake.Fault{}
	}})
	mute := httptest.NewServer(other)
	defer mute.Close()
	half := newChannel(t, Options{APIURL: mute.URL, AppID: "7", PrivateKey: other.PrivateKey()})
	half.Remember(kept, nil)
	if err := half.Identify(t.Context()); err != nil || half.identity() != (identity{"heddle", 7000}) {
		t.Errorf("which user is not said: %v, %+v", err, half.identity())
	}
	if b, _ := json.Marshal(c.identity()); string(kept[identityName]) != string(b) {
		t.Errorf("kept %s", kept[identityName])
	}
}
