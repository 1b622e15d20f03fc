package ui

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/scripted"
	"github.com/heddlehq/heddle/state"
)

const at = "/api/v1/agents/assistant/conversations/"

// A job is started, asked after, and has a result; started again with the same
// key it is the first.
func TestStartPollResult(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	started := w.want(202, "POST", at+"job/messages", obj{"text": "count", "key": "k1"})
	want := obj{"conversation": started["conversation"], "channel": "api", "event": "api:k1", "status": "admitted"}
	if diff := cmp.Diff(want, started); diff != "" {
		t.Fatal(diff)
	}
	poll := "/api/v1/events/api/api:k1"
	if s := w.want(200, "GET", poll, nil); s["status"] != "waiting" {
		t.Errorf("before the engine runs: %v", s)
	}
	w.work()
	s := w.want(200, "GET", poll+"?wait=20s", nil)
	if s["status"] != "settled" || s["outcome"] != "answered" || s["answer"] != "you said count" || s["turn"] == nil || s["cost"].(float64) <= 0 || s["usage"] == nil {
		t.Errorf("result: %v", s)
	}
	again := w.want(202, "POST", at+"job/messages", obj{"text": "count", "key": "k1"})
	want["status"] = "duplicate"
	if diff := cmp.Diff(want, again); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(s, w.want(200, "GET", poll, nil)); diff != "" {
		t.Error(diff)
	}
	if h := w.want(200, "GET", at+"job", nil); h["turns"] != 1.0 || h["status"] != "idle" {
		t.Errorf("head: %v", h)
	}
}

// The answer to a start is sent when the event is in the store, and not if it
// could not be stored.
func TestAdmittedBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rec := w.do("POST", at+"a/messages", obj{"text": "hi", "key": "k"})
	if rec.Code != 202 || rec.Header().Get("Location") != "/api/v1/events/api/api:k" {
		t.Errorf("status %d, location %q", rec.Code, rec.Header().Get("Location"))
	}
	v, err := w.store.Load(t.Context(), state.ConversationID("assistant", mustThread(t, "assistant", "a")), 0)
	if err != nil || len(v.Inbox) != 1 || v.Inbox[0].Event.ID != "api:k" || v.Inbox[0].Event.Author != author {
		t.Errorf("%v %v", v, err)
	}
	w.broken.fail(errors.New("disk full: canary-disk"))
	rec = w.do("POST", at+"a/messages", obj{"text": "more", "key": "k2"})
	if rec.Code != 503 || rec.Header().Get("Retry-After") == "" || strings.Contains(rec.Body.String(), "canary") {
		t.Errorf("status %d: %s", rec.Code, rec.Body)
	}
	w.broken.fail(nil)
	if got := w.want(202, "POST", at+"a/messages", obj{"text": "more", "key": "k2"}); got["status"] != "admitted" {
		t.Errorf("the next try: %v", got)
	}
}

// While the gateway stops, what is sent is stored or refused so that it is sent
// again; no answer is empty.
func TestAnswersWhileStopping(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want(202, "POST", at+"a/messages", obj{"text": "x", "key": "k"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for path, want := range map[string]int{at + "a": 503, at + "a/records": 503, "/api/v1/events/api/api:k": 503} {
		req := httptest.NewRequestWithContext(ctx, "GET", path, nil)
		req.Header.Set("Authorization", "Bearer "+token)
		rec := httptest.NewRecorder()
		if w.api.ServeHTTP(rec, req); rec.Code != want || !strings.Contains(rec.Body.String(), `"code":"stopping"`) {
			t.Errorf("%s: status %d %s", path, rec.Code, rec.Body)
		}
	}
}

// Equal content is equal however it is written; other content under one key is refused.
func TestKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want(202, "POST", at+"a/messages", `{"text":"hi","key":"k","data":{"a":1,"b":[1.50,12345678901234567890]}}`)
	same := w.want(202, "POST", at+"a/messages", `{"data" : {"b":[ 1.50, 12345678901234567890 ], "a":1}, "result":null, "key":"k","text":"hi"}`)
	if same["status"] != "duplicate" {
		t.Errorf("%v", same)
	}
	for name, tc := range map[string]struct{ path, body string }{
		"other text":         {at + "a/messages", `{"text":"ho","key":"k","data":{"a":1,"b":[1.50,12345678901234567890]}}`},
		"other number":       {at + "a/messages", `{"text":"hi","key":"k","data":{"a":1,"b":[1.50,12345678901234567891]}}`},
		"other conversation": {at + "b/messages", `{"text":"hi","key":"k","data":{"a":1,"b":[1.50,12345678901234567890]}}`},
		"another verb":       {at + "a/pause", `{"key":"k"}`},
	} {
		if got := code(w.want(409, "POST", tc.path, tc.body)); got != "key_used" {
			t.Errorf("%s: %s", name, got)
		}
	}
	one, two := w.want(202, "POST", at+"a/messages", obj{"text": "x"}), w.want(202, "POST", at+"a/messages", obj{"text": "x"})
	if one["event"] == two["event"] {
		t.Error("without a key two messages are one")
	}
}

// Two messages to one id share a history, by both addresses of the conversation.
func TestOneIDOneConversation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	id := w.begin("support%2F42", "first")
	if again := w.begin("support%2F42", "second"); again != id {
		t.Errorf("another conversation")
	}
	if another := w.begin("other", "first"); another == id {
		t.Error("another id shares the conversation")
	}
	byID, byAgent := w.want(200, "GET", "/api/v1/conversations/"+id, nil), w.want(200, "GET", at+"support%2F42", nil)
	if diff := cmp.Diff(byID, byAgent); diff != "" {
		t.Error(diff)
	}
	if byID["turns"] != 2.0 || byID["seq"].(float64) < 6 {
		t.Errorf("%v", byID)
	}
	if diff := cmp.Diff(obj{"channel": "api", "account": "assistant", "room": "support/42"}, byID["thread"]); diff != "" {
		t.Error(diff)
	}
	w.want(202, "POST", "/api/v1/conversations/"+id+"/messages", obj{"text": "third"})
}

// Data and the form of the result reach the agent with the event.
func TestDataReachesTheAgent(t *testing.T) {
	t.Parallel()
	var data, want string
	w := newWorld(t, func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		if e := c.Event(); e.ID != "" {
			data, want = string(e.Data), string(e.Want)
		}
		return ""
	})
	w.plays(scripted.Say("ok"))
	stop := w.work()
	w.want(202, "POST", at+"a/messages", `{"data":{"b":1,"a":"x"},"result":{"type":"object"},"key":"k"}`)
	w.want(200, "GET", "/api/v1/events/api/api:k?wait=20s", nil)
	stop()
	if data != `{"a":"x","b":1}` || want != `{"type":"object"}` {
		t.Errorf("data %s, want %s", data, want)
	}
}

// Data that the agent cannot begin with is refused, and nothing is stored; it is
// no rule for what comes later.
func TestDataThatDoesNotFit(t *testing.T) {
	t.Parallel()
	type order struct {
		ID int `json:"id"`
	}
	w := newWorld(t, func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		harness.UseInitialData[order](c)
		return ""
	})
	for _, data := range []string{`{"number":7}`, `{"id":"canary"}`, `"canary"`} {
		v := w.want(400, "POST", at+"a/messages", `{"data":`+data+`}`)
		if code(v) != "bad_request" || !strings.Contains(fmt.Sprint(v), "data is not") || strings.Contains(fmt.Sprint(v, w.logged()), "canary") {
			t.Errorf("%s: %v %s", data, v, w.logged())
		}
	}
	w.want(404, "GET", at+"a", nil)
	w.want(202, "POST", at+"a/messages", `{"data":{"id":7}}`)
	w.want(202, "POST", at+"a/messages", `{"text":"and","data":[1]}`)
}

// An answer that must have a form comes as a value; a schema that cannot be used
// is refused before anything is stored.
func TestResults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, schema := range []string{`{"type":7}`, `{"type":"strin"}`, `{"$ref":"#/nowhere"}`, `[1]`} {
		v := w.want(400, "POST", at+"a/messages", `{"text":"x","result":`+schema+`}`)
		if code(v) != "bad_request" || !strings.Contains(fmt.Sprint(v), "result is no JSON Schema") {
			t.Errorf("%s: %v", schema, v)
		}
	}
	w.want(404, "GET", at+"a", nil)
	w.work()
	ask := func(key string, calls scripted.Step) obj {
		w.plays(calls)
		w.want(202, "POST", at+"a/messages", `{"text":"how many?","result":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]},"key":"`+key+`"}`)
		return w.want(200, "GET", "/api/v1/events/api/api:"+key+"?wait=20s", nil)
	}
	if s := ask("k1", scripted.Call("finish", `{"n":7}`)); s["outcome"] != "answered" || !cmp.Equal(s["value"], any(obj{"n": 7.0})) {
		t.Errorf("%v", s)
	}
	if s := ask("k2", scripted.Call("give_up", `{"reason":"nobody knows"}`)); s["value"] != nil || s["gave_up"] != "nobody knows" {
		t.Errorf("%v", s)
	}
}

// What may be asked for by name says how; what may not, that it is not there.
func TestProblems(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop := w.work()
	id := w.begin("a", "hi")
	stop()
	big := `{"text":"` + strings.Repeat("x", maxBody) + `"}`
	for _, tc := range []struct {
		method, path string
		body         any
		status       int
		code         Code
	}{
		{"GET", "/api/v1/nothing", nil, 404, noSuchPath},
		{"GET", "/", nil, 404, noSuchPath},
		{"GET", at + "./a", nil, 404, noSuchPath},
		{"GET", at + "a/../a", nil, 404, noSuchPath},
		{"GET", "/" + at + "a", nil, 404, noSuchPath},
		{"POST", at + "/messages", obj{"text": "x"}, 404, noSuchPath},
		{"GET", at + "a/", nil, 404, noSuchPath},
		{"DELETE", at + "a", nil, 405, methodNotAllowed},
		{"PUT", at + "a/messages", obj{}, 405, methodNotAllowed},
		{"GET", "/api/v1/agents/nobody/conversations/a", nil, 404, noSuchAgent},
		{"POST", "/api/v1/agents/nobody/conversations/a/messages", obj{"text": "x"}, 404, noSuchAgent},
		{"GET", "/api/v1/agents/nobody/conversations/a/stream", nil, 404, noSuchAgent},
		{"GET", "/api/v1/conversations/cunknown", nil, 404, noSuchConversation},
		{"GET", "/api/v1/conversations/cunknown/stream", nil, 404, noSuchConversation},
		{"GET", "/api/v1/conversations/cunknown/files", nil, 404, noSuchConversation},
		{"POST", "/api/v1/conversations/cunknown/messages", obj{"text": "x"}, 404, noSuchConversation},
		{"POST", "/api/v1/conversations/cunknown/abort", nil, 404, noSuchConversation},
		{"GET", at + "unknown", nil, 404, noSuchConversation},
		{"GET", at + "unknown/records", nil, 404, noSuchConversation},
		{"GET", at + "unknown/data", nil, 404, noSuchConversation},
		{"GET", at + "unknown/files", nil, 404, noSuchConversation},
		{"POST", at + "unknown/pause", nil, 404, noSuchConversation},
		{"GET", "/api/v1/events/api/unknown", nil, 404, noSuchEvent},
		{"GET", at + "a/files/virtual/none", nil, 404, noSuchFile},
		{"POST", at + "a/messages", obj{"text": " \n"}, 400, badRequest},
		{"POST", at + "a/messages", nil, 400, badRequest},
		{"POST", at + "a/messages", `{"text":"x","colour":"red"}`, 400, badRequest},
		{"POST", at + "a/messages", `{"text":7}`, 400, badRequest},
		{"POST", at + "a/messages", `{"text":"x"`, 400, badRequest},
		{"POST", at + "a/messages", `{"text":"x"} {"text":"y"}`, 400, badRequest},
		{"POST", at + "a/messages", `["x"]`, 400, badRequest},
		{"POST", at + "a/messages", `{"text":"x","result":"string"}`, 400, badRequest},
		{"POST", at + "a/messages", obj{"text": "x", "key": "no blanks"}, 400, badRequest},
		{"POST", at + "a/messages", obj{"text": "x", "key": strings.Repeat("k", 129)}, 400, badRequest},
		{"POST", at + strings.Repeat("x", 600) + "/messages", obj{"text": "x"}, 400, badRequest},
		{"POST", at + "a%00b/messages", obj{"text": "x"}, 400, badRequest},
		{"POST", at + "a/messages", `{"text":"x","data":` + strings.Repeat("[", 9999) + strings.Repeat("]", 9999) + `}`, 400, badRequest},
		{"POST", at + "a/messages", big, 413, tooLarge},
		{"POST", at + "a/abort", obj{"turn": "7"}, 400, badRequest},
		{"POST", at + "a/pause", obj{"turn": "t" + strings.Repeat("a", 26)}, 400, badRequest},
		{"POST", at + "a/policy", obj{"policy": "maybe"}, 400, badRequest},
		{"POST", at + "a/pause", obj{"policy": "queue"}, 400, badRequest},
		{"GET", at + "a/records?limit=0", nil, 400, badRequest},
		{"GET", at + "a/records?limit=501", nil, 400, badRequest},
		{"GET", at + "a/records?before=x", nil, 400, badRequest},
		{"GET", at + "a/records?after=1", nil, 400, badRequest},
		{"GET", at + "a/stream?after=-1", nil, 400, badRequest},
		{"GET", "/api/v1/conversations?before=yesterday", nil, 400, badRequest},
		{"GET", "/api/v1/events/api/unknown?wait=2m", nil, 400, badRequest},
	} {
		rec := w.do(tc.method, tc.path, tc.body)
		shown := tc.method + " " + tc.path[:min(len(tc.path), 80)]
		if rec.Code != tc.status || !strings.Contains(rec.Body.String(), `{"error":{"code":"`+string(tc.code)+`","message":"`) {
			t.Errorf("%s: status %d, want %d %s: %s", shown, rec.Code, tc.status, tc.code, rec.Body)
		}
		if tc.status == 405 && rec.Header().Get("Allow") == "" {
			t.Errorf("%s: nothing is allowed", shown)
		}
	}
	v, err := w.store.Load(t.Context(), state.ID(id), 0)
	if err != nil || len(v.Inbox) != 0 {
		t.Errorf("%d events were admitted all the same (%v)", len(v.Inbox), err)
	}
	all, err := w.store.Conversations(t.Context(), time.Time{}, 10)
	if err != nil || len(all) != 1 {
		t.Errorf("%d conversations (%v), want 1", len(all), err)
	}
}

func TestMediaTypes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, tc := range []struct{ kind, encoding string }{
		{"", ""}, {"text/plain", ""}, {"application/x-www-form-urlencoded", ""}, {"application/json", "gzip"}, {"application/jsonx", ""},
	} {
		req := httptest.NewRequest("POST", at+"a/messages", strings.NewReader(`{"text":"x"}`))
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Content-Type", tc.kind)
		req.Header.Set("Content-Encoding", tc.encoding)
		rec := httptest.NewRecorder()
		w.api.ServeHTTP(rec, req)
		if rec.Code != 415 {
			t.Errorf("%q %q: status %d", tc.kind, tc.encoding, rec.Code)
		}
	}
}

// Without a valid token nothing is said and nothing is done, whatever is asked
// for; there is no way in for pages of other origins.
func TestTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	closed := NewAPI(Options{Store: w.store, Agents: []string{"assistant"}, Logger: w.api.Logger})
	for _, tc := range []struct {
		api     *API
		headers []string
		want    int
	}{
		{w.api, []string{"Bearer " + token}, 202},
		{w.api, []string{"bearer  " + other}, 202},
		{w.api, nil, 401},
		{w.api, []string{""}, 401},
		{w.api, []string{"Bearer "}, 401},
		{w.api, []string{"Bearer"}, 401},
		{w.api, []string{token}, 401},
		{w.api, []string{"Basic " + token}, 401},
		{w.api, []string{"Bearer " + token[1:]}, 401},
		{w.api, []string{"Bearer " + token + "x"}, 401},
		{w.api, []string{"Bearer " + token + "," + other}, 401},
		{w.api, []string{"Bearer wrong", "Bearer " + token}, 401},
		{closed, []string{"Bearer " + token}, 401},
		{closed, []string{"Bearer "}, 401},
		{closed, nil, 401},
	} {
		for _, path := range []string{at + "a/messages", "/api/v1/nothing", "/"} {
			req := httptest.NewRequest("POST", path, strings.NewReader(`{"text":"x"}`))
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Origin", "https://example.com")
			req.Header["Authorization"] = tc.headers
			rec := httptest.NewRecorder()
			tc.api.ServeHTTP(rec, req)
			want := tc.want
			if want == 202 && path != at+"a/messages" {
				want = 404
			}
			if rec.Code != want {
				t.Errorf("%q %s: status %d, want %d", tc.headers, path, rec.Code, want)
			}
			if rec.Code == 401 && rec.Header().Get("WWW-Authenticate") == "" {
				t.Errorf("%q: 401 without a challenge", tc.headers)
			}
			for name := range rec.Header() {
				if strings.HasPrefix(name, "Access-Control-") {
					t.Errorf("%s: header %s", path, name)
				}
			}
		}
	}
	req := httptest.NewRequest("OPTIONS", at+"a/messages", nil)
	rec := httptest.NewRecorder()
	if w.api.ServeHTTP(rec, req); rec.Code != 401 {
		t.Errorf("preflight: status %d", rec.Code)
	}
	c, err := w.store.Conversations(t.Context(), time.Time{}, 10)
	if err != nil || len(c) != 1 || c[0].Inbox != 2 {
		t.Errorf("admitted: %v %v, want the two that had a token", c, err)
	}
}

// Neither words nor tokens get into the log or an error.
func TestNoWordsInTheLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop := w.work()
	w.begin("a", "canary-text")
	w.do("POST", at+"a/messages", obj{"text": "canary-text", "data": obj{"password": "canary-data"}, "key": "canary key"})
	w.do("POST", at+"a/messages", `{"canary-field":"canary-value"`)
	w.do("POST", at+"a/messages", `{"canary-field":"canary-value"}`)
	w.broken.fail(errors.New("no disk"))
	rec := w.do("POST", at+"a/messages", obj{"text": "canary-text"})
	stop()
	if strings.Contains(rec.Body.String(), "canary") {
		t.Error(rec.Body)
	}
	log := w.logged()
	if strings.Contains(log, "canary") {
		t.Errorf("%s", log)
	}
	if !strings.Contains(log, `msg="request answered" method=POST pattern=/api/v1/agents/{agent}/conversations/{id}/messages status=202`) {
		t.Errorf("a request has no line: %s", log)
	}
}

// The events of the API that steer have the topic and the argument, and its author.
func TestControls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want(202, "POST", at+"a/messages", obj{"text": "hi"})
	tid := "t" + strings.Repeat("a", 26)
	for _, tc := range []struct {
		topic string
		body  any
		text  string
	}{
		{"abort", nil, ""}, {"abort", obj{"turn": tid}, tid}, {"pause", obj{}, ""}, {"resume", nil, ""}, {"step", nil, ""}, {"policy", obj{"policy": "queue"}, "queue"},
	} {
		w.want(202, "POST", at+"a/"+tc.topic, tc.body)
		v, err := w.store.Load(t.Context(), state.ConversationID("assistant", mustThread(t, "assistant", "a")), 0)
		if err != nil {
			t.Fatal(err)
		}
		e := v.Inbox[len(v.Inbox)-1]
		if got := fmt.Sprint(e.Event.Kind, " ", e.Event.Topic, " ", e.Event.Text, " ", e.Event.Author.Account, e.Quiet); got != "control "+tc.topic+" "+tc.text+" heddle.apifalse" {
			t.Errorf("%s: %s", tc.topic, got)
		}
	}
}

// docs/api.md lists every code with its status and hint, and no other.
func TestCodesAreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	listed, want := map[string]string{}, map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^\| (\d{3}) \| `+"`([a-z_]+)`"+` \| (.*) \|$`).FindAllStringSubmatch(string(text), -1) {
		listed[m[2]] = m[1] + " " + m[3]
	}
	for c, v := range codes {
		want[string(c)] = fmt.Sprint(v.status, " ", v.hint)
	}
	if diff := cmp.Diff(want, listed); diff != "" {
		t.Error(diff)
	}
}

// How a turn stands is seen from the log, whoever asks: it runs until it is
// settled, also while there is nothing but a tool at work.
func TestStatusFollowsTheTurn(t *testing.T) {
	t.Parallel()
	began, open := make(chan struct{}), make(chan struct{})
	look := harness.NewTool("look", "Looks.", func(ctx context.Context, _ *harness.Call, _ struct{}) (string, error) {
		close(began)
		select {
		case <-open:
		case <-ctx.Done():
		}
		return "seen", nil
	})
	w := newWorld(t, func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		harness.UseTool(c, look)
		return ""
	})
	w.plays(func(ctx context.Context, r model.Request) (model.Response, error) {
		if r.Messages[len(r.Messages)-1].Role == model.Results {
			return scripted.Say("I looked")(ctx, r)
		}
		return scripted.Call("look", "{}")(ctx, r)
	})
	w.want(202, "POST", at+"a/messages", obj{"text": "hi", "key": "k"})
	if h := w.want(200, "GET", at+"a", nil); h["status"] != "waiting" || h["inbox"] != 1.0 || h["turn"] != nil {
		t.Errorf("before: %v", h)
	}
	w.work()
	<-began
	turn, _ := w.want(200, "GET", at+"a", nil)["turn"].(obj)
	if s := w.want(200, "GET", "/api/v1/events/api/api:k", nil); s["status"] != "running" || s["turn"] != turn["id"] || turn["step"] != 1.0 {
		t.Errorf("the tool works: %v, turn %v", s, turn)
	}
	close(open)
	s := w.want(200, "GET", "/api/v1/events/api/api:k?wait=20s", nil)
	h := w.want(200, "GET", at+"a", nil)
	if s["answer"] != "I looked" || h["status"] != "idle" || h["inbox"] != 0.0 || h["turns"] != 1.0 || h["cost"] != s["cost"] || h["turn"] != nil {
		t.Errorf("after: %v, %v", s, h)
	}
}

// A question of a tool is seen, and the next message answers it.
func TestQuestions(t *testing.T) {
	t.Parallel()
	deploy := harness.NewTool("deploy", "Deploys.", func(ctx context.Context, call *harness.Call, _ struct{}) (string, error) {
		r, err := harness.Ask(ctx, call, "approve", "Deploy v7?", harness.AnsweredBy(chat.Maintainer))
		return "answered " + r.Text, err
	}).Durable()
	w := newWorld(t, func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		harness.UseTool(c, deploy)
		return ""
	})
	w.plays(func(ctx context.Context, r model.Request) (model.Response, error) {
		for _, m := range r.Messages {
			if m.Role == model.Results {
				return scripted.Say(m.Parts[0].Text)(ctx, r)
			}
		}
		return scripted.Call("deploy", "{}")(ctx, r)
	})
	url := w.serves()
	s := w.listen(t.Context(), url+at+"a/stream", "")
	s.until("caught_up")
	w.work()
	w.want(202, "POST", at+"a/messages", obj{"text": "deploy", "key": "k"})
	s.until("asked")
	h := w.want(200, "GET", at+"a", nil)
	q, _ := h["questions"].([]any)
	if len(q) != 1 || q[0].(obj)["question"] != "Deploy v7?" || q[0].(obj)["who"] != "maintainer" || h["status"] != "running" {
		t.Errorf("%v", h)
	}
	w.want(202, "POST", at+"a/messages", obj{"text": "yes"})
	if e := w.want(200, "GET", "/api/v1/events/api/api:k?wait=20s", nil); e["answer"] != "answered yes" {
		t.Errorf("%v", e)
	}
	if h := w.want(200, "GET", at+"a", nil); h["questions"] != nil || h["status"] != "idle" {
		t.Errorf("%v", h)
	}
}

func mustThread(t *testing.T, agent, id string) chat.Thread {
	t.Helper()
	th, err := threadOf(agent, id)
	if err != nil {
		t.Fatal(err)
	}
	return th
}
