package record

import (
	"slices"
	"strings"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/model"
)

// Mark names the message that an event is or is about, "" if it has no name: one
// that is taken back is found by it.
func Mark(t chat.Thread, ref string) string {
	if ref == "" {
		return ""
	}
	return t.Key() + " " + ref
}

// takenBack stands where the words of a message were that was deleted.
const takenBack = "[taken back]"

// redact takes the words and files of a message out of what the model sees. The
// log keeps them, and so does what others have said about them.
func (f *Fold) redact(of string) {
	for i, m := range f.Messages {
		if of == "" || !slices.ContainsFunc(m.Parts, func(p model.Part) bool { return p.Of == of }) {
			continue
		}
		m.Parts = slices.Clone(m.Parts) // a codec knows messages by where their parts are
		for k, p := range m.Parts {
			if p.Of == of {
				m.Parts[k] = redacted(p)
			}
		}
		f.Messages[i] = m
	}
	if f.Turn != nil && Mark(f.Turn.Event.Thread, f.Turn.Event.Ref) == of {
		f.Turn.Event.Text, f.Turn.Event.Files = "", nil
	}
	for i, k := range f.Files {
		if of != "" && k.Of == of {
			f.Files = slices.Clone(f.Files) // a sandbox that is being opened reads them
			f.Files[i].Gone = true
		}
	}
	f.Declared = slices.DeleteFunc(f.Declared, func(d Declared) bool { return Mark(d.Thread, d.Ref) == of })
	if len(f.Declared) == 0 {
		f.Declared = nil
	}
}

// redacted keeps who has said something, and nothing of what.
func redacted(p model.Part) model.Part {
	head, _, ok := strings.Cut(p.Text, ">\n")
	if p.Kind != model.Text || !ok || strings.Contains(head, ` file="`) {
		return model.Part{Kind: model.Text, Text: "<heard>\n" + takenBack + "\n</heard>"}
	}
	return model.Part{Kind: model.Text, Text: head + ">\n" + takenBack + "\n</heard>"}
}
