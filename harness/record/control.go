package record

import (
	"slices"
	"time"

	"github.com/heddlehq/heddle/chat"
)

// Controlled is an event that was obeyed: an operator's, or a message that asks
// for nothing but an end of the turn.
type Controlled struct {
	Turn   string      `json:"turn,omitempty"` // the open one
	Event  string      `json:"event"`          // its id
	Author chat.Author `json:"author"`
	Topic  string      `json:"topic"` // chat.Abort and so on
	Text   string      `json:"text,omitempty"`
	// Ahead is the event's place in the inbox if it was obeyed before those in
	// front of it were taken. It is passed over when its turn comes.
	Ahead int64 `json:"ahead,omitempty"`
}

// Rested says that nothing works on the open turn until the log goes on.
type Rested struct {
	Turn string    `json:"turn"`
	Why  string    `json:"why"` // "held" by an operator, or "waiting": a call cannot go on
	At   time.Time `json:"at"`
}

// Resumed says that work goes on: after a rest, or where another attempt ended.
type Resumed struct {
	Turn    string    `json:"turn,omitempty"` // "" if no turn was open
	Attempt int       `json:"attempt"`
	At      time.Time `json:"at"`
}

func (Controlled) kind() string { return "controlled" }
func (Rested) kind() string     { return "rested" }
func (Resumed) kind() string    { return "resumed" }

// A Mode is how an operator lets a conversation run.
type Mode string

// The modes besides the usual one.
const (
	Paused   Mode = "paused"
	Stepping Mode = "stepping"
)

// Work is what was done for the open turn.
type Work struct {
	Time    time.Duration `json:"time,omitempty"`    // up to Mark; rests and what a crash lost do not count
	Mark    time.Time     `json:"mark,omitzero"`     // since when it is being worked on
	Resting bool          `json:"resting,omitempty"` // nothing works on it
	Text    string        `json:"text,omitempty"`    // what the model said last
}

// Spent is how long the turn has been worked on.
func (w Work) Spent(now time.Time) time.Duration {
	if w.Resting || w.Mark.IsZero() {
		return w.Time
	}
	return w.Time + max(now.Sub(w.Mark), 0)
}

// Held says whether no step may be run before an operator says so.
func (f *Fold) Held() bool {
	return f.Mode == Paused || f.Mode == Stepping && f.Allowed == 0
}

// steered applies what is noted of the inbox and of attempts.
func (f *Fold) steered(b Body) {
	switch b := b.(type) {
	case Passed:
		f.passed(b)
	case Controlled:
		f.controlled(b)
	case Rested:
		f.rested(b)
	case Resumed:
		f.resumed(b)
	}
}

func (f *Fold) controlled(b Controlled) {
	if b.Ahead > 0 {
		f.Ahead = append(f.Ahead, b.Ahead)
	}
	switch b.Topic {
	case chat.Pause:
		f.Mode, f.Allowed = Paused, 0
	case chat.Resume:
		f.Mode, f.Allowed = "", 0
	case chat.Step:
		if f.Mode = Stepping; f.Turn != nil {
			f.Allowed++
		}
	case chat.SetPolicy:
		f.Policy = chat.Policy(b.Text)
	}
}

// passed forgets an event that was obeyed before its turn came.
func (f *Fold) passed(b Passed) {
	f.Ahead = slices.DeleteFunc(f.Ahead, func(n int64) bool { return n <= b.Entry })
	if len(f.Ahead) == 0 {
		f.Ahead = nil
	}
}

func (f *Fold) rested(b Rested) {
	f.Work.Time, f.Work.Mark, f.Work.Resting = f.Work.Spent(b.At), time.Time{}, true
}

func (f *Fold) resumed(b Resumed) {
	if b.Attempt > 1 {
		f.Crashes++
	}
	f.Work.Mark, f.Work.Resting = b.At, false
}
