package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// mostSockets is how many connections Slack allows an app.
const mostSockets = 10

// ErrNoSocket says that no program is connected.
var ErrNoSocket = errors.New("no socket is connected")

// An Envelope is one frame that was sent to a program, and its end.
type Envelope struct {
	ID      string
	Type    string // "events_api", "interactive", "slash_commands"
	Socket  int    // number of the connection that it went by, from 1
	Acked   bool
	Payload json.RawMessage // of the acknowledgement, nil if it had none
	Sent    time.Time
	At      time.Time // of the acknowledgement

	answerable bool
	done       chan struct{} // closed when it is acknowledged
}

// sockets are the connections of a workspace; guarded by its lock.
type sockets struct {
	tickets   map[string]bool // addresses that were given out and not used
	open      []*socket       // in the order in which they came
	made      int
	next      int // whose turn it is
	envelopes []*Envelope
	wrong     []string
	others    int // connections that other programs of the app hold
}

type socket struct {
	number  int
	conn    *websocket.Conn
	leaving bool // told to go: gets no more envelopes
	deaf    bool // neither pings nor answers pings
	write   sync.Mutex
}

func (s *socket) send(v any) error {
	s.write.Lock()
	defer s.write.Unlock()
	_ = s.conn.SetWriteDeadline(time.Now().Add(5 * time.Second)) // the write fails
	return s.conn.WriteJSON(v)
}

// openSocket gives out an address for one connection. It is asked with the app token.
func (w *Workspace) openSocket(host string) answer {
	w.stamps++
	ticket := "ticket-" + strconv.Itoa(w.stamps)
	w.sockets.tickets[ticket] = true
	return answer{"ok": true, "url": "ws://" + host + "/" + socketPath + "?ticket=" + ticket + "&app_id=" + w.opt.AppID}
}

const socketPath = "socket"

// serveSocket is the far side of one connection.
func (w *Workspace) serveSocket(rw http.ResponseWriter, r *http.Request) {
	ticket := r.URL.Query().Get("ticket")
	w.mu.Lock()
	known := w.sockets.tickets[ticket]
	delete(w.sockets.tickets, ticket)
	w.mu.Unlock()
	if !known {
		http.Error(rw, "this address was used or never given out", http.StatusForbidden)
		return
	}
	up := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	conn, err := up.Upgrade(rw, r, nil)
	if err != nil {
		return // it answered
	}
	defer func() { _ = conn.Close() }()
	w.mu.Lock()
	w.sockets.made++
	s := &socket{number: w.sockets.made, conn: conn}
	full := len(w.sockets.open)+w.sockets.others >= mostSockets
	hello := answer{
		"type": "hello", "num_connections": len(w.sockets.open) + 1 + w.sockets.others, "connection_info": answer{"app_id": w.opt.AppID},
		"debug_info": answer{"host": "fake", "approximate_connection_time": 3600},
	}
	w.mu.Unlock()
	if full {
		_ = s.send(answer{"type": "disconnect", "reason": "too_many_websockets"}) // it is closed now
		return
	}
	pong := conn.PingHandler()
	conn.SetPingHandler(func(data string) error {
		w.mu.Lock()
		deaf := s.deaf
		w.mu.Unlock()
		if deaf {
			return nil
		}
		return pong(data)
	})
	if s.send(hello) != nil {
		return
	}
	w.mu.Lock()
	w.sockets.open = append(w.sockets.open, s)
	w.note()
	w.mu.Unlock()
	w.read(s)
	w.mu.Lock()
	w.sockets.open = slices.DeleteFunc(w.sockets.open, func(o *socket) bool { return o == s })
	w.note()
	w.mu.Unlock()
}

// read takes acknowledgements until the connection ends. Slack closes one that
// sends what it should not.
func (w *Workspace) read(s *socket) {
	for {
		_, data, err := s.conn.ReadMessage()
		if err != nil {
			return
		}
		var ack struct {
			ID      string          `json:"envelope_id"`
			Payload json.RawMessage `json:"payload"`
		}
		w.mu.Lock()
		wrong := ""
		i := -1
		if json.Unmarshal(data, &ack) == nil && ack.ID != "" {
			i = slices.IndexFunc(w.sockets.envelopes, func(e *Envelope) bool { return e.ID == ack.ID })
		}
		switch {
		case ack.ID == "":
			wrong = fmt.Sprintf("a frame that is no acknowledgement: %.100s", data)
		case i < 0:
			wrong = "an acknowledgement of " + ack.ID + ", which was never sent"
		case w.sockets.envelopes[i].Acked:
			wrong = "a second acknowledgement of " + ack.ID
		case w.sockets.envelopes[i].Socket != s.number:
			wrong = "an acknowledgement of " + ack.ID + " by another connection"
		case ack.Payload != nil && !w.sockets.envelopes[i].answerable:
			wrong = "a payload for " + ack.ID + ", which takes none"
		default:
			e := w.sockets.envelopes[i]
			e.Acked, e.Payload, e.At = true, ack.Payload, w.opt.Clock()
			close(e.done)
		}
		if wrong != "" {
			w.sockets.wrong = append(w.sockets.wrong, wrong)
		}
		w.note()
		w.mu.Unlock()
		if wrong != "" {
			return
		}
	}
}

// note tells those who wait that something changed; under the lock.
func (w *Workspace) note() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// Push sends a delivery by the connection whose turn it is, without waiting for
// the acknowledgement, and returns the envelope's id. Forms of interactivity and
// commands become the JSON that a socket carries.
func (w *Workspace) Push(d Delivery) (string, error) {
	return w.push(d, 0, "")
}

// PushAgain is Push of a retry: the same payload in another envelope.
func (w *Workspace) PushAgain(d Delivery, n int, reason string) (string, error) {
	return w.push(d, n, reason)
}

// PushFrame sends a payload under any type, of envelopes that nobody knows, too.
func (w *Workspace) PushFrame(kind string, payload json.RawMessage) (string, error) {
	return w.pushFrame(kind, payload, kind != "events_api", 0, "")
}

func (w *Workspace) push(d Delivery, retry int, reason string) (string, error) {
	kind, payload, err := d.frame()
	if err != nil {
		return "", err
	}
	return w.pushFrame(kind, payload, kind != "events_api", retry, reason)
}

func (w *Workspace) pushFrame(kind string, payload json.RawMessage, answerable bool, retry int, reason string) (string, error) {
	w.mu.Lock()
	var s *socket
	for range w.sockets.open {
		w.sockets.next++
		if o := w.sockets.open[w.sockets.next%len(w.sockets.open)]; !o.leaving {
			s = o
			break
		}
	}
	if s == nil {
		w.mu.Unlock()
		return "", ErrNoSocket
	}
	w.stamps++
	e := &Envelope{
		ID: "envelope-" + strconv.Itoa(w.stamps), Type: kind, Socket: s.number, Sent: w.opt.Clock(), answerable: answerable, done: make(chan struct{}),
	}
	w.sockets.envelopes = append(w.sockets.envelopes, e)
	w.mu.Unlock()
	a := answer{"envelope_id": e.ID, "type": kind, "accepts_response_payload": answerable, "payload": payload}
	if kind == "events_api" {
		a["retry_attempt"], a["retry_reason"] = retry, reason
	}
	return e.ID, s.send(a)
}

// Acked waits for the acknowledgement of an envelope and returns the envelope.
func (w *Workspace) Acked(ctx context.Context, id string) (Envelope, error) {
	w.mu.Lock()
	i := slices.IndexFunc(w.sockets.envelopes, func(e *Envelope) bool { return e.ID == id })
	if i < 0 {
		w.mu.Unlock()
		return Envelope{}, fmt.Errorf("envelope %q was never sent", id)
	}
	e := w.sockets.envelopes[i]
	w.mu.Unlock()
	select {
	case <-e.done:
		w.mu.Lock()
		defer w.mu.Unlock()
		return *e, nil
	case <-ctx.Done():
		return Envelope{}, fmt.Errorf("wait for the acknowledgement of %s: %w", id, context.Cause(ctx))
	}
}

// Sockets are the numbers of the connections that are open, the oldest first.
func (w *Workspace) Sockets() []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []int
	for _, s := range w.sockets.open {
		out = append(out, s.number)
	}
	return out
}

// WaitSockets returns the open connections once they are as wanted.
func (w *Workspace) WaitSockets(ctx context.Context, want func([]int) bool) ([]int, error) {
	for {
		w.mu.Lock()
		changed := w.changed
		w.mu.Unlock()
		open := w.Sockets()
		if want(open) {
			return open, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return open, fmt.Errorf("wait for sockets, %v are open: %w", open, context.Cause(ctx))
		}
	}
}

// Wrong lists what programs sent by sockets and should not have.
func (w *Workspace) Wrong() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.sockets.wrong)
}

// Others is how many connections another program of the app holds from now on.
func (w *Workspace) Others(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sockets.others = n
}

func (w *Workspace) socket(number int) *socket {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.sockets.open {
		if s.number == number {
			return s
		}
	}
	return nil
}

// Disconnect tells the program that a connection will be closed, with Slack's
// reason: "warning", "refresh_requested", "link_disabled". It gets no more
// envelopes; Close closes it.
func (w *Workspace) Disconnect(number int, reason string) error {
	s := w.socket(number)
	if s == nil {
		return ErrNoSocket
	}
	w.mu.Lock()
	s.leaving = true
	w.mu.Unlock()
	return s.send(answer{"type": "disconnect", "reason": reason, "debug_info": answer{"host": "fake"}})
}

// Close cuts a connection.
func (w *Workspace) Close(number int) {
	if s := w.socket(number); s != nil {
		_ = s.conn.Close() // its reader ends
	}
}

// Deafen lets a connection fall silent: it stays open, and answers no ping.
func (w *Workspace) Deafen(number int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.sockets.open {
		if s.number == number {
			s.deaf, s.leaving = true, true
		}
	}
}

// frame is a delivery as a socket carries it.
func (d Delivery) frame() (kind string, payload json.RawMessage, err error) {
	if !strings.HasPrefix(d.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		return "events_api", d.Body, nil
	}
	return formFrame(d.Body)
}
