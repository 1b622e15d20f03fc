package dispatch

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

// Signs are what people see besides posts: marks at what is being answered, and
// what only one person is told. An engine tells them what it does; a gateway
// shows it.
type Signs struct {
	values   state.Values
	markers  map[string]channels.Marker
	whispers whispers
	clock    func() time.Time
	log      *slog.Logger

	mu    sync.Mutex
	turns map[state.ID]*marking
}

// NewSigns are those of the channels that can show any; without marks nothing is
// marked.
func NewSigns(cs []channels.Channel, values state.Values, marks bool, clock func() time.Time, log *slog.Logger) *Signs {
	s := &Signs{
		values: values, markers: map[string]channels.Marker{}, clock: clock, log: log, turns: map[state.ID]*marking{},
		whispers: whispers{to: map[string]channels.Whisperer{}, queue: make(chan whisper, mostWhispers)},
	}
	for _, c := range cs {
		if m, ok := c.(channels.Marker); ok && marks {
			s.markers[c.Name()] = m
		}
		if w, ok := c.(channels.Whisperer); ok {
			s.whispers.to[c.Name()] = w
		}
	}
	return s
}

const (
	markAfter = time.Second      // a turn that ends sooner is not marked
	markEvery = 5 * time.Second  // a mark is shown again
	markTime  = 5 * time.Second  // of one request
	mostMarks = 20               // of one turn
	keepEvery = 30 * time.Second // a mark that is kept is noted again
	lostAfter = 90 * time.Second // and belongs to nobody when it was not for so long
	sweepLost = 30 * time.Second // marks that belong to nobody are looked for
	giveUp    = time.Hour        // and forgotten when they cannot be taken away for so long
)

// Marks are noted in a space before they are shown and forgotten after they were
// taken away, so that none is left behind by a process that ends.
const markSpace = "marks"

// A mark is at an event.
type mark struct {
	Thread chat.Thread `json:"thread"`
	Ref    string      `json:"ref"`
	At     time.Time   `json:"at"` // when it was noted last
}

// marking is what one lease is answering.
type marking struct {
	mu      sync.Mutex
	wanted  []mark // in order
	outcome string // of the turn, "" before
	noted   map[string]mark
}

// Progress tells that a turn answers an event or, with its outcome, that the turn
// is settled. It returns at once.
func (s *Signs) Progress(c state.ID, e chat.Event, outcome string) {
	s.mu.Lock()
	t := s.turns[c]
	s.mu.Unlock()
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if outcome != "" {
		t.outcome = outcome
		return
	}
	m := mark{Thread: e.Thread, Ref: e.Ref}
	for _, w := range t.wanted {
		if w == m {
			return
		}
	}
	if s.markers[e.Thread.Channel] != nil && len(t.wanted) < mostMarks {
		t.wanted = append(t.wanted, m)
	}
}

// begin says that a lease is being worked on.
func (s *Signs) begin(c state.ID) *marking {
	t := &marking{noted: map[string]mark{}}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns[c] = t
	return t
}

// show marks what the lease answers until ctx ends: a lease that was taken over
// has the marks of the attempt before.
func (s *Signs) show(ctx context.Context, l state.Lease, t *marking) {
	if len(s.markers) == 0 {
		return
	}
	if l.Attempt > 1 { // however soon the work ends
		adopting, cancel := context.WithTimeout(context.WithoutCancel(ctx), markTime)
		s.adopt(adopting, l.Conversation.ID, t)
		cancel()
	}
	for wait := markAfter; sleep(ctx, wait); wait = markEvery {
		t.mu.Lock()
		wanted := append([]mark(nil), t.wanted...)
		t.mu.Unlock()
		for _, m := range wanted {
			if s.note(ctx, l.Conversation.ID, t, m) {
				s.mark(ctx, m, channels.Working)
			}
		}
	}
}

// adopt takes over the marks that were noted for a conversation.
func (s *Signs) adopt(ctx context.Context, c state.ID, t *marking) {
	prefix := string(c) + " "
	vs, err := s.values.ListValues(ctx, markSpace, prefix, mostMarks)
	if err != nil {
		s.log.Warn("marks not read", "conversation", string(c), "err", err)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, v := range vs {
		var m mark
		if strings.HasPrefix(v.Key, prefix) && json.Unmarshal(v.Data, &m) == nil {
			t.noted[v.Key] = m
		}
	}
}

// note notes that a mark is shown, and again from time to time. It says whether
// it may be.
func (s *Signs) note(ctx context.Context, c state.ID, t *marking, m mark) bool {
	key, now := string(c)+" "+handleKey(m.Thread, m.Ref), s.clock()
	t.mu.Lock()
	last, ok := t.noted[key]
	t.mu.Unlock()
	if ok && now.Sub(last.At) < keepEvery {
		return true
	}
	m.At = now
	if err := s.put(ctx, markSpace, key, m); err != nil {
		s.log.Warn("mark not noted", "conversation", string(c), "err", err)
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.noted[key] = m
	return true
}

func (s *Signs) put(ctx context.Context, space, key string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.values.PutValues(ctx, space, state.Value{Key: key, Data: data})
}

// end swaps the marks of a lease for the outcome. Work that was cut off leaves
// them to whoever goes on with it. A provider that does not answer holds nobody
// for long, nor a stop: what is still marked then is swept.
func (s *Signs) end(ctx context.Context, c state.ID, t *marking, cut bool) {
	s.mu.Lock()
	if s.turns[c] == t {
		delete(s.turns, c)
	}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, markTime)
	defer cancel()
	t.mu.Lock()
	defer t.mu.Unlock()
	if cut && t.outcome == "" {
		return
	}
	p := channels.Cleared
	switch t.outcome {
	case "", "aborted": // it waits for people, or goes on elsewhere
	case "answered", "declined":
		p = channels.Answered
	default:
		p = channels.Failed
	}
	for key, m := range t.noted {
		if s.mark(ctx, m, p) {
			s.forget(ctx, markSpace, key)
		}
	}
}

// mark shows how far the answer to an event is. It says whether that was done or
// never will be.
func (s *Signs) mark(ctx context.Context, m mark, p channels.Progress) bool {
	marker := s.markers[m.Thread.Channel]
	if marker == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, markTime)
	defer cancel()
	_, err := guard(s.log, func() (struct{}, error) { return struct{}{}, marker.Mark(ctx, m.Thread, m.Ref, p) })
	if err != nil {
		s.log.Debug("mark not shown", "thread", m.Thread.Key(), "err", err)
	}
	return err == nil || verdictOf(err) == channels.Rejected
}

func (s *Signs) forget(ctx context.Context, space string, keys ...string) {
	vs := make([]state.Value, len(keys))
	for i, k := range keys {
		vs[i].Key = k
	}
	if err := s.values.PutValues(ctx, space, vs...); err != nil {
		s.log.Warn("sign not forgotten", "err", err) // it is taken away once more
	}
}

// sweep takes away marks that belong to nobody, now and then until ctx ends.
func (s *Signs) sweep(ctx context.Context) {
	for {
		s.sweepMarks(ctx)
		s.sweepWhispers(ctx)
		if !sleep(ctx, sweepLost) {
			return
		}
	}
}

func (s *Signs) sweepMarks(ctx context.Context) {
	err := eachValue(ctx, s.values, markSpace, func(v state.Value) error {
		var m mark
		age := giveUp
		if json.Unmarshal(v.Data, &m) == nil {
			age = s.clock().Sub(m.At)
		}
		if age >= lostAfter && (s.mark(ctx, m, channels.Cleared) || age >= giveUp) {
			s.forget(ctx, markSpace, v.Key)
		}
		return ctx.Err()
	})
	if err != nil && ctx.Err() == nil {
		s.log.Warn("marks not swept", "err", err)
	}
}

// eachValue calls f with all values of a space.
func eachValue(ctx context.Context, values state.Values, space string, f func(state.Value) error) error {
	const page = 500
	for after := ""; ; {
		vs, err := values.ListValues(ctx, space, after, page)
		if err != nil {
			return err
		}
		for _, v := range vs {
			if err := f(v); err != nil {
				return err
			}
			after = v.Key
		}
		if len(vs) < page {
			return nil
		}
	}
}
