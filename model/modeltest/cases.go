package modeltest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/model"
)

func text(s string) model.Part { return model.Part{Kind: model.Text, Text: s} }

func weather(id, args string) model.Part {
	return model.Part{Kind: model.Call, CallID: id, Name: "get_weather", Args: []byte(args)}
}

// answers are the streams that end well.
func answers(t *testing.T, c Codec) {
	both := []model.Part{weather("call_a", `{"city":"Paris"}`), weather("call_b", `{"city":"Rome"}`)}
	bad := weather("call_a", `{}`)
	bad.BadArgs = `{"city":"Par`
	tests := []struct {
		name  string
		parts []model.Part
		stop  model.Stop
		usage model.Usage // zero: not looked at
	}{
		{name: "text", parts: []model.Part{text("Hello, wörld & <all>.")}, stop: model.StopEnd, usage: model.Usage{In: 100, Out: 20, Cached: 64, CacheWrite: 16}},
		{name: "parallel", parts: append([]model.Part{text("I look.")}, both...), stop: model.StopTools, usage: model.Usage{In: 50, Out: 30}},
		{name: "interleaved", parts: both, stop: model.StopTools},
		{name: "reasoning", parts: []model.Part{{Kind: model.Reasoning, Text: "Two and two."}, text("Four.")}, stop: model.StopEnd},
		{name: "bad-args", parts: []model.Part{bad}, stop: model.StopTools},
		{name: "no-args", parts: []model.Part{weather("call_a", `{}`)}, stop: model.StopTools},
		{name: "length", parts: []model.Part{text("I look.")}, stop: model.StopLength},
		{name: "refused", parts: []model.Part{text("I cannot.")}, stop: model.StopRefused},
		{name: "empty", stop: model.StopEnd},
		// The request has two calls, one named old_1; call_a comes twice.
		{name: "same-ids", parts: []model.Part{weather("call_a", `{}`), repeated(weather("call_4", `{}`)), weather("call_5", `{}`), weather("call_6", `{}`)}, stop: model.StopTools},
		{name: "big", parts: []model.Part{weather("call_a", `{"city":"`+strings.Repeat("x", 100<<10)+`"}`)}, stop: model.StopTools},
	}
	for _, tt := range tests {
		if c.NoCacheWrite {
			tt.usage.CacheWrite = 0
		}
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := load(t, c, tt.name)
			var said, thought strings.Builder
			var tools []string
			got, err := c.New(r.client(io.NopCloser(bytes.NewReader(r.body)))).Stream(context.Background(), Request(), func(d model.Delta) {
				said.WriteString(d.Text)
				thought.WriteString(d.Reasoning)
				if d.Tool != "" {
					tools = append(tools, d.Tool)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			if d := same(tt.parts, got.Parts); d != "" {
				t.Errorf("parts (-want +got):\n%s", d)
			}
			if got.Stop != tt.stop || got.ID == "" || got.Model == "" || len(got.Raw) == 0 {
				t.Errorf("stop %q, id %q, model %q, %d bytes raw", got.Stop, got.ID, got.Model, len(got.Raw))
			}
			if d := cmp.Diff(tt.usage, got.Usage); d != "" && tt.usage != (model.Usage{}) {
				t.Errorf("usage (-want +got):\n%s", d)
			}
			var whole, thoughts strings.Builder
			calls := 0
			for _, p := range got.Parts {
				switch p.Kind {
				case model.Text:
					whole.WriteString(p.Text)
				case model.Reasoning:
					thoughts.WriteString(p.Text)
				case model.Call:
					calls++
				}
			}
			if said.String() != whole.String() || thought.String() != thoughts.String() {
				t.Errorf("deltas said %q and thought %q", said.String(), thought.String())
			}
			if len(tools) < calls {
				t.Errorf("%d calls were announced, %d came", len(tools), calls)
			}
		})
	}
}

// failures are the answers and streams that are errors.
func failures(t *testing.T, c Codec) {
	tests := []struct {
		name    string
		fault   model.Fault
		partial bool
	}{
		{name: "overflow", fault: model.Overflow},
		{name: "overflow-2", fault: model.Overflow},
		{name: "overflow-3", fault: model.Overflow},
		{name: "limited", fault: model.Limited},
		{name: "unpaid", fault: model.Denied},
		{name: "denied", fault: model.Denied},
		{name: "missing", fault: model.Missing},
		{name: "invalid", fault: model.Invalid},
		{name: "overloaded", fault: model.Transient},
		{name: "midstream", fault: model.Transient, partial: true},
		{name: "midstream-overflow", fault: model.Overflow},
		{name: "truncated", fault: model.Truncated, partial: true},
		{name: "truncated-call", fault: model.Truncated, partial: true},
		{name: "garbled", fault: model.Garbled, partial: true},
		{name: "bad-name", fault: model.Garbled, partial: true},
		{name: "error-200", fault: model.Limited},
		{name: "html-200", fault: model.Garbled},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := load(t, c, tt.name)
			deltas := 0
			_, err := c.New(r.client(io.NopCloser(bytes.NewReader(r.body)))).Stream(context.Background(), Request(), func(model.Delta) { deltas++ })
			e := failed(t, err)
			if e.Fault != tt.fault || e.Partial != tt.partial || e.Partial != (deltas > 0) {
				t.Errorf("fault %q, partial %v after %d deltas; want %q, %v (%v)", e.Fault, e.Partial, deltas, tt.fault, tt.partial, e.Err)
			}
			if r.status != http.StatusOK && (e.Status != r.status || e.Body != string(r.body)) {
				t.Errorf("status %d, body %q", e.Status, e.Body)
			}
		})
	}
}

// statuses have a fault each, whatever the body says or does not say.
func statuses(t *testing.T, c Codec) {
	want := map[int]model.Fault{
		301: model.Missing, 307: model.Missing, 400: model.Invalid, 401: model.Denied, 402: model.Denied, 403: model.Denied, 404: model.Missing,
		408: model.Transient, 409: model.Transient, 413: model.Overflow, 415: model.Invalid, 422: model.Invalid, 425: model.Transient,
		429: model.Limited, 500: model.Transient, 502: model.Transient, 503: model.Transient, 504: model.Transient, 529: model.Transient,
	}
	for status, fault := range want {
		for _, body := range []string{"", "<html>CANARY</html>", `{"error":{"message":"CANARY","code":"` + Key + `"}}`, `{"error":"CANARY"}`, `[1]`, `{"error":null}`, `{"detail":[{"msg":"CANARY"}]}`} {
			_, err := stream(c, &recording{status: status, header: http.Header{}, body: []byte(body)})
			if e := failed(t, err); e.Fault != fault || e.Status != status {
				t.Errorf("%d %s: %v", status, body, e)
			}
		}
	}
}

func retryAfter(t *testing.T, c Codec) {
	tests := []struct {
		header, value string
		least, most   time.Duration
	}{
		{"Retry-After", "1", time.Second, time.Second},
		{"retry-after", "2.5", 2500 * time.Millisecond, 2500 * time.Millisecond},
		{"retry-after-ms", "150", 150 * time.Millisecond, 150 * time.Millisecond},
		{"Retry-After", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat), 59 * time.Minute, time.Hour},
		{"Retry-After", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat), 0, 0},
		{"Retry-After", "-3", 0, 0},
		{"Retry-After", "soon", 0, 0},
		{"Retry-After", "NaN", 0, 0},
		{"Retry-After", "1e300", 24 * time.Hour, 24 * time.Hour},
	}
	for _, tt := range tests {
		for range 20 { // header order must not matter
			r := load(t, c, "limited")
			r.header.Del("Retry-After")
			r.header.Set(tt.header, tt.value)
			_, err := stream(c, r)
			if e := failed(t, err); e.RetryAfter < tt.least || e.RetryAfter > tt.most {
				t.Fatalf("%s: %s gave %s", tt.header, tt.value, e.RetryAfter)
			}
		}
	}
}

// torn reads some bytes, then fails.
type torn struct {
	io.Reader
	err error
}

func (r torn) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err == io.EOF {
		err = r.err
	}
	return n, err
}

// cuts ends good streams after every byte, cleanly and not: what comes of it is
// a Truncated error, or the whole answer.
func cuts(t *testing.T, c Codec) {
	for _, name := range []string{"text", "parallel", "reasoning"} {
		r := load(t, c, name)
		whole, err := stream(c, r)
		if err != nil {
			t.Fatal(err)
		}
		early := 0
		for n := range r.body {
			for _, end := range []error{io.EOF, io.ErrUnexpectedEOF} {
				got, err := c.New(r.client(io.NopCloser(torn{bytes.NewReader(r.body[:n]), end}))).Stream(context.Background(), Request(), nil)
				if err != nil {
					early++
					if e := failed(t, err); e.Fault != model.Truncated {
						t.Fatalf("%s cut at %d: %v", name, n, e)
					}
				} else if d := cmp.Diff(whole.Parts, got.Parts); d != "" || whole.Stop != got.Stop {
					t.Fatalf("%s cut at %d is another answer:\n%s", name, n, d)
				}
			}
		}
		if early < len(r.body) {
			t.Errorf("%s: only %d of %d cuts were seen", name, early, 2*len(r.body))
		}
	}
}

// limits of size: a line of megabytes passes, an endless one does not, nor does
// an endless answer; an error's body is kept in part.
func limits(t *testing.T, c Codec) {
	good := load(t, c, "text")
	comment := append([]byte(":"), bytes.Repeat([]byte("x"), 9<<20)...)
	r := *good
	r.body = append(comment, good.body...)
	_, err := stream(c, &r)
	if e := failed(t, err); e.Fault != model.Garbled {
		t.Errorf("a line of 9 MiB: %v", e)
	}
	r.body = append(comment[:7<<20], '\n')
	r.body = append(r.body, good.body...)
	if _, err := stream(c, &r); err != nil {
		t.Errorf("a line of 7 MiB: %v", err)
	}
	endless := io.NopCloser(&repeating{of: append(comment[:1<<20:1<<20], '\n')})
	_, err = c.New(good.client(endless)).Stream(context.Background(), Request(), nil)
	if e := failed(t, err); e.Fault != model.Garbled {
		t.Errorf("an endless answer: %v", e)
	}
	_, err = stream(c, &recording{status: 500, header: http.Header{}, body: bytes.Repeat([]byte("x"), 1<<20)})
	if e := failed(t, err); len(e.Body) != 64<<10 {
		t.Errorf("%d bytes of the body were kept", len(e.Body))
	}
}

// repeating is a reader without end.
type repeating struct {
	of []byte
	at int
}

func (r *repeating) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		k := copy(p[n:], r.of[r.at:])
		n += k
		r.at = (r.at + k) % len(r.of)
	}
	return n, nil
}

func repeated(p model.Part) model.Part {
	p.Repeated = true
	return p
}
