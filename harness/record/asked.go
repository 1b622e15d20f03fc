package record

import (
	"slices"
	"time"

	"github.com/heddlehq/heddle/chat"
)

// Asked is a question that a call waits with, or the time that it waits for. The
// answer is a Memo of the same name.
type Asked struct {
	Turn     string    `json:"turn"`
	Step     int       `json:"step"`
	Call     string    `json:"call"`
	Name     string    `json:"name"`
	Question string    `json:"question,omitempty"` // as posted; "" if it only waits for a time
	Who      chat.Role `json:"who"`                // the least role that may answer
	Until    time.Time `json:"until,omitzero"`
	Default  string    `json:"default,omitempty"` // the answer at that time
}

func (Asked) kind() string { return "asked" }

// underway applies what is noted in the middle of an answer or a call.
func (f *Fold) underway(b Body) {
	switch b := b.(type) {
	case Asked:
		f.asked(b)
	case Probed:
		f.probed(b)
	case Chunk:
		f.chunk(b)
	case Torn:
		f.torn(b)
	}
}

// asked counts a question and keeps it until it is answered.
func (f *Fold) asked(b Asked) {
	if f.Turn != nil {
		f.Turn.Questions++
		f.Turn.Asks = append(f.Turn.Asks, b)
	}
}

// answered drops what a memo answers; without a name, all that a call has asked.
func (t *Turn) answered(call, name string) {
	t.Asks = slices.DeleteFunc(t.Asks, func(a Asked) bool { return a.Call == call && (name == "" || a.Name == name) })
}

// Waits are the open questions and times of the turn and its tasks, each with
// the calls that lead to its task.
func (f *Fold) Waits() []Waiting {
	if f.Turn == nil {
		return nil
	}
	var out []Waiting
	for _, a := range f.Turn.Asks {
		out = append(out, Waiting{Asked: a})
	}
	for _, p := range f.Turn.Calls {
		if t := f.Turn.Tasks[p.CallID]; t != nil {
			for _, w := range t.Waits() {
				w.Task = slices.Insert(w.Task, 0, p.CallID)
				out = append(out, w)
			}
		}
	}
	return out
}

// Waiting is an open question or time.
type Waiting struct {
	Asked
	Task []string // none: of the conversation's own turn
}

// Answer is the entry that ends the wait with a value.
func (w Waiting) Answer(value []byte) Body {
	m := Memo{Turn: w.Turn, Step: w.Step, Call: w.Call, Name: w.Name, Value: value}
	if len(w.Task) == 0 {
		return m
	}
	return Child{Task: w.Task, Body: m}
}

// IsWaiting says whether an open call cannot go on, by what the log says: it
// waits itself, or it gave a task all of whose calls wait.
func (f *Fold) IsWaiting(call string) bool {
	if slices.ContainsFunc(f.Turn.Asks, func(a Asked) bool { return a.Call == call }) {
		return true
	}
	t := f.Turn.Tasks[call]
	if t == nil || t.Turn == nil || len(t.Turn.Calls) == 0 {
		return false
	}
	for _, p := range t.Turn.Calls {
		if !t.IsWaiting(p.CallID) {
			return false
		}
	}
	return true
}

// later keeps what was heard while calls are open: it comes after their results,
// and they end with the trust they began with.
func (f *Fold) later(b Heard) bool {
	if f.Turn == nil || len(f.Turn.Calls) == 0 {
		return false
	}
	f.Turn.Heard = append(f.Turn.Heard, b)
	return true
}

// catchUp hears what was kept, once no call is open or the turn is over.
func (f *Fold) catchUp(over bool) {
	if f.Turn == nil || len(f.Turn.Calls) > 0 && !over {
		return
	}
	heard := f.Turn.Heard
	f.Turn.Heard = nil
	for _, b := range heard {
		f.hearNow(b)
	}
}
