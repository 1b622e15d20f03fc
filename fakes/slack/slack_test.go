package slack

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// call makes an API call with the right token.
func call(t *testing.T, w *Workspace, method string, args map[string]string) map[string]any {
	t.Helper()
	v := url.Values{"token": {w.Options().BotToken}}
	for k, a := range args {
		v.Set(k, a)
	}
	r := httptest.NewRequest(http.MethodPost, "/any/path/"+method, strings.NewReader(v.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	rec := httptest.NewRecorder()
	w.ServeHTTP(rec, r)
	var out map[string]any
	if err := json.Unmarshal(rec.Body.Bytes(), &out); err != nil {
		t.Fatalf("%s: status %d, %v", method, rec.Code, err)
	}
	return out
}

const meta = `{"event_type":"heddle_post","event_payload":{"key":"k1"}}`

func TestPostMessage(t *testing.T) {
	t.Parallel()
	w := New(Options{Channels: []Channel{{ID: "C1"}, {ID: "C2", Absent: true}, {ID: "C3", Archived: true}, {ID: "D1", Kind: "im"}}})
	root := w.Mention(Words{Channel: "C1", User: "U0PERSON", Text: "hi"})
	for _, tc := range []struct {
		name string
		args map[string]string
		want string // error code
	}{
		{"plain", map[string]string{"channel": "C1", "text": "a"}, ""},
		{"in a thread", map[string]string{"channel": "C1", "text": "a", "thread_ts": root.TS, "metadata": meta}, ""},
		{"direct", map[string]string{"channel": "D1", "text": "a"}, ""},
		{"unknown channel", map[string]string{"channel": "C9", "text": "a"}, "channel_not_found"},
		{"not in channel", map[string]string{"channel": "C2", "text": "a"}, "not_in_channel"},
		{"archived", map[string]string{"channel": "C3", "text": "a"}, "is_archived"},
		{"no text", map[string]string{"channel": "C1", "text": " "}, "no_text"},
		{"wrong token", map[string]string{"channel": "C1", "text": "a", "token": "xoxb-other"}, "invalid_auth"},
		{"metadata is no JSON", map[string]string{"channel": "C1", "text": "a", "metadata": "{"}, "invalid_metadata_format"},
		{"metadata without payload", map[string]string{"channel": "C1", "text": "a", "metadata": `{"event_type":"x"}`}, "invalid_metadata_schema"},
		{"metadata payload is a list", map[string]string{"channel": "C1", "text": "a", "metadata": `{"event_type":"x","event_payload":[]}`}, "invalid_metadata_format"},
		{"metadata too large", map[string]string{"channel": "C1", "text": "a", "metadata": strings.Repeat("x", maxMetadata+1)}, "metadata_too_large"},
	} {
		before := len(w.Posts())
		out := call(t, w, "chat.postMessage", tc.args)
		code, _ := out["error"].(string)
		if code != tc.want || out["ok"] != (tc.want == "") {
			t.Errorf("%s: %v", tc.name, out)
		}
		if n := len(w.Posts()) - before; (n == 1) != (tc.want == "") {
			t.Errorf("%s: %d posts", tc.name, n)
		}
	}
	posts := w.Posts()
	seen := map[string]bool{}
	for i, p := range posts {
		if seen[p.TS] || i > 0 && p.TS <= posts[i-1].TS {
			t.Errorf("post %d: id %s is not new or not later", i, p.TS)
		}
		seen[p.TS] = true
	}
	if p := posts[1]; p.Key != "k1" || p.Asked != root.TS || p.Thread.Key() != "slack/T0FAKE/C1/"+root.TS {
		t.Errorf("post in a thread: %+v", p)
	}
	if p := posts[2]; p.Thread.Root != "" {
		t.Errorf("direct post: %+v", p)
	}
	long := call(t, w, "chat.postMessage", map[string]string{"channel": "C1", "text": strings.Repeat("字", maxText+7)})
	if got := long["message"].(map[string]any)["text"].(string); len([]rune(got)) != maxText {
		t.Errorf("a long text has %d characters", len([]rune(got)))
	}
}

// A reply to a thread that is gone stands outside it; one to a tombstone does not.
func TestThreadGone(t *testing.T) {
	t.Parallel()
	w := New(Options{})
	a := w.Mention(Words{User: "U0PERSON", Text: "gone"})
	b := w.Mention(Words{User: "U0PERSON", Text: "has a reply"})
	w.Message(Words{User: "U0PERSON", Text: "reply", Thread: b.TS})
	for _, d := range []Delivery{a, b} {
		if _, err := w.Delete("C0GENERAL", d.TS); err != nil {
			t.Fatal(err)
		}
		call(t, w, "chat.postMessage", map[string]string{"channel": "C0GENERAL", "text": "x", "thread_ts": d.TS})
	}
	posts := w.Posts()
	if posts[0].Thread.Root != posts[0].TS || posts[1].Thread.Root != b.TS {
		t.Errorf("threads %v and %v", posts[0].Thread, posts[1].Thread)
	}
	if out := call(t, w, "conversations.replies", map[string]string{"channel": "C0GENERAL", "ts": a.TS}); out["error"] != "thread_not_found" {
		t.Errorf("replies of a thread that is gone: %v", out)
	}
	first := call(t, w, "conversations.replies", map[string]string{"channel": "C0GENERAL", "ts": b.TS})["messages"].([]any)[0].(map[string]any)
	if first["subtype"] != "tombstone" {
		t.Errorf("root: %v", first)
	}
	if _, err := w.Delete("C0GENERAL", a.TS); err == nil {
		t.Error("deleted twice")
	}
}

// texts pages through a list.
func texts(t *testing.T, w *Workspace, method string, args map[string]string) (out []string, pages int) {
	t.Helper()
	for {
		pages++
		a := call(t, w, method, args)
		if a["ok"] != true {
			t.Fatalf("%s: %v", method, a)
		}
		for _, m := range a["messages"].([]any) {
			out = append(out, m.(map[string]any)["text"].(string))
		}
		next := a["response_metadata"].(map[string]any)["next_cursor"].(string)
		if (next != "") != a["has_more"].(bool) {
			t.Errorf("has_more %v, cursor %q", a["has_more"], next)
		}
		if next == "" {
			return out, pages
		}
		args["cursor"] = next
	}
}

func TestHistoryAndReplies(t *testing.T) {
	t.Parallel()
	w := New(Options{})
	root := w.Message(Words{User: "U0PERSON", Text: "root"})
	var ids []string
	for _, s := range []string{"a", "b", "c", "d", "e"} {
		out := call(t, w, "chat.postMessage", map[string]string{"channel": "C0GENERAL", "text": s, "thread_ts": root.TS, "metadata": meta})
		ids = append(ids, out["ts"].(string))
	}
	call(t, w, "chat.postMessage", map[string]string{"channel": "C0GENERAL", "text": "top"})
	got, pages := texts(t, w, "conversations.replies", map[string]string{"channel": "C0GENERAL", "ts": root.TS, "limit": "2"})
	if d := cmp.Diff([]string{"root", "a", "b", "c", "d", "e"}, got); d != "" || pages != 3 {
		t.Errorf("%d pages: %s", pages, d)
	}
	got, _ = texts(t, w, "conversations.replies", map[string]string{"channel": "C0GENERAL", "ts": root.TS, "oldest": ids[2]})
	if d := cmp.Diff([]string{"root", "d", "e"}, got); d != "" {
		t.Errorf("oldest: %s", d)
	}
	got, _ = texts(t, w, "conversations.replies", map[string]string{"channel": "C0GENERAL", "ts": root.TS, "oldest": ids[2], "latest": ids[3], "inclusive": "true"})
	if d := cmp.Diff([]string{"root", "c", "d"}, got); d != "" {
		t.Errorf("inclusive: %s", d)
	}
	got, _ = texts(t, w, "conversations.history", map[string]string{"channel": "C0GENERAL"})
	if d := cmp.Diff([]string{"top", "root"}, got); d != "" {
		t.Errorf("history: %s", d)
	}
	for arg, want := range map[string]bool{"": false, "1": true} {
		m := call(t, w, "conversations.replies", map[string]string{"channel": "C0GENERAL", "ts": root.TS, "include_all_metadata": arg})["messages"].([]any)[1].(map[string]any)
		if _, has := m["metadata"]; has != want {
			t.Errorf("include_all_metadata %q: %v", arg, m)
		}
	}
	if out := call(t, w, "conversations.history", map[string]string{"channel": "C0GENERAL", "cursor": "next:-3"}); out["error"] != "invalid_cursor" {
		t.Errorf("odd cursor: %v", out)
	}
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	w := New(Options{})
	theirs := w.Message(Words{User: "U0PERSON", Text: "theirs"})
	ours := call(t, w, "chat.postMessage", map[string]string{"channel": "C0GENERAL", "text": "first", "metadata": meta})["ts"].(string)
	for _, tc := range []struct{ channel, ts, text, want string }{
		{"C0GENERAL", ours, "second", ""},
		{"C0GENERAL", ours, strings.Repeat("x", maxEdit+1), "msg_too_long"},
		{"C0GENERAL", theirs.TS, "x", "cant_update_message"},
		{"C0GENERAL", "1.1", "x", "message_not_found"},
		{"C9", ours, "x", "channel_not_found"},
	} {
		out := call(t, w, "chat.update", map[string]string{"channel": tc.channel, "ts": tc.ts, "text": tc.text})
		if code, _ := out["error"].(string); code != tc.want {
			t.Errorf("%+v: %v", tc, out)
		}
	}
	m := w.Messages("C0GENERAL")[1]
	if m.Text != "second" || m.EditedTS == "" || string(m.Metadata) != meta {
		t.Errorf("after the edit: %+v", m)
	}
	if p := w.Posts()[0]; p.Text != "first" {
		t.Errorf("the ledger changed: %+v", p)
	}
}

func TestInfo(t *testing.T) {
	t.Parallel()
	w := New(Options{Users: []User{{ID: "U1", Restricted: true, Team: "T9"}}, Groups: map[string][]string{"S1": {"U1"}}})
	if u := call(t, w, "users.info", map[string]string{"user": "U1"})["user"].(map[string]any); u["team_id"] != "T9" || u["is_restricted"] != true || u["is_bot"] != false {
		t.Errorf("user: %v", u)
	}
	if out := call(t, w, "users.info", map[string]string{"user": "U9"}); out["error"] != "user_not_found" {
		t.Errorf("unknown user: %v", out)
	}
	if out := call(t, w, "auth.test", nil); out["user_id"] != "U0BOT" || out["team_id"] != "T0FAKE" {
		t.Errorf("auth.test: %v", out)
	}
	if out := call(t, w, "conversations.info", map[string]string{"channel": "D0PERSON"})["channel"].(map[string]any); out["is_im"] != true || out["is_member"] != true {
		t.Errorf("channel: %v", out)
	}
	if out := call(t, w, "usergroups.users.list", map[string]string{"usergroup": "S1"}); cmp.Diff([]any{"U1"}, out["users"]) != "" {
		t.Errorf("group: %v", out)
	}
	if out := call(t, w, "views.open", nil); out["error"] != "unknown_method" {
		t.Errorf("unknown method: %v", out)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	var fault atomic.Pointer[Fault] // the server reads it in goroutines of its own
	w := New(Options{Hook: func(c Call) Fault {
		if c.Args["text"] == "spared" {
			return Fault{}
		}
		return *fault.Load()
	}})
	srv := httptest.NewServer(w)
	defer srv.Close()
	post := func(ctx context.Context, text string) (*http.Response, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, srv.URL+"/api/chat.postMessage", strings.NewReader(url.Values{"channel": {"C0GENERAL"}, "text": {text}}.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Authorization", "Bearer xoxb-fake")
		return http.DefaultClient.Do(r)
	}
	for _, tc := range []struct {
		name   string
		fault  Fault
		status int // 0 for no answer
		made   bool
	}{
		{"none", Fault{}, 200, true},
		{"delay", Fault{Delay: time.Millisecond}, 200, true},
		{"limited", Fault{Status: 429, RetryAfter: "3"}, 429, false},
		{"broken", Fault{Status: 500}, 500, false},
		{"code", Fault{Code: "fatal_error"}, 200, false},
		{"cut", Fault{Cut: true}, 0, true},
		{"lose", Fault{Lose: true}, 0, false},
	} {
		fault.Store(&tc.fault)
		before := len(w.Posts())
		resp, err := post(t.Context(), "x")
		if (err != nil) != (tc.status == 0) || err == nil && (resp.StatusCode != tc.status || resp.Header.Get("Retry-After") != tc.fault.RetryAfter) {
			t.Errorf("%s: %v, error %v", tc.name, resp, err)
		}
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
		if made := len(w.Posts()) > before; made != tc.made {
			t.Errorf("%s: made %v", tc.name, made)
		}
	}
	fault.Store(&Fault{Hang: true})
	ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if _, err := post(ctx, "x"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("hang: %v", err)
	}
	resp, err := post(t.Context(), "spared")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
}

func TestWaitPosts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := New(Options{})
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		got := make(chan int)
		go func() {
			posts, err := w.WaitPosts(ctx, 2)
			if err != nil {
				t.Error(err)
			}
			got <- len(posts)
		}()
		for range 2 {
			synctest.Wait()
			select {
			case n := <-got:
				t.Fatalf("did not wait: %d posts", n)
			default:
			}
			call(t, w, "chat.postMessage", map[string]string{"channel": "C0GENERAL", "text": "x"})
		}
		if n := <-got; n != 2 {
			t.Errorf("%d posts", n)
		}
		if posts, err := w.WaitPosts(ctx, 3); !errors.Is(err, context.DeadlineExceeded) || len(posts) != 2 {
			t.Errorf("%d posts, error %v", len(posts), err)
		}
	})
}

// The signature is Slack's, by a vector that was computed elsewhere.
func TestSign(t *testing.T) {
	t.Parallel()
	w := New(Options{SigningSecret: "gw-slack-secret", Clock: func() time.Time { return time.Unix(1700000000, 0) }})
	d := w.Sign([]byte(`{"type":"url_verification","challenge":"c1"}`))
	if got := d.Header.Get("X-Slack-Signature"); got != "v0=e6fe78c52e3534e08deb7d153d9a7d73809c7dd96a7e1717c19f064d4be43ae5" {
		t.Error(got)
	}
	r, err := w.Again(w.Mention(Words{User: "U0PERSON", Text: "x"}), 2, "http_error").Request("http://x.test/slack/events")
	if err != nil {
		t.Fatal(err)
	}
	if r.Header.Get("X-Slack-Retry-Num") != "2" || r.Method != http.MethodPost || r.ContentLength == 0 {
		t.Errorf("%+v", r)
	}
}

// One message said once and delivered twice has two event ids and one message id.
func TestDeliveries(t *testing.T) {
	t.Parallel()
	w := New(Options{})
	a := w.Mention(Words{User: "U0PERSON", Text: "x"})
	b := w.Message(Words{User: "U0PERSON", Text: "<@U0BOT> x", TS: a.TS})
	if a.EventID == b.EventID || a.TS != b.TS || len(w.Messages("C0GENERAL")) != 1 {
		t.Errorf("%s %s, %s %s, %d messages", a.EventID, b.EventID, a.TS, b.TS, len(w.Messages("C0GENERAL")))
	}
	var e struct {
		Event struct {
			Type, Text, Channel string
			ThreadTS            string `json:"thread_ts"`
			ChannelType         string `json:"channel_type"`
		}
	}
	if err := json.Unmarshal(a.Body, &e); err != nil || e.Event.Type != "app_mention" || e.Event.Text != "<@U0BOT> x" || e.Event.ChannelType != "" {
		t.Errorf("%+v, error %v", e, err)
	}
	d := w.Message(Words{Channel: "C0NEW", User: "U0PERSON", Text: "y", Thread: a.TS, Files: []File{{ID: "F1"}}, Subtype: "file_share", Team: "T9"})
	if err := json.Unmarshal(d.Body, &e); err != nil || e.Event.ChannelType != "channel" || e.Event.ThreadTS != a.TS || !strings.Contains(string(d.Body), `"user_team":"T9"`) {
		t.Errorf("%s, error %v", d.Body, err)
	}
}
