package ui

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/heddlehq/heddle/state"
)

// Stores do not say when a conversation changes, and another replica may have
// changed it, so whoever waits looks often enough to seem to be told at once.
// A look that finds nothing new reads one row.
const lookEvery = 200 * time.Millisecond

// beatEvery is how often a quiet stream says that it lives: proxies close
// connections that are silent for a minute.
const beatEvery = 15 * time.Second

// wait takes a place for a request that waits; the caller gives it back.
func (a *API) wait() (giveBack func(), err error) {
	select {
	case a.waits <- struct{}{}:
		return func() { <-a.waits }, nil
	default:
		return nil, fail(tooManyWaits, "too many requests wait already")
	}
}

// A tail reads what is new in one conversation.
type tail struct {
	store  state.Store
	target target
	seq    int64 // of the last record read
	inbox  int
	behind bool // there is more than the next call returns
}

// next reads records after the last call, and unless it is behind then the inbox
// as well; it says false if nothing has changed since. A conversation that does
// not exist has no news.
func (t *tail) next(ctx context.Context) (v state.View, changed bool, err error) {
	c, err := t.store.Find(ctx, t.target.thread)
	if errors.Is(err, state.ErrNotFound) {
		return v, false, nil
	}
	if err != nil {
		return v, false, err
	}
	t.seq = min(t.seq, c.Seq)
	if c.Seq == t.seq && c.Inbox == t.inbox {
		t.behind = false
		return v, false, nil
	}
	if t.behind = c.Seq-t.seq > mostPiece; t.behind {
		v.Conversation = c
		if v.Records, err = t.store.Records(ctx, c.ID, t.seq, mostPiece); err == nil && len(v.Records) > 0 {
			t.seq = v.Records[len(v.Records)-1].Seq
		}
		return v, true, err
	}
	if v, err = t.store.Load(ctx, c.ID, t.seq); err == nil {
		t.seq, t.inbox = v.Conversation.Seq, v.Conversation.Inbox
	}
	return v, true, err
}

// stream sends the records after a Seq as server-sent events, and then each
// new one, until the client goes or the gateway stops. A conversation that
// does not exist yet is waited for.
func (a *API) stream(w http.ResponseWriter, r *http.Request) error {
	t, err := a.target(r)
	if err != nil {
		return err
	}
	q := query{values: r.URL.Query()}
	after := q.number("after", 0, 0, noRecords)
	f := filterOf(&q)
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		if after, err = strconv.ParseInt(last, 10, 64); err != nil || after < 0 {
			return fail(badRequest, "Last-Event-ID is no number of a record")
		}
	}
	if err := q.done(); err != nil {
		return err
	}
	giveBack, err := a.wait()
	if err != nil {
		return err
	}
	defer giveBack()
	out := &events{answer: w.(*answer)}
	out.begin()
	news := tail{store: a.Store, target: t, seq: after}
	for caughtUp := false; ; {
		v, _, err := news.next(r.Context())
		if err != nil {
			return err // the client comes back with the Seq of the last record it got
		}
		for _, rec := range v.Records {
			if f.takes(rec) {
				out.send(rec)
			}
		}
		if !caughtUp && !news.behind {
			out.caughtUp(news.seq)
			caughtUp = true
		}
		if err := out.flush(); err != nil {
			return nil // the client has gone or is too slow
		}
		if !news.behind && !pause(r.Context(), lookEvery) {
			return nil
		}
	}
}

// events writes server-sent events.
type events struct {
	*answer
	buf  bytes.Buffer
	last time.Time // of the last write
}

func (e *events) begin() {
	e.Header().Set("Content-Type", "text/event-stream")
	e.Header().Set("X-Accel-Buffering", "no")
	e.WriteHeader(http.StatusOK)
	e.buf.WriteString("retry: 1000\n\n")
}

// send adds a record.
func (e *events) send(r state.Record) {
	data, err := json.Marshal(recordOf(r))
	if err != nil {
		return // unreachable: the store has JSON only
	}
	fmt.Fprintf(&e.buf, "id: %d\nevent: %s\ndata: %s\n\n", r.Seq, r.Kind, data)
}

// caughtUp marks where what had happened before ends.
func (e *events) caughtUp(seq int64) {
	fmt.Fprintf(&e.buf, "event: caught_up\ndata: {\"seq\":%d}\n\n", seq)
}

// flush writes what was added, or that the stream lives if it was quiet for long.
func (e *events) flush() error {
	now := time.Now()
	if e.buf.Len() == 0 && now.Sub(e.last) < beatEvery {
		return nil
	}
	if e.buf.Len() == 0 {
		e.buf.WriteString(": alive\n\n")
	}
	e.last = now
	e.extend()
	_, err := e.ResponseWriter.Write(e.buf.Bytes())
	e.buf.Reset()
	if err == nil {
		err = http.NewResponseController(e.ResponseWriter).Flush()
	}
	return err
}

// pause waits, or returns false when ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
