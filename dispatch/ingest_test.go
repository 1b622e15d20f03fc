package dispatch

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
	"github.com/heddlehq/heddle/state/mem"
	"github.com/heddlehq/heddle/state/sqlite"
)

// newDoor is a gateway that only takes deliveries in.
func newDoor(store state.Store, f *fake, log io.Writer) *Gateway {
	return New(Options{
		Store: store, Channels: []channels.Channel{f}, Routes: []Route{{On: []string{"fake.*"}, Agent: "a"}},
		Owner: "here", Clock: time.Now, Logger: slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
}

func good(body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/fake/events", strings.NewReader(body))
	r.Header = http.Header{"Content-Type": {"application/json; charset=utf-8"}, "Pass": {"secret"}}
	return r
}

const oneEvent = `[{"id":"e1","kind":"mention","topic":"mention","thread":{"channel":"fake","account":"A","room":"r","root":"1"},"author":{"id":"U1"},"text":"words"}]`

// TestDeliveries holds the checks to their order and statuses: what is wrong
// in several ways is refused by the first of them, and no answer says why.
func TestDeliveries(t *testing.T) {
	t.Parallel()
	big := strings.Repeat(" ", 1<<10) + "[]"
	method := func(m string) func(*http.Request) { return func(r *http.Request) { r.Method = m } }
	header := func(k string, v ...string) func(*http.Request) {
		return func(r *http.Request) {
			r.Header[k] = v
			if len(v) == 0 {
				delete(r.Header, k)
			}
		}
	}
	chunked := func(r *http.Request) { r.ContentLength = -1 }
	for _, tc := range []struct {
		name   string
		body   string
		change []func(*http.Request)
		status int
		reason string // counted
	}{
		{"good", oneEvent, nil, 200, ""},
		{"good and chunked", oneEvent, []func(*http.Request){chunked}, 200, ""},
		{"identity", oneEvent, []func(*http.Request){header("Content-Encoding", "identity")}, 200, ""},
		{"as large as allowed", strings.Repeat(" ", 1<<10-2) + "[]", nil, 200, ""},
		{"get", "", []func(*http.Request){method("GET")}, 405, "refused: method"},
		{"head", "", []func(*http.Request){method("HEAD")}, 405, "refused: method"},
		{"options", "", []func(*http.Request){method("OPTIONS")}, 405, "refused: method"},
		{"unknown method", oneEvent, []func(*http.Request){method("BREW")}, 405, "refused: method"},
		{"method before all", big, []func(*http.Request){method("PUT"), header("Content-Type", "text/plain"), header("Pass")}, 405, "refused: method"},
		{"other type", oneEvent, []func(*http.Request){header("Content-Type", "text/plain")}, 415, "refused: media type"},
		{"no type", oneEvent, []func(*http.Request){header("Content-Type")}, 415, "refused: media type"},
		{"torn type", oneEvent, []func(*http.Request){header("Content-Type", "application/json; charset")}, 415, "refused: media type"},
		{"two types", oneEvent, []func(*http.Request){header("Content-Type", "application/json", "application/json")}, 415, "refused: media type"},
		{"compressed", oneEvent, []func(*http.Request){header("Content-Encoding", "gzip")}, 415, "refused: content encoding"},
		{"compressed behind identity", oneEvent, []func(*http.Request){header("Content-Encoding", "identity", "gzip")}, 415, "refused: content encoding"},
		{"type before size", big, []func(*http.Request){header("Content-Type", "text/plain")}, 415, "refused: media type"},
		{"too large", big, nil, 413, "refused: too large"},
		{"too large and chunked", big, []func(*http.Request){chunked}, 413, "refused: too large"},
		{"size before signature", big, []func(*http.Request){header("Pass")}, 413, "refused: too large"},
		{"no signature", oneEvent, []func(*http.Request){header("Pass")}, 401, "refused: not verified"},
		{"wrong signature", oneEvent, []func(*http.Request){header("Pass", "guess")}, 401, "refused: not verified"},
		{"two signatures", oneEvent, []func(*http.Request){header("Pass", "secret", "secret")}, 401, "refused: not verified"},
		{"signature before parsing", "{", []func(*http.Request){header("Pass")}, 401, "refused: not verified"},
		{"stale", "stale", nil, 401, "refused: outside the time window"},
		{"malformed", "{", nil, 400, "refused: malformed"},
		{"empty", "", nil, 400, "refused: malformed"},
		{"shorter than declared", "[]", []func(*http.Request){func(r *http.Request) { r.Body = io.NopCloser(&torn{}) }}, 400, "refused: body not read"},
		{"panic", "panic", nil, 500, "refused: panicked"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			log := &logs{}
			store := &faulty{Store: mem.Open(nil)}
			admitted := 0
			store.admit = func(ctx context.Context, in []state.Admit) ([]state.Admission, error) {
				admitted += len(in)
				return store.Store.Admit(ctx, in)
			}
			f := &fake{}
			if tc.body == "panic" {
				f.receive = func([]byte) (channels.Inbound, error) { panic("words") }
			}
			g := newDoor(store, f, log)
			req, rec := good(tc.body), httptest.NewRecorder()
			for _, c := range tc.change {
				c(req)
			}
			g.Handler().ServeHTTP(rec, req)
			if rec.Code != tc.status {
				t.Errorf("status %d, want %d", rec.Code, tc.status)
			}
			text := strings.TrimSpace(rec.Body.String())
			if want := http.StatusText(tc.status); tc.status != 200 && text != want {
				t.Errorf("the answer is %q, want %q", text, want)
			}
			if got := rec.Header().Get("Allow"); (got == "POST") != (tc.status == 405) {
				t.Errorf("allow: %q", got)
			}
			if got := rec.Header().Get("Connection"); (got == "close") != (tc.status == 413) {
				t.Errorf("connection: %q", got)
			}
			counted := map[string]int{}
			if tc.reason != "" {
				counted[tc.reason] = 1
			}
			if diff := cmp.Diff(counted, log.counted()); diff != "" {
				t.Errorf("counted: %s", diff)
			}
			if want := strings.Count(tc.body, `"id":"e1"`); tc.status == 200 && admitted != want || tc.status != 200 && admitted > 0 {
				t.Errorf("%d events were admitted", admitted)
			}
			if n := len(log.find("recovered from a panic")); (n == 1) != (tc.status == 500) {
				t.Errorf("%d panics logged", n)
			}
		})
	}
}

// torn is a body whose sender went away.
type torn struct{}

func (torn) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// A body without end is read to the limit and no further.
func TestEndlessBody(t *testing.T) {
	t.Parallel()
	var read atomic.Int64
	g := newDoor(mem.Open(nil), &fake{}, io.Discard)
	req, rec := good(""), httptest.NewRecorder()
	req.Body, req.ContentLength = io.NopCloser(endless{&read}), -1
	g.Handler().ServeHTTP(rec, req)
	if rec.Code != 413 || read.Load() > 1<<10+1 {
		t.Errorf("status %d after %d bytes", rec.Code, read.Load())
	}
	read.Store(0)
	req, rec = good(""), httptest.NewRecorder()
	req.Body, req.ContentLength = io.NopCloser(endless{&read}), 1<<40
	g.Handler().ServeHTTP(rec, req)
	if rec.Code != 413 || read.Load() > 0 {
		t.Errorf("declared: status %d after %d bytes", rec.Code, read.Load())
	}
}

type endless struct{ n *atomic.Int64 }

func (e endless) Read(p []byte) (int, error) { e.n.Add(int64(len(p))); return len(p), nil }

func TestOtherPaths(t *testing.T) {
	t.Parallel()
	g := newDoor(mem.Open(nil), &fake{}, io.Discard)
	for _, path := range []string{"/", "/fake", "/fake/other", "/fake/events/more", "/other/events", "/fake/events/"} {
		req := good(oneEvent)
		req.URL.Path = path
		rec := httptest.NewRecorder()
		g.Handler().ServeHTTP(rec, req)
		if rec.Code != 404 || rec.Body.String() != "Not Found\n" {
			t.Errorf("%s: %d %q", path, rec.Code, rec.Body)
		}
	}
}

func TestReplyAndIgnored(t *testing.T) {
	t.Parallel()
	log := &logs{}
	f := &fake{receive: func([]byte) (channels.Inbound, error) {
		return channels.Inbound{Reply: []byte(`{"challenge":"x"}`), ReplyType: "application/json", Ignored: []channels.Ignored{{ID: "e1", Reason: "own message"}}}, nil
	}}
	rec := httptest.NewRecorder()
	newDoor(mem.Open(nil), f, log).Handler().ServeHTTP(rec, good("{}"))
	if rec.Code != 200 || rec.Body.String() != `{"challenge":"x"}` || rec.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%d %q %v", rec.Code, rec.Body, rec.Header())
	}
	if diff := cmp.Diff(map[string]int{"ignored: own message": 1}, log.counted()); diff != "" {
		t.Error(diff)
	}
	rec = httptest.NewRecorder()
	newDoor(mem.Open(nil), &fake{}, io.Discard).Handler().ServeHTTP(rec, good("[]"))
	if rec.Code != 200 || rec.Body.Len() != 0 {
		t.Errorf("nothing to say: %d %q", rec.Code, rec.Body)
	}
}

// TestRedelivery pins that a delivery that comes again, five times and all at
// once, runs nothing again, and that the same id with other words is noticed.
func TestRedelivery(t *testing.T) {
	t.Parallel()
	var w *world
	var turns, events atomic.Int32
	bubble(t, func(made *world) {
		w = made
		w.run()
		e := event("e1", chat.Mention, thread("r", "1"))
		for range 5 {
			go func() {
				if status := w.deliver(e); status != 200 {
					t.Errorf("status %d", status)
				}
			}()
		}
		synctest.Wait()
		w.pass(time.Hour)
		if status := w.deliver(e); status != 200 {
			t.Errorf("status %d", status)
		}
		e.Text = "other words"
		if status := w.deliver(e); status != 200 {
			t.Errorf("status %d", status)
		}
		synctest.Wait()
		if turns.Load() != 1 || events.Load() != 1 {
			t.Errorf("%d turns with %d events, want 1 and 1", turns.Load(), events.Load())
		}
		if _, err := w.drained(); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(map[string]int{"duplicate": 5, "event id came again with other content": 1}, w.log.counted()); diff != "" {
			t.Error(diff)
		}
	}, withEngine(func(ctx, _ context.Context, l state.Lease) error {
		turns.Add(1)
		events.Add(int32(l.Conversation.Inbox))
		return w.settle(ctx, l)
	}))
}

// The answer is given when the store has committed, not before.
func TestAnsweredWhenAdmitted(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		commit := make(chan struct{})
		w.store.admit = func(ctx context.Context, in []state.Admit) ([]state.Admission, error) {
			<-commit
			return w.store.Store.Admit(ctx, in)
		}
		w.run()
		var answered atomic.Bool
		go func() {
			w.deliver(event("e1", chat.Mention, thread("r", "1")))
			answered.Store(true)
		}()
		synctest.Wait()
		if answered.Load() {
			t.Error("answered before the commit")
		}
		close(commit)
		synctest.Wait()
		if !answered.Load() {
			t.Error("not answered after the commit")
		}
	})
}

// A provider that hangs up does not undo the admission that it asked for.
func TestHangUp(t *testing.T) {
	t.Parallel()
	g := newDoor(nil, &fake{}, io.Discard)
	ctx, hangUp := context.WithCancel(t.Context())
	store := &faulty{Store: mem.Open(nil)}
	store.admit = func(ctx context.Context, in []state.Admit) ([]state.Admission, error) {
		hangUp()
		return store.Store.Admit(ctx, in)
	}
	g.Store = store
	g.Handler().ServeHTTP(httptest.NewRecorder(), good(oneEvent).WithContext(ctx))
	if _, err := store.Event(t.Context(), "fake", "e1"); err != nil {
		t.Error(err)
	}
}

// A store that cannot commit: 503, not ready, and ready again when it can.
func TestStoreFails(t *testing.T) {
	t.Parallel()
	for name, admit := range map[string]func(context.Context) error{
		"error": func(context.Context) error { return errors.New("disk full") },
		"hangs": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(w *world) {
				e := event("e1", chat.Mention, thread("r", "1"))
				ready := func(want int) {
					t.Helper()
					if got, text := w.get("/readyz"); got != want {
						t.Errorf("%v: readyz says %d %q, want %d", w.at(), got, text, want)
					}
					if got, _ := w.get("/livez"); got != 200 {
						t.Errorf("livez says %d", got)
					}
				}
				w.run()
				ready(200)
				broken := errors.New("disk full")
				w.store.admit = func(ctx context.Context, _ []state.Admit) ([]state.Admission, error) { return nil, admit(ctx) }
				w.store.check = func(context.Context) error { return broken }
				ready(200) // as of a moment ago
				began := time.Now()
				rec := httptest.NewRecorder()
				body, _ := json.Marshal([]chat.Event{e})
				w.gw.Handler().ServeHTTP(rec, good(string(body)))
				if rec.Code != 503 || rec.Header().Get("Retry-After") != "1" || rec.Body.String() != "Service Unavailable\n" || time.Since(began) > 3*time.Second {
					t.Errorf("after %v: %d %q %v", time.Since(began), rec.Code, rec.Body, rec.Header())
				}
				ready(503)
				broken = nil
				ready(503) // as of a moment ago
				w.pass(time.Second)
				ready(200)
				w.store.admit = nil
				if got := w.deliver(e); got != 200 {
					t.Errorf("the retry got %d", got)
				}
				if len(w.log.find("events not admitted")) != 1 || w.log.counted()["refused: store failed"] != 1 {
					t.Error("not logged")
				}
			})
		})
	}
}

// One who asks for readiness and hangs up does not make others see a broken store.
func TestReadyzHangUp(t *testing.T) {
	t.Parallel()
	g := newDoor(mem.Open(nil), &fake{}, io.Discard)
	ctx, hangUp := context.WithCancel(t.Context())
	hangUp()
	for _, ctx := range []context.Context{ctx, t.Context()} {
		rec := httptest.NewRecorder()
		g.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/readyz", nil).WithContext(ctx))
		if rec.Code != 200 || rec.Body.String() != "ready\n" {
			t.Errorf("%d %q", rec.Code, rec.Body)
		}
	}
}

// A sender of headers or of a body that comes too slowly is cut off.
func TestSlowSenders(t *testing.T) {
	t.Parallel()
	const head = "POST /fake/events HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nPass: secret\r\n"
	for name, tc := range map[string]struct {
		bytes string
		most  time.Duration
	}{
		"headers": {"POST /fake/events HTTP/1.1\r\nHost", 5 * time.Second},
		"body":    {head + "Content-Length: 100\r\n\r\n[", 15 * time.Second},
		"chunks":  {head + "Transfer-Encoding: chunked\r\n\r\n1\r\n[\r\n", 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(w *world) {
				w.run()
				c, err := w.front.dial()
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.WriteString(c, tc.bytes); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				got, err := io.ReadAll(bufio.NewReader(c))
				if err != nil || strings.Contains(string(got), "200 OK") {
					t.Errorf("%q, %v", got, err)
				}
				if took := time.Since(began); took > tc.most+time.Second {
					t.Errorf("cut off after %v, want %v", took, tc.most)
				}
				_ = c.Close()
			})
		})
	}
}

// TestAckSpeed pins the acknowledgement of 200 deliveries a second, over HTTP
// and on disk, with turns and posts going on beside it: the 99th percentile is
// below 500 ms. The machine may be busy with other things, so one round of
// three has to pass.
func TestAckSpeed(t *testing.T) {
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const deliveries, every, threads = 200, 5 * time.Millisecond, 50
	w := &world{T: t, store: &faulty{Store: store}, front: newPipes()}
	posted := make(chan struct{}, 3*deliveries)
	o := newDoor(store, &fake{send: func(context.Context, chat.Post) (string, error) {
		posted <- struct{}{}
		return "ref", nil
	}}, io.Discard).Options
	o.Engine = engineFunc(func(ctx, _ context.Context, l state.Lease) error { return w.settle(ctx, l, "answer") })
	g := New(o)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx, w.front) }()
	round := func(n int) (p99 time.Duration) {
		tick := time.NewTicker(every)
		defer tick.Stop()
		took := make([]time.Duration, deliveries)
		var wg sync.WaitGroup
		for i := range deliveries {
			<-tick.C
			wg.Go(func() {
				began := time.Now()
				if status := w.deliver(event(fmt.Sprint(n, i), chat.Mention, thread("r", fmt.Sprint(i%threads)))); status != 200 {
					t.Errorf("status %d", status)
				}
				took[i] = time.Since(began)
			})
		}
		wg.Wait()
		slices.Sort(took)
		return took[deliveries*99/100]
	}
	for n := 1; ; n++ {
		p99 := round(n)
		t.Logf("p99 of the acknowledgements at 200/s: %v", p99)
		if p99 < 500*time.Millisecond {
			break
		}
		if n == 3 {
			t.Error("too slow")
			break
		}
	}
	<-posted // turns and posts did go on
	stop()
	if err := errors.Join(<-ended, store.Close()); err != nil {
		t.Error(err)
	}
}

func BenchmarkIngest(b *testing.B) {
	h := newDoor(mem.Open(nil), &fake{}, io.Discard).Handler()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, good(strings.Replace(oneEvent, "e1", fmt.Sprint(i), 1)))
		if rec.Code != 200 {
			b.Fatal(rec.Code)
		}
	}
}

// TestEventThatCannotBeStored pins that a provider is not made to retry what
// no retry would change, and that what came with it is admitted.
func TestEventThatCannotBeStored(t *testing.T) {
	t.Parallel()
	log := &logs{}
	store := mem.Open(nil)
	f := &fake{receive: func([]byte) (channels.Inbound, error) {
		return channels.Inbound{Events: []chat.Event{
			event("e1", chat.Mention, thread("r", strings.Repeat("x", chat.MaxKeyBytes))), event("e2", chat.Mention, thread("r", "1")),
		}}, nil
	}}
	rec := httptest.NewRecorder()
	newDoor(store, f, log).Handler().ServeHTTP(rec, good("{}"))
	if rec.Code != 200 {
		t.Errorf("status %d", rec.Code)
	}
	if log.counted()["refused: cannot be stored"] != 1 {
		t.Errorf("counted %v", log.counted())
	}
	if a, err := store.Event(t.Context(), "fake", "e2"); err != nil || a.Reason != "" {
		t.Errorf("the other event: %+v, %v", a, err)
	}
}

// TestBodiesAreBounded pins that senders who have shown nothing yet cannot fill
// the memory: beyond a budget they are asked to come again.
func TestBodiesAreBounded(t *testing.T) {
	t.Parallel()
	g := newDoor(mem.Open(nil), &fake{}, io.Discard)
	g.bodies.Store(mostBodies - 10)
	for size, want := range map[int]int{10: 200, 11: 503} {
		rec := httptest.NewRecorder()
		g.Handler().ServeHTTP(rec, good(strings.Repeat(" ", size-2)+"[]"))
		if rec.Code != want || (want == 503) != (rec.Header().Get("Retry-After") == "1") {
			t.Errorf("%d bytes: status %d, want %d", size, rec.Code, want)
		}
	}
	// Who announces much and sends nothing takes nothing from others.
	g.bodies.Store(mostBodies - 1010)
	slow, end := io.Pipe()
	held := good("")
	held.Body, held.ContentLength = slow, 1000
	answered := make(chan int)
	go func() {
		rec := httptest.NewRecorder()
		g.Handler().ServeHTTP(rec, held)
		answered <- rec.Code
	}()
	if _, err := end.Write([]byte("[")); err != nil {
		t.Fatal(err)
	}
	rec := httptest.NewRecorder()
	g.Handler().ServeHTTP(rec, good(strings.Repeat(" ", 100)+"[]"))
	if rec.Code != 200 {
		t.Errorf("beside a slow one: status %d", rec.Code)
	}
	if err := end.Close(); err != nil {
		t.Fatal(err)
	}
	if code := <-answered; code != 400 && code != 200 {
		t.Errorf("the slow one: status %d", code)
	}
	if n := g.bodies.Load(); n != mostBodies-1010 {
		t.Errorf("%d bytes are held after all answers", n-(mostBodies-1010))
	}
}
