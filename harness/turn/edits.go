package turn

import (
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/state"
)

// Why entries of an inbox are passed over.
const (
	edit      = "put into the message that it changes, which was not read yet"
	takenBack = "taken back before it was read"
)

// edited puts edits into the messages that still wait in the inbox, if they are of
// the same author, and says why the entries that are left without a meaning are to
// be passed over.
func edited(entries []state.Entry, taken int64) (out []state.Entry, voids map[int64]string) {
	waits := map[string]int{} // by mark: index
	out = entries
	for i, e := range entries {
		of := record.Mark(e.Event.Thread, e.Event.Ref)
		if e.Seq <= taken || of == "" {
			continue
		}
		at, ok := waits[of]
		switch e.Event.Kind {
		case chat.Edited:
			if !ok || out[at].Event.Author.ID != e.Event.Author.ID || out[at].Event.Author.Account != e.Event.Author.Account {
				continue
			}
			if voids == nil {
				voids, out = map[int64]string{}, append([]state.Entry(nil), entries...)
			}
			out[at].Event.Text, voids[e.Seq] = e.Event.Text, edit
		case chat.Deleted:
			if !ok {
				continue
			}
			if voids == nil {
				voids, out = map[int64]string{}, append([]state.Entry(nil), entries...)
			}
			voids[out[at].Seq], voids[e.Seq] = takenBack, takenBack
			delete(waits, of)
		case chat.Mention, chat.Message:
			waits[of] = i
		case chat.Reacted, chat.Action, chat.Command, chat.Notice, chat.Control: // about a message, or not what somebody wrote
		}
	}
	return out, voids
}

// What was said within together of each other is heard in the order in which it
// was said, whatever order it came in; what comes later than lateAfter is late.
const (
	together  = 5 * time.Second
	lateAfter = time.Minute
)

// inOrder sorts messages that are heard one after the other by the time at which
// their provider says they were said. What came at other times stays in its place.
func inOrder(moves []move) {
	for i := range moves {
		for k := i; k > 0 && swapped(moves[k-1], moves[k]); k-- {
			moves[k-1], moves[k] = moves[k], moves[k-1]
		}
	}
}

func swapped(a, b move) bool {
	return a.do == hear && b.do == hear && a.turn == b.turn && a.Event.Thread == b.Event.Thread && spoken(a.Event) && spoken(b.Event) &&
		b.Event.At.Before(a.Event.At) && b.At.Sub(a.At) <= together
}

func spoken(e chat.Event) bool {
	return !e.At.IsZero() && e.Kind != chat.Edited && e.Kind != chat.Deleted
}

// lateBy is how late a message came, 0 if it did not.
func (r *run) lateBy(e state.Entry) time.Duration {
	if !spoken(e.Event) {
		return 0
	}
	if d := e.At.Sub(e.Event.At); d >= lateAfter {
		return d.Truncate(time.Second)
	}
	return max(r.f.Newest[e.Event.Thread.Key()].Sub(e.Event.At), 0).Truncate(time.Second)
}
