package slack

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
)

// at is when the cases of the table receive.
var at = time.Unix(1700000000, 0)

// delivered is a message event of workspace T1 for the bot UB of the app A1.
func delivered(event string) []byte {
	return []byte(`{"type":"event_callback","team_id":"T1","api_app_id":"A1","event_id":"Ev1","authorizations":[{"team_id":"T1","user_id":"UB","is_bot":true}],"event":` + event + `}`)
}

// TestRequests are the rows of the conformance table that one request decides;
// S14 to S17, S28, S32, S42 and S43 need the whole program, see conformance.txtar,
// S36 to S39 a socket, see TestSocket…, S40 an installation, see TestUninstall.
func TestRequests(t *testing.T) {
	t.Parallel()
	c := newChannel(t, Options{SigningSecrets: []string{"gw-slack-secret"}})
	challenge := []byte(`{"type":"url_verification","challenge":"c1"}`)
	mention := delivered(`{"type":"app_mention","user":"U1","text":"<@UB> hi","ts":"1.1","channel":"C1"}`)
	header := func(body []byte, stamp string, change func(http.Header)) http.Header {
		h := sign("gw-slack-secret", body, at)
		if stamp != "" {
			h.Set("X-Slack-Request-Timestamp", stamp)
		}
		if change != nil {
			change(h)
		}
		return h
	}
	signature := func(s string) func(http.Header) {
		return func(h http.Header) { h.Set("X-Slack-Signature", s) }
	}
	good := header(challenge, "", nil).Get("X-Slack-Signature")
	off := func(d time.Duration) http.Header { return sign("gw-slack-secret", challenge, at.Add(d)) }
	for name, tc := range map[string]struct {
		header http.Header
		body   []byte
		want   error // nil: taken
	}{
		"S01 the vector":                 {http.Header{"X-Slack-Signature": {"v0=e6fe78c52e3534e08deb7d153d9a7d73809c7dd96a7e1717c19f064d4be43ae5"}, "X-Slack-Request-Timestamp": {"1700000000"}}, challenge, nil},
		"S02 one digit changed":          {header(challenge, "", signature(good[:len(good)-1]+string("10"[good[len(good)-1]&1]))), challenge, channels.ErrUnverified},
		"S03 unsigned":                   {http.Header{}, challenge, channels.ErrUnverified},
		"S04 301 s old":                  {off(-301 * time.Second), challenge, channels.ErrStale},
		"S04 301 s early":                {off(301 * time.Second), challenge, channels.ErrStale},
		"S04 299 s old":                  {off(-299 * time.Second), challenge, nil},
		"S04 299 s early":                {off(299 * time.Second), challenge, nil},
		"S05 v1":                         {header(challenge, "", signature("v1"+good[2:])), challenge, channels.ErrUnverified},
		"S05 V0":                         {header(challenge, "", signature("V0"+good[2:])), challenge, channels.ErrUnverified},
		"S05 short":                      {header(challenge, "", signature(good[:20])), challenge, channels.ErrUnverified},
		"S05 no hex":                     {header(challenge, "", signature("v0="+strings.Repeat("z", 64))), challenge, channels.ErrUnverified},
		"S06 two signatures, good first": {header(challenge, "", func(h http.Header) { h["X-Slack-Signature"] = []string{good, "v0=0"} }), challenge, channels.ErrUnverified},
		"S06 two signatures, good last":  {header(challenge, "", func(h http.Header) { h["X-Slack-Signature"] = []string{"v0=0", good} }), challenge, channels.ErrUnverified},
		"S08 blank before the time":      {header(challenge, " 1700000000", nil), challenge, channels.ErrUnverified},
		"S08 time with a sign":           {header(challenge, "+1700000000", nil), challenge, channels.ErrUnverified},
		"S08 time with an exponent":      {header(challenge, "1e9", nil), challenge, channels.ErrUnverified},
		"S08 no time":                    {header(challenge, "", func(h http.Header) { h.Set("X-Slack-Request-Timestamp", "") }), challenge, channels.ErrUnverified},
		"S08 time of 40 digits":          {header(challenge, strings.Repeat("1", 40), nil), challenge, channels.ErrUnverified},
		"S09 a blank appended":           {header(challenge, "", nil), append(append([]byte(nil), challenge...), ' '), channels.ErrUnverified},
		"S12 torn":                       {header([]byte(`{"type":`), "", nil), []byte(`{"type":`), channels.ErrMalformed},
		"S13 list":                       {header([]byte(`[]`), "", nil), []byte(`[]`), channels.ErrMalformed},
		"S13 null":                       {header([]byte(`null`), "", nil), []byte(`null`), channels.ErrMalformed},
		"S13 nothing in it":              {header([]byte(`{}`), "", nil), []byte(`{}`), channels.ErrMalformed},
		"S13 text":                       {header([]byte(`"x"`), "", nil), []byte(`"x"`), channels.ErrMalformed},
		"a mention":                      {header(mention, "", nil), mention, nil},
	} {
		in, err := c.Receive("events", tc.header, tc.body, at)
		if tc.want == nil && err != nil || tc.want != nil && !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
		if err != nil && (in.Reply != nil || len(in.Events) > 0) {
			t.Errorf("%s: refused, and %+v", name, in)
		}
		if strings.HasPrefix(name, "S01") && string(in.Reply) != `{"challenge":"c1"}` {
			t.Errorf("%s: reply %s", name, in.Reply)
		}
	}
	lower, err := http.NewRequest(http.MethodPost, "http://x.test", nil)
	if err != nil {
		t.Fatal(err)
	}
	lower.Header.Set("x-slack-signature", good)
	lower.Header.Set("x-slack-request-timestamp", "1700000000")
	if _, err := c.Receive("events", lower.Header, challenge, at); err != nil {
		t.Errorf("S07 names in lower case: %v", err)
	}
}

// TestMessages are the rows about what a message leads to: nothing, with a reason,
// or an event.
func TestMessages(t *testing.T) {
	t.Parallel()
	c := newChannel(t, Options{})
	c.home.who.Store(&identity{team: "T1", user: "UB", bot: "BB"})
	for name, tc := range map[string]struct {
		event  string
		reason string // why it leads to nothing, "" if it does not
		want   func(chat.Event) bool
	}{
		"S18 unknown type":       {`{"type":"brand_new_event","channel":["odd"]}`, "unknown type", nil},
		"S19 own by bot":         {`{"type":"message","channel":"C1","ts":"1.1","bot_id":"BB","text":"x"}`, "own message", nil},
		"S19 own by user":        {`{"type":"message","channel":"C1","ts":"1.1","user":"UB","text":"x"}`, "own message", nil},
		"S19 own by app":         {`{"type":"message","channel":"C1","ts":"1.1","user":"U1","app_id":"A1","text":"x"}`, "own message", nil},
		"S19 own by profile":     {`{"type":"message","channel":"C1","ts":"1.1","user":"U1","bot_id":"BX","bot_profile":{"app_id":"A1"},"text":"x"}`, "own message", nil},
		"S20 another bot":        {`{"type":"message","channel":"C1","ts":"1.1","bot_id":"BX","text":"x"}`, "", func(e chat.Event) bool { return e.Author.Bot && e.Author.ID == "BX" }},
		"S21 changed":            {`{"type":"message","subtype":"message_changed","channel":"C1","ts":"2.2","message":{"ts":"1.1","user":"U1","text":"y"},"previous_message":{"ts":"1.1","user":"U1","text":"x"}}`, "", func(e chat.Event) bool { return e.Kind == chat.Edited }},
		"S21 changed by unfurl":  {`{"type":"message","subtype":"message_changed","channel":"C1","ts":"2.2","message":{"ts":"1.1","user":"U1","text":"x"},"previous_message":{"ts":"1.1","user":"U1","text":"x"}}`, "text unchanged", nil},
		"S21 deleted":            {`{"type":"message","subtype":"message_deleted","channel":"C1","ts":"2.2","deleted_ts":"1.1"}`, "", func(e chat.Event) bool { return e.Kind == chat.Deleted && e.Text == "" }},
		"S21 joined":             {`{"type":"message","subtype":"channel_join","channel":"C1","ts":"1.1","user":"U1","text":"x"}`, "subtype", nil},
		"S21 replied":            {`{"type":"message","subtype":"message_replied","channel":"C1","ts":"1.1","user":"U1","hidden":true}`, "subtype", nil},
		"S22 file in a thread":   {`{"type":"message","subtype":"file_share","channel":"C1","ts":"2.2","thread_ts":"1.1","user":"U1","text":"see","files":[{"id":"F1","name":"a.png","mimetype":"image/png","size":7}]}`, "", func(e chat.Event) bool { return len(e.Files) == 1 && e.Thread.Root == "1.1" && e.Text == "see" }},
		"S23 reply":              {`{"type":"message","channel":"C1","ts":"2.2","thread_ts":"1.1","user":"U1","text":"x"}`, "", func(e chat.Event) bool { return e.Thread.Root == "1.1" && e.Ref == "2.2" }},
		"S24 top level":          {`{"type":"app_mention","channel":"C1","ts":"1.1","user":"U1","text":"<@UB> x"}`, "", func(e chat.Event) bool { return e.Thread.Root == "1.1" }},
		"S25 odd blocks":         {`{"type":"app_mention","channel":"C1","ts":"1.1","user":"U1","text":"<@UB> x","blocks":[{"type":"teleporter"},{"type":"actions","elements":[{"type":"teleporter","text":5}]}]}`, "", func(e chat.Event) bool { return e.Text == "x" }},
		"S41 foreign person":     {`{"type":"app_mention","channel":"C1","ts":"1.1","user":"U1","user_team":"T9","text":"<@UB> x"}`, "", func(e chat.Event) bool { return e.Thread.Account == "T1" && e.Author.Account == "T9" }},
		"a direct message":       {`{"type":"message","channel":"D1","channel_type":"im","ts":"1.1","user":"U1","text":"x"}`, "", func(e chat.Event) bool { return e.Thread.Root == "" && e.Topic == "dm" }},
		"root of a direct reply": {`{"type":"message","subtype":"message_changed","channel":"D1","channel_type":"im","ts":"2.2","message":{"ts":"1.1","thread_ts":"1.1","user":"U1","text":"y"},"previous_message":{"ts":"1.1","user":"U1","text":"x"}}`, "", func(e chat.Event) bool { return e.Thread.Root == "" }},
	} {
		if !json.Valid([]byte(tc.event)) {
			t.Fatalf("%s: no JSON", name)
		}
		body := delivered(tc.event)
		in, err := c.Receive("events", sign("fake-signing-secret", body, at), body, at)
		switch {
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case tc.reason != "" && (len(in.Events) > 0 || len(in.Ignored) != 1 || in.Ignored[0].Reason != tc.reason):
			t.Errorf("%s: %+v", name, in)
		case tc.reason == "" && (len(in.Events) != 1 || !tc.want(in.Events[0])):
			t.Errorf("%s: %+v", name, in)
		}
	}
}

// S30: what a model writes notifies nobody. S31: a long answer with a fence goes
// out in order and whole.
func TestAnswers(t *testing.T) {
	t.Parallel()
	c := newChannel(t, Options{})
	if got := c.Compose("<!channel> & <script>", chat.Member); len(got) != 1 || got[0] != "&lt;!channel&gt; &amp; &lt;script&gt;" {
		t.Errorf("S30: %q", got)
	}
	parts := c.Compose("begin\n\n```go\n"+strings.Repeat("a line of code\n", 1000)+"```\n\nend", chat.Member)
	if len(parts) < 2 || !strings.HasPrefix(parts[0], "begin") || !strings.HasSuffix(parts[len(parts)-1], "end") {
		t.Errorf("S31: %d parts", len(parts))
	}
	lines := 0
	for i, p := range parts {
		lines += strings.Count(p, "a line of code")
		if strings.Count(p, "```")%2 != 0 || utf8.RuneCountInString(p) > 3500 {
			t.Errorf("S31: part %d has %d fences and %d characters", i, strings.Count(p, "```"), utf8.RuneCountInString(p))
		}
	}
	if lines != 1000 {
		t.Errorf("S31: %d lines of 1000", lines)
	}
}
