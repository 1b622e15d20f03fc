package ui

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/harness/record"
)

// A listener reads a stream over a real connection.
type listener struct {
	w    *world
	body io.ReadCloser
	r    *bufio.Reader
}

// A frame is one server-sent event.
type frame struct{ id, event, data string }

func (w *world) listen(ctx context.Context, url, last string) *listener {
	w.t.Helper()
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = res.Body.Close() })
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
		w.t.Fatalf("%s: status %d, %s", url, res.StatusCode, res.Header.Get("Content-Type"))
	}
	return &listener{w, res.Body, bufio.NewReader(res.Body)}
}

// next is the next event, zero at the end of the stream.
func (l *listener) next() (f frame) {
	l.w.t.Helper()
	for {
		line, err := l.r.ReadString('\n')
		if err != nil {
			return frame{}
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch name {
		case "id":
			f.id = value
		case "event":
			f.event = value
		case "data":
			f.data = value
		case "":
			if f.event != "" {
				return f
			}
		}
	}
}

// until reads up to an event and returns those before it.
func (l *listener) until(event string) (before []frame) {
	l.w.t.Helper()
	for {
		f := l.next()
		if f.event == event {
			return before
		}
		if f.event == "" {
			l.w.t.Fatalf("the stream ended before %s", event)
		}
		before = append(before, f)
	}
}

// records reads up to the record with a Seq.
func (l *listener) records(last int) (out []recordView) {
	l.w.t.Helper()
	for {
		f := l.next()
		var r recordView
		if err := json.Unmarshal([]byte(f.data), &r); err != nil {
			l.w.t.Fatalf("%+v: %v", f, err)
		}
		if f.event != r.Kind || f.id != fmt.Sprint(r.Seq) {
			l.w.t.Errorf("frame %s %s of record %d %s", f.id, f.event, r.Seq, r.Kind)
		}
		out = append(out, r)
		if r.Seq == int64(last) {
			return out
		}
	}
}

// A stream gives what has happened, says where that ends, and goes on with what
// happens; one that is begun again with the last id goes on after it, from
// wherever it broke off.
func TestStreamResumes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url := w.serves()
	w.work()
	w.begin("a", "one")
	w.begin("a", "two")
	s := w.listen(t.Context(), url+at+"a/stream", "")
	history := s.until("caught_up")
	var kinds []string
	for _, f := range history {
		kinds = append(kinds, f.event)
	}
	if diff := cmp.Diff([]string{"heard", "said", "settled", "heard", "said", "settled"}, kinds); diff != "" {
		t.Error(diff)
	}
	w.begin("a", "three")
	all := history
	for range 3 {
		all = append(all, s.next())
	}
	for cut := range all {
		again := w.listen(t.Context(), url+at+"a/stream", all[cut].id)
		rest := again.until("caught_up")
		if diff := cmp.Diff(all[cut+1:], append([]frame{}, rest...), cmp.AllowUnexported(frame{})); diff != "" {
			t.Errorf("from %s: %s", all[cut].id, diff)
		}
		_ = again.body.Close()
	}
	byQuery := w.listen(t.Context(), url+at+"a/stream?kind=settled&after="+all[0].id, "")
	if rest := byQuery.until("caught_up"); len(rest) != 3 || rest[0].event != "settled" {
		t.Errorf("by after and kind: %v", rest)
	}
}

// A conversation can be listened to before it exists.
func TestStreamBeforeTheConversation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url := w.serves()
	s := w.listen(t.Context(), url+at+"a/stream", "")
	if before := s.until("caught_up"); len(before) != 0 {
		t.Errorf("history of nothing: %v", before)
	}
	w.work()
	w.begin("a", "hello")
	if f := s.next(); f.event != "heard" || f.id != "1" || !strings.Contains(f.data, "hello") {
		t.Errorf("%+v", f)
	}
}

// inBubble streams into memory under a make-believe clock until test returns.
func inBubble(t *testing.T, test func(w *world, out *recorded)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, cancel := context.WithCancel(t.Context())
		req := httptest.NewRequestWithContext(ctx, "GET", at+"a/stream", nil)
		req.Header.Set("Authorization", "Bearer "+token)
		out := &recorded{head: http.Header{}}
		var wg sync.WaitGroup
		wg.Go(func() { w.api.ServeHTTP(out, req) })
		test(w, out)
		cancel()
		wg.Wait()
	})
}

// recorded keeps what was written, and may fail.
type recorded struct {
	head http.Header
	mu   sync.Mutex
	text strings.Builder
	err  error
}

func (r *recorded) Header() http.Header { return r.head }
func (r *recorded) WriteHeader(int)     {}
func (r *recorded) Flush()              {}

func (r *recorded) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return 0, r.err
	}
	return r.text.Write(p)
}

func (r *recorded) taken() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.text.String()
	r.text.Reset()
	return s
}

// A quiet stream lives and says so often enough for any proxy on its way.
func TestQuietStreamBeats(t *testing.T) {
	t.Parallel()
	inBubble(t, func(w *world, out *recorded) {
		synctest.Wait()
		if got := out.taken(); got != "retry: 1000\n\nevent: caught_up\ndata: {\"seq\":0}\n\n" {
			t.Errorf("begins with %q", got)
		}
		time.Sleep(400 * time.Second)
		synctest.Wait()
		beats := out.taken()
		if n := strings.Count(beats, ": alive\n\n"); n < 25 || n > 27 || len(beats) != n*len(": alive\n\n") {
			t.Errorf("%d beats in 400 seconds: %q", n, beats)
		}
		w.writes(mustThread(t, "assistant", "a"), record.Passed{Event: "e"})
		time.Sleep(lookEvery)
		synctest.Wait()
		if got := out.taken(); !strings.HasPrefix(got, "id: 1\nevent: passed\ndata: {") {
			t.Errorf("after the quiet: %q", got)
		}
	})
}

// A client that does not read loses its stream, and the place of it is free.
func TestStreamOfAClientThatHasGone(t *testing.T) {
	t.Parallel()
	inBubble(t, func(w *world, out *recorded) {
		synctest.Wait()
		out.mu.Lock()
		out.err = io.ErrClosedPipe
		out.mu.Unlock()
		time.Sleep(beatEvery + time.Second)
		synctest.Wait()
		if n := len(w.api.waits); n != 0 {
			t.Errorf("%d places are taken", n)
		}
	})
}

// Streams and long polls are bounded; a client is told to come back.
func TestTooManyStreams(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want(202, "POST", at+"a/messages", obj{"text": "x", "key": "k"})
	for range mostWaits {
		w.api.waits <- struct{}{}
	}
	for _, path := range []string{at + "a/stream", "/api/v1/events/api/api:k?wait=1s"} {
		rec := w.do("GET", path, nil)
		if rec.Code != 429 || rec.Header().Get("Retry-After") == "" {
			t.Errorf("%s: status %d", path, rec.Code)
		}
	}
	<-w.api.waits
	w.want(200, "GET", "/api/v1/events/api/api:k?wait=1ms", nil)
	if n := len(w.api.waits); n != mostWaits-1 {
		t.Errorf("%d places are taken", n)
	}
}

// When the gateway stops, streams and long polls end at once, and a stream is
// longer than a request may take to come in.
func TestServeEndsStreams(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want(202, "POST", at+"a/messages", obj{"text": "x", "key": "k"})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	served := make(chan error, 1)
	const readTime = 100 * time.Millisecond
	go func() { served <- serve(ctx, ln, w.api, slog.New(slog.DiscardHandler), readTime) }()
	url := "http://" + ln.Addr().String()
	s := w.listen(t.Context(), url+at+"a/stream", "")
	s.until("caught_up")
	<-time.After(3 * readTime)
	w.writes(mustThread(t, "assistant", "a"), record.Passed{Event: "e"})
	if f := s.next(); f.event != "passed" {
		t.Errorf("after the time for reading: %+v", f)
	}
	began := time.Now()
	cancel()
	if f := s.next(); f != (frame{}) {
		t.Errorf("after the stop: %+v", f)
	}
	if err := <-served; err != nil || time.Since(began) > 3*time.Second {
		t.Errorf("stopped in %v: %v", time.Since(began), err)
	}
}
