package ui

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/state"
)

// noRecords is the Seq after which no conversation has records.
const noRecords = math.MaxInt64

// A conversationView is a conversation in a list.
type conversationView struct {
	ID        state.ID    `json:"id"`
	Agent     string      `json:"agent"`
	Thread    chat.Thread `json:"thread"`
	Seq       int64       `json:"seq"`   // of the newest record
	Inbox     int         `json:"inbox"` // events that wait
	CreatedAt time.Time   `json:"created_at"`
	UpdatedAt time.Time   `json:"updated_at"`
}

func viewOf(c state.Conversation) conversationView {
	return conversationView{c.ID, c.Agent, c.Thread, c.Seq, c.Inbox, c.CreatedAt, c.UpdatedAt}
}

// Pages hold so many entries if nobody says how many, and at most.
const (
	usualPage = 50
	mostPage  = 500
)

// list lists conversations, the newest first.
func (a *API) list(w http.ResponseWriter, r *http.Request) error {
	q := query{values: r.URL.Query()}
	limit := int(q.number("limit", usualPage, 1, mostPage))
	before := q.time("before")
	if err := q.done(); err != nil {
		return err
	}
	all, more, err := a.page(r, before, limit)
	if err != nil {
		return err
	}
	out := struct {
		Conversations []conversationView `json:"conversations"`
		Before        *time.Time         `json:"before,omitempty"` // of the next page
	}{Conversations: []conversationView{}}
	for _, c := range all {
		out.Conversations = append(out.Conversations, viewOf(c))
	}
	if more {
		out.Before = &all[len(all)-1].UpdatedAt
	}
	return reply(w, http.StatusOK, out)
}

// page reads limit conversations and those that were updated in the same
// moment as the last of them: the next page begins before that moment.
func (a *API) page(r *http.Request, before time.Time, limit int) (all []state.Conversation, more bool, err error) {
	for n := limit + 1; ; n *= 2 {
		all, err := a.Store.Conversations(r.Context(), before, n)
		if err != nil || len(all) <= limit {
			return all, false, err
		}
		last := all[limit-1].UpdatedAt
		end := limit + slices.IndexFunc(all[limit:], func(c state.Conversation) bool { return !c.UpdatedAt.Equal(last) })
		switch {
		case end >= limit:
			return all[:end], true, nil
		case len(all) < n:
			return all, false, nil
		}
	}
}

// head tells how a conversation stands.
func (a *API) head(w http.ResponseWriter, r *http.Request) error {
	t, err := a.target(r)
	if err != nil {
		return err
	}
	f, v, err := a.fold(r.Context(), t.id)
	if err != nil {
		return err
	}
	type openTurn struct {
		ID   string `json:"id"`
		Step int    `json:"step"` // the last one recorded, 0 before the first
	}
	out := struct {
		conversationView
		Status    string         `json:"status"` // "idle", "waiting" for a turn to begin, "running", or "paused" by an operator
		Turn      *openTurn      `json:"turn,omitempty"`
		Questions []record.Asked `json:"questions,omitempty"` // that calls wait with; the next message answers
		Turns     int            `json:"turns"`               // settled ones
		Cost      float64        `json:"cost"`                // US dollars
		Usage     any            `json:"usage"`
		Parent    *record.Forked `json:"parent,omitempty"` // where it was forked
	}{conversationView: viewOf(v.Conversation), Status: "idle", Turns: f.Turns, Cost: f.Cost, Usage: f.Usage, Parent: f.Parent}
	for _, wait := range f.Waits() {
		if wait.Question != "" {
			out.Questions = append(out.Questions, wait.Asked)
		}
	}
	for _, e := range v.Inbox {
		if !e.Quiet {
			out.Status = "waiting"
		}
	}
	if f.Turn != nil {
		out.Status, out.Turn = "running", &openTurn{f.Turn.ID, f.Turn.Step}
	}
	if f.Held() {
		out.Status = "paused"
	}
	return reply(w, http.StatusOK, out)
}

// A recordView is a record. Its parent is the record before it, in a fork up
// to the forking point that of the original: the records of a conversation and
// its forks are a tree, and the newest record of each is a leaf of it.
type recordView struct {
	Seq      int64           `json:"seq"`
	Parent   int64           `json:"parent,omitempty"`
	At       time.Time       `json:"at"`
	Kind     string          `json:"kind"`
	Internal bool            `json:"internal,omitempty"` // not for the people of the conversation
	Data     json.RawMessage `json:"data"`
}

func recordOf(r state.Record) recordView {
	return recordView{r.Seq, r.Seq - 1, r.At, r.Kind, !slices.Contains(public, r.Kind), r.Data}
}

// public are the kinds that a client may show as they are. The others are
// between Heddle and the model, such as announcements and the work of
// subagents, and are served to those who name them.
var public = []string{"heard", "passed", "said", "did", "asked", "data", "resulted", "controlled", "settled", "forked", "fetched", "posted"}

// A filter chooses records.
type filter struct {
	kinds []string // nil for all
	named bool     // the kinds were asked for: of subagents as well
	turn  string   // "" for all
}

func filterOf(q *query) filter {
	f := filter{kinds: public, turn: q.text("turn")}
	if kinds := q.text("kind"); kinds != "" {
		f.kinds, f.named = strings.Split(kinds, ","), true
	}
	if f.named && f.kinds[0] == "all" {
		f.kinds = nil
	}
	return f
}

func (f filter) takes(r state.Record) bool {
	in := inner(r)
	if f.kinds != nil && !slices.Contains(f.kinds, r.Kind) && (!f.named || !slices.Contains(f.kinds, in.Kind)) {
		return false
	}
	if f.turn == "" {
		return true
	}
	var of struct {
		Turn string `json:"turn"`
	}
	return json.Unmarshal(in.Data, &of) == nil && of.Turn == f.turn
}

// inner is a record of a subagent as it is in the subagent's own log.
func inner(r state.Record) state.Record {
	for r.Kind == "child" {
		var c struct {
			Kind string          `json:"kind"`
			Data json.RawMessage `json:"data"`
		}
		if json.Unmarshal(r.Data, &c) != nil || c.Kind == "" {
			break
		}
		r.Kind, r.Data = c.Kind, c.Data
	}
	return r
}

// A sum adds up what records say that they took.
type sum struct {
	Records int     `json:"records"`
	Wait    int64   `json:"wait_ns"`
	Took    int64   `json:"took_ns"`
	Cost    float64 `json:"cost"`
}

func (s *sum) add(r state.Record) {
	s.Records++
	one := *s
	one.Wait, one.Took, one.Cost = 0, 0, 0
	if json.Unmarshal(inner(r).Data, &one) == nil {
		s.Wait, s.Took, s.Cost = s.Wait+one.Wait, s.Took+one.Took, s.Cost+one.Cost
	}
}

// records serves a page of records, the newest first, and the sum of all that
// are of the kinds asked for.
func (a *API) records(w http.ResponseWriter, r *http.Request) error {
	t, err := a.target(r)
	if err != nil {
		return err
	}
	q := query{values: r.URL.Query()}
	limit := int(q.number("limit", usualPage, 1, mostPage))
	before := q.number("before", noRecords, 1, noRecords)
	f := filterOf(&q)
	if err := q.done(); err != nil {
		return err
	}
	c, err := a.conversation(r.Context(), t.id)
	if err != nil {
		return err
	}
	out := struct {
		Records []recordView `json:"records"`
		Before  int64        `json:"before,omitempty"` // of the next page
		Sum     *sum         `json:"sum,omitempty"`
	}{Records: []recordView{}}
	from := min(before, c.Seq+1)
	if f.named {
		out.Sum, from = &sum{}, c.Seq+1
	}
	for rec, err := range a.back(r.Context(), t.id, from) {
		if err != nil {
			return err
		}
		if !f.takes(rec) {
			continue
		}
		if f.named {
			out.Sum.add(rec)
		}
		switch {
		case rec.Seq >= before:
		case len(out.Records) < limit:
			out.Records = append(out.Records, recordOf(rec))
		default:
			out.Before = out.Records[limit-1].Seq
		}
		if out.Before > 0 && !f.named {
			break
		}
	}
	return reply(w, http.StatusOK, out)
}

// data serves the newest value of each named part that the agent wrote for clients.
func (a *API) data(w http.ResponseWriter, r *http.Request) error {
	t, err := a.target(r)
	if err != nil {
		return err
	}
	f, _, err := a.fold(r.Context(), t.id)
	if err != nil {
		return err
	}
	type part struct {
		Seq   int64           `json:"seq"`
		At    time.Time       `json:"at"`
		Value json.RawMessage `json:"value"`
	}
	parts := map[string]part{}
	for name, seq := range f.Data {
		for rec, err := range a.ahead(r.Context(), t.id, seq-1, seq) {
			if err != nil {
				return err
			}
			b, err := record.Decode(rec)
			if err != nil {
				return fmt.Errorf("data of %s: %w", t.id, err)
			}
			if d, ok := b.(record.Data); ok {
				parts[name] = part{rec.Seq, rec.At, d.Value}
			}
		}
	}
	return reply(w, http.StatusOK, map[string]any{"data": parts})
}

// A query reads the parameters of a request and finds those that nobody asked for.
type query struct {
	values url.Values
	bad    string
	asked  []string
}

func (q *query) text(name string) string {
	q.asked = append(q.asked, name)
	return q.values.Get(name)
}

func (q *query) number(name string, usual, least, most int64) int64 {
	text := q.text(name)
	if text == "" {
		return usual
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		q.bad = name + " wants a number from " + strconv.FormatInt(least, 10)
		if most != noRecords {
			q.bad += " to " + strconv.FormatInt(most, 10)
		}
	}
	return n
}

func (q *query) time(name string) time.Time {
	text := q.text(name)
	if text == "" {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		q.bad = name + " wants a time such as 2026-03-01T12:00:00.5Z"
	}
	return at
}

func (q *query) duration(name string, most time.Duration) time.Duration {
	text := q.text(name)
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > most {
		q.bad = name + " wants a time from 0s to " + most.String()
	}
	return d
}

// done says what is wrong with the parameters.
func (q *query) done() error {
	for name := range q.values {
		if !slices.Contains(q.asked, name) {
			q.bad = "there is a parameter that is not known here"
		}
	}
	if q.bad != "" {
		return fail(badRequest, q.bad)
	}
	return nil
}
