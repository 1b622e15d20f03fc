// Package modeltest is the suite every codec of the model family passes: one
// set of answers and failures, recorded in each wire format, and the rules of
// the port.
package modeltest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/heddlehq/heddle/model"
)

// Key is the API key a codec under test is to use; no error may hold it.
const Key = "sk-CANARY-0123456789"

// canary stands in every recorded error body; no error's text may hold it.
const canary = "CANARY"

// A Codec is what the suite needs of one.
type Codec struct {
	New func(*http.Client) model.Provider // with Key, and timeouts left to their defaults
	// Recordings holds "<case>.http": an HTTP answer, head and body. "{{BIG}}"
	// in it stands for 100 KiB of text.
	Recordings fs.FS
	Golden     string // file of the request body for Request
	Terminator string // what the data of a whole stream holds
	KeepAlive  string // events of this format without content
	// NoCacheWrite: the format does not say what was written to the cache.
	NoCacheWrite bool
}

// Run runs the suite.
func Run(t *testing.T, c Codec) {
	t.Run("answers", func(t *testing.T) { t.Parallel(); answers(t, c) })
	t.Run("failures", func(t *testing.T) { t.Parallel(); failures(t, c) })
	t.Run("statuses", func(t *testing.T) { t.Parallel(); statuses(t, c) })
	t.Run("retry after", func(t *testing.T) { t.Parallel(); retryAfter(t, c) })
	t.Run("cut anywhere", func(t *testing.T) { t.Parallel(); cuts(t, c) })
	t.Run("limits", func(t *testing.T) { t.Parallel(); limits(t, c) })
	t.Run("timeouts", func(t *testing.T) { t.Parallel(); timeouts(t, c) })
	t.Run("canceled", func(t *testing.T) { t.Parallel(); canceled(t, c) })
	t.Run("request", func(t *testing.T) { t.Parallel(); request(t, c) })
	t.Run("reasoning goes back", func(t *testing.T) { t.Parallel(); reasoning(t, c) })
}

// Fuzz feeds arbitrary streams to the codec: it must not panic, fail with
// anything but an *model.Error, or take a stream without terminator for an answer.
func Fuzz(f *testing.F, c Codec) {
	files, err := fs.Glob(c.Recordings, "*.http")
	if err != nil || len(files) == 0 {
		f.Fatalf("no recordings: %v", err)
	}
	for _, name := range files {
		if body := load(f, c, strings.TrimSuffix(name, ".http")).body; len(body) < 10<<10 {
			f.Add(body)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		_, err := stream(c, &recording{status: 200, header: http.Header{"Content-Type": {"text/event-stream"}}, body: body})
		var e *model.Error
		switch {
		case err == nil && !spelled(body, c.Terminator):
			t.Fatal("an answer without terminator")
		case err != nil && !errors.As(err, &e):
			t.Fatalf("not a *model.Error: %T", err)
		}
	})
}

// spelled says whether a body may hold a word: JSON knows other ways to write
// one, which take a backslash or, as the case of keys is ignored, other letters.
func spelled(body []byte, word string) bool {
	exotic := func(r rune) bool { return r == '\\' || r >= 0x80 }
	return bytes.Contains(bytes.ToLower(body), []byte(word)) || bytes.ContainsFunc(body, exotic)
}

// Bench measures one streamed chunk: the events of the recording "text", with
// its content events repeated.
func Bench(b *testing.B, c Codec, content string) {
	r := load(b, c, "text")
	events := strings.SplitAfter(string(r.body), "\n\n")
	var head, one, tail string
	for _, e := range events {
		switch {
		case one == "" && strings.Contains(e, content):
			one = e
		case one == "":
			head += e
		case !strings.Contains(e, content):
			tail += e
		}
	}
	const n = 1000
	r.body = []byte(head + strings.Repeat(one, n) + tail)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := stream(c, r); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/chunk")
}

// Request is the request the suite makes: every kind of part, an id and
// reasoning of another provider, neighbours of one role.
func Request() model.Request {
	call := func(id, city string) model.Part {
		return model.Part{Kind: model.Call, CallID: id, Name: "get_weather", Args: []byte(`{"city":"` + city + `"}`)}
	}
	result := func(id, text string, failed bool) model.Part {
		return model.Part{Kind: model.Result, CallID: id, Name: "get_weather", Text: text, Failed: failed}
	}
	say := func(text string) model.Part { return model.Part{Kind: model.Text, Text: text} }
	return model.Request{
		Model:  "m-1",
		System: "Be brief & <kind>.",
		Tools: []model.Tool{
			{Name: "get_weather", Doc: "The weather now.", Schema: []byte(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`)},
			{Name: "enhance", Doc: "Climb.", Schema: []byte(`{"type":"object","properties":{}}`)},
		},
		Messages: []model.Message{
			{Role: model.User, Parts: []model.Part{say("Paris and Rome? CANARY-TEXT")}},
			{Role: model.User, Parts: []model.Part{say("in °C"), say("  "), say("please")}},
			{Role: model.Assistant, Parts: []model.Part{
				{Kind: model.Reasoning, Text: "hidden", Opaque: []byte(`{"reasoning":"hidden"}`), From: "elsewhere/m-9"},
				say("I look."), call("old_1", "Paris"), call("id:with/odd characters", "Rome"),
			}},
			{Role: model.Results, Parts: []model.Part{result("old_1", "18", false), result("id:with/odd characters", "no such city", true)}},
			{Role: model.User, Parts: []model.Part{say("<tools changed>")}},
			{Role: model.Assistant, Parts: []model.Part{say("18 in Paris.")}},
			{Role: model.User, Parts: []model.Part{say("and tomorrow?")}},
		},
	}
}

// A recording is an HTTP answer.
type recording struct {
	status int
	header http.Header
	body   []byte
}

func load(t testing.TB, c Codec, name string) *recording {
	t.Helper()
	raw, err := fs.ReadFile(c.Recordings, name+".http")
	if err != nil {
		t.Fatal(err)
	}
	raw = bytes.ReplaceAll(raw, []byte("{{BIG}}"), bytes.Repeat([]byte("x"), 100<<10))
	head, body, ok := bytes.Cut(raw, []byte("\n\n"))
	resp, err := http.ReadResponse(bufio.NewReader(io.MultiReader(bytes.NewReader(head), strings.NewReader("\n\n"))), nil)
	if err != nil || !ok {
		t.Fatalf("%s.http: %v", name, err)
	}
	return &recording{status: resp.StatusCode, header: resp.Header, body: body}
}

// An answerer is a transport that answers by itself.
type answerer func(*http.Request) (*http.Response, error)

func (a answerer) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

func (r *recording) client(body io.ReadCloser) *http.Client {
	return &http.Client{Transport: answerer(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: r.status, Header: r.header, Body: body, ContentLength: -1}, nil
	})}
}

// Sent is the last request that a client of Play was given.
type Sent struct {
	Request *http.Request
	Body    []byte
}

// Play returns a client that answers with a recording, for a codec's own tests.
func Play(t testing.TB, c Codec, name string) (*http.Client, *Sent) {
	r, sent := load(t, c, name), &Sent{}
	return &http.Client{Transport: answerer(func(q *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(q.Body)
		sent.Request, sent.Body = q, body
		return &http.Response{StatusCode: r.status, Header: r.header, Body: io.NopCloser(bytes.NewReader(r.body))}, err
	})}, sent
}

// stream makes one call that the recording answers.
func stream(c Codec, r *recording) (model.Response, error) {
	return c.New(r.client(io.NopCloser(bytes.NewReader(r.body)))).Stream(context.Background(), Request(), nil)
}

// failed checks the promises about every error.
func failed(t *testing.T, err error) *model.Error {
	t.Helper()
	var e *model.Error
	if !errors.As(err, &e) {
		t.Fatalf("want a *model.Error, got %T: %v", err, err)
	}
	for _, s := range []string{canary, Key} {
		if strings.Contains(e.Error(), s) {
			t.Errorf("the error holds a secret or somebody's words: %s", e)
		}
		if e.Err != nil && strings.Contains(e.Err.Error(), s) {
			t.Errorf("the cause holds a secret or somebody's words: %s", e.Err)
		}
	}
	if e.Provider == "" || e.Model != "m-1" {
		t.Errorf("error without provider or model: %q %q", e.Provider, e.Model)
	}
	return e
}

// same compares parts; opaque bytes are a codec's own.
func same(want, got []model.Part) string {
	return cmp.Diff(want, got, cmpopts.IgnoreFields(model.Part{}, "Opaque", "From"), cmpopts.EquateEmpty())
}
