package ui

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/state"
)

// thrifty counts the records that are read of a store, in all and at most at once.
type thrifty struct {
	state.Store
	mu        sync.Mutex
	all, most int
}

func (s *thrifty) count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all, s.most = s.all+n, max(s.most, n)
}

func (s *thrifty) since() (all, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, most = s.all, s.most
	s.all, s.most = 0, 0
	return all, most
}

func (s *thrifty) Load(ctx context.Context, id state.ID, after int64) (state.View, error) {
	v, err := s.Store.Load(ctx, id, after)
	s.count(len(v.Records))
	return v, err
}

func (s *thrifty) Records(ctx context.Context, id state.ID, after int64, limit int) ([]state.Record, error) {
	rs, err := s.Store.Records(ctx, id, after, limit)
	s.count(len(rs))
	return rs, err
}

// logs puts records into the log of an API conversation and leaves a checkpoint.
func (w *world) logs(room string, bodies []record.Body) state.Conversation {
	w.t.Helper()
	thread, err := threadOf("assistant", room)
	if err != nil {
		w.t.Fatal(err)
	}
	e := chat.Event{ID: "first of " + room, Thread: thread, Kind: chat.Message, Text: "x", Author: author}
	if _, err := w.store.Admit(w.t.Context(), []state.Admit{{Event: e, Agent: "assistant"}}); err != nil {
		w.t.Fatal(err)
	}
	l, err := w.store.Claim(w.t.Context(), "test", time.Minute)
	if err != nil {
		w.t.Fatal(err)
	}
	var f record.Fold
	b := state.Batch{Release: true, Taken: 1}
	for i, body := range bodies {
		r, err := record.Encode(body)
		if err != nil {
			w.t.Fatal(err)
		}
		b.Records = append(b.Records, r)
		if r.Seq = int64(i + 1); f.Add([]state.Record{r}) != nil {
			w.t.Fatal("not a log")
		}
	}
	blob, err := f.Checkpoint(l.Conversation.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	b.Blobs = []state.Blob{{Name: record.FoldBlob, Data: blob}}
	if l, err = w.store.Commit(w.t.Context(), l, b); err != nil {
		w.t.Fatal(err)
	}
	return l.Conversation
}

// Of a long log no more is read than an answer needs, and never much at once.
func TestLongLogsAreReadInPieces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const turns = 6000
	var log []record.Body
	for n := range turns {
		turn := fmt.Sprint("t", n)
		log = append(log, record.Heard{Turn: turn, Event: chat.Event{ID: fmt.Sprint("e", n), Author: author}},
			record.Said{Turn: turn, Step: 1, Parts: []model.Part{{Kind: model.Text, Text: "hi"}}, Usage: model.Usage{In: 1}},
			record.Data{Turn: turn, Step: 1, Name: fmt.Sprint("part ", n%3), Value: []byte("1")},
			record.Settled{Turn: turn, Outcome: record.Answered})
	}
	log[4*(turns-1)] = record.Heard{Turn: fmt.Sprint("t", turns-1), Event: chat.Event{ID: "first of long", Author: author}}
	c := w.logs("long", log)
	counted := &thrifty{Store: w.store}
	w.api.Store = counted
	last := fmt.Sprint("t", turns-1)
	for _, one := range []struct {
		name   string
		method string
		path   string
		body   any
		most   int // records in all
	}{
		{"head", "GET", at + "long", nil, 0},
		{"the newest records", "GET", at + "long/records?limit=20", nil, 64},
		{"older records", "GET", at + "long/records?limit=20&before=500", nil, 64},
		{"of a kind, with their sum", "GET", at + "long/records?limit=20&kind=settled", nil, 4 * turns},
		{"data", "GET", at + "long/data", nil, 3},
		{"an event near the end", "GET", "/api/v1/events/api/first%20of%20long", nil, 2 * 64},
		{"fork at the end", "POST", at + "long/fork", obj{"id": "f1"}, 64 + 2},
		{"fork at the last turn", "POST", at + "long/fork", obj{"id": "f2", "turn": last}, 64 + 2},
	} {
		counted.since()
		w.want(map[string]int{"GET": 200, "POST": 201}[one.method], one.method, one.path, one.body)
		if all, most := counted.since(); all > one.most || most > mostPiece {
			t.Errorf("%s: %d records were read, %d at once; want at most %d, and %d at once", one.name, all, most, one.most, mostPiece)
		}
	}
	// A stream that goes on somewhere reads from there; one from the beginning
	// sends all in pieces and says only then that it has caught up.
	srv := w.serves()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	counted.since()
	l := w.listen(ctx, srv+at+"long/stream", fmt.Sprint(c.Seq-10))
	if n := len(l.until("caught_up")); n != 10 {
		t.Errorf("a stream that goes on sends %d records, want 10", n)
	}
	if all, _ := counted.since(); all > 10 {
		t.Errorf("a stream that goes on reads %d records", all)
	}
	l = w.listen(ctx, srv+at+"long/stream?kind=settled", "")
	if n := len(l.until("caught_up")); n != turns {
		t.Errorf("a stream from the beginning sends %d records, want %d", n, turns)
	}
	if all, most := counted.since(); all > 4*turns || most > mostPiece {
		t.Errorf("a stream from the beginning reads %d records, %d at once", all, most)
	}
}

// Where a log is forked is where folding it from its beginning says.
func TestForkAtIsWhereNoTurnIsOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 40 {
		var log []record.Body
		turn, open := 0, false
		for range 1 + rng.IntN(20) {
			id := fmt.Sprint("t", turn)
			switch k := rng.IntN(6); {
			case k == 0:
				log = append(log, record.Heard{Event: chat.Event{ID: "context"}})
			case k == 1:
				log = append(log, record.Passed{Event: "x"})
			case k == 2 && open:
				log = append(log, record.Settled{Turn: id, Outcome: record.Answered})
				turn, open = turn+1, false
			case k == 3 && open:
				log = append(log, record.Did{Turn: id, CallID: "c", Tool: "look"})
			default:
				log = append(log, record.Heard{Turn: id, Event: chat.Event{ID: "e"}})
				open = true
			}
		}
		room := fmt.Sprint("log ", n)
		c := w.logs(room, log)
		records := w.all(string(c.ID))
		for seq := int64(0); seq <= c.Seq+1; seq++ {
			w.forksAt(c, records, "", seq)
		}
		for n := range turn + 2 {
			w.forksAt(c, records, fmt.Sprint("t", n), 0)
		}
	}
}

// forksAt compares forkAt with a fold from the beginning.
func (w *world) forksAt(c state.Conversation, records []state.Record, turn string, seq int64) {
	w.t.Helper()
	var f record.Fold
	want, known := int64(0), turn == ""
	for _, r := range records {
		was := f.Turn
		if err := f.Add([]state.Record{r}); err != nil {
			w.t.Fatal(err)
		}
		known = known || f.Turn != nil && f.Turn.ID == turn
		ended := was != nil && f.Turn == nil
		if f.Turn == nil && (turn == "" || ended && was.ID == turn) && (seq == 0 || r.Seq == seq) {
			want = r.Seq
		}
	}
	ran := false
	for _, r := range records[want:] {
		ran = ran || r.Kind == "did"
	}
	wantErr := Code("")
	switch {
	case want > 0:
	case !known || seq > c.Seq:
		wantErr = noSuchTurn
	default:
		wantErr = turnOpen
	}
	at, worked, err := w.api.forkAt(w.t.Context(), c, turn, seq)
	var p *Problem
	if errors.As(err, &p) != (wantErr != "") || p != nil && p.Code != wantErr || at != want || wantErr == "" && worked != ran {
		w.t.Errorf("turn %q, seq %d of %s: %d, worked %t, %v; want %d, %t, %q", turn, seq, c.Thread.Room, at, worked, err, want, ran, wantErr)
	}
}
