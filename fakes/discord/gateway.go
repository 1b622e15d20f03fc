package discord

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// A session is what a client may resume.
type session struct {
	id      string
	seq     int64
	intents int
	told    []frame // of the last thousand
}

type frame struct {
	Op   int    `json:"op"`
	Seq  int64  `json:"s,omitempty"`
	Type string `json:"t,omitempty"`
	Data any    `json:"d"`
}

// A link is one open connection.
type link struct {
	conn    *websocket.Conn
	write   sync.Mutex
	session *session // nil before there is one
	deaf    bool     // acknowledges no heartbeat
}

func (l *link) send(f frame) {
	l.write.Lock()
	defer l.write.Unlock()
	_ = l.conn.SetWriteDeadline(time.Now().Add(5 * time.Second))
	_ = l.conn.WriteJSON(f) // who is gone reads it when it resumes
}

// close says that the connection ends; the client's own close is still read.
func (l *link) close(code int) {
	_ = l.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(time.Second)) // who is gone knows
	_ = l.conn.SetReadDeadline(time.Now().Add(time.Second))
}

// dispatch tells every session something it wants to know, and those who are
// connected at once; mu is held.
func (s *Server) dispatch(kind string, data answer) {
	for _, ss := range s.sessions {
		if !wants(ss.intents, kind, data) {
			continue
		}
		d := data
		if kind == "MESSAGE_CREATE" || kind == "MESSAGE_UPDATE" {
			d = s.veiled(data, ss.intents)
		}
		ss.seq++
		// Written now: what is told stays as it was.
		f := frame{Seq: ss.seq, Type: kind, Data: json.RawMessage(mustJSON(d))}
		if ss.told = append(ss.told, f); len(ss.told) > 1000 {
			ss.told = ss.told[1:]
		}
		if s.link != nil && s.link.session == ss {
			s.link.send(f)
		}
	}
	s.change()
}

func wants(intents int, kind string, data answer) bool {
	direct := data["guild_id"] == nil
	switch kind {
	case "MESSAGE_CREATE", "MESSAGE_UPDATE", "MESSAGE_DELETE":
		if direct {
			return intents&(1<<12) != 0
		}
		return intents&(1<<9) != 0
	case "MESSAGE_REACTION_ADD":
		if direct {
			return intents&(1<<13) != 0
		}
		return intents&(1<<10) != 0
	case "INTERACTION_CREATE":
		return true
	}
	return intents&1 != 0
}

// serveSocket holds one connection. A later one replaces it.
func (s *Server) serveSocket(rw http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("v") != "10" || r.URL.Query().Get("encoding") != "json" {
		http.Error(rw, "version or encoding", http.StatusBadRequest)
		return
	}
	conn, err := (&websocket.Upgrader{}).Upgrade(rw, r, nil)
	if err != nil {
		return // it has answered
	}
	l := &link{conn: conn}
	s.mu.Lock()
	s.link = l
	s.links++
	instead := 0
	if s.greet != nil {
		instead = s.greet(s.links)
	}
	s.change()
	s.mu.Unlock()
	switch instead {
	case 0:
		l.send(frame{Op: 10, Data: answer{"heartbeat_interval": s.opt.Heartbeat.Milliseconds()}})
	case -1:
	default:
		l.send(frame{Op: instead})
	}
	code := s.hold(l)
	_ = conn.Close() // it has ended
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link == l {
		s.link = nil
	}
	s.closes = append(s.closes, code)
	if l.session != nil && (code == websocket.CloseNormalClosure || code == websocket.CloseGoingAway) {
		delete(s.sessions, l.session.id)
	}
	s.change()
}

// hold serves a connection and returns the code that the client closed it with.
func (s *Server) hold(l *link) int {
	for {
		var f struct {
			Op   int             `json:"op"`
			Data json.RawMessage `json:"d"`
		}
		if err := l.conn.ReadJSON(&f); err != nil {
			if c, ok := err.(*websocket.CloseError); ok {
				return c.Code
			}
			return websocket.CloseAbnormalClosure
		}
		s.mu.Lock()
		code := s.frame(l, f.Op, f.Data)
		s.change()
		s.mu.Unlock()
		if code != 0 {
			l.close(code)
			return code
		}
	}
}

// frame does what a client asks and returns the code to close with, 0 to go on;
// mu is held.
func (s *Server) frame(l *link, op int, data []byte) int {
	var d struct {
		Token      string            `json:"token"`
		Intents    int               `json:"intents"`
		Properties map[string]string `json:"properties"`
		Session    string            `json:"session_id"`
		Seq        int64             `json:"seq"`
	}
	switch op {
	case 1:
		if l.session != nil {
			_ = json.Unmarshal(data, &s.beat) // null before there is anything
		}
		if !l.deaf {
			l.send(frame{Op: 11})
		}
		return 0
	case 2, 6:
		if json.Unmarshal(data, &d) != nil {
			return 4002
		}
		if d.Token != s.opt.Token {
			return 4004
		}
		if l.session != nil {
			return 4005
		}
	default:
		return 4001
	}
	if op == 6 {
		s.resume(l, d.Session, d.Seq)
		return 0
	}
	const content, known = 1 << 15, 1<<26 - 1
	switch {
	case d.Intents&^known != 0:
		return 4013
	case d.Intents&content != 0 && s.opt.NoContent:
		return 4014
	case d.Properties["os"] == "":
		return 4002
	}
	s.begun++
	s.lastIdentify = s.opt.Clock()
	l.session = &session{id: "session-" + s.stamp(), intents: d.Intents}
	s.sessions[l.session.id] = l.session
	s.dispatch("READY", answer{
		"v": 10, "user": s.wireUser(s.opt.Bot), "session_id": l.session.id, "resume_gateway_url": "ws://" + l.conn.LocalAddr().String() + "/socket",
		"guilds": []answer{{"id": s.opt.Guild, "unavailable": true}}, "application": answer{"id": s.opt.App, "flags": 0},
	})
	s.dispatch("GUILD_CREATE", answer{
		"id": s.opt.Guild, "name": "Fake", "unavailable": false,
		"channels": s.list(func(c *Channel) bool { return c.Kind != Direct && c.Kind != Public && c.Kind != Private }),
		"threads":  s.list(func(c *Channel) bool { return c.Kind == Public || c.Kind == Private }),
		"roles":    s.wireRoles(),
	})
	return 0
}

// BotRole is the role that the guild made for the bot.
const BotRole = "400000000000000001"

func (s *Server) resume(l *link, id string, seq int64) {
	ss := s.sessions[id]
	if ss == nil || seq > ss.seq || ss.seq-seq > int64(len(ss.told)) {
		l.send(frame{Op: 9, Data: false})
		return
	}
	l.session = ss
	for _, f := range ss.told {
		if f.Seq > seq {
			l.send(f)
		}
	}
	ss.seq++
	f := frame{Seq: ss.seq, Type: "RESUMED", Data: answer{}}
	ss.told = append(ss.told, f)
	l.send(f)
}

// do lets something happen to the open connection, if there is one.
func (s *Server) do(f func(*link)) {
	s.mu.Lock()
	l := s.link
	s.mu.Unlock()
	if l != nil {
		f(l)
	}
}

// Greet says what the n-th connection is greeted with: 0 for Hello, an operation
// for that instead, -1 for nothing.
func (s *Server) Greet(f func(n int) int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.greet = f
}

// Beat is the sequence that the last heartbeat told, and the last that was sent.
func (s *Server) Beat() (told, sent int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ss := range s.sessions {
		sent = max(sent, ss.seq)
	}
	return s.beat, sent
}

// Reconnect asks the client to connect again.
func (s *Server) Reconnect() { s.do(func(l *link) { l.send(frame{Op: 7}) }) }

// Invalid ends the session.
func (s *Server) Invalid(resumable bool) {
	s.do(func(l *link) {
		if !resumable {
			s.EndSessions()
		}
		l.send(frame{Op: 9, Data: resumable})
	})
}

// Close closes the connection with a code; 0 cuts it.
func (s *Server) Close(code int) {
	s.do(func(l *link) {
		if code == 0 {
			_ = l.conn.NetConn().Close() // that is the cut
			return
		}
		l.close(code)
	})
}

// Deafen lets the connection acknowledge no more heartbeats.
func (s *Server) Deafen() {
	s.do(func(l *link) {
		s.mu.Lock()
		defer s.mu.Unlock()
		l.deaf = true
	})
}

// EndSessions forgets all sessions: none can be resumed.
func (s *Server) EndSessions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.sessions)
}

// Replay tells the last n things of each session again.
func (s *Server) Replay(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.link; l != nil && l.session != nil {
		for _, f := range l.session.told[max(0, len(l.session.told)-n):] {
			l.send(f)
		}
	}
}

// Links is how many connections were opened, how many sessions were begun, and
// with which codes clients closed, 1006 if without.
func (s *Server) Links() (opened, begun int, closes []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.links, s.begun, slices.Clone(s.closes)
}

// WaitReady waits until a client with a session is connected.
func (s *Server) WaitReady(ctx context.Context) error {
	return s.Wait(ctx, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.link != nil && s.link.session != nil
	})
}
