package ui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/state"
)

// mostWait bounds a long poll.
const mostWait = time.Minute

// An eventView is what became of an event.
type eventView struct {
	Status       string          `json:"status"` // "ignored", "waiting" in the inbox, "running", "settled"
	Conversation state.ID        `json:"conversation,omitempty"`
	Turn         string          `json:"turn,omitempty"`    // that took it
	Outcome      string          `json:"outcome,omitempty"` // of the turn; "passed", "noted" or "obeyed" if it led to none
	Reason       string          `json:"reason,omitempty"`
	Answer       string          `json:"answer,omitempty"`  // the model's last words
	Value        json.RawMessage `json:"value,omitempty"`   // the answer in the form that was wanted
	GaveUp       string          `json:"gave_up,omitempty"` // why there is none
	Cost         float64         `json:"cost"`              // of the turn, US dollars
	Usage        any             `json:"usage,omitempty"`
}

// event tells what became of an event, and waits for its end if asked to.
func (a *API) event(w http.ResponseWriter, r *http.Request) error {
	q := query{values: r.URL.Query()}
	wait := q.duration("wait", mostWait)
	if err := q.done(); err != nil {
		return err
	}
	id := r.PathValue("event")
	got, err := a.Store.Event(r.Context(), r.PathValue("channel"), id)
	switch {
	case errors.Is(err, state.ErrNotFound):
		return fail(noSuchEvent, "no such event was admitted")
	case err != nil:
		return err
	case got.Status == state.Ignored:
		return reply(w, http.StatusOK, eventView{Status: "ignored", Reason: got.Reason})
	}
	if wait > 0 {
		giveBack, err := a.wait()
		if err != nil {
			return err
		}
		defer giveBack()
	}
	e := following{id: id, view: eventView{Status: "waiting", Conversation: got.Conversation}}
	news, err := a.past(r.Context(), &e)
	for end := time.Now().Add(wait); err == nil; {
		if !e.inbox && e.view.Status == "waiting" && !news.behind { // it has been taken and left no record of its own
			e.view.Status, e.view.Outcome = "settled", "noted"
		}
		if e.view.Status == "settled" || !time.Now().Before(end) || !news.behind && !pause(r.Context(), lookEvery) {
			return reply(w, http.StatusOK, e.view)
		}
		var v state.View
		var changed bool
		if v, changed, err = news.next(r.Context()); err == nil && changed {
			err = e.follow(v, news.behind)
		}
	}
	return err
}

// past follows an event through what has happened, from where it was taken, which
// is mostly near the end, and returns what reads on.
func (a *API) past(ctx context.Context, e *following) (news tail, err error) {
	v, err := a.Store.Load(ctx, e.view.Conversation, noRecords)
	if err != nil {
		return news, err
	}
	c := v.Conversation
	news = tail{store: a.Store, target: target{c.ID, c.Agent, c.Thread}, seq: c.Seq, inbox: c.Inbox}
	if err := e.follow(v, false); err != nil || e.inbox {
		return news, err
	}
	begin := c.Seq
	for r, err := range a.back(ctx, c.ID, c.Seq+1) {
		one := *e
		if err == nil && r.Kind != "said" && r.Kind != "settled" {
			err = one.record(r)
		}
		if err != nil {
			return news, err
		}
		if one.view.Status != e.view.Status { // it was taken here
			begin = r.Seq - 1
			break
		}
	}
	for r, err := range a.ahead(ctx, c.ID, begin, c.Seq) {
		if err == nil {
			err = e.record(r)
		}
		if err != nil {
			return news, err
		}
	}
	return news, nil
}

// following reads a log for one event.
type following struct {
	id    string
	inbox bool // it is there
	view  eventView
}

// follow takes in what is new; behind says that the inbox is not part of it.
func (f *following) follow(v state.View, behind bool) error {
	for _, r := range v.Records {
		if err := f.record(r); err != nil {
			return err
		}
	}
	if !behind {
		f.inbox = slices.ContainsFunc(v.Inbox, func(e state.Entry) bool { return e.Event.ID == f.id })
	}
	return nil
}

func (f *following) record(r state.Record) error {
	if f.view.Status == "settled" {
		return nil
	}
	switch r.Kind {
	case "heard", "passed", "controlled", "said", "resulted", "settled":
	default:
		return nil
	}
	body, err := record.Decode(r)
	if err != nil {
		return fmt.Errorf("event of %s: %w", f.view.Conversation, err)
	}
	v := &f.view
	switch b := body.(type) {
	case record.Heard:
		if b.Event.ID == f.id {
			v.Status, v.Turn = "running", b.Turn
			if b.Turn == "" {
				v.Status, v.Outcome = "settled", "noted"
			}
		}
	case record.Passed:
		if b.Event == f.id {
			v.Status, v.Outcome, v.Reason = "settled", "passed", b.Reason
		}
	case record.Controlled:
		if b.Event == f.id {
			v.Status, v.Outcome = "settled", "obeyed"
		}
	case record.Said:
		if b.Turn == v.Turn && v.Status == "running" {
			v.Answer = words(b)
		}
	case record.Resulted:
		if b.Turn == v.Turn && v.Status == "running" {
			v.GaveUp = b.GaveUp
		}
	case record.Settled:
		if b.Turn == v.Turn && v.Status == "running" {
			v.Value = b.Value
			v.Status, v.Outcome, v.Reason, v.Cost, v.Usage = "settled", string(b.Outcome), b.Reason, b.Cost, b.Usage
		}
	}
	return nil
}

// words is what a model said to people.
func words(b record.Said) string {
	var text strings.Builder
	for _, p := range b.Parts {
		if p.Kind == "text" {
			text.WriteString(p.Text)
		}
	}
	return text.String()
}
