package ui

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/scripted"
	"github.com/heddlehq/heddle/state"
	"github.com/heddlehq/heddle/state/mem"
)

// writes commits entries to a conversation as an engine would.
func (w *world) writes(t chat.Thread, bodies ...record.Body) state.ID {
	w.t.Helper()
	e := chat.Event{ID: rand.Text(), Thread: t, Kind: chat.Message}
	if _, err := w.store.Admit(w.t.Context(), []state.Admit{{Event: e, Agent: t.Account}}); err != nil {
		w.t.Fatal(err)
	}
	l, err := w.store.Claim(w.t.Context(), "writer", time.Minute)
	if err != nil {
		w.t.Fatal(err)
	}
	b := state.Batch{Taken: 1 << 30, Release: true}
	for _, body := range bodies {
		r, err := record.Encode(body)
		if err != nil {
			w.t.Fatal(err)
		}
		b.Records = append(b.Records, r)
	}
	if _, err := w.store.Commit(w.t.Context(), l, b); err != nil {
		w.t.Fatal(err)
	}
	return l.Conversation.ID
}

type pageOf struct {
	Records []recordView
	Before  int64
	Sum     *sum
}

func (w *world) page(path string) (p pageOf) {
	w.t.Helper()
	if err := json.Unmarshal(w.do("GET", path, nil).Body.Bytes(), &p); err != nil {
		w.t.Fatal(err)
	}
	return p
}

// The newest records come first; going back there is no gap and no repeat,
// though the log grows meanwhile.
func TestBackwardPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	th := mustThread(t, "assistant", "a")
	told := func(n int) (out []record.Body) {
		for i := range n {
			out = append(out, record.Passed{Event: fmt.Sprint(i)})
		}
		return out
	}
	w.writes(th, told(127)...)
	var seqs []int64
	path := at + "a/records"
	pages := 0
	for next := path; ; pages++ {
		p := w.page(next)
		for _, r := range p.Records {
			seqs = append(seqs, r.Seq)
			if r.Parent != r.Seq-1 || r.Kind != "passed" || r.Data == nil || r.At.IsZero() {
				t.Errorf("%+v", r)
			}
		}
		w.writes(th, told(10)...)
		if p.Before == 0 {
			break
		}
		next = fmt.Sprint(path, "?before=", p.Before)
	}
	var want []int64
	for s := int64(127); s > 0; s-- {
		want = append(want, s)
	}
	if diff := cmp.Diff(want, seqs); diff != "" || pages != 2 {
		t.Errorf("%d more pages: %s", pages, diff)
	}
	// What is asked for may lie far back.
	w.writes(th, record.Retried{Turn: "t9"})
	w.writes(th, told(2000)...)
	if p := w.page(path + "?turn=t9&kind=retried"); len(p.Records) != 1 || p.Records[0].Seq != 158 || p.Before != 0 {
		t.Errorf("%+v", p)
	}
	if p := w.page(path + "?before=158&limit=2"); len(p.Records) != 2 || p.Records[1].Seq != 156 || p.Before != 156 {
		t.Errorf("%+v", p)
	}
	if p := w.page(path + "?before=158&limit=157"); len(p.Records) != 157 || p.Before != 0 || p.Sum != nil {
		t.Errorf("%d records, more before %d, %v", len(p.Records), p.Before, p.Sum)
	}
}

// Without being asked for, nothing comes that is between Heddle and the model;
// by name everything does. Retries can be asked for, with what they took.
func TestFilters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	retried := func(turn string, wait time.Duration) record.Body {
		return record.Retried{Turn: turn, Step: 1, Try: 1, Fault: model.Limited, Status: 429, Wait: wait}
	}
	w.writes(mustThread(t, "assistant", "a"),
		record.Heard{Turn: "t1", Event: chat.Event{ID: "e1", Text: "hi"}},
		record.Told{Turn: "t1", Step: 1, Text: "prompt of the harness"},
		record.Rendered{Turn: "t1", Step: 1},
		retried("t1", time.Second), retried("t1", 2*time.Second),
		record.Child{Task: []string{"c1"}, Body: record.Said{Turn: "t1.c1", Step: 1, Cost: 0.5}},
		record.Child{Task: []string{"c1"}, Body: record.Child{Task: []string{"c2"}, Body: retried("t1.c2", 4*time.Second)}},
		record.Data{Turn: "t1", Name: "plan", Value: json.RawMessage(`{"done":1}`)},
		record.Said{Turn: "t1", Step: 1, Cost: 0.25, Took: time.Second},
		record.Data{Turn: "t1", Name: "plan", Value: json.RawMessage(`{"done":2}`)},
		record.Settled{Turn: "t1", Outcome: record.Answered},
		record.Heard{Turn: "t2", Event: chat.Event{ID: "e2"}},
		retried("t2", 8*time.Second),
	)
	for query, want := range map[string]struct {
		kinds []string
		sum   *sum
	}{
		"":                          {[]string{"heard", "settled", "data", "said", "data", "heard"}, nil},
		"?kind=all":                 {[]string{"retried", "heard", "settled", "data", "said", "data", "child", "child", "retried", "retried", "rendered", "told", "heard"}, &sum{13, 15e9, 1e9, 0.75}},
		"?kind=retried":             {[]string{"retried", "child", "retried", "retried"}, &sum{4, 15e9, 0, 0}},
		"?kind=retried&turn=t1":     {[]string{"retried", "retried"}, &sum{2, 3e9, 0, 0}},
		"?kind=retried&limit=1":     {[]string{"retried"}, &sum{4, 15e9, 0, 0}},
		"?kind=told,rendered":       {[]string{"rendered", "told"}, &sum{2, 0, 0, 0}},
		"?turn=t2":                  {[]string{"heard"}, nil},
		"?kind=said&turn=t1.c1":     {[]string{"child"}, &sum{1, 0, 0, 0.5}},
		"?kind=nothing-of-the-kind": {nil, &sum{}},
	} {
		p := w.page(at + "a/records" + query)
		var kinds []string
		for _, r := range p.Records {
			kinds = append(kinds, r.Kind)
			if r.Internal == slices.Contains(public, r.Kind) {
				t.Errorf("%s %d: internal %v", r.Kind, r.Seq, r.Internal)
			}
		}
		if diff := cmp.Diff(want.kinds, kinds); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
		if diff := cmp.Diff(want.sum, p.Sum); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
	}
	d := w.want(200, "GET", at+"a/data", nil)["data"].(obj)
	if plan := d["plan"].(obj); len(d) != 1 || plan["seq"] != 10.0 || plan["value"].(obj)["done"] != 2.0 || plan["at"] == nil {
		t.Errorf("data: %v", d)
	}
}

// Conversations come newest first, each once, whatever was updated together.
func TestList(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	w := newWorld(t)
	st := mem.Open(func() time.Time { return now })
	w.api = NewAPI(Options{Store: st, Tokens: []string{token}, Logger: w.api.Logger})
	admit := func(id string) {
		e := chat.Event{ID: id, Thread: chat.Thread{Channel: "slack", Account: "T1", Room: id}, Kind: chat.Message}
		if _, err := st.Admit(t.Context(), []state.Admit{{Event: e, Agent: "assistant"}}); err != nil {
			t.Fatal(err)
		}
	}
	var rooms []string // newest first
	for i, together := range []int{1, 4, 1, 1, 7, 2} {
		now = now.Add(time.Millisecond)
		for j := range together {
			admit(fmt.Sprint(i, j))
			rooms = append(rooms, fmt.Sprint(i, j))
		}
	}
	for _, limit := range []int{1, 2, 3, 5, 16, 50} {
		var got []string
		path := fmt.Sprint("/api/v1/conversations?limit=", limit)
		for next := path; next != ""; {
			v := w.want(200, "GET", next, nil)
			for _, c := range v["conversations"].([]any) {
				c := c.(obj)
				got = append(got, c["thread"].(obj)["room"].(string))
				if c["inbox"] != 1.0 || c["agent"] != "assistant" {
					t.Errorf("%v", c)
				}
			}
			next = ""
			if b, ok := v["before"].(string); ok {
				next = path + "&before=" + b
			}
		}
		if len(got) != len(rooms) {
			t.Errorf("limit %d: %d conversations, want %d", limit, len(got), len(rooms))
		}
		slices.Sort(got)
		if diff := cmp.Diff(rooms, got); diff != "" {
			t.Errorf("limit %d: %s", limit, diff)
		}
	}
}

// Every outcome of an event can be told from the others.
func TestEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	th := chat.Thread{Channel: "slack", Account: "T1", Room: "C1", Root: "1"}
	admit := func(id string, a state.Admit) {
		a.Event = chat.Event{ID: id, Thread: th, Kind: chat.Message}
		if _, err := w.store.Admit(t.Context(), []state.Admit{a}); err != nil {
			t.Fatal(err)
		}
	}
	admit("E0", state.Admit{Ignored: "no route"})
	for _, id := range []string{"E1", "E2", "E3", "E4", "E5"} {
		admit(id, state.Admit{Agent: "T1"})
	}
	far := make([]record.Body, 3000) // all lies far back
	for i := range far {
		far[i] = record.Told{Turn: "t2"}
	}
	heard := func(turn, id string) record.Body { return record.Heard{Turn: turn, Event: chat.Event{ID: id}} }
	w.writes(th, append([]record.Body{
		record.Passed{Event: "E1", Reason: "role below talk"},
		heard("", "E2"),
		heard("t1", "E3"),
		record.Said{Turn: "t1", Parts: []model.Part{{Kind: model.Reasoning, Text: "hm"}, {Kind: model.Text, Text: "first"}}},
		record.Settled{Turn: "t0", Outcome: record.Broken},
		record.Said{Turn: "t1", Parts: []model.Part{{Kind: model.Text, Text: "la"}, {Kind: model.Text, Text: "st"}}},
		record.Settled{Turn: "t1", Outcome: record.Answered, Cost: 0.5, Usage: model.Usage{In: 1}},
		heard("t2", "E4"),
		record.Said{Turn: "t2", Parts: []model.Part{{Kind: model.Text, Text: "so far"}}},
	}, far...)...)
	admit("E6", state.Admit{Agent: "T1"})
	id := string(state.ConversationID("T1", th))
	for event, want := range map[string]obj{
		"E0": {"status": "ignored", "reason": "no route", "cost": 0.0},
		"E1": {"status": "settled", "outcome": "passed", "reason": "role below talk", "conversation": id, "cost": 0.0},
		"E2": {"status": "settled", "outcome": "noted", "conversation": id, "cost": 0.0},
		"E3": {"status": "settled", "outcome": "answered", "conversation": id, "turn": "t1", "answer": "last", "cost": 0.5, "usage": obj{"in": 1.0, "out": 0.0}},
		"E4": {"status": "running", "conversation": id, "turn": "t2", "answer": "so far", "cost": 0.0},
		"E5": {"status": "settled", "outcome": "noted", "conversation": id, "cost": 0.0},
		"E6": {"status": "waiting", "conversation": id, "cost": 0.0},
	} {
		if diff := cmp.Diff(want, w.want(200, "GET", "/api/v1/events/slack/"+event, nil)); diff != "" {
			t.Errorf("%s: %s", event, diff)
		}
	}
}

// What the API tells after the fact is what it told while it happened, and
// every message can be traced to its event and its turn.
func TestHistoryIsWhatWasStreamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url := w.serves()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := w.listen(ctx, url+at+"a/stream?kind=all", "")
	s.until("caught_up")
	w.work()
	w.begin("a", "one")
	w.begin("a", "two")
	live := s.records(int(w.want(200, "GET", at+"a", nil)["seq"].(float64)))
	p := w.page(at + "a/records?kind=all")
	slices.Reverse(p.Records)
	if diff := cmp.Diff(p.Records, live); diff != "" {
		t.Error(diff)
	}
	var turns []string
	for _, r := range live {
		var b struct {
			Turn  string
			Event chat.Event
		}
		if err := json.Unmarshal(r.Data, &b); err != nil || b.Turn == "" {
			t.Errorf("%s: turn %q (%v)", r.Kind, b.Turn, err)
		}
		if r.Kind == "heard" {
			turns = append(turns, b.Event.Text+" "+b.Turn)
			if s := w.want(200, "GET", "/api/v1/events/api/"+b.Event.ID, nil); s["turn"] != b.Turn {
				t.Errorf("%v is not of turn %s", s, b.Turn)
			}
		}
	}
	if len(turns) != 2 {
		t.Errorf("turns: %v", turns)
	}
}

// Two who speak at once do not get in each other's way: each event is of one
// turn, turns do not overlap, and both are answered.
func TestOneAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.plays(scripted.Say("ok"))
	w.work()
	w.work()
	const n = 20
	for i := range n {
		w.want(202, "POST", at+"a/messages", obj{"text": fmt.Sprint(i), "key": fmt.Sprint("k", i)})
	}
	for i := range n {
		if s := w.want(200, "GET", fmt.Sprint("/api/v1/events/api/api:k", i, "?wait=20s"), nil); s["status"] != "settled" || s["answer"] != "ok" {
			t.Errorf("event %d: %v", i, s)
		}
	}
	open, next := "", 0
	p := w.page(at + "a/records?limit=500")
	for _, r := range slices.Backward(p.Records) {
		var b struct {
			Turn  string
			Event chat.Event
		}
		if err := json.Unmarshal(r.Data, &b); err != nil {
			t.Fatal(err)
		}
		if r.Kind == "heard" {
			if b.Event.Text != fmt.Sprint(next) {
				t.Errorf("heard %q, want %d", b.Event.Text, next)
			}
			next++
			if open == "" {
				open = b.Turn
			}
		}
		if b.Turn != open {
			t.Errorf("record %d of turn %s within turn %s", r.Seq, b.Turn, open)
		}
		if r.Kind == "settled" {
			open = ""
		}
	}
	if next != n {
		t.Errorf("%d messages heard, want %d", next, n)
	}
}

// Stored files are listed and served as bytes that no browser runs.
func TestFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want(202, "POST", at+"a/messages", obj{"text": "hi"})
	if v := w.want(200, "GET", at+"a/files", nil); len(v["files"].([]any)) != 0 {
		t.Errorf("%v", v)
	}
	w.files = map[string][]byte{"virtual/b/page.html": []byte("<script>"), "virtual/a.txt": {0xFF, 0}}
	got := w.want(200, "GET", at+"a/files", nil)
	want := obj{"files": []any{obj{"path": "virtual/a.txt", "bytes": 2.0}, obj{"path": "virtual/b/page.html", "bytes": 8.0}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	rec := w.do("GET", at+"a/files/virtual/b/page.html", nil)
	h := rec.Header()
	if rec.Code != 200 || rec.Body.String() != "<script>" || h.Get("Content-Type") != "application/octet-stream" ||
		h.Get("Content-Disposition") != "attachment" || h.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%d %v %q", rec.Code, h, rec.Body)
	}
}
