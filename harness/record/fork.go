package record

import (
	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/model"
)

// textNewer is what the model is told in a fork whose files may be newer than
// what it has seen of them.
const textNewer = "This conversation was continued from an earlier point. The files may be as they were left later: look at them before you rely on what you know of them."

// forked ends what only the original has: its open callbacks, and what its
// operators asked of it. Who spoke there is looked up there.
func (f *Fold) forked(b Forked) {
	f.Parent, f.Due, f.Home = &b, nil, chat.Thread{}
	f.Mode, f.Allowed, f.Ahead = "", 0, nil
	for i, v := range f.Voices {
		if v.Thread == (chat.Thread{}) {
			f.Voices[i].Thread = b.Thread
		}
	}
	if b.NewerFiles {
		f.say(model.User, model.Part{Kind: model.Text, Text: Notice(textNewer)})
	}
}
