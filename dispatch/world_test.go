package dispatch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
	"github.com/heddlehq/heddle/state/mem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A world is a gateway over the reference store in a bubble of its own time.
type world struct {
	*testing.T
	store *faulty
	chat  *fake
	log   *logs
	front *pipes
	gw    *Gateway
	began time.Time
	stop  context.CancelFunc
	ended chan error
}

// bubble runs a test with a gateway that has to be started. Goroutines that
// outlive the test fail it.
func bubble(t *testing.T, test func(w *world), change ...func(*Options)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, store: &faulty{Store: mem.Open(nil)}, chat: &fake{}, log: &logs{}, front: newPipes(), began: time.Now(), ended: make(chan error, 1)}
		o := Options{
			Store: w.store, Channels: []channels.Channel{w.chat}, Routes: []Route{{On: []string{"fake.*"}, Agent: "a"}},
			Owner: "here", Clock: time.Now, Logger: slog.New(slog.NewJSONHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		}
		o.Engine = engineFunc(func(ctx, _ context.Context, l state.Lease) error { return w.settle(ctx, l) })
		for _, c := range change {
			c(&o)
		}
		w.chat.start = w.began
		w.gw = New(o)
		test(w)
		if w.stop != nil {
			w.stop()
			if err := <-w.ended; err != nil {
				t.Errorf("run ended with %v", err)
			}
		}
	})
}

func withEngine(f engineFunc) func(*Options) { return func(o *Options) { o.Engine = f } }

func (w *world) run() {
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	go func() { w.ended <- w.gw.Run(ctx, w.front) }()
	synctest.Wait()
}

// drained stops the gateway, waits for its end and says how long that took.
func (w *world) drained() (time.Duration, error) {
	began := time.Now()
	w.stop()
	w.stop = nil
	err := <-w.ended
	return time.Since(began), err
}

// pass lets time pass and waits for what that sets off.
func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// at is the time since the test began.
func (w *world) at() time.Duration { return time.Since(w.began) }

// hear admits a mention in each of the rooms' thread "1".
func (w *world) hear(rooms ...string) {
	w.Helper()
	for _, r := range rooms {
		e := event("mention "+r, chat.Mention, thread(r, "1"))
		if _, err := w.gw.admit(w.Context(), []chat.Event{e}); err != nil {
			w.Fatal(err)
		}
	}
}

// settle answers what is in the inbox with posts of the texts.
func (w *world) settle(ctx context.Context, l state.Lease, texts ...string) error {
	v, err := w.store.Load(ctx, l.Conversation.ID, 0)
	if err != nil {
		return err
	}
	b := state.Batch{Release: true}
	for _, e := range v.Inbox {
		b.Taken = e.Seq
	}
	for i, text := range texts {
		b.Posts = append(b.Posts, chat.Post{Key: fmt.Sprintf("%s/%d/%d", l.Conversation.ID, b.Taken, i), Thread: l.Conversation.Thread, Text: text})
	}
	_, err = w.store.Commit(ctx, l, b)
	return err
}

// queue puts posts into the outbox, past the gateway.
func (w *world) queue(t chat.Thread, texts ...string) {
	w.Helper()
	e := event("for "+t.Key()+texts[0], chat.Mention, t)
	if _, err := w.store.Store.Admit(w.Context(), []state.Admit{{Event: e, Agent: "a"}}); err != nil {
		w.Fatal(err)
	}
	l, err := w.store.Store.Claim(w.Context(), "test", time.Minute)
	if err != nil {
		w.Fatal(err)
	}
	if err := w.settle(w.Context(), l, texts...); err != nil {
		w.Fatal(err)
	}
}

// posts reads the outbox of a thread.
func (w *world) posts(t chat.Thread) []state.PostView {
	w.Helper()
	p, err := w.store.Posts(w.Context(), state.ConversationID("a", t))
	if err != nil {
		w.Fatal(err)
	}
	return p
}

func thread(room, root string) chat.Thread {
	return chat.Thread{Channel: "fake", Account: "A", Room: room, Root: root}
}

func event(id string, k chat.Kind, t chat.Thread) chat.Event {
	return chat.Event{ID: id, Kind: k, Topic: string(k), Thread: t, Author: chat.Author{ID: "U1", Account: "A"}, Text: "words"}
}

type engineFunc func(ctx, soft context.Context, l state.Lease) error

func (f engineFunc) Run(ctx, soft context.Context, l state.Lease) error { return f(ctx, soft, l) }

// A fake is a channel whose every answer a test may choose. Its deliveries
// are JSON of events, verified by the header Pass.
type fake struct {
	receive func(body []byte) (channels.Inbound, error)
	send    func(ctx context.Context, p chat.Post) (string, error)
	find    func(ctx context.Context, p chat.Post) (string, error)
	limits  channels.Limits
	start   time.Time

	mu    sync.Mutex
	calls []call
}

// A call is one request to the provider.
type call struct {
	At   time.Duration // since the start
	Op   string
	Text string
}

func (f *fake) Name() string { return "fake" }

func (f *fake) Routes() []channels.Route {
	return []channels.Route{{Name: "events", MediaTypes: []string{"application/json"}, MaxBytes: 1 << 10}}
}

func (f *fake) Receive(_ string, h http.Header, body []byte, now time.Time) (channels.Inbound, error) {
	if p := h.Values("Pass"); len(p) != 1 || p[0] != "secret" {
		return channels.Inbound{}, fmt.Errorf("pass: %w", channels.ErrUnverified)
	}
	if f.receive != nil {
		return f.receive(body)
	}
	if bytes.HasPrefix(body, []byte("stale")) {
		return channels.Inbound{}, fmt.Errorf("at %v: %w", now, channels.ErrStale)
	}
	var in channels.Inbound
	if err := json.Unmarshal(body, &in.Events); err != nil {
		return channels.Inbound{}, fmt.Errorf("body: %w", channels.ErrMalformed)
	}
	return in, nil
}

func (f *fake) Limits() channels.Limits { return f.limits }
func (f *fake) Compose(markdown string, _ chat.Role) []string {
	return []string{"composed " + markdown}
}

func (f *fake) Send(ctx context.Context, p chat.Post) (string, error) {
	f.called("send", p)
	if f.send == nil {
		return "ref " + p.Text, nil
	}
	return f.send(ctx, p)
}

func (f *fake) Find(ctx context.Context, p chat.Post, since time.Time) (string, error) {
	f.called("find", p)
	if since.IsZero() || since.After(time.Now()) {
		return "", fmt.Errorf("since %v", since)
	}
	if f.find == nil {
		return "", nil
	}
	return f.find(ctx, p)
}

func (f *fake) called(op string, p chat.Post) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, call{time.Since(f.start), op, p.Text})
}

func (f *fake) made() []call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]call(nil), f.calls...)
}

// blind is a fake that cannot look.
type blind struct{ f *fake }

func (b blind) Name() string            { return b.f.Name() }
func (b blind) Limits() channels.Limits { return b.f.limits }
func (b blind) Compose(markdown string, trust chat.Role) []string {
	return b.f.Compose(markdown, trust)
}

func (b blind) Send(ctx context.Context, p chat.Post) (string, error) {
	return b.f.Send(ctx, p)
}

// A faulty store is one whose calls a test may answer itself.
type faulty struct {
	state.Store
	admit      func(context.Context, []state.Admit) ([]state.Admission, error)
	claim      func(context.Context) (state.Lease, error)
	waitReady  func(context.Context) error
	renew      func(context.Context, state.Lease) error
	claimPosts func(context.Context, int) ([]state.Effect, error)
	settle     func(context.Context) error
	check      func(context.Context) error
	renewed    atomic.Int32
}

func (f *faulty) Admit(ctx context.Context, in []state.Admit) ([]state.Admission, error) {
	if f.admit != nil {
		return f.admit(ctx, in)
	}
	return f.Store.Admit(ctx, in)
}

func (f *faulty) Claim(ctx context.Context, owner string, ttl time.Duration) (state.Lease, error) {
	if f.claim != nil {
		return f.claim(ctx)
	}
	return f.Store.Claim(ctx, owner, ttl)
}

func (f *faulty) WaitReady(ctx context.Context) error {
	if f.waitReady != nil {
		return f.waitReady(ctx)
	}
	return f.Store.WaitReady(ctx)
}

func (f *faulty) Renew(ctx context.Context, l state.Lease, ttl time.Duration) (state.Lease, error) {
	f.renewed.Add(1)
	if f.renew != nil {
		if err := f.renew(ctx, l); err != nil {
			return state.Lease{}, err
		}
	}
	return f.Store.Renew(ctx, l, ttl)
}

func (f *faulty) ClaimPosts(ctx context.Context, owner string, n int, ttl time.Duration) ([]state.Effect, error) {
	if f.claimPosts != nil {
		return f.claimPosts(ctx, n)
	}
	return f.Store.ClaimPosts(ctx, owner, n, ttl)
}

func (f *faulty) SettlePost(ctx context.Context, e state.Effect, o state.Outcome) error {
	if f.settle != nil {
		if err := f.settle(ctx); err != nil {
			return err
		}
	}
	return f.Store.SettlePost(ctx, e, o)
}

func (f *faulty) Check(ctx context.Context) error {
	if f.check != nil {
		return f.check(ctx)
	}
	return f.Store.Check(ctx)
}

// logs keeps what was logged.
type logs struct {
	mu  sync.Mutex
	all []map[string]any
}

func (l *logs) Write(line []byte) (int, error) {
	var r map[string]any
	if err := json.Unmarshal(line, &r); err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, r)
	return len(line), nil
}

// find lists what was logged with the message.
func (l *logs) find(msg string) []map[string]any {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []map[string]any
	for _, r := range l.all {
		if r["msg"] == msg {
			out = append(out, r)
		}
	}
	return out
}

// counted sums what the tally logged, by reason.
func (l *logs) counted() map[string]int {
	sum := map[string]int{}
	for _, r := range l.find("delivery counted") {
		sum[r["reason"].(string)] += int(r["count"].(float64))
	}
	return sum
}

// pipes is a listener in memory, so that connections live in a test's own time.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes {
	return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial() (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// get asks the running gateway for a path.
func (w *world) get(path string) (int, string) {
	w.Helper()
	req, err := http.NewRequestWithContext(w.Context(), http.MethodGet, "http://gateway"+path, nil)
	if err != nil {
		w.Fatal(err)
	}
	return w.do(req)
}

// deliver hands events in by the front door.
func (w *world) deliver(events ...chat.Event) int {
	w.Helper()
	body, err := json.Marshal(events)
	if err != nil {
		w.Fatal(err)
	}
	req, err := http.NewRequestWithContext(w.Context(), http.MethodPost, "http://gateway/fake/events", bytes.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Pass": {"secret"}}
	status, _ := w.do(req)
	return status
}

func (w *world) do(req *http.Request) (int, string) {
	w.Helper()
	t := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return w.front.dial() }, DisableKeepAlives: true}
	defer t.CloseIdleConnections()
	res, err := t.RoundTrip(req)
	if err != nil {
		w.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		w.Fatal(err)
	}
	return res.StatusCode, string(text)
}
