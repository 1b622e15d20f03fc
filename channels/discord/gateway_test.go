package discord

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/heddlehq/heddle/channels"
	fake "github.com/heddlehq/heddle/fakes/discord"
)

// again waits until there are so many connections, the last with a session.
func (w *world) again(links int) {
	w.Helper()
	if err := w.Wait(w.ctx, func() bool { n, _, _ := w.Links(); return n >= links }); err != nil {
		w.Fatal(err)
	}
	w.ready()
}

// closed is how the first connection was closed by us.
func (w *world) closed() int {
	w.Helper()
	code := 0
	if err := w.Wait(w.ctx, func() bool {
		_, _, closes := w.Links()
		if len(closes) > 0 {
			code = closes[0]
		}
		return len(closes) > 0
	}); err != nil {
		w.Fatal(err)
	}
	return code
}

// TestConnections has what may become of a connection: nothing that was said is
// lost, nothing comes twice, and a session is resumed wherever it can be.
func TestConnections(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		end      func(*world)
		sessions int // that were begun in the end
		closed   int // our close code, 0 for any
	}{
		{"reconnect", func(w *world) { w.Reconnect() }, 1, resumable},
		{"invalid, resumable", func(w *world) { w.Invalid(true) }, 1, resumable},
		{"invalid", func(w *world) { w.Invalid(false) }, 2, resumable},
		{"cut", func(w *world) { w.Close(0) }, 1, 0},
		{"unknown error", func(w *world) { w.Close(4000) }, 1, resumable},
		{"rate limited", func(w *world) { w.Close(4008) }, 1, resumable},
		{"going away", func(w *world) { w.Close(1001) }, 1, resumable},
		{"normal closure", func(w *world) { w.Close(1000) }, 1, resumable},
		{"invalid sequence", func(w *world) { w.Close(4007) }, 2, 0},
		{"session timed out", func(w *world) { w.Close(4009) }, 2, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := connected(t, fake.Options{})
			first := w.Say(fake.Words{Text: "before"})
			w.heard(first)
			tc.end(w)
			w.again(2)
			second := w.Say(fake.Words{Text: "after"})
			w.heard(second)
			if n, m := w.counted(first), w.counted(second); n != 1 || m != 1 {
				t.Errorf("%d and %d events", n, m)
			}
			_, begun, _ := w.Links()
			if code := w.closed(); begun != tc.sessions || tc.closed != 0 && code != tc.closed {
				t.Errorf("%d sessions, closed with %d", begun, code)
			}
		})
	}
}

// What comes while nobody is connected is told when the session is resumed, by
// another process as well.
func TestResumedAfterRestart(t *testing.T) {
	t.Parallel()
	w := connected(t, fake.Options{})
	first := w.Say(fake.Words{Text: "before"})
	w.heard(first)
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	missed := w.Say(fake.Words{Text: "meanwhile"})
	w.c = w.channel(w.c.apiURL)
	w.listen()
	w.heard(missed)
	if n := w.counted(first); n != 1 {
		t.Errorf("%d events", n)
	}
	if _, begun, _ := w.Links(); begun != 1 || w.closed() != resumable {
		t.Errorf("%d sessions, closed with %d", begun, w.closed())
	}
}

// What was not admitted comes again.
func TestNotAdmitted(t *testing.T) {
	t.Parallel()
	w := connected(t, fake.Options{})
	w.refusing(errors.New("disk is full"))
	id := w.Say(fake.Words{Text: "x"})
	w.again(3)
	w.refusing(nil)
	w.heard(id)
	if n := w.counted(id); n != 1 {
		t.Errorf("%d events", n)
	}
}

// Events of one moment keep their order, and what is told twice has the same id.
func testOrder(t *testing.T) {
	t.Parallel()
	w := connected(t, fake.Options{})
	var ids []string
	for i := range 200 {
		ids = append(ids, w.Say(fake.Words{Text: fmt.Sprint(i)}))
	}
	w.heard(ids[len(ids)-1])
	w.mu.Lock()
	for i, e := range w.events {
		if e.ID != ids[i] {
			t.Errorf("event %d is %s, want %s", i, e.ID, ids[i])
		}
	}
	w.mu.Unlock()
	w.Replay(5)
	if n := w.counted(ids[199]); n != 2 { // the inbox knows it by its id
		t.Errorf("%d events", n)
	}
}

// TestHopeless has the codes after which nobody may connect again.
func testHopeless(t *testing.T) {
	t.Parallel()
	for code, reason := range hopeless {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			w := connected(t, fake.Options{})
			w.Close(code)
			if err := w.Wait(w.ctx, func() bool { _, _, closes := w.Links(); return len(closes) > 0 }); err != nil {
				t.Fatal(err)
			}
			if err := w.ended(); !errors.Is(err, channels.ErrFatal) || !strings.Contains(err.Error(), reason) {
				t.Errorf("error %v", err)
			}
			if n, _, _ := w.Links(); n != 1 {
				t.Errorf("%d connections", n)
			}
		})
	}
}

// ended waits for the end of Listen, which is not told to end.
func (w *world) ended() error {
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	for { // the fatal error is what stop returns, whenever it is called
		select {
		case <-time.After(50 * time.Millisecond):
			return w.stop()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// A token that is not Discord's is refused before anything connects.
func TestRefusedToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Options{})
	c := w.channel(w.c.apiURL, func(o *Options) { o.BotToken = "another-token" })
	if err := c.Identify(w.ctx); verdictOf(err) != channels.Rejected {
		t.Errorf("Identify: %v", err)
	}
	if err := c.Listen(w.ctx, w.take); !errors.Is(err, channels.ErrFatal) || strings.Contains(err.Error(), "another-token") {
		t.Errorf("Listen: %v", err)
	}
	c = w.channel(w.c.apiURL, func(o *Options) { o.ApplicationID = "5" })
	if err := c.Identify(w.ctx); verdictOf(err) != channels.Rejected {
		t.Errorf("another application: %v", err)
	}
}

// A link over which no heartbeat is acknowledged is given up within two
// intervals, in a way that keeps the session.
func testDeadLink(t *testing.T) {
	t.Parallel()
	w := connected(t, fake.Options{Heartbeat: 100 * time.Millisecond})
	w.Deafen()
	began := time.Now()
	w.again(2)
	if d := time.Since(began); d > 5*time.Second { // 200 ms on a machine with nothing else to do
		t.Errorf("noticed after %v", d)
	}
	if _, begun, _ := w.Links(); begun != 1 || w.closed() != resumable {
		t.Errorf("%d sessions, closed with %d", begun, w.closed())
	}
	w.heard(w.Say(fake.Words{Text: "after"}))
}

// Heartbeats tell the last frame that was admitted, and no later one.
func TestHeartbeats(t *testing.T) {
	t.Parallel()
	w := connected(t, fake.Options{Heartbeat: 20 * time.Millisecond})
	w.heard(w.Say(fake.Words{Text: "x"}))
	if err := w.Wait(w.ctx, func() bool { seq, told := w.Beat(); return seq == told }); err != nil {
		t.Fatal(err)
	}
	seq, _ := w.Beat()
	w.refusing(errors.New("disk is full"))
	w.Say(fake.Words{Text: "y"})
	w.again(4)
	if got, told := w.Beat(); got > seq+1 || told <= seq { // a resumption is a frame as well
		t.Errorf("heartbeat tells %d of %d, %d were admitted", got, told, seq)
	}
}

// A request to reconnect that comes before there is a session holds up nothing.
func testReconnectAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Options{})
	w.Greet(func(n int) int { // the first two connections
		if n <= 2 {
			return 7
		}
		return 0
	})
	w.listen()
	w.again(3)
	w.heard(w.Say(fake.Words{Text: "x"}))
}

// A server that says nothing is left after a while.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Options{})
	w.c.pulse.open = 50 * time.Millisecond
	w.Greet(func(n int) int {
		if n == 1 {
			return -1 // not even hello
		}
		return 0
	})
	w.listen()
	w.again(2)
	w.heard(w.Say(fake.Words{Text: "x"}))
}

// Sessions that are ended again and again are begun at a falling rate, and none
// when Discord grants no more.
func testSessionsAreSpared(t *testing.T) {
	t.Parallel()
	p := usualPulse
	if d := p.wait(0); d != 0 {
		t.Errorf("the first waits %v", d)
	}
	for n, most := range map[int]time.Duration{1: 5 * time.Second, 2: 10 * time.Second, 4: 40 * time.Second, 20: 5 * time.Minute} {
		least := most / 5
		if n == 20 {
			least = most
		}
		for range 100 {
			if d := p.wait(n); d < least || d > most {
				t.Fatalf("wait %v after %d sessions that did not last", d, n)
			}
		}
	}
	w := newWorld(t, fake.Options{Sessions: 2})
	w.listen()
	w.ready()
	w.Invalid(false)
	w.again(2)
	w.Invalid(false)
	if err := w.Wait(w.ctx, func() bool { return w.Calls("GET /gateway/bot") >= 3 }); err != nil {
		t.Fatal(err)
	}
	if n, begun, _ := w.Links(); begun != 2 || n != 2 {
		t.Errorf("%d sessions by %d connections, of 2 that are granted", begun, n)
	}
}

// A session that tells less than is wanted now is not resumed.
func TestNewIntents(t *testing.T) {
	t.Parallel()
	w := connected(t, fake.Options{})
	w.heard(w.Say(fake.Words{Text: "x"}))
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	own := w.c.identity()
	own.content = false
	w.c.self.Store(&own)
	w.listen()
	w.again(2)
	if _, begun, _ := w.Links(); begun != 2 {
		t.Errorf("%d sessions", begun)
	}
}

// Commands are set once, and again only if they changed.
func TestCommandsAreSetOnce(t *testing.T) {
	t.Parallel()
	w := connected(t, fake.Options{})
	w.Close(4000)
	w.again(2)
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	w.c = w.channel(w.c.apiURL)
	w.listen()
	w.again(3)
	n, set := w.Registered()
	if n != 1 || !strings.Contains(set, `"name":"agent"`) {
		t.Errorf("set %d times: %s", n, set)
	}
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	if err := w.memory.Save(w.ctx, "commands", []byte("of another version")); err != nil {
		t.Fatal(err)
	}
	w.listen()
	w.again(4)
	if n, _ := w.Registered(); n != 2 {
		t.Errorf("set %d times", n)
	}
}

// Commands that cannot be set keep nobody from listening.
func TestCommandsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Options{Hook: func(c fake.Call) fake.Fault {
		if strings.HasPrefix(c.Method, "PUT") {
			return fake.Fault{Status: 403, Code: 50001}
		}
		return fake.Fault{}
	}})
	w.listen()
	w.ready()
	w.passed("commands not registered")
	w.heard(w.Say(fake.Words{Text: "x"}))
}

// An interaction that comes by the Gateway is answered once it is admitted.
func TestInteractionByTheGateway(t *testing.T) {
	t.Parallel()
	w := connected(t, fake.Options{})
	w.refusing(errors.New("disk is full"))
	id := w.AskHere(fake.Words{Text: "what?"})
	w.again(3)
	if n := w.Calls("POST /interactions/{}/{}/callback"); n != 0 {
		t.Errorf("answered %d times before it was admitted", n)
	}
	w.refusing(nil)
	e := w.heard(id)
	if e.Text != "what?" || e.Topic != "command" || e.Handle.Secret == "" || !e.Handle.Until.After(time.Now()) {
		t.Errorf("event %+v, handle %+v", e, e.Handle)
	}
	if err := w.Wait(w.ctx, func() bool { return w.Calls("POST /interactions/{}/{}/callback") == 1 }); err != nil {
		t.Fatal(err)
	}
	w.Tell("INTERACTION_CREATE", map[string]any{"id": "1", "type": 99, "application_id": app, "channel_id": "2", "user": map[string]any{"id": "3"}})
	w.passed("malformed")
}
