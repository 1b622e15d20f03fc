package turn

import (
	"context"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/state"
)

// Findings are what a storm's log says.
type findings struct {
	*storm
	counts                map[string]map[string]int // how often each is there: events, turns, results and so on
	posts                 map[string]bool           // keys of those in the outbox
	views                 map[string][]model.Tool   // by the task whose manifest it is
	questions, dispatches int
}

func (y *findings) count(what, id string) {
	if y.counts[what] == nil {
		y.counts[what] = map[string]int{}
	}
	y.counts[what][id]++
}

func (y *findings) wrong(format string, args ...any) {
	y.t.Helper()
	y.t.Errorf("seed %d: "+format, append([]any{y.seed}, args...)...)
}

// check holds the log to what is promised of every log.
func (s *storm) check() {
	view, bodies := s.w.view(), s.w.records()
	y := &findings{storm: s, counts: map[string]map[string]int{}, posts: map[string]bool{}, views: map[string][]model.Tool{}}
	all, err := s.w.store.Posts(context.Background(), view.Conversation.ID)
	if err != nil {
		s.t.Fatal(err)
	}
	sent, asked := 0, 0
	for _, p := range all {
		y.posts[p.Post.Key] = true
		switch {
		case p.Post.Thread.Channel == chat.ToConversation:
			sent++
		case strings.HasPrefix(p.Post.Text, "Sure, "):
			asked++
		}
	}
	for _, b := range bodies {
		y.look(b, "")
	}
	if sent != y.dispatches || asked != y.questions {
		y.wrong("%d of %d texts were sent, %d of %d questions posted", sent, y.dispatches, asked, y.questions)
	}
	y.once()
	if a, err := record.Verify(view.Records); err != nil || a.Checked != len(of[record.Settled](bodies)) {
		y.wrong("the chain vouches for %d turns: %v", a.Checked, err)
	}
	if _, err := record.Retries(view.Records); err != nil {
		y.wrong("%v", err)
	}
	if f, n := s.w.present(), s.counted(); n < f.Cost-1e-6 {
		y.wrong("%v dollars were counted, %v were spent", n, f.Cost)
	}
	s.checkpoints(view)
	got, err := s.w.engine.Replay(context.Background(), view.Conversation, view.Records)
	if err != nil || got.Drift != nil {
		y.wrong("replayed %+v, drift %+v, %v", got, got.Drift, err)
	}
}

// look takes in one entry, of the conversation's own log or of a task's.
func (y *findings) look(b record.Body, task string) {
	switch b := b.(type) {
	case record.Child:
		y.look(b.Body, strings.Join(b.Task, "/"))
	case record.Rendered:
		if b.View != nil {
			y.views[task] = b.View.Tools
		}
	case record.Heard:
		y.count("events", b.Event.ID)
		if b.Turn != "" && task == "" {
			y.count("opened", b.Turn)
		}
	case record.Passed:
		if b.Entry == 0 {
			y.count("events", b.Event)
		}
	case record.Controlled:
		y.count("events", b.Event)
	case record.Settled:
		y.count("settled", b.Turn)
		for i := range b.Posts {
			if key := state.PostKey(b.Turn, b.Steps, i); task == "" && !y.posts[key] {
				y.wrong("the post %s is lost", key)
			}
		}
	case record.Asked:
		if b.Question != "" {
			y.questions++
		}
	case record.Dispatched:
		y.dispatches++
		y.count("dispatched", b.Key)
		if !y.posts[b.Key] {
			y.wrong("the text %s is lost", b.Key)
		}
	case record.Did:
		y.did(b, task)
	case record.Memo:
		if b.Name != "" {
			y.count("steps", b.Turn+"/"+b.Call+"/"+b.Name)
		}
	}
}

func (y *findings) did(b record.Did, task string) {
	key := b.Turn + "/" + b.CallID
	y.count("results", key)
	n := y.runs.by[key]
	if plain := slices.Contains([]string{"look", "search", "first", "second"}, b.Tool); plain && (n > 1 || n == 0 && b.End == record.Done) {
		y.wrong("%s (%s, %s) was run %d times", key, b.Tool, b.End, n)
	}
	if b.End == record.Done && !slices.ContainsFunc(y.views[task], func(t model.Tool) bool { return t.Name == b.Tool }) {
		y.wrong("%s (%s) was run and not in the manifest", key, b.Tool)
	}
	if b.Tool == "order" && b.End == record.Done && n == 0 {
		y.wrong("%s ended as done and was never run", key)
	}
}

// once checks that nothing is there twice or lost.
func (y *findings) once() {
	for what, by := range y.counts {
		for id, n := range by {
			if n != 1 && what != "opened" {
				y.wrong("of %s, %s is there %d times", what, id, n)
			}
		}
	}
	for id := range y.counts["opened"] {
		if y.counts["settled"][id] != 1 {
			y.wrong("the turn %s was not settled", id)
		}
	}
	for _, id := range y.events {
		if y.counts["events"][id] == 0 {
			y.wrong("the event %s is lost", id)
		}
	}
	for key, n := range y.runs.final {
		if y.runs.by[key] != n && !y.stolen { // else two worked on it for a while
			y.wrong("%s was recorded, and happened again: %d times, then %d", key, n, y.runs.by[key])
		}
	}
}

// counted is what the store has counted of the cost, on all days. A model call
// that a stop cut off counts, and may not stand in the log.
func (s *storm) counted() (dollars float64) {
	days, err := s.w.store.ListValues(context.Background(), costSpace, "", 1000)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, d := range days {
		n, err := state.Counted(d.Data)
		if err != nil {
			s.t.Fatal(err)
		}
		dollars += float64(n) / perDollar
	}
	return dollars
}

// checkpoints restores the present at every record and goes on from there.
func (s *storm) checkpoints(v state.View) {
	id := v.Conversation.ID
	want, err := s.w.present().Checkpoint(id)
	if err != nil {
		s.t.Fatal(err)
	}
	f := &record.Fold{}
	for i := range v.Records {
		if err := f.Add(v.Records[i : i+1]); err != nil {
			s.t.Fatal(err)
		}
		data, err := f.Checkpoint(id)
		if err != nil {
			s.t.Fatal(err)
		}
		f = record.Restore(data, id)
		again, err := f.Checkpoint(id)
		if err != nil {
			s.t.Fatal(err)
		}
		if d := cmp.Diff(string(data), string(again)); d != "" {
			s.t.Fatalf("seed %d: the checkpoint at %d reads back otherwise:\n%s", s.seed, i+1, d)
		}
	}
	got, err := f.Checkpoint(id)
	if err != nil {
		s.t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		s.t.Errorf("seed %d: restored at each record it comes to something else:\n%s", s.seed, d)
	}
}
