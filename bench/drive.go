//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// A plan is the traffic of a run.
type plan struct {
	run     string // part of the marks
	first   int    // number of the first thread
	threads int    // the events go to them in turn
	rooms   int    // that the threads lie in
	events  int
	rate    float64         // events a second; 0: as many as atOnce allows
	atOnce  int             // events under way
	reply   bool            // an event is under way until its reply, not only until it is accepted
	retries []time.Duration // before each further delivery of an event that was not accepted
}

// quickRetries are a platform's, compressed.
func quickRetries() []time.Duration {
	return []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second}
}

func (p plan) event(thread, seq int) *event {
	thread += p.first
	return &event{
		mark: mark(p.run, thread, seq), thread: thread, seq: seq,
		room: fmt.Sprintf("C%07d", thread%p.rooms), root: stamp(thread, 0),
	}
}

func stamp(thread, seq int) string { return fmt.Sprintf("%d.%06d", 1_700_000_000+thread, seq+1) }

// drive sends a plan's events and returns when all are accepted or given up
// and, if the plan says so, answered. An event of a thread is sent when the one
// before it has been accepted.
func (r *rig) drive(ctx context.Context, p plan, book *ledger) {
	heads, seqs := make([]chan struct{}, p.threads), make([]int, p.threads)
	slots := make(chan struct{}, max(1, p.atOnce))
	began := time.Now()
	var all sync.WaitGroup
	for n := range p.events {
		if p.rate > 0 {
			due := began.Add(time.Duration(float64(n) / p.rate * float64(time.Second)))
			pause(ctx, time.Until(due))
		} else {
			slots <- struct{}{}
		}
		if ctx.Err() != nil {
			break
		}
		t := n % p.threads
		e, before, done := p.event(t, seqs[t]), heads[t], make(chan struct{})
		seqs[t]++
		heads[t] = done
		all.Go(func() {
			if before != nil {
				<-before
			}
			r.send(ctx, p, book, e)
			close(done)
			if p.reply {
				r.await(ctx, e)
			}
			if p.rate == 0 {
				<-slots
			}
		})
	}
	all.Wait()
}

// send delivers an event until it is accepted.
func (r *rig) send(ctx context.Context, p plan, book *ledger, e *event) {
	book.add(e)
	body := e.body()
	for try := 0; ; try++ {
		book.delivered(e, time.Now())
		if r.deliver(ctx, body, try) {
			book.accepted(e, time.Now())
			return
		}
		if try >= len(p.retries) || !pause(ctx, p.retries[try]) {
			return
		}
	}
}

// await waits for an event's reply, if it was accepted.
func (r *rig) await(ctx context.Context, e *event) {
	if e.acked.IsZero() { // set by send, before
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	select {
	case <-e.answered:
	case <-ctx.Done():
	}
}

// deliver makes one request and says whether it was accepted.
func (r *rig) deliver(ctx context.Context, body []byte, try int) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url("/slack/events"), bytes.NewReader(body))
	if err != nil {
		return false
	}
	now := strconv.FormatInt(time.Now().Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Slack-Request-Timestamp", now)
	req.Header.Set("X-Slack-Signature", signature(now, body))
	if try > 0 {
		req.Header.Set("X-Slack-Retry-Num", strconv.Itoa(try))
		req.Header.Set("X-Slack-Retry-Reason", "http_error")
	}
	res, err := r.client.Do(req)
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	return res.StatusCode == http.StatusOK
}

func signature(stamp string, body []byte) string {
	h := hmac.New(sha256.New, []byte(secret))
	_, _ = fmt.Fprintf(h, "v0:%s:", stamp) // a hash takes everything
	_, _ = h.Write(body)
	return "v0=" + hex.EncodeToString(h.Sum(nil))
}

// body is the delivery as Slack makes it, with what comes beside the text.
func (e *event) body() []byte {
	thread := ""
	if e.seq > 0 {
		thread = fmt.Sprintf(`"thread_ts":%q,"parent_user_id":"U0PERSON",`, e.root)
	}
	ts, text := stamp(e.thread, e.seq), "<@U0BOT> please look at "+e.mark
	return fmt.Appendf(nil, `{"token":"unused","team_id":"T0FAKE","api_app_id":"A0FAKE","type":"event_callback","event_id":"Ev%[1]s",`+
		`"event_time":%[2]d,"is_ext_shared_channel":false,"event_context":"4-bench","authorizations":[{"enterprise_id":null,"team_id":"T0FAKE",`+
		`"user_id":"U0BOT","is_bot":true,"is_enterprise_install":false}],"event":{"type":"app_mention","user":"U0PERSON","team":"T0FAKE",`+
		`"text":%[3]q,"ts":%[4]q,"event_ts":%[4]q,"channel":%[5]q,%[6]s"client_msg_id":%[1]q,"blocks":[{"type":"rich_text","block_id":"b1",`+
		`"elements":[{"type":"rich_text_section","elements":[{"type":"user","user_id":"U0BOT"},{"type":"text","text":" please look at %[1]s"}]}]}]}}`,
		e.mark, 1_700_000_000+e.thread, text, ts, e.room, thread)
}

// settle waits until all that was accepted is answered, or nothing was posted
// for a while, and then a little for posts that should not come.
func (r *rig) settle(ctx context.Context, book *ledger, quiet, linger time.Duration) {
	began := time.Now()
	for book.unanswered() > 0 && pause(ctx, 5*time.Millisecond) {
		last := book.latest()
		if last.Before(began) {
			last = began
		}
		if time.Since(last) > quiet {
			return
		}
	}
	pause(ctx, linger)
}

// warm has some events answered that do not count, so that connections, caches
// and the memory's size are those of a running program.
func (r *rig) warm(ctx context.Context, n int) error {
	book := newLedger()
	r.world.book.Store(book)
	r.drive(ctx, plan{run: "warm", first: 10_000_000, threads: max(1, n/5), rooms: 50, events: n, atOnce: 8, reply: true}, book)
	r.settle(ctx, book, 10*time.Second, 200*time.Millisecond)
	if n == 0 {
		return nil
	}
	return r.sum(book).err()
}

// sum closes the books. The floor promises no order, so it is not held to one.
func (r *rig) sum(book *ledger) verdict {
	v := book.sum()
	if r.floor {
		v.Disorder = 0
	}
	return v
}
