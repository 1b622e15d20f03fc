package client

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// pieces hands out a text in two pieces.
type pieces struct{ rest []string }

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.rest[0])
	if p.rest[0] = p.rest[0][n:]; p.rest[0] == "" {
		p.rest = p.rest[1:]
	}
	return n, nil
}

func read(r io.Reader) (out []string) {
	frames := reader{r: bufio.NewReaderSize(r, 16), alive: func() {}}
	for {
		event, data, err := frames.next()
		if err != nil {
			return out
		}
		out = append(out, event+"="+data)
	}
}

// The same bytes are the same events, wherever the network cuts them.
func TestFraming(t *testing.T) {
	t.Parallel()
	want := []string{"heard={\"text\":\"schön 🧵\"}", "=a\nb\n", "said= two", "caught_up={}"}
	for name, end := range map[string]string{"LF": "\n", "CR LF": "\r\n", "CR": "\r"} {
		text := strings.ReplaceAll(strings.Join([]string{
			"retry: 1000", "", ": alive", "", "id: 1", "event: heard", "data: {\"text\":\"schön 🧵\"}", "",
			"event: lost", "", "data: a", "data:b", "data", "", ": alive", "event:said", "data:  two", "id: 2", "", "", "event: caught_up", "data: {}", "", "data: torn",
		}, "\n"), "\n", end)
		for cut := range text {
			if diff := cmp.Diff(want, read(&pieces{[]string{text[:cut], text[cut:]}})); diff != "" {
				t.Fatalf("%s, cut at %d: %s", name, cut, diff)
			}
		}
		if diff := cmp.Diff(want, read(iotest.OneByteReader(strings.NewReader(text)))); diff != "" {
			t.Errorf("%s, byte by byte: %s", name, diff)
		}
	}
	if got := read(io.LimitReader(endless{}, mostFrame+100)); got != nil {
		t.Errorf("%d events out of a line without an end", len(got))
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}

// A server that closes streams, mid-record or mid-line or by an error, costs
// neither a record nor patience: the client is back within a second each time.
func TestStreamGoesOn(t *testing.T) {
	t.Parallel()
	const records = 40
	var opened atomic.Int64
	var began atomic.Pointer[time.Time]
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := opened.Add(1)
		if at := began.Load(); at != nil && time.Since(*at) > 20*time.Second { // the silence that ends a stream takes 45
			t.Errorf("back after %v", time.Since(*at))
		}
		defer func() { now := time.Now(); began.Store(&now) }()
		if n%5 == 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		after := 0
		if last := r.Header.Get("Last-Event-ID"); last != "" {
			if _, err := fmt.Sscan(last, &after); err != nil {
				t.Error(err)
			}
		}
		var b strings.Builder
		b.WriteString("event: caught_up\ndata: {}\n\n")
		for seq := after + 1; seq <= min(after+3, records); seq++ {
			fmt.Fprintf(&b, "id: %d\nevent: said\ndata: {\"seq\":%d,\"kind\":\"said\"}\n\n", seq, seq)
		}
		text := b.String()
		_, _ = io.WriteString(w, text[:len(text)-int(n)%4]) // the end may be torn
		w.(http.Flusher).Flush()
		if n%3 == 0 {
			panic(http.ErrAbortHandler)
		}
	}))
	defer srv.Close()
	c := &Client{URL: srv.URL}
	var got []int64
	marks := 0
	for u, err := range c.Stream(t.Context(), Ref{ID: "c"}, 0, Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if u.CaughtUp {
			marks++
			continue
		}
		if got = append(got, u.Seq); u.Seq == records {
			break
		}
	}
	var want []int64
	for seq := range int64(records) {
		want = append(want, seq+1)
	}
	if !slices.Equal(got, want) || marks != 1 {
		t.Errorf("%d marks, records %v", marks, got)
	}
	if opened.Load() < records/3 {
		t.Errorf("%d connections", opened.Load())
	}
}

// A stream that says nothing at all is dead and made again; one that beats is
// left alone, however long it is quiet.
func TestSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var began []time.Duration
		start := time.Now()
		c := &Client{URL: "http://gateway", HTTP: &http.Client{Transport: transport(func(r *http.Request) *http.Response {
			began = append(began, time.Since(start))
			body, w := io.Pipe()
			go func() {
				_, _ = io.WriteString(w, "event: caught_up\ndata: {}\n\n")
				for range 40 { // ten minutes
					time.Sleep(15 * time.Second)
					if len(began) > 1 || r.Context().Err() != nil {
						break
					}
					_, _ = io.WriteString(w, ": alive\n\n")
				}
				<-r.Context().Done()
				_ = w.CloseWithError(r.Context().Err())
			}()
			return &http.Response{StatusCode: 200, Body: body}
		})}}
		ctx, cancel := context.WithTimeout(t.Context(), 11*time.Minute)
		defer cancel()
		var last error
		for _, last = range c.Stream(ctx, Ref{ID: "c"}, 0, Filter{}) {
		}
		if last != context.DeadlineExceeded {
			t.Errorf("ended with %v", last)
		}
		var seconds []int
		for _, d := range began {
			seconds = append(seconds, int(d/time.Second))
		}
		if diff := cmp.Diff([]int{0, 645}, seconds); diff != "" {
			t.Errorf("connections began at: %s", diff)
		}
	})
}

type transport func(*http.Request) *http.Response

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }
