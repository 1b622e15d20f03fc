package mcp

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/heddlehq/heddle/harness"
)

// A Server is one server of the settings, connected or not. Methods may be
// called at once.
type Server struct {
	name     string
	settings Settings
	o        Options
	log      *slog.Logger
	base     *http.Transport
	oauth    auth.OAuthHandler // nil without a log-in
	stderr   tail              // of its programs, the last ones
	news     chan struct{}     // of one: the lists changed
	asks     chan chan error   // for Refresh
	gone     chan struct{}     // closed when run ended
	data     [2]harness.Tool   // for resources and prompts

	mu     sync.Mutex
	sess   *session      // nil while not connected; guarded by mu
	moved  chan struct{} // closed when sess changes; guarded by mu
	err    error         // why not connected, or why the lists are old; guarded by mu
	list   listing       // the last read; guarded by mu
	newest *snapshot     // nil before the first; guarded by mu
	turns  turns         // guarded by mu
}

func newServer(name string, s Settings, o Options) *Server {
	v := &Server{
		name: name, settings: s, o: o, log: o.Log.With("server", name), base: transport(o.Connect),
		news: make(chan struct{}, 1), asks: make(chan chan error), gone: make(chan struct{}), moved: make(chan struct{}), err: errors.New("not tried yet"),
	}
	if s.OAuth != nil {
		v.oauth = newLogin(v)
	}
	v.data = [2]harness.Tool{v.resourcesTool(), v.promptsTool()}
	return v
}

// Name is the server's name in the settings.
func (s *Server) Name() string { return s.name }

func (s *Server) version() string { return cmp.Or(s.o.Version, "dev") }

// run keeps the server connected until ctx ends. It tells tried once how the
// first attempt went.
func (s *Server) run(ctx context.Context, tried func(error)) {
	var old sync.WaitGroup // sessions that finish their calls
	defer close(s.gone)
	defer s.base.CloseIdleConnections()
	defer old.Wait()
	retire := func(sess *session) { old.Go(func() { sess.close(ctx.Done(), s.o.pace.grace) }) }
	seen := map[string]string{}
	wait := time.Duration(0)
	var deaf *session // of use for calls, but without notifications
	for ctx.Err() == nil {
		sess, err := s.open(ctx, seen)
		if tried != nil {
			tried(err)
			tried = nil
		}
		if deaf != nil {
			retire(deaf)
			deaf = nil
		}
		if err == nil {
			s.log.Info("mcp server connected", "tools", len(s.latest().tools))
			err = s.tend(ctx, sess, seen)
			if errors.Is(err, errEnded) {
				deaf = sess
			} else {
				s.swap(nil, err)
				retire(sess)
			}
			if time.Since(sess.began) > s.o.pace.most {
				wait = 0
			}
		}
		if ctx.Err() == nil {
			s.log.Warn("mcp server lost", "err", reason(err), "wait", wait)
			s.pause(ctx, wait)
		}
		wait = min(max(2*wait, s.o.pace.least), s.o.pace.most)
	}
	s.swap(nil, errOver)
	if deaf != nil {
		retire(deaf)
	}
}

// pause waits for about a time, or until somebody asks for a refresh.
func (s *Server) pause(ctx context.Context, d time.Duration) {
	if d == 0 {
		return
	}
	t := time.NewTimer(d/2 + rand.N(d/2+1))
	defer t.Stop()
	select {
	case <-t.C:
	case answer := <-s.asks:
		answer <- s.unreachable()
	case <-ctx.Done():
	}
}

// open connects and reads the lists.
func (s *Server) open(ctx context.Context, seen map[string]string) (*session, error) {
	limited, cancel := context.WithTimeout(ctx, s.o.Connect)
	defer cancel()
	sess, err := s.connect(limited)
	if err == nil {
		if err = s.read(limited, sess, seen); err != nil {
			err = sess.better(limited, err, s.o.pace.grace)
			sess.close(nil, s.o.pace.grace)
		}
	}
	if err != nil {
		s.swap(nil, err)
		return nil, err
	}
	s.swap(sess, nil)
	return sess, nil
}

// read reads the lists and makes a new snapshot of them. Where it fails the
// last one stays.
func (s *Server) read(ctx context.Context, sess *session, seen map[string]string) error {
	l, err := list(ctx, sess.cs)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.err = err
		return err
	}
	snap := s.build(l, seen)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list, s.err = l, nil
	if !snap.same(s.newest) {
		s.reportDrift(snap)
		s.newest = snap
	}
	return nil
}

// maxReported is how many quarantined tools are logged at once.
const maxReported = 10

// reportDrift logs what became quarantined.
func (s *Server) reportDrift(now *snapshot) {
	n := 0
	known := map[Quarantined]bool{}
	if s.newest != nil {
		for _, q := range s.newest.quarantined {
			known[q] = true
		}
	}
	for _, q := range now.quarantined {
		if known[q] {
			continue
		}
		if n++; n > maxReported {
			return
		}
		s.log.Error("mcp tool quarantined", "tool", q.Tool, "err", q.Reason, "all", len(now.quarantined))
	}
}

// tend watches a session and reads the lists again when they change and from
// time to time, and once soon after its beginning: what changed before the
// server had taken in who wants to be told is told to nobody. It returns why the
// session is over.
func (s *Server) tend(ctx context.Context, sess *session, seen map[string]string) error {
	every := time.NewTicker(s.o.Every)
	defer every.Stop()
	news, gap := s.news, time.NewTimer(s.o.pace.gap)
	defer gap.Stop()
	for again := true; ; {
		var answer chan error
		select {
		case <-ctx.Done():
			return errOver
		case <-sess.lost:
			return sess.why
		case <-gap.C:
			if news = s.news; !again {
				continue
			}
			again = false
		case answer = <-s.asks:
		case <-news:
		case <-every.C:
		}
		limited, cancel := context.WithTimeout(ctx, s.o.Connect)
		err := s.read(limited, sess, seen)
		cancel()
		if answer != nil {
			answer <- err
		}
		if err != nil && !answered(err) {
			return err
		}
		news = nil // a server that changes all the time is not followed all the time
		gap.Reset(s.o.pace.gap)
	}
}

// changed notes that the lists are old.
func (s *Server) changed() {
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// Refresh reads the lists now and waits for it. Conversations take the new ones
// with their next event.
func (s *Server) Refresh(ctx context.Context) error {
	answer := make(chan error, 1)
	select {
	case s.asks <- answer:
		return <-answer
	case <-s.gone:
		return s.unreachable()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *Server) swap(sess *session, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sess, s.err = sess, err
	close(s.moved)
	s.moved = make(chan struct{})
}

// borrow gives the session for one call, which must say calls.Done.
func (s *Server) borrow() (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.sess.usable() {
		return nil, s.unreachableLocked()
	}
	s.sess.calls.Add(1)
	return s.sess, nil
}

func (s *Server) unreachable() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unreachableLocked()
}

func (s *Server) unreachableLocked() error {
	err := s.err
	if err == nil {
		err = errGone
	}
	return &ConnError{Server: s.name, Reason: reason(err), Err: err}
}

// after waits for another session than the given one.
func (s *Server) after(ctx context.Context, old *session) error {
	for {
		s.mu.Lock()
		now, moved := s.sess, s.moved
		s.mu.Unlock()
		if now != nil && now != old {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// latest is the newest snapshot, nil before the first.
func (s *Server) latest() *snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newest
}

func (s *Server) pins() (Pins, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.newest == nil {
		old, ok := s.o.Lock[s.name]
		return old, ok
	}
	p := Pins{Tools: map[string]string{}, Resources: s.list.resources, Prompts: s.list.prompts}
	for _, t := range s.list.tools {
		if sum, err := digest(t); err == nil && s.settings.allows(t.Name) {
			p.Tools[t.Name] = sum
		}
	}
	return p, true
}

// A Status tells how a server is.
type Status struct {
	Name        string
	Connected   bool
	Err         string // why it is not, or why its lists are old; without secrets
	Protocol    string // the revision spoken, "" before the first connection
	Server      string // name and version in the server's words
	Tools       []string
	Resources   bool
	Prompts     bool
	Quarantined []Quarantined
	Missing     []string // tools of the settings that the server does not list
	Stderr      string   // the end of what its program said, for an operator only
}

// Status tells how the server is.
func (s *Server) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := Status{Name: s.name, Connected: s.sess.usable(), Protocol: s.list.protocol, Server: s.list.version, Stderr: s.stderr.String()}
	if s.err != nil {
		out.Err = reason(s.err)
	}
	if s.newest != nil {
		for _, t := range s.newest.tools {
			out.Tools = append(out.Tools, t.name)
		}
		out.Resources, out.Prompts = s.newest.resources, s.newest.prompts
		out.Quarantined, out.Missing = s.newest.quarantined, s.newest.missing
	}
	return out
}

// maxTurns is how many events are remembered with the snapshot they got.
const maxTurns = 1024

// turns are the snapshots that events got, so that all steps an event causes
// see the same one.
type turns struct {
	of    map[string]*snapshot
	order []string // oldest first
}

// at is the snapshot for a render: the newest one when the conversation's
// newest event was first rendered. So it stays the same through all steps of a
// turn and changes only between turns or where the turn takes another event.
func (s *Server) at(c *harness.Context) *snapshot {
	key := c.Thread().Key() + "\n" + c.Event().ID
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Event().ID == "" {
		return s.newest
	}
	if snap, ok := s.turns.of[key]; ok {
		return snap
	}
	if s.turns.of == nil {
		s.turns.of = map[string]*snapshot{}
	}
	if len(s.turns.order) == maxTurns {
		delete(s.turns.of, s.turns.order[0])
		s.turns.order = s.turns.order[1:]
	}
	s.turns.of[key], s.turns.order = s.newest, append(s.turns.order, key)
	return s.newest
}
