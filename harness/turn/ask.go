package turn

import (
	"context"
	"encoding/json"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/state"
)

func (r *run) hasOpen() bool { return r.f.Turn != nil && len(r.f.Turn.Calls) > 0 }

// root is the run of the conversation's own turn.
func (r *run) root() *run {
	for r.task != nil {
		r = r.task.up
	}
	return r
}

// asked records what a call waits for and posts its question, once. While the
// thread has another question, the call waits for that to be over.
func (r *run) asked(ctx context.Context, n int, j *job) *harness.Wait {
	q := j.wait.Question
	if q == nil {
		r.begins(n, j)
		if j.part.Name == harness.TaskTool { // its own calls say when
			return j.wait
		}
		return &harness.Wait{Until: r.notSooner(j.wait.Until)}
	}
	a := record.Asked{
		Turn: r.f.Turn.ID, Step: n, Call: j.part.CallID, Name: q.Name,
		Question: q.Text, Who: q.Who, Until: q.Until, Default: q.Default,
	}
	if q.Text != "" {
		root := r.root()
		r.memo.Lock()
		busy := root.asking
		root.asking = true
		r.memo.Unlock()
		if busy {
			r.begins(n, j)
			return &harness.Wait{}
		}
		// Numbers below maxPosts are those of the turn's answer.
		r.say(root.f.Turn.Event, q.Text, r.trust(ctx), a.Turn, n, maxPosts*(r.f.Turn.Questions+1))
	}
	r.add(a)
	return j.wait
}

// leastWait is how long a call waits at least that says by itself until when: a
// time that has passed would have it run again at once, and again.
const leastWait = time.Second

func (r *run) notSooner(until time.Time) time.Time {
	if least := r.Clock().Add(leastWait); !until.IsZero() && until.Before(least) {
		return least
	}
	return until
}

// begins notes that a call waits of which nothing else in the log says so, if its
// tool is run again only then: a finished step without a name.
func (r *run) begins(n int, j *job) {
	if !j.tool.Resumes(r.begun(j.part.CallID)) {
		r.add(record.Memo{Turn: r.f.Turn.ID, Step: n, Call: j.part.CallID, Value: json.RawMessage("null")})
	}
}

// expire ends the waits whose time is over. An answer that came in time may be
// in the inbox, as long as somebody's role is not known.
func (r *run) expire() {
	if r.waiting {
		return
	}
	for _, w := range r.f.Waits() {
		if !w.Until.IsZero() && !r.Clock().Before(w.Until) {
			r.reply(w, harness.Reply{Text: w.Default, At: w.Until, Expired: true})
		}
	}
}

// replied takes a message as the answer to the open question, if it is one.
func (r *run) replied(e state.Entry, role chat.Role) {
	for _, w := range r.f.Waits() {
		if answers(w, e, role) && r.f.Mode != record.Paused {
			r.reply(w, harness.Reply{Text: e.Event.Text, Author: e.Event.Author, Role: role, At: e.At.UTC()})
			return
		}
	}
}

// answers says whether a message answers what a call waits for.
func answers(w record.Waiting, e state.Entry, role chat.Role) bool {
	switch e.Event.Kind {
	case chat.Mention, chat.Message, chat.Command:
		return !e.Quiet && e.Event.Author.ID != "" && w.Question != "" && role >= w.Who && (w.Until.IsZero() || e.At.Before(w.Until))
	case chat.Edited, chat.Deleted, chat.Reacted, chat.Action, chat.Notice, chat.Control:
	}
	return false
}

func (r *run) reply(w record.Waiting, a harness.Reply) {
	value, err := json.Marshal(a)
	if err != nil {
		r.err = err
		return
	}
	r.add(w.Answer(value))
	r.log.Info("call waits no more", "turn", w.Turn, "expired", a.Expired)
}

// waits is until when the calls wait that stay open, nil if none does.
func (r *run) waits() (wait *harness.Wait) {
	if !r.hasOpen() {
		return nil
	}
	wait = &harness.Wait{}
	for _, w := range r.f.Waits() {
		wait = sooner(wait, &harness.Wait{Until: w.Until})
	}
	return wait
}

// hasQuestion says whether people in the thread are being asked something.
func (r *run) hasQuestion() bool {
	for _, w := range r.f.Waits() {
		if w.Question != "" {
			return true
		}
	}
	return false
}
