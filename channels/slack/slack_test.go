package slack

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/channels/channeltest"
	"github.com/heddlehq/heddle/chat"
	fake "github.com/heddlehq/heddle/fakes/slack"
)

const secret = "signing-secret-" + channeltest.Canary

func sign(secret string, body []byte, at time.Time) http.Header {
	return fake.New(fake.Options{SigningSecret: secret, Clock: func() time.Time { return at }}).Sign(body).Header
}

func harness() channeltest.Harness {
	good := `{"type":"event_callback","team_id":"T1","api_app_id":"A1","event_id":"Ev1","authorizations":[{"team_id":"T1","user_id":"UB","is_bot":true}],` +
		`"event":{"type":"app_mention","user":"U1","text":"<@UB> ` + channeltest.Canary + `","ts":"1721.0001","channel":"C1"}}`
	answer := func(body string, want channels.Verdict) channeltest.Answer {
		return channeltest.Answer{Name: body, Status: 200, Body: body, Want: want}
	}
	h := channeltest.Harness{
		New: func(t testing.TB, apiURL string) channeltest.Channel {
			c, err := New(Options{SigningSecrets: []string{secret}, BotToken: "xoxb-" + channeltest.Canary, APIURL: apiURL})
			if err != nil {
				t.Fatal(err)
			}
			return c
		},
		Route:  "events",
		Sign:   func(body []byte, at time.Time) http.Header { return sign(secret, body, at) },
		Signed: []string{"X-Slack-Signature", "X-Slack-Request-Timestamp"},
		Window: 5 * time.Minute, Good: []byte(good), Payloads: "testdata",
		Post: chat.Post{Key: "t/1/0", Thread: chat.Thread{Channel: Name, Account: "T1", Room: "C1", Root: "1721.0001"}, Text: channeltest.Canary},
		Accept: func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, `{"ok":true,"channel":"C1","ts":"1722.0001","message":{"ts":"1722.0001","thread_ts":%q}}`, r.FormValue("thread_ts"))
		},
		Ref: "1722.0001", PartLimit: 3500, PartSize: utf8.RuneCountInString,
		Live: func(p string) (string, bool) {
			for _, s := range []string{"<!", "<@", "<#", "<javascript", "<script"} {
				if strings.Contains(p, s) {
					return s, true
				}
			}
			return "", false
		},
		Answers: []channeltest.Answer{
			{Name: "limited without a time", Status: 429, Want: channels.Limited, RetryAfter: defaultRetryAfter},
			{Name: "limited with an odd time", Status: 429, Header: http.Header{"Retry-After": {"soon"}}, Want: channels.Limited, RetryAfter: defaultRetryAfter},
			{Name: "limited for a negative time", Status: 429, Header: http.Header{"Retry-After": {"-5"}}, Want: channels.Limited, RetryAfter: defaultRetryAfter},
			answer(`{"ok":false,"error":"ratelimited"}`, channels.Limited),
			answer(`{"ok":false}`, channels.Unknown),
			answer(`{"ok":false,"error":"`+channeltest.Canary+` is no code"}`, channels.Rejected),
			answer(`{"ok":false,"error":"team_added_to_org"}`, channels.NotMade),
			answer(`{"ok":true,"channel":"C1","ts":"1722.0001","message":{"ts":"1722.0001"}}`, channels.Rejected), // outside its thread
		},
	}
	for _, code := range []string{"internal_error", "fatal_error", "service_unavailable", "request_timeout"} {
		h.Answers = append(h.Answers, answer(`{"ok":false,"error":"`+code+`"}`, channels.Unknown))
	}
	for _, code := range []string{
		"channel_not_found", "not_in_channel", "is_archived", "msg_too_long", "no_text", "thread_not_found", "cannot_reply_to_message", "restricted_action",
		"restricted_action_read_only_channel", "token_revoked", "token_expired", "account_inactive", "invalid_auth", "not_authed", "missing_scope", "brand_new_code",
	} {
		h.Answers = append(h.Answers, answer(`{"ok":false,"error":"`+code+`"}`, channels.Rejected))
	}
	return h
}

func TestSuite(t *testing.T) {
	t.Parallel()
	channeltest.Run(t, harness())
}

func FuzzReceive(f *testing.F) { channeltest.Fuzz(f, harness()) }

// The vectors are Slack's documented example and one of our own.
func TestVectors(t *testing.T) {
	t.Parallel()
	c := newChannel(t, Options{SigningSecrets: []string{"8f742231b10e8888abcd99yyyzzz85a5", "gw-slack-secret"}})
	doc := "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner" +
		"&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN" +
		"&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
	for _, v := range []struct{ stamp, body, sig string }{
		{"1531420618", doc, "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"},
		{"1700000000", `{"type":"url_verification","challenge":"c1"}`, "v0=e6fe78c52e3534e08deb7d153d9a7d73809c7dd96a7e1717c19f064d4be43ae5"},
	} {
		at, _ := channels.Seconds(v.stamp)
		h := http.Header{"X-Slack-Signature": {v.sig}, "X-Slack-Request-Timestamp": {v.stamp}}
		if err := c.verify(h, []byte(v.body), time.Unix(at, 0)); err != nil {
			t.Errorf("%s: %v", v.stamp, err)
		}
	}
	h := http.Header{}
	h.Set("x-slack-signature", "v0=e6fe78c52e3534e08deb7d153d9a7d73809c7dd96a7e1717c19f064d4be43ae5")
	h.Set("x-slack-request-timestamp", "1700000000")
	in, err := c.Receive("events", h, []byte(`{"type":"url_verification","challenge":"c1"}`), time.Unix(1700000000, 0))
	if err != nil || string(in.Reply) != `{"challenge":"c1"}` || in.ReplyType != "application/json" {
		t.Errorf("reply %q %q, error %v", in.Reply, in.ReplyType, err)
	}
}

// Any of the configured secrets verifies, and no other.
func TestRotation(t *testing.T) {
	t.Parallel()
	c := newChannel(t, Options{SigningSecrets: []string{"new-one-5e1d", "old-one-77aa"}})
	body, now := []byte(`{"type":"url_verification","challenge":"c"}`), time.Unix(1700000000, 0)
	for s, ok := range map[string]bool{"new-one-5e1d": true, "old-one-77aa": true, "older-one-aaaa": false, "": false} {
		if _, err := c.Receive("events", sign2(s, body, now), body, now); (err == nil) != ok {
			t.Errorf("secret %q: %v", s, err)
		}
	}
}

func sign2(s string, body []byte, at time.Time) http.Header {
	if s == "" { // an empty secret is no default
		h := sign("x", body, at)
		h.Set("X-Slack-Signature", "v0=")
		return h
	}
	return sign(s, body, at)
}

func newChannel(t testing.TB, o Options) *Channel {
	t.Helper()
	if o.SigningSecrets == nil && o.AppToken == "" {
		o.SigningSecrets = []string{"fake-signing-secret"}
	}
	if o.BotToken == "" {
		o.BotToken = "xoxb-fake"
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestOptions(t *testing.T) {
	t.Parallel()
	good := Options{SigningSecrets: []string{"8f742231b10e8888abcd99yyyzzz85a5"}, BotToken: "xoxb-1-a"}
	for _, tc := range []struct {
		name, want string
		change     func(*Options)
	}{
		{"good", "", func(*Options) {}},
		{"no secret", "SLACK_SIGNING_SECRET", func(o *Options) { o.SigningSecrets = nil }},
		{"empty secret", "SLACK_SIGNING_SECRET", func(o *Options) { o.SigningSecrets = []string{"8f742231b10e8888", ""} }},
		{"placeholder", "SLACK_SIGNING_SECRET", func(o *Options) { o.SigningSecrets = []string{"changeme"} }},
		{"documented placeholder", "SLACK_SIGNING_SECRET", func(o *Options) { o.SigningSecrets = []string{"your-signing-secret"} }},
		{"unset variable", "SLACK_SIGNING_SECRET", func(o *Options) { o.SigningSecrets = []string{"${SLACK_SIGNING_SECRET}"} }},
		{"stars", "SLACK_SIGNING_SECRET", func(o *Options) { o.SigningSecrets = []string{"********"} }},
		{"no token", "SLACK_BOT_TOKEN", func(o *Options) { o.BotToken = "" }},
		{"token placeholder", "SLACK_BOT_TOKEN", func(o *Options) { o.BotToken = "xoxb-your-token" }},
		{"address", "SLACK_API_URL", func(o *Options) { o.APIURL = "localhost:9900/api" }},
		{"address without host", "SLACK_API_URL", func(o *Options) { o.APIURL = "http:///api" }},
		{"all maintainers", "access.slack.maintainers", func(o *Options) { o.Access.Maintainers = []string{"all"} }},
		{"name for an id", "access.slack.admins", func(o *Options) { o.Access.Admins = []string{"@anna"} }},
		{"ids", "", func(o *Options) {
			o.Access = Access{Members: []string{"all", "T0X/U0Y"}, Maintainers: []string{"S0GROUP", "U0A"}, Admins: []string{"W0B"}}
		}},
	} {
		o := good
		tc.change(&o)
		_, err := New(o)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: error %v, want %q", tc.name, err, tc.want)
		}
		if err != nil && len(o.SigningSecrets) > 0 && len(o.SigningSecrets[0]) > 3 && strings.Contains(err.Error(), o.SigningSecrets[0]) {
			t.Errorf("%s: error shows the secret: %v", tc.name, err)
		}
	}
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		" plain ":                 "plain",
		"<@UB> hi":                "hi",
		"<@UB>, hi":               "hi",
		"<@UB|heddle>: hi":        "hi",
		"hey <@UB> you":           "hey you",
		"ask <@UB>":               "ask",
		"thanks <@UB>, again":     "thanks, again",
		"a\n<@UB> b":              "a\n b",
		"<@UB>":                   "",
		"<@UB> <@U2> <@U3|Carol>": "@U2 @U3",
		"&amp;lt; &lt;b&gt;":      "&lt; <b>",
		"<https://x.test>":        "https://x.test",
		"<https://x.test/?a=1&amp;b=2|the *log*>": "[the *log*](https://x.test/?a=1&b=2)",
		"<https://x.test/a(b)|[x]>":               `[\[x\]](<https://x.test/a(b)>)`,
		"<mailto:a@x.test|a@x.test>":              "a@x.test",
		"<#C1|general> <#C2> <#C3|>":              "#general #C2 #C3",
		"<!here> <!channel> <!everyone>":          "@here @channel @everyone",
		"<!subteam^S1|@ops> <!subteam^S2>":        "@ops @S2",
		"<!date^1392734382^{date}|Feb 18, 2014>":  "Feb 18, 2014",
		"a < b":                                   "a < b",
		"open <https://x":                         "open <https://x",
		"":                                        "",
	} {
		if d := cmp.Diff(want, markdown(in, "UB")); d != "" {
			t.Errorf("%q: %s", in, d)
		}
	}
}

func FuzzMarkdown(f *testing.F) {
	for _, s := range []string{"<@UB> <a|b>", "<", "<>", "<|>", "<!^>", "&amp;<#|", "<@UB"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if out := markdown(strings.ToValidUTF8(s, ""), "UB"); !utf8.ValidString(out) || strings.Contains(out, "<@UB>") && !strings.Contains(s, "&") {
			t.Errorf("markdown(%q) = %q", s, out)
		}
	})
}
