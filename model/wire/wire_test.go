package wire_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/wire"
)

func open(t *testing.T, url string, client *http.Client) (*wire.Stream, error) {
	t.Helper()
	return wire.Open(context.Background(), wire.Call{Provider: "p", Model: "m", Client: client, URL: url, Header: http.Header{"X-Api-Key": {"k"}}, Body: wire.Body{[]byte("{}")}})
}

func fault(err error) model.Fault {
	var e *model.Error
	if !errors.As(err, &e) {
		return "no *model.Error"
	}
	return e.Fault
}

// TestEvents reads streams as they are written in the wild.
func TestEvents(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("y", 20_000) // longer than the buffer
	tests := []struct {
		name, in string
		want     []string
	}{
		{"plain", "data: a\n\ndata: b\n\n", []string{"a", "b"}},
		{"no space", "data:a\n\n", []string{"a"}},
		{"carriage returns", "data: a\r\n\r\ndata: b\r\n\r\n", []string{"a", "b"}},
		{"names, ids, comments", "event: x\nid: 1\n: c\ndata: a\nretry: 5\n\n: only a comment\n\nevent: nothing\n\n", []string{"a"}},
		{"several lines", "data: {\ndata: }\n\n", []string{"{\n}"}},
		{"byte order mark", "\ufeffdata: a\n\n", []string{"a"}},
		{"empty data", "data:\n\ndata: a\n\n", []string{"a"}},
		{"torn", "data: a\n\ndata: b\n", []string{"a"}},
		{"torn in a line", "data: a\n\ndata: b", []string{"a"}},
		{"long", "data: " + long + "\n\ndata: a\n\n", []string{long, "a"}},
		{"nothing", "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, tt.in)
			}))
			defer s.Close()
			stream, err := open(t, s.URL, s.Client())
			if err != nil {
				t.Fatal(err)
			}
			defer stream.Close()
			var got []string
			for {
				data, err := stream.Next()
				if err != nil {
					if fault(err) != model.Truncated {
						t.Errorf("at the end: %v", err)
					}
					break
				}
				got = append(got, string(data))
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestConnectionsAreKept: what was drained serves the next call.
func TestConnectionsAreKept(t *testing.T) {
	t.Parallel()
	var conns atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
		_ = http.NewResponseController(w).Flush()
	}))
	s.Config.ConnState = func(_ net.Conn, c http.ConnState) {
		if c == http.StateNew {
			conns.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	client := wire.NewClient()
	defer client.CloseIdleConnections()
	for range 10 {
		stream, err := open(t, s.URL, client)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Next(); err != nil {
			t.Fatal(err)
		}
		stream.Drain()
		stream.Close()
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("10 calls took %d connections", n)
	}
}

// TestNoRedirect: a key goes to no host that was not named.
func TestNoRedirect(t *testing.T) {
	t.Parallel()
	var reached atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	defer other.Close()
	for _, status := range []int{301, 302, 307, 308} {
		s := httptest.NewServer(http.RedirectHandler(other.URL, status))
		_, err := open(t, s.URL, wire.NewClient())
		if fault(err) != model.Missing || reached.Load() {
			t.Errorf("%d: %v, reached %v", status, err, reached.Load())
		}
		s.Close()
	}
}

// TestBrokenAddress: neither the error nor its cause repeats the address.
func TestBrokenAddress(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"http://u:CANARY@h.test\x7f/", "http://u:CANARY@127.0.0.1:1/", "CANARY://x"} {
		_, err := open(t, url, wire.NewClient())
		var e *model.Error
		if !errors.As(err, &e) || strings.Contains(fmt.Sprint(e, e.Err), "CANARY") {
			t.Errorf("%v: %v", e, e.Err)
		}
	}
}

// TestReset: a connection that breaks before the head may be tried again, one
// that breaks after it has torn an answer.
func TestReset(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/after" {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: {\"a\n")
			_ = http.NewResponseController(w).Flush()
		}
		panic(http.ErrAbortHandler)
	}))
	s.Config.ErrorLog = nil
	defer s.Close()
	if _, err := open(t, s.URL, s.Client()); fault(err) != model.Transient {
		t.Errorf("before: %v", err)
	}
	stream, err := open(t, s.URL+"/after", s.Client())
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if _, err := stream.Next(); fault(err) != model.Truncated {
		t.Errorf("after: %v", err)
	}
}

func TestClassify(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status int
		body   string
		fault  model.Fault
		code   string
	}{
		{400, `{"error":{"message":"The decoder prompt (length 9000) is longer than the maximum model length of 8192."}}`, model.Overflow, ""},
		{400, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`, model.Overflow, "exceed_context_size_error"},
		{400, `{"error":{"message":"Your input exceeds the context window of this model."}}`, model.Overflow, ""},
		{400, `{"error":"trying to keep the first 9000 tokens when context length is greater than 4096: context length is not greater than"}`, model.Overflow, ""},
		{400, `{"error":{"message":"Input is too long for requested model."}}`, model.Overflow, ""},
		{400, `{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072"}`, model.Overflow, ""},
		{400, `{"error":{"message":"Please reduce the length of the messages or completion."}}`, model.Overflow, ""},
		{400, `{"error":{"message":"The input token count (1) exceeds the maximum number of tokens allowed (0)."}}`, model.Overflow, ""},
		{400, `{"error":{"message":"Invalid request: Your request exceeded model token limit: 8192"}}`, model.Overflow, ""},
		{429, `{"error":{"message":"Request too large for gpt-x on tokens per min (TPM): Limit 30000, Requested 50000","code":"rate_limit_exceeded"}}`, model.Overflow, "rate_limit_exceeded"},
		{502, `{"error":{"message":"Provider returned error","code":502,"metadata":{"raw":"This endpoint's maximum context length is 4096"}}}`, model.Overflow, ""},
		{429, `{"error":{"message":"Too many tokens, please wait before trying again."}}`, model.Limited, ""},
		{400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low"}}`, model.Denied, "invalid_request_error"},
		{402, `{"error":{"message":"Insufficient Balance","code":"invalid_request_error"}}`, model.Denied, "invalid_request_error"},
		{400, `{"error":{"message":"The model gpt-9 does not exist","code":"model_not_found"}}`, model.Missing, "model_not_found"},
		{400, `{"error":{"message":"x","code":"sk-abc123"}}`, model.Invalid, ""},
		{400, `{"error":{"message":"x","code":"what somebody said","type":"a_type"}}`, model.Invalid, "a_type"},
		{0, `{"error":{"message":"x","code":429}}`, model.Limited, ""},
		{0, `{"error":{"message":"x","code":503}}`, model.Transient, ""},
		{0, `{"type":"error","error":{"type":"rate_limit_error","message":"x"}}`, model.Limited, "rate_limit_error"},
		{0, `{"type":"error","error":{"type":"api_error","message":"x"}}`, model.Transient, "api_error"},
		{0, `{"type":"error","error":{"type":"authentication_error","message":"x"}}`, model.Denied, "authentication_error"},
		{0, `{"type":"error","error":{"type":"permission_error","message":"x"}}`, model.Denied, "permission_error"},
		{0, `{"type":"error","error":{"type":"not_found_error","message":"x"}}`, model.Missing, "not_found_error"},
		{0, `{"type":"error","error":{"type":"invalid_request_error","message":"x"}}`, model.Invalid, "invalid_request_error"},
		{0, `{"object":"error","message":"x","type":"never_seen"}`, model.Transient, "never_seen"},
		{0, `{"error":"something"}`, model.Transient, ""},
		{400, `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}`, model.Denied, "INVALID_ARGUMENT"},
		{0, `{"error":{"code":503,"message":"x","status":"UNAVAILABLE"}}`, model.Transient, "UNAVAILABLE"},
		{0, `{"error":{"message":"x","status":"RESOURCE_EXHAUSTED"}}`, model.Limited, "RESOURCE_EXHAUSTED"},
		{0, `{"error":{"message":"x","status":"UNAUTHENTICATED"}}`, model.Denied, "UNAUTHENTICATED"},
		{0, `{"error":{"message":"x","status":"FAILED_PRECONDITION"}}`, model.Invalid, "FAILED_PRECONDITION"},
		{500, `{"error":{"message":"x","status":500}}`, model.Transient, ""},
		{0, `{"type":"error","code":"rate_limit_exceeded","message":"x","param":null}`, model.Limited, "rate_limit_exceeded"},
		{0, `{"type":"error","code":null,"message":"x"}`, model.Transient, "error"},
	}
	for _, tt := range tests {
		f, code, ok := wire.Classify(tt.status, []byte(tt.body))
		if !ok || f != tt.fault || code != tt.code {
			t.Errorf("%d %s: %q %q %v", tt.status, tt.body, f, code, ok)
		}
	}
	for _, body := range []string{"", "null", "[]", `{"answer":"maximum context length"}`, `{"error":null}`, "maximum context length"} {
		if f, _, ok := wire.Classify(200, []byte(body)); ok {
			t.Errorf("%q under 200 is no error, got %q", body, f)
		}
	}
}

func TestCheckCalls(t *testing.T) {
	t.Parallel()
	r := model.Request{Messages: []model.Message{{Role: model.Assistant, Parts: []model.Part{{Kind: model.Call, CallID: "call_2", Name: "a"}}}}}
	calls := func(ids ...string) []model.Part {
		parts := []model.Part{{Kind: model.Text, Text: "x"}}
		for _, id := range ids {
			id, repeated := strings.CutSuffix(id, " again")
			parts = append(parts, model.Part{Kind: model.Call, CallID: id, Name: "a", Repeated: repeated})
		}
		return parts
	}
	tests := []struct{ in, want []string }{
		{[]string{"x", "y"}, []string{"x", "y"}},
		{[]string{"", ""}, []string{"call_3", "call_4"}}, // call_2 is taken, and the second is the third of all
		{[]string{"call_2"}, []string{"call_3"}},
		{[]string{"x", "x", "call_3"}, []string{"x", "call_3 again", "call_4"}},
	}
	for _, tt := range tests {
		got, want := calls(tt.in...), calls(tt.want...)
		if err := wire.CheckCalls(r, got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%v (-want +got):\n%s", tt.in, d)
		}
	}
	for _, name := range []string{"", "a b", "a.b", strings.Repeat("a", 65), "ä"} {
		if err := wire.CheckCalls(r, []model.Part{{Kind: model.Call, CallID: "x", Name: name}}); err == nil {
			t.Errorf("the name %q was accepted", name)
		}
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"": "{}", " \n": "{}", "{}": "{}", ` {"a": 1} `: `{"a": 1}`} {
		if args, bad := wire.Arguments(in); string(args) != want || bad != "" {
			t.Errorf("%q: %s, bad %q", in, args, bad)
		}
	}
	for _, in := range []string{"{", `{"a":1}}`, "null", "[]", `"x"`, "3", `{'a':1}`, "```json\n{}\n```"} {
		if args, bad := wire.Arguments(in); string(args) != "{}" || bad != in {
			t.Errorf("%q: %s, bad %q", in, args, bad)
		}
	}
}

func TestDoc(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "", "short": "short", strings.Repeat("é", 1024): strings.Repeat("é", 1024), strings.Repeat("é", 1025): strings.Repeat("é", 1021) + "...",
	} {
		if got := wire.Doc(model.Tool{Doc: in}); got != want {
			t.Errorf("%d bytes became %q", len(in), got)
		}
	}
}

func TestCallID(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"call_1", "toolu_01A09q90qw90lq917835lq9", strings.Repeat("a", 40)} {
		if wire.CallID(id) != id {
			t.Errorf("%s became %s", id, wire.CallID(id))
		}
	}
	seen := map[string]bool{}
	for _, id := range []string{"", "a:b", "a/b", strings.Repeat("a", 41), strings.Repeat("a", 450), "ä"} {
		got := wire.CallID(id)
		if seen[got] || len(got) > 40 || got != wire.CallID(id) {
			t.Errorf("%q became %q", id, got)
		}
		seen[got] = true
	}
}

// FuzzShape: a shape reads what decoding reads, or says that it cannot.
func FuzzShape(f *testing.F) {
	const key = `"text":"`
	f.Add([]byte(`{"delta":{"text":"a"},"n":1}`), []byte(`{"delta":{"text":"b c"},"n":1}`))
	f.Add([]byte(`{"delta":{"text":"a"},"n":1}`), []byte(`{"delta":{"text":"b\"}c\u00e9\\"},"n":1}`))
	f.Add([]byte(`{"delta":{"text":"a"}}`), []byte(`{"delta":{"text":"b","text":"c"}}`))
	f.Add([]byte(`{"delta":{"text":"a"}}`), []byte(`{"delta":{"text":"b"},"delta":{"text":"c"}}`))
	f.Add([]byte(`{"delta":{"text":"a"},"x":"text\":\"a"}`), []byte("{\"delta\":{\"text\":\"\xff\"},\"x\":\"text\\\":\\\"a\"}"))
	f.Add([]byte(`{"x":{"text":"a"},"delta":{"text":"a"}}`), []byte(`{"x":{"text":"b"},"delta":{"text":"a"}}`))
	type event struct {
		Delta struct {
			Text string `json:"text"`
		} `json:"delta"`
		N int `json:"n"`
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		var a, b event
		if json.Unmarshal(first, &a) != nil || a.Delta.Text == "" || strings.Count(strings.ToLower(string(first)), "text") != strings.Count(string(first), "text") {
			return
		}
		s := wire.Shape{Key: key}
		s.Learn(first, a.Delta.Text)
		got, ok := s.Text(second)
		if !ok {
			return
		}
		if err := json.Unmarshal(second, &b); err != nil || b.N != a.N {
			t.Fatalf("%s was read by the shape of %s: %v", second, first, err)
		}
		if got != b.Delta.Text {
			t.Fatalf("%q by its shape, %q decoded: %s after %s", got, b.Delta.Text, second, first)
		}
	})
}
