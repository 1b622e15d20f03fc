package turn

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/model/scripted"
	"github.com/heddlehq/heddle/state"
)

// How far an answer is, is told at each step and in the end.
func TestProgressIsTold(t *testing.T) {
	t.Parallel()
	job := act("job", func(context.Context, *harness.Call) (string, error) { return "done", nil })
	w := newWorld(t, plain(job), call("job"), scripted.Say("yes"))
	var told []string
	w.opts.Progress = func(c state.ID, e chat.Event, outcome string) {
		if c != state.ConversationID("tested", thread) && outcome == "" {
			t.Errorf("told of %s", c)
		}
		told = append(told, e.ID+" "+outcome)
	}
	w.restart()
	w.ask("U1", "go")
	if d := cmp.Diff([]string{"E1 ", "E1 ", "E1 answered"}, told); d != "" {
		t.Errorf("told (-want +got):\n%s", d)
	}
}

// Who is not answered is told why, unless they may not expect an answer.
func TestRefusedAreTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain(), scripted.Say("yes"))
	w.opts.Talk = chat.Member
	var told []string
	w.opts.Refused = func(e chat.Event, line string) { told = append(told, e.ID+" "+line) }
	w.setRole("U1", chat.Outsider)
	w.restart()
	for id, topic := range map[string]string{"a": "mention", "b": "thread"} {
		w.event(chat.Event{ID: id, Thread: thread, Kind: chat.Message, Topic: topic, Text: "hi", Author: chat.Author{ID: "U1"}}, false)
	}
	w.event(chat.Event{ID: "c", Thread: thread, Kind: chat.Edited, Topic: "edited", Text: "hi", Author: chat.Author{ID: "U1"}}, true)
	w.run()
	w.ask("U2", "hi")
	if d := cmp.Diff([]string{"a I answer people here from the role member on, and you are outsider. Whoever runs me can change that."}, told); d != "" {
		t.Errorf("told (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"yes"}, w.posts()); d != "" {
		t.Errorf("posts (-want +got):\n%s", d)
	}
}
