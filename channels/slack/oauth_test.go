package slack

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
	fake "github.com/heddlehq/heddle/fakes/slack"
)

// tenants is a gateway that two workspaces may install.
type tenants struct {
	red, blue *fake.Workspace
	*Channel
	values, secrets *memory
	now             atomic.Int64 // seconds beside the real time
	api             string
}

func (w *tenants) clock() time.Time { return time.Now().Add(time.Duration(w.now.Load()) * time.Second) }

func newTenants(t *testing.T, change func(*fake.Options)) *tenants {
	t.Helper()
	w := &tenants{values: &memory{values: map[string][]byte{}}, secrets: &memory{values: map[string][]byte{}}}
	team := func(id string) *fake.Workspace {
		o := fake.Options{
			Team: id, ClientID: "1.2", ClientSecret: "client-secret-5e1d", BotToken: "xoxb-" + id + "-none", BotUser: "U0BOT" + id, BotID: "B0BOT" + id, Clock: w.clock,
			Users: []fake.User{{ID: "U0PERSON" + id}}, Channels: []fake.Channel{{ID: "C0" + id}},
		}
		if change != nil {
			change(&o)
		}
		return fake.New(o)
	}
	w.red, w.blue = team("T0RED"), team("T0BLUE")
	srv := httptest.NewServer(fake.Several(w.red, w.blue))
	t.Cleanup(srv.Close)
	w.api = srv.URL
	w.Channel = w.start(t)
	return w
}

// start is another process over the same store.
func (w *tenants) start(t *testing.T) *Channel {
	t.Helper()
	c, err := New(Options{
		SigningSecrets: []string{"fake-signing-secret"}, ClientID: "1.2", ClientSecret: "client-secret-5e1d", APIURL: w.api + "/api", Clock: w.clock,
		Access: Access{Members: []string{"all"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Remember(w.values, w.secrets)
	if err := c.Identify(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

// begin opens the first page and returns the state that Slack is given, and the cookie.
func begin(t *testing.T, c *Channel) (state string, cookie *http.Cookie) {
	t.Helper()
	rec := httptest.NewRecorder()
	c.Pages()["install"](rec, httptest.NewRequest(http.MethodGet, "/slack/install", nil))
	res := rec.Result()
	to, err := url.Parse(res.Header.Get("Location"))
	if err != nil || res.StatusCode != http.StatusFound || len(res.Cookies()) != 1 {
		t.Fatalf("status %d, to %v, cookies %v", res.StatusCode, to, res.Cookies())
	}
	cookie = res.Cookies()[0]
	q := to.Query()
	if to.Path != "/oauth/v2/authorize" || q.Get("client_id") != "1.2" || !strings.Contains(q.Get("scope"), "chat:write") || !cookie.HttpOnly || !cookie.Secure || cookie.SameSite != http.SameSiteLaxMode {
		t.Errorf("sent to %s with %v", to, cookie)
	}
	return q.Get("state"), cookie
}

// come is the browser's return from Slack.
func come(c *Channel, q url.Values, cookie *http.Cookie) (int, string) {
	r := httptest.NewRequest(http.MethodGet, "/slack/oauth?"+q.Encode(), nil)
	if cookie != nil {
		r.AddCookie(cookie)
	}
	rec := httptest.NewRecorder()
	c.Pages()["oauth"](rec, r)
	return rec.Code, rec.Body.String()
}

func installIn(t *testing.T, c *Channel, w *fake.Workspace) {
	t.Helper()
	state, cookie := begin(t, c)
	if code, text := come(c, url.Values{"state": {state}, "code": {w.Agree()}}, cookie); code != http.StatusOK || !strings.Contains(text, "is installed") {
		t.Fatalf("%d: %s", code, text)
	}
}

// Each workspace is answered with its own token, over a restart; one that has not
// installed the app is not heard.
func TestInstall(t *testing.T) {
	t.Parallel()
	w := newTenants(t, nil)
	c := w.Channel
	heard := func(c *Channel, from *fake.Workspace, room string) channels.Inbound {
		d := from.Mention(fake.Words{Channel: room, User: "U0PERSON" + from.Options().Team, Text: "hi"})
		in, err := c.Receive(d.Route, d.Header, d.Body, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return in
	}
	if in := heard(c, w.red, "C0T0RED"); len(in.Events) > 0 || in.Ignored[0].Reason != notInstalled {
		t.Errorf("before: %+v", in)
	}
	for _, d := range []fake.Delivery{w.red.Command("C0T0RED", "U0", "/agent", "hi"), w.red.Interact(fake.Click{Type: "shortcut", User: "U0"})} {
		if in := inbound(t, c, d); len(in.Events) > 0 || in.Ignored[0].Reason != notInstalled {
			t.Errorf("%s before: %+v", d.Route, in)
		}
	}
	installIn(t, c, w.red)
	if in := heard(c, w.blue, "C0T0BLUE"); len(in.Events) > 0 {
		t.Errorf("the other workspace: %+v", in)
	}
	installIn(t, c, w.blue)
	for i, c := range []*Channel{c, w.start(t)} {
		for _, at := range []*fake.Workspace{w.red, w.blue} {
			team := at.Options().Team
			in := heard(c, at, "C0"+team)
			if len(in.Events) != 1 {
				t.Fatalf("%s: %+v", team, in)
			}
			e := in.Events[0]
			p := chat.Post{Key: "k", Thread: e.Thread, Text: "yes"}
			before := len(at.Posts())
			ref, err := c.Send(t.Context(), p)
			if err != nil || len(at.Posts()) != before+1 {
				t.Errorf("%s: %v, %d posts", team, err, len(at.Posts()))
			}
			if found, err := c.Find(t.Context(), p, time.Now()); found == "" || err != nil {
				t.Errorf("%s: found %q, %v", team, found, err)
			}
			if role, err := c.Role(t.Context(), team, e.Author); role != chat.Member || err != nil {
				t.Errorf("%s: role %v, %v", team, role, err)
			}
			if err := c.Mark(t.Context(), e.Thread, e.Ref, channels.Working); err != nil {
				t.Error(err)
			}
			own := at.Event(map[string]any{"type": "message", "channel": "C0" + team, "ts": ref, "bot_id": "B0BOT" + team, "text": "yes"})
			if in, err := c.Receive(own.Route, own.Header, own.Body, time.Now()); err != nil || len(in.Events) > 0 {
				t.Errorf("%s: own message: %+v, %v", team, in, err)
			}
		}
		if role, _ := c.Role(t.Context(), "T0RED", chat.Author{ID: "U0PERSONT0BLUE"}); role != chat.Outsider {
			t.Errorf("a person of the other workspace is a %v", role)
		}
		var missed taken
		if err := c.Missed(t.Context(), time.Now().Add(-time.Minute), nil, missed.take); err != nil || len(missed.events) != 2*(i+1) { // what was said before the installation is nobody's
			t.Errorf("missed %d, %v", len(missed.events), err)
		}
	}
	for name, value := range w.values.values {
		if strings.Contains(string(value), "xoxb") {
			t.Errorf("a token among the values: %s", name)
		}
	}
	if _, err := c.Send(t.Context(), chat.Post{Thread: chat.Thread{Channel: Name, Account: "T0GREEN", Room: "C1"}}); verdictOf(err) != channels.Rejected {
		t.Errorf("to nobody: %v", err)
	}
}

// The workspace of the bot token is not asked for what was said in another one.
func TestMissedBesideTheBotToken(t *testing.T) {
	t.Parallel()
	w := newTenants(t, nil)
	installIn(t, w.Channel, w.blue)
	w.home = w.open("xoxb-T0RED-none")
	followed := []chat.Thread{{Channel: Name, Account: "T0BLUE", Room: "C0T0BLUE", Root: "1.1"}, {Channel: Name, Account: "T0RED", Room: "C0T0RED", Root: "1.1"}}
	var got taken
	if err := w.Missed(t.Context(), time.Now(), followed, got.take); err != nil {
		t.Fatal(err)
	}
	for _, at := range []*fake.Workspace{w.red, w.blue} {
		if calls := at.Calls(); calls["conversations.history"] != 1 || calls["conversations.replies"] != 1 {
			t.Errorf("%s was asked %v", at.Options().Team, calls)
		}
	}
}

// What two workspaces share is looked up in each: a channel may be public in one
// and private in the other, and a person has a direct message in each.
func TestShared(t *testing.T) {
	t.Parallel()
	w := newTenants(t, func(o *fake.Options) {
		kind := "channel"
		if o.Team == "T0BLUE" {
			kind = "group"
		}
		o.Users, o.Channels = append(o.Users, fake.User{ID: "U0BOTH"}), append(o.Channels, fake.Channel{ID: "C0SHARED", Kind: kind})
	})
	installIn(t, w.Channel, w.red)
	installIn(t, w.Channel, w.blue)
	for _, at := range []*fake.Workspace{w.red, w.blue} {
		team := at.Options().Team
		open, err := w.Open(t.Context(), chat.Thread{Channel: Name, Account: team, Room: "C0SHARED"})
		if open != (team == "T0RED") || err != nil {
			t.Errorf("%s: open %v, %v", team, open, err)
		}
		if _, err := w.Send(t.Context(), chat.Post{Key: "k", Thread: chat.Thread{Channel: Name, Account: team, Room: "U0BOTH"}, Text: "hi"}); err != nil || at.Calls()["conversations.open"] != 1 {
			t.Errorf("%s: %v, %d direct messages opened", team, err, at.Calls()["conversations.open"])
		}
	}
}

// Only the browser that began an installation ends it, once, in time.
func TestInstallState(t *testing.T) {
	t.Parallel()
	w := newTenants(t, nil)
	state, cookie := begin(t, w.Channel)
	other, _ := begin(t, w.Channel)
	for name, tc := range map[string]struct {
		state  string
		cookie *http.Cookie
	}{
		"no cookie":        {state, nil},
		"another's state":  {other, cookie},
		"no state":         {"", cookie},
		"nothing":          {"", &http.Cookie{Name: stateCookie, Value: ""}},
		"made up":          {"a.1.b", &http.Cookie{Name: stateCookie, Value: "a.1.b"}},
		"changed":          {state + "0", &http.Cookie{Name: stateCookie, Value: state + "0"}},
		"made up in parts": {"x" + state, &http.Cookie{Name: stateCookie, Value: "x" + state}},
	} {
		if code, text := come(w.Channel, url.Values{"state": {tc.state}, "code": {w.red.Agree()}}, tc.cookie); code != http.StatusBadRequest || strings.Contains(text, "made up") {
			t.Errorf("%s: %d %s", name, code, text)
		}
	}
	late, lateCookie := begin(t, w.Channel)
	w.now.Store(11 * 60)
	if code, _ := come(w.Channel, url.Values{"state": {late}, "code": {w.red.Agree()}}, lateCookie); code != http.StatusBadRequest {
		t.Errorf("late: %d", code)
	}
	w.now.Store(0)
	if code, text := come(w.Channel, url.Values{"state": {state}, "code": {w.red.Agree()}}, cookie); code != http.StatusOK {
		t.Errorf("%d %s", code, text)
	}
	if code, _ := come(w.Channel, url.Values{"state": {state}, "code": {w.red.Agree()}}, cookie); code != http.StatusBadRequest {
		t.Errorf("a second time: %d", code)
	}
	state, cookie = begin(t, w.Channel)
	if code, text := come(w.Channel, url.Values{"state": {state}, "error": {"access_denied <b>"}}, cookie); code != http.StatusOK || !strings.Contains(text, "not installed") || strings.Contains(text, "<b>") {
		t.Errorf("refused by the person: %d %s", code, text)
	}
	state, cookie = begin(t, w.Channel)
	if code, text := come(w.Channel, url.Values{"state": {state}, "code": {"code-T0RED-none"}}, cookie); code != http.StatusBadGateway || !strings.Contains(text, "invalid_code") {
		t.Errorf("a code that is none: %d %s", code, text)
	}
	w.secrets.fail = errors.New("disk full")
	state, cookie = begin(t, w.Channel)
	if code, text := come(w.Channel, url.Values{"state": {state}, "code": {w.blue.Agree()}}, cookie); code != http.StatusBadGateway || !strings.Contains(text, "could not be kept") {
		t.Errorf("not kept: %d %s", code, text)
	}
	if w.known("T0BLUE") {
		t.Error("in force before it was kept")
	}
	if newChannel(t, Options{}).Pages() != nil {
		t.Error("pages without a client id")
	}
}

// A token that ends is renewed before it does, once for all, and over a restart.
func TestRotationOfTokens(t *testing.T) {
	t.Parallel()
	w := newTenants(t, func(o *fake.Options) { o.Rotate = true })
	installIn(t, w.Channel, w.red)
	send := func(c *Channel) error {
		_, err := c.Send(t.Context(), chat.Post{Key: "k", Thread: chat.Thread{Channel: Name, Account: "T0RED", Room: "C0T0RED"}, Text: "hi"})
		return err
	}
	refreshes := func() int { return w.red.Calls()["oauth.v2.access"] }
	if err := send(w.Channel); err != nil || refreshes() != 1 {
		t.Fatalf("%v, %d", err, refreshes())
	}
	w.now.Add(10 * 3600) // of twelve
	failed := make(chan error)
	for range 20 {
		go func() { failed <- send(w.Channel) }()
	}
	for range 20 {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	if refreshes() != 2 {
		t.Errorf("%d calls", refreshes())
	}
	w.now.Add(3 * 3600) // the first token has ended
	later := w.start(t)
	if err := send(later); err != nil || refreshes() != 2 {
		t.Errorf("after a restart: %v, %d", err, refreshes())
	}
	w.now.Add(13 * 3600) // nobody has renewed
	w.red.Uninstall()
	if err := send(later); verdictOf(err) != channels.Rejected || !strings.Contains(err.Error(), "installed again") || strings.Contains(err.Error(), "xox") {
		t.Errorf("a refresh token that is none: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := later.at(ctx, "T0RED"); verdictOf(err) == channels.Rejected {
		t.Errorf("cancelled: %v", err)
	}
}

// While a token is still good, trouble with renewing it does no harm.
func TestRotationFails(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	w := newTenants(t, func(o *fake.Options) {
		o.Rotate = true
		o.Hook = func(c fake.Call) fake.Fault {
			if c.Method == "oauth.v2.access" && down.Load() {
				return fake.Fault{Status: 503}
			}
			return fake.Fault{}
		}
	})
	installIn(t, w.Channel, w.red)
	down.Store(true)
	w.now.Add(11 * 3600)
	if _, err := w.at(t.Context(), "T0RED"); err != nil {
		t.Error(err)
	}
	w.now.Add(2 * 3600)
	if _, err := w.at(t.Context(), "T0RED"); verdictOf(err) != channels.NotMade {
		t.Errorf("ended: %v", err)
	}
	down.Store(false)
	if _, err := w.at(t.Context(), "T0RED"); err != nil {
		t.Error(err)
	}
}

// S40: a removal ends the installation, in either order and however often; one
// that comes late leaves a new installation alone.
func TestUninstall(t *testing.T) {
	t.Parallel()
	for name, swap := range map[string]bool{"in order": false, "the other way": true} {
		w := newTenants(t, nil)
		installIn(t, w.Channel, w.red)
		installIn(t, w.Channel, w.blue)
		w.now.Add(5)
		a, b := w.red.Uninstall()
		if swap {
			a, b = b, a
		}
		carry := func(c *Channel, d fake.Delivery) {
			in, err := c.Receive(d.Route, d.Header, d.Body, w.clock())
			if err != nil {
				t.Fatal(err)
			}
			if in.Then != nil {
				err = in.Then(t.Context())
			}
			if err != nil || len(in.Events) > 0 {
				t.Errorf("%s: %+v, %v", name, in, err)
			}
		}
		carry(w.Channel, a)
		if w.known("T0RED") || !w.known("T0BLUE") {
			t.Errorf("%s: red %v, blue %v", name, w.known("T0RED"), w.known("T0BLUE"))
		}
		carry(w.Channel, b)
		carry(w.Channel, a)
		if later := w.start(t); later.known("T0RED") || !later.known("T0BLUE") {
			t.Errorf("%s: after a restart red %v, blue %v", name, later.known("T0RED"), later.known("T0BLUE"))
		}
		w.now.Add(5)
		installIn(t, w.Channel, w.red)
		carry(w.Channel, a)
		carry(w.Channel, b)
		if !w.known("T0RED") {
			t.Errorf("%s: a late removal ended a new installation", name)
		}
	}
}

// One installation of an organisation serves its workspaces.
func TestOrganisation(t *testing.T) {
	t.Parallel()
	w := newTenants(t, func(o *fake.Options) {
		if o.Team == "T0RED" {
			o.Enterprise = "E0ORG"
		}
	})
	installIn(t, w.Channel, w.red)
	e := receive(t, w.Channel, w.red.Mention(fake.Words{Channel: "C0T0RED", User: "U0PERSONT0RED", Text: "hi"}))
	if e.Thread.Account != "T0RED" {
		t.Errorf("account %s", e.Thread.Account)
	}
	for _, c := range []*Channel{w.Channel, w.start(t)} {
		if _, err := c.Send(t.Context(), chat.Post{Key: "k", Thread: e.Thread, Text: "hi"}); err != nil {
			t.Error(err)
		}
	}
	if w.identity("T0RED").user != "U0BOTT0RED" {
		t.Errorf("identity %+v", w.identity("T0RED"))
	}
}
