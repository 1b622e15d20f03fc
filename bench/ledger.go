//go:build linux

package main

import (
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"
)

// A mark stands in the text of an event. The fake model repeats the marks that
// it has not answered yet, so a post says which events it answers, however the
// gateway joins them.
var markPattern = regexp.MustCompile(`hm-[a-z0-9]+-[0-9]+-[0-9]+-mh`)

// marksIn lists the marks of a text, each once.
func marksIn(text string) []string {
	var out []string
	for _, m := range markPattern.FindAllString(text, -1) {
		if !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}

// An event is one mention, whatever the number of its deliveries.
type event struct {
	mark       string
	thread     int
	seq        int // within its thread, from 0
	room, root string

	sent     time.Time // first delivery
	acked    time.Time // first 2xx, zero for none
	tries    int
	posts    []time.Time   // those that name it
	answered chan struct{} // closed at the first of them
}

// A ledger holds every event of a run and what became of it. Its methods may
// be called at once.
type ledger struct {
	mu        sync.Mutex
	events    []*event
	byMark    map[string]*event
	last      map[int]int // of each thread, the highest seq that was answered
	posts     int
	strays    []string // posts that name no event of this run
	misplaced int      // posts that stand outside their event's thread
	disorder  int      // events that were answered after a later one of their thread
	lastPost  time.Time
	open      int // accepted and not answered
}

func newLedger() *ledger {
	return &ledger{byMark: map[string]*event{}, last: map[int]int{}}
}

func mark(run string, thread, seq int) string {
	return fmt.Sprintf("hm-%s-%d-%d-mh", run, thread, seq)
}

// add notes an event that is about to be sent.
func (l *ledger) add(e *event) {
	e.answered = make(chan struct{})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
	l.byMark[e.mark] = e
}

func (l *ledger) delivered(e *event, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.tries == 0 {
		e.sent = at
	}
	e.tries++
}

func (l *ledger) accepted(e *event, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.acked = at; len(e.posts) == 0 {
		l.open++
	}
}

// posted notes a message that the gateway made visible.
func (l *ledger) posted(room, root, text string, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastPost = at
	l.posts++
	known := false
	for _, m := range marksIn(text) {
		e := l.byMark[m]
		if e == nil {
			continue
		}
		known = true
		if e.room != room || e.root != root {
			l.misplaced++
		}
		if e.posts = append(e.posts, at); len(e.posts) > 1 {
			continue
		}
		close(e.answered)
		if !e.acked.IsZero() {
			l.open--
		}
		// The generator sends an event when the one before it was accepted.
		if last, ok := l.last[e.thread]; ok && e.seq < last {
			l.disorder++
		} else {
			l.last[e.thread] = e.seq
		}
	}
	if !known {
		l.strays = append(l.strays, text)
	}
}

// unanswered is how many accepted events have no post yet.
func (l *ledger) unanswered() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

// latest is when the last post came.
func (l *ledger) latest() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lastPost
}

// recovered is when the last of those accepted before a time was first
// answered, zero if one still is not.
func (l *ledger) recovered(before time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	var last time.Time
	for _, e := range l.events {
		switch {
		case e.acked.IsZero() || e.acked.After(before):
		case len(e.posts) == 0:
			return time.Time{}
		case e.posts[0].After(last):
			last = e.posts[0]
		}
	}
	return last
}

// A verdict is what a run comes to.
type verdict struct {
	Events    int `json:"events"`
	Accepted  int `json:"accepted"`
	Answered  int `json:"answered"`
	Missing   int `json:"missing"`   // accepted, never answered
	Doubled   int `json:"doubled"`   // answered more than once
	Disorder  int `json:"disorder"`  // answered after a later one of the thread
	Misplaced int `json:"misplaced"` // answered in another thread
	Strays    int `json:"strays"`    // posts that answer nothing
	Posts     int `json:"posts"`     // fewer than events if some were answered together

	PerSecond float64   `json:"answered_per_s"` // from the first delivery to the last post
	Ack       quantiles `json:"ack_ms"`
	Reply     quantiles `json:"reply_ms"`

	example string // of what is wrong
}

// sum closes the books.
func (l *ledger) sum() verdict {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := verdict{Events: len(l.events), Disorder: l.disorder, Misplaced: l.misplaced, Strays: len(l.strays), Posts: l.posts}
	if len(l.strays) > 0 {
		v.example = l.strays[0]
	}
	var acks, replies []time.Duration
	var first, last time.Time
	for _, e := range l.events {
		if first.IsZero() || e.sent.Before(first) {
			first = e.sent
		}
		if !e.acked.IsZero() {
			v.Accepted++
			acks = append(acks, e.acked.Sub(e.sent))
		}
		switch n := len(e.posts); {
		case n == 0 && !e.acked.IsZero():
			v.Missing++
			v.example = e.mark
		case n > 1:
			v.Doubled++
			v.example = e.mark
		}
		if len(e.posts) > 0 {
			v.Answered++
			replies = append(replies, e.posts[0].Sub(e.sent))
			if e.posts[0].After(last) {
				last = e.posts[0]
			}
		}
	}
	v.Ack, v.Reply = quantilesOf(acks), quantilesOf(replies)
	if d := last.Sub(first); d > 0 {
		v.PerSecond = round(float64(v.Answered) / d.Seconds())
	}
	return v
}

// err says what is wrong, nil if every event was accepted and answered once, in order.
func (v verdict) err() error {
	if v.Events == v.Accepted && v.Missing+v.Doubled+v.Disorder+v.Misplaced+v.Strays == 0 && v.Events > 0 {
		return nil
	}
	return fmt.Errorf("of %d events %d were accepted: %d missing, %d doubled, %d out of order, %d in another thread; %d posts answer nothing (such as %q)",
		v.Events, v.Accepted, v.Missing, v.Doubled, v.Disorder, v.Misplaced, v.Strays, v.example)
}
