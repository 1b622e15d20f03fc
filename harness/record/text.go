package record

import (
	"regexp"
	"strings"

	"github.com/heddlehq/heddle/chat"
)

// The words of people and tools reach the model inside marks that only the
// harness writes. Defuse takes the marks out of everything else, so that no
// text can pass for an announcement or for another person's message. A mark
// counts as one in any case, with blanks, and with what cannot be seen in it.
var marks = regexp.MustCompile(`(?i)[<\x{FE64}\x{FF1C}]([/\s` + unseen + `]*(?:` + woven("heard") + `|` + woven("notice") + `)\b)`)

const unseen = `\p{Z}\p{C}\p{M}`

// woven matches a word with unseen runes between its letters.
func woven(word string) string { return strings.Join(strings.Split(word, ""), "["+unseen+"]*") }

// Defuse makes text unable to hold a mark of the harness.
func Defuse(text string) string {
	if !strings.ContainsAny(text, "<\uFE64\uFF1C") {
		return text
	}
	return marks.ReplaceAllString(text, "&lt;$1")
}

// Notice wraps an announcement of the harness.
func Notice(text string) string {
	return "<notice from=\"heddle\">\n" + Defuse(text) + "\n</notice>"
}

const summaryMark = "<notice from=\"heddle\" kind=\"summary\">"

// Summary wraps what stands for messages that are no longer shown. A model
// wrote it from people's words, so it is no order of the harness.
func Summary(text string) string {
	return summaryMark + "\nThe earlier part of this conversation, summarised:\n" + Defuse(text) + "\n</notice>"
}

// Quote wraps what somebody said or did, with who it was.
func Quote(h Heard) string {
	e := h.Event
	var b strings.Builder
	b.WriteString("<heard")
	attr(&b, "from", e.Author.ID)
	if e.Author.Name != e.Author.ID {
		attr(&b, "name", e.Author.Name)
	}
	attr(&b, "role", h.Role.String())
	switch e.Kind {
	case chat.Edited, chat.Deleted:
		attr(&b, "kind", string(e.Kind))
		attr(&b, "ref", e.Ref)
	case chat.Notice, chat.Command, chat.Action, chat.Reacted:
		attr(&b, "kind", e.Topic)
	case chat.Mention, chat.Message:
	}
	b.WriteString(">\n" + Defuse(e.Text) + "\n")
	for _, f := range e.Files {
		b.WriteString("[file " + Defuse(f.Name) + " (" + Defuse(f.MediaType) + ")]\n")
	}
	b.WriteString("</heard>")
	return b.String()
}

var attrEscape = strings.NewReplacer("&", "&amp;", `"`, "&quot;", "<", "&lt;", ">", "&gt;", "\n", " ", "\r", " ",
	"\uFE64", "&lt;", "\uFF1C", "&lt;")

func attr(b *strings.Builder, name, value string) {
	if value != "" {
		b.WriteString(" " + name + `="` + attrEscape.Replace(value) + `"`)
	}
}
