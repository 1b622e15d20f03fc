package dispatch

import (
	"slices"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

// heardWith gives the events that only tell what the next one is about the fate
// of that: they begin no turn, and none is kept of what nobody answers.
func heardWith(in []state.Admit) []state.Admit {
	for i := len(in) - 1; i >= 0; i-- {
		if in[i].Event.Topic != chat.About || in[i].Ignored != "" && in[i].Ignored != "no route" {
			continue
		}
		if i+1 == len(in) || in[i+1].Ignored != "" || in[i+1].Event.Thread != in[i].Event.Thread {
			in = slices.Delete(in, i, i+1)
			continue
		}
		in[i].Agent, in[i].Follow, in[i].Quiet, in[i].Ignored = in[i+1].Agent, in[i+1].Follow, true, ""
	}
	return in
}
