package discord

import (
	"context"
	"errors"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
	fake "github.com/heddlehq/heddle/fakes/discord"
)

// A world is a channel, a Discord, and what the one heard from the other.
type world struct {
	*testing.T
	*fake.Server
	c      *Channel
	memory memory
	ctx    context.Context

	mu      sync.Mutex
	events  []chat.Event
	ignored []string // reasons
	refuse  error    // what admission fails with
	changed chan struct{}
	stop    func() error // ends Listen and returns its error
}

// memory is a channels.Memory.
type memory struct {
	mu sync.Mutex
	m  map[string]string
}

func (m *memory) Load(_ context.Context, name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v, ok := m.m[name]; ok {
		return []byte(v), nil
	}
	return nil, nil
}

func (m *memory) Save(_ context.Context, name string, v []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.m == nil {
		m.m = map[string]string{}
	}
	m.m[name] = string(v)
	return nil
}

// quick is a pulse for tests.
var quick = pulse{open: 5 * time.Second, settled: time.Minute, again: time.Millisecond, longest: 50 * time.Millisecond}

// newWorld has a channel that is not connected.
func newWorld(t *testing.T, o fake.Options, change ...func(*Options)) *world {
	t.Helper()
	w := &world{T: t, Server: fake.New(o), changed: make(chan struct{})}
	srv := httptest.NewServer(w.Server)
	t.Cleanup(srv.Close)
	t.Cleanup(srv.CloseClientConnections)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	w.ctx = ctx
	w.c = w.channel(srv.URL+"/api/v10", change...)
	if err := w.c.Identify(ctx); err != nil {
		t.Fatal(err)
	}
	return w
}

// channel makes another channel of the same bot, as after a restart.
func (w *world) channel(at string, change ...func(*Options)) *Channel {
	w.Helper()
	opt := Options{BotToken: w.Options().Token, PublicKey: w.PublicKey(), APIURL: at}
	for _, f := range change {
		f(&opt)
	}
	c, err := New(opt)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(c.rest.Client.CloseIdleConnections)
	c.pulse = quick
	c.Remember(&w.memory, nil)
	return c
}

// connected starts Listen and waits until there is a session.
func connected(t *testing.T, o fake.Options, change ...func(*Options)) *world {
	t.Helper()
	w := newWorld(t, o, change...)
	w.listen()
	w.ready()
	return w
}

func (w *world) ready() {
	w.Helper()
	if err := w.WaitReady(w.ctx); err != nil {
		w.Fatal(err)
	}
}

// listen runs Listen as dispatch does: again when it fails, unless that is fatal.
func (w *world) listen() {
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan error, 1)
	go func() {
		for {
			err := w.c.Listen(ctx, w.take)
			if err == nil || errors.Is(err, channels.ErrFatal) {
				done <- err
				return
			}
			<-time.After(5 * time.Millisecond) // as dispatch backs off
		}
	}()
	w.stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	w.Cleanup(func() {
		if err := w.stop(); err != nil && !errors.Is(err, channels.ErrFatal) {
			w.Errorf("Listen: %v", err)
		}
	})
}

func (w *world) take(_ context.Context, in channels.Inbound) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refuse != nil {
		return w.refuse
	}
	w.events = append(w.events, in.Events...)
	for _, i := range in.Ignored {
		w.ignored = append(w.ignored, i.Reason)
	}
	close(w.changed)
	w.changed = make(chan struct{})
	return nil
}

// wait waits until done says so.
func (w *world) wait(what string, done func() bool) {
	w.Helper()
	for {
		w.mu.Lock()
		ok, changed := done(), w.changed
		w.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-w.ctx.Done():
			w.mu.Lock()
			defer w.mu.Unlock()
			w.Fatalf("waited in vain for %s; events %v, ignored %v", what, w.events, w.ignored)
		}
	}
}

// heard waits for an event of the id.
func (w *world) heard(id string) chat.Event {
	w.Helper()
	var ev chat.Event
	w.wait("event "+id, func() bool {
		i := slices.IndexFunc(w.events, func(e chat.Event) bool { return e.ID == id })
		if i >= 0 {
			ev = w.events[i]
		}
		return i >= 0
	})
	return ev
}

// passed waits until something was ignored for the reason.
func (w *world) passed(reason string) {
	w.Helper()
	w.wait(reason, func() bool { return slices.Contains(w.ignored, reason) })
}

// counted is how many events of an id came, after all that was told was read.
func (w *world) counted(id string) int {
	w.Helper()
	w.heard(w.Say(fake.Words{Text: "a mark"}))
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, e := range w.events {
		if e.ID == id {
			n++
		}
	}
	return n
}

func (w *world) refusing(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refuse = err
}

func verdictOf(err error) channels.Verdict {
	var se *channels.SendError
	if errors.As(err, &se) {
		return se.Verdict
	}
	return 255
}
