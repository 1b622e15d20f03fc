package record

import (
	"regexp"
	"strings"

	"github.com/heddlehq/heddle/chat"
)

// The words of people and tools reach the model inside marks that only the
// harness writes. Defuse takes the marks out of everything else, so that no
// text can pass for an announcement or for another person's message.
var marks = regexp.MustCompile(`(?i)<(\s*/?\s*(?:heard|notice)\b)`)

// Defuse makes text unable to hold a mark of the harness.
func Defuse(text string) string {
	if !strings.Contains(text, "<") {
		return text
	}
	return marks.ReplaceAllString(text, "&lt;$1")
}

// Notice wraps an announcement of the harness.
func Notice(text string) string {
	return "<notice from=\"heddle\">\n" + Defuse(text) + "\n</notice>"
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

var attrEscape = strings.NewReplacer("&", "&amp;", `"`, "&quot;", "<", "&lt;", ">", "&gt;", "\n", " ", "\r", " ")

func attr(b *strings.Builder, name, value string) {
	if value != "" {
		b.WriteString(" " + name + `="` + attrEscape.Replace(value) + `"`)
	}
}
