package turn

import (
	"context"
	"testing"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/state"
)

// Only what ends or steers the turn goes before what waits in the inbox: a
// command of somebody who may not give it, and a "cancel" that answers a
// question, wait like the rest. Otherwise they would be taken twice.
func TestOnlyCommandsOvertake(t *testing.T) {
	t.Parallel()
	message := func(seq int64, text string) state.Entry {
		return state.Entry{Seq: seq, Event: chat.Event{ID: text, Thread: thread, Kind: chat.Message, Text: text, Author: chat.Author{ID: "U1"}}}
	}
	command := func(seq int64, author string) state.Entry {
		return state.Entry{Seq: seq, Event: chat.Event{ID: author, Thread: thread, Kind: chat.Control, Topic: chat.Pause, Author: chat.Author{ID: author}}}
	}
	asks := []record.Waiting{{Asked: record.Asked{Call: "call_1", Name: "q", Question: "Which?", Who: chat.Member}}}
	for name, tt := range map[string]struct {
		second state.Entry
		asks   []record.Waiting
		moves  int
	}{
		"stop":                       {message(2, "stop"), nil, 1},
		"stop beside a question":     {message(2, "stop"), asks, 1},
		"cancel":                     {message(2, "cancel"), nil, 1},
		"cancel, which is an answer": {message(2, "cancel"), asks, 0},
		"a command":                  {command(2, "op"), nil, 1},
		"a command of a member":      {command(2, "U1"), nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, plain())
			w.setRole("op", chat.Admin)
			w.opts.Busy = func(chat.Event) chat.Policy { return chat.Queue }
			w.restart()
			r := &run{Engine: w.engine, conv: state.Conversation{Thread: thread}}
			first := message(1, "first")
			if tt.asks != nil {
				first.Event.Author.ID = "U9" // who may not answer it
				w.setRole("U9", chat.Outsider)
			}
			p := r.intake(context.Background(), present{turn: "t", asks: tt.asks}, []state.Entry{first, tt.second})
			if len(p.moves) != tt.moves || p.taken != 0 || len(p.asks) != len(tt.asks) {
				t.Errorf("moves %+v, taken %d, open questions %d", p.moves, p.taken, len(p.asks))
			}
		})
	}
}
