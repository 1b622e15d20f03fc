package dispatch

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

// What an event is about is heard with it, quietly, and not without it.
func TestHeardWith(t *testing.T) {
	t.Parallel()
	issue, other := chat.Thread{Channel: "github", Account: "5", Room: "issue:7"}, chat.Thread{Channel: "github", Account: "5", Room: "issue:8"}
	about := state.Admit{Event: chat.Event{ID: "a", Thread: issue, Topic: chat.About}, Ignored: "no route"}
	star := state.Admit{Event: chat.Event{ID: "a", Thread: issue, Topic: chat.About}, Agent: "star"} // of a route with a star
	bot := state.Admit{Event: chat.Event{ID: "a", Thread: issue, Topic: chat.About, Author: chat.Author{ID: "9", Bot: true}}, Ignored: "another bot"}
	asked := state.Admit{Event: chat.Event{ID: "m", Thread: issue, Topic: "mention"}, Agent: "assistant"}
	refused := state.Admit{Event: chat.Event{ID: "m", Thread: issue, Topic: "mention"}, Ignored: "no route"}
	elsewhere := state.Admit{Event: chat.Event{ID: "m", Thread: other, Topic: "mention"}, Agent: "assistant"}
	heard := state.Admit{Event: about.Event, Agent: "assistant", Quiet: true}
	for name, tc := range map[string]struct{ in, want []state.Admit }{
		"heard":              {[]state.Admit{about, asked}, []state.Admit{heard, asked}},
		"whatever its route": {[]state.Admit{star, asked}, []state.Admit{heard, asked}},
		"refused":            {[]state.Admit{about, refused}, []state.Admit{refused}},
		"alone":              {[]state.Admit{about}, []state.Admit{}},
		"of another thread":  {[]state.Admit{about, elsewhere}, []state.Admit{elsewhere}},
		"by a bot":           {[]state.Admit{bot, asked}, []state.Admit{bot, asked}},
		"two":                {[]state.Admit{about, asked, about, refused}, []state.Admit{heard, asked, refused}},
		"none":               {[]state.Admit{asked}, []state.Admit{asked}},
	} {
		if d := cmp.Diff(tc.want, heardWith(tc.in)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}
