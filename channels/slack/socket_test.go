package slack

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
	fake "github.com/heddlehq/heddle/fakes/slack"
)

// taken is what a gateway took.
type taken struct {
	mu      sync.Mutex
	events  []chat.Event
	ignored []channels.Ignored
	fail    error
	failed  chan struct{} // told of each failure, if it is not nil
}

func (t *taken) take(_ context.Context, in channels.Inbound) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fail != nil && len(in.Events) > 0 {
		t.failed <- struct{}{}
		return t.fail
	}
	t.events = append(t.events, in.Events...)
	t.ignored = append(t.ignored, in.Ignored...)
	return nil
}

func (t *taken) texts() (out []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.events {
		out = append(out, e.Text)
	}
	return out
}

func (t *taken) reasons() (out []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, i := range t.ignored {
		out = append(out, i.Reason)
	}
	return out
}

func (t *taken) failing(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fail = err
}

// socketWorld is a workspace and a channel that listens to it.
type socketWorld struct {
	*fake.Workspace
	channel *Channel
	taken   *taken
	ended   chan error
	stop    context.CancelFunc
}

func listen(t *testing.T, o fake.Options, change func(*Channel)) *socketWorld {
	t.Helper()
	w := fake.New(o)
	srv := httptest.NewServer(w)
	t.Cleanup(srv.Close)
	c := newChannel(t, Options{AppToken: w.Options().AppToken, BotToken: w.Options().BotToken, APIURL: srv.URL + "/api"})
	if change != nil {
		change(c)
	}
	s := &socketWorld{Workspace: w, channel: c, taken: &taken{}, ended: make(chan error, 1)}
	ctx, stop := context.WithCancel(t.Context())
	s.stop = stop
	var running sync.WaitGroup
	running.Go(func() { s.ended <- c.Listen(ctx, s.taken.take) })
	t.Cleanup(func() { stop(); running.Wait() })
	return s
}

func (s *socketWorld) open(t *testing.T, want func([]int) bool) []int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	open, err := s.WaitSockets(ctx, want)
	if err != nil {
		t.Fatal(err)
	}
	return open
}

func two(open []int) bool { return len(open) == 2 }

// push sends a delivery and waits for its acknowledgement.
func (s *socketWorld) push(t *testing.T, d fake.Delivery) fake.Envelope {
	t.Helper()
	id, err := s.Push(d)
	if err != nil {
		t.Fatal(err)
	}
	return s.acked(t, id)
}

func (s *socketWorld) acked(t *testing.T, id string) fake.Envelope {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	e, err := s.Acked(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// fine checks that the program did nothing that Slack does not allow.
func (s *socketWorld) fine(t *testing.T) {
	t.Helper()
	if wrong := s.Wrong(); len(wrong) > 0 {
		t.Errorf("Slack was sent %v", wrong)
	}
}

// S38: what comes by a socket is the same event as what comes over HTTP, and as
// what comes by the other connection.
func TestSocketTakesEvents(t *testing.T) {
	t.Parallel()
	s := listen(t, fake.Options{}, nil)
	s.open(t, two)
	d := s.Mention(fake.Words{User: "U0PERSON", Text: "look"})
	a, b := s.push(t, d), s.push(t, d)
	if a.Socket == b.Socket || a.ID == b.ID {
		t.Errorf("both by connection %d", a.Socket)
	}
	over := newChannel(t, Options{SigningSecrets: []string{s.Options().SigningSecret}})
	want := receive(t, over, d)
	s.taken.mu.Lock()
	defer s.taken.mu.Unlock()
	if len(s.taken.events) != 2 {
		t.Fatalf("%d events", len(s.taken.events))
	}
	for _, e := range s.taken.events {
		if e.ID != want.ID || e.Same != want.Same || e.Thread != want.Thread || e.Text != "look" {
			t.Errorf("event %+v, over HTTP %+v", e, want)
		}
	}
	s.fine(t)
}

// Without an app token there is no socket, and without a signing secret no route.
func TestSocketOrHTTP(t *testing.T) {
	t.Parallel()
	over := newChannel(t, Options{})
	if err := over.Listen(t.Context(), nil); err != nil || len(over.Routes()) == 0 {
		t.Errorf("HTTP only: %v, %d routes", err, len(over.Routes()))
	}
	by := newChannel(t, Options{AppToken: "xapp-1-a"})
	if len(by.Routes()) != 0 {
		t.Errorf("socket only: %d routes", len(by.Routes()))
	}
	if _, err := by.Receive("events", sign2("", nil, time.Now()), nil, time.Now()); !errors.Is(err, channels.ErrUnverified) {
		t.Errorf("no secret verifies: %v", err)
	}
}

// S18: what nobody knows is acknowledged, once, and so is what cannot be read.
func TestSocketUnknown(t *testing.T) {
	t.Parallel()
	s := listen(t, fake.Options{}, nil)
	s.open(t, two)
	s.push(t, s.Event(map[string]any{"type": "brand_new_event"}))
	for kind, payload := range map[string]string{"brand_new_envelope": `{"a":1}`, "events_api": `[]`, "interactive": `7`, "slash_commands": `"x"`} {
		id, err := s.PushFrame(kind, []byte(payload))
		if err != nil {
			t.Fatal(err)
		}
		s.acked(t, id)
	}
	if got := s.taken.reasons(); len(got) != 5 || len(s.taken.texts()) != 0 {
		t.Errorf("ignored %v, events %v", got, s.taken.texts())
	}
	s.fine(t)
}

// S36: while events flow, each connection is told to leave. None is lost, they
// stay in order, and there is never a time without a connection.
func TestSocketRefresh(t *testing.T) {
	t.Parallel()
	s := listen(t, fake.Options{}, nil)
	first := s.open(t, two)
	var want []string
	for i := range 400 {
		switch i {
		case 100:
			if err := s.Disconnect(first[0], "warning"); err != nil {
				t.Fatal(err)
			}
		case 200:
			if err := s.Disconnect(first[1], "refresh_requested"); err != nil {
				t.Fatal(err)
			}
		case 300:
			// Both were replaced before they are closed.
			now := s.open(t, func(o []int) bool { return len(o) == 4 })
			if !slices.Contains(now, first[0]) || !slices.Contains(now, first[1]) {
				t.Errorf("%v left before they were replaced: %v are open", first, now)
			}
			s.Close(first[0])
			s.Close(first[1])
		}
		text := strconv.Itoa(i)
		want = append(want, text)
		s.push(t, s.Mention(fake.Words{User: "U0PERSON", Text: text}))
	}
	if got := s.taken.texts(); !slices.Equal(got, want) {
		t.Errorf("took %v", got)
	}
	s.open(t, two)
	s.fine(t)
}

// A connection that Slack does not close after it said so is left all the same.
func TestSocketLeaves(t *testing.T) {
	t.Parallel()
	s := listen(t, fake.Options{}, func(c *Channel) { c.pulse.leave = 20 * time.Millisecond })
	first := s.open(t, two)
	if err := s.Disconnect(first[0], "refresh_requested"); err != nil {
		t.Fatal(err)
	}
	s.open(t, func(o []int) bool { return len(o) == 2 && !slices.Contains(o, first[0]) })
	s.fine(t)
}

// S37: a connection that falls silent is left and made again; one that is only
// quiet is not.
func TestSocketSilence(t *testing.T) {
	t.Parallel()
	s := listen(t, fake.Options{}, func(c *Channel) {
		c.pulse = pulse{ping: 50 * time.Millisecond, dead: time.Second, leave: time.Minute, held: 0}
	})
	first := s.open(t, two)
	s.Deafen(first[0])
	s.open(t, func(o []int) bool { return len(o) == 2 && !slices.Contains(o, first[0]) })
	if now := s.Sockets(); !slices.Contains(now, first[1]) {
		t.Errorf("the quiet connection %d was left: %v", first[1], now)
	}
	s.fine(t)
}

// Noticed within 45 seconds, with the pulse of every day.
func TestUsualPulse(t *testing.T) {
	t.Parallel()
	if p := usualPulse; p.dead > 45*time.Second || p.ping > p.dead/2 || p.leave < 10*time.Second {
		t.Errorf("pulse %+v", p)
	}
}

// Connections that are cut, one or both, are made again at once. When none can
// be made any more that is a gap, which Listen tells by its end.
func TestSocketCut(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	s := listen(t, fake.Options{Hook: func(c fake.Call) fake.Fault {
		if down.Load() && c.Method == "apps.connections.open" {
			return fake.Fault{Status: 503}
		}
		return fake.Fault{}
	}}, func(c *Channel) { c.pulse.held = 0 })
	for i := range 6 {
		old := s.open(t, two)
		s.Close(old[0])
		if i%2 == 1 {
			s.Close(old[1])
		}
		s.open(t, func(o []int) bool {
			return len(o) == 2 && !slices.Contains(o, old[0]) && (i%2 == 0 || !slices.Contains(o, old[1]))
		})
		s.push(t, s.Mention(fake.Words{User: "U0PERSON", Text: "still there?"}))
	}
	down.Store(true)
	for _, n := range s.open(t, two) {
		s.Close(n)
	}
	if err := <-s.ended; err == nil || errors.Is(err, channels.ErrFatal) {
		t.Errorf("ended with %v", err)
	}
	s.fine(t)
}

// S39: nothing is acknowledged before it was taken, and nothing at all that was not.
func TestSocketAcknowledgesAfterAdmission(t *testing.T) {
	t.Parallel()
	s := listen(t, fake.Options{}, nil)
	s.open(t, two)
	s.taken.failed = make(chan struct{}, 1)
	s.taken.failing(errors.New("disk full"))
	d := s.Mention(fake.Words{User: "U0PERSON", Text: "look"})
	refused, err := s.Push(d)
	if err != nil {
		t.Fatal(err)
	}
	<-s.taken.failed
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if e, err := s.Acked(ctx, refused); err == nil {
		t.Fatalf("acknowledged what was not taken: %+v", e)
	}
	s.taken.failing(nil)
	again, err := s.PushAgain(d, 1, "timeout")
	if err != nil {
		t.Fatal(err)
	}
	s.acked(t, again)
	if got := s.taken.texts(); !slices.Equal(got, []string{"look"}) {
		t.Errorf("took %v", got)
	}
	s.fine(t)
}

// Another program with the same token is told of, once.
func TestSocketShared(t *testing.T) {
	t.Parallel()
	s := listen(t, fake.Options{}, func(c *Channel) { c.pulse.held = 0 })
	old := s.open(t, two)
	if got := s.taken.reasons(); len(got) != 0 {
		t.Errorf("alone: %v", got)
	}
	s.Others(1)
	s.Close(old[0])
	s.open(t, func(o []int) bool { return len(o) == 2 && !slices.Contains(o, old[0]) })
	s.Close(old[1])
	s.open(t, func(o []int) bool { return len(o) == 2 && !slices.Contains(o, old[1]) })
	s.push(t, s.Mention(fake.Words{User: "U0PERSON", Text: "look"}))
	if got := s.taken.reasons(); !slices.Equal(got, []string{"another connection takes part of the app's events"}) {
		t.Errorf("noted %v", got)
	}
}

// What another try cannot help ends for good; what it may help, does not.
func TestSocketRefused(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		fault fake.Fault
		fatal bool
	}{
		{fake.Fault{Code: "invalid_auth"}, true},
		{fake.Fault{Code: "account_inactive"}, true},
		{fake.Fault{Code: "token_revoked"}, true},
		{fake.Fault{Code: "missing_scope"}, true},
		{fake.Fault{Code: "internal_error"}, false},
		{fake.Fault{Status: 503}, false},
		{fake.Fault{Status: 429, RetryAfter: "1"}, false},
		{fake.Fault{Lose: true}, false},
	} {
		s := listen(t, fake.Options{Hook: func(fake.Call) fake.Fault { return tc.fault }}, nil)
		err := <-s.ended
		if err == nil || errors.Is(err, channels.ErrFatal) != tc.fatal || strings.Contains(err.Error(), "xapp") && !tc.fatal {
			t.Errorf("%+v: %v", tc.fault, err)
		}
	}
	w := fake.New(fake.Options{AppToken: "xapp-the-right-one"})
	srv := httptest.NewServer(w)
	defer srv.Close()
	err := newChannel(t, Options{AppToken: "xapp-a-wrong-one", APIURL: srv.URL}).Listen(t.Context(), nil)
	if !errors.Is(err, channels.ErrFatal) || strings.Contains(err.Error(), "wrong") {
		t.Errorf("wrong token: %v", err)
	}
}

// A connection cannot be made for a while: the other one goes on alone, and the
// first is made again.
func TestSocketOneLeft(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	s := listen(t, fake.Options{Hook: func(c fake.Call) fake.Fault {
		if down.Load() && c.Method == "apps.connections.open" {
			return fake.Fault{Status: 503}
		}
		return fake.Fault{}
	}}, nil)
	old := s.open(t, two)
	down.Store(true)
	s.Close(old[0])
	s.open(t, func(o []int) bool { return slices.Equal(o, old[1:]) })
	s.push(t, s.Mention(fake.Words{User: "U0PERSON", Text: "look"}))
	down.Store(false)
	s.open(t, two)
	s.fine(t)
}

// All that was started has ended when Listen returns, with envelopes in flight.
func TestSocketStops(t *testing.T) {
	before := goleak.IgnoreCurrent()
	w := fake.New(fake.Options{})
	srv := httptest.NewServer(w)
	c := newChannel(t, Options{AppToken: w.Options().AppToken, BotToken: w.Options().BotToken, APIURL: srv.URL + "/api"})
	patient, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	var taken taken
	go func() { ended <- c.Listen(ctx, taken.take) }()
	if _, err := w.WaitSockets(patient, two); err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		if _, err := w.Push(w.Mention(fake.Words{User: "U0PERSON", Text: fmt.Sprint(i)})); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
	if _, err := w.WaitSockets(patient, func(o []int) bool { return len(o) == 0 }); err != nil {
		t.Error(err)
	}
	if wrong := w.Wrong(); len(wrong) > 0 {
		t.Errorf("Slack was sent %v", wrong)
	}
	c.http.CloseIdleConnections()
	srv.Close()
	goleak.VerifyNone(t, before)
}
