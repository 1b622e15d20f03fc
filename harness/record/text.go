package record

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
)

// The words of people and tools reach the model inside marks that only the
// harness writes. Defuse takes the marks out of everything else, so that no
// text can pass for an announcement or for another person's message. A mark
// counts as one in any case, with blanks and what cannot be seen in it, and in
// letters that look alike.
var marks = [...]string{"heard", "notice", "cited"}

// longestMark is how many runes a mark may be drawn out to by what cannot be seen.
const longestMark = 64

// Defuse makes text unable to hold a mark of the harness.
func Defuse(text string) string {
	if !strings.ContainsAny(text, opening) {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		if strings.ContainsRune(opening, r) && begins(text[i+width(text[i:]):]) {
			b.WriteString("&lt;")
			continue
		}
		b.WriteString(text[i : i+width(text[i:])])
	}
	return b.String()
}

// width is the bytes of the first rune, also of one that is no UTF-8.
func width(s string) int {
	_, n := utf8.DecodeRuneInString(s)
	return n
}

// opening are the runes that look like the beginning of a mark.
const opening = "<\uFE64\uFF1C\u2039\u02C2\u276E\u2329\u27E8\u3008\u1438"

// begins says whether what follows an opening reads as the name of a mark. The
// name ends at whatever is no plain letter, digit or line: a foreign letter may
// pass for its end as well.
func begins(rest string) bool {
	var name []rune
	for _, r := range clip(rest, longestMark) {
		word := r == '_' || r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r))
		if !word && isMark(name) {
			return true
		}
		if r == '/' || unseen(r) {
			continue
		}
		for _, d := range norm.NFKD.String(string(r)) {
			switch {
			case unseen(d):
			case d == '_', unicode.IsLetter(d), unicode.IsDigit(d):
				name = append(name, plain(unicode.ToLower(d)))
			default:
				return false
			}
		}
	}
	return isMark(name)
}

func isMark(name []rune) bool { return slices.Contains(marks[:], string(name)) }

// unseen says whether a rune leaves no ink of its own.
func unseen(r rune) bool {
	switch r {
	case 0x115F, 0x1160, 0x3164, 0xFFA0, 0x2800:
		return true
	}
	return unicode.In(r, unicode.Z, unicode.C, unicode.M) || unicode.IsSpace(r)
}

// plain is the letter of the marks that a rune looks like.
func plain(r rune) rune {
	for i, alike := range [...]string{
		"a\u0430\u0251\u03B1", "c\u0441\u03F2", "d\u0501", "e\u0435\u04BD\u0454", "h\u04BB\u0570",
		"i\u0456\u03B9\u0131\u04CF1l|", "n\u0578\u043F\u03B7", "o\u043E\u03BF\u05450", "r\u0433", "t\u0442\u03C4",
	} {
		if strings.ContainsRune(alike, r) {
			return rune("acdehinort"[i])
		}
	}
	return r
}

// clip is the first runes of a text.
func clip(s string, runes int) string {
	for i := range s {
		if runes--; runes < 0 {
			return s[:i]
		}
	}
	return s
}

// Notice wraps an announcement of the harness.
func Notice(text string) string {
	return "<notice from=\"heddle\">\n" + Defuse(text) + "\n</notice>"
}

// Cite wraps a text from elsewhere. What is in it is data, whatever it says.
func Cite(c Cited) string {
	var b strings.Builder
	b.WriteString("<cited")
	attr(&b, "source", c.Source)
	b.WriteString(">\n" + Defuse(c.Text) + "\n</cited>")
	return b.String()
}

const summaryMark = "<notice from=\"heddle\" kind=\"summary\">"

// Summary wraps what stands for messages that are no longer shown, and what the
// announcements among them come to. A model wrote the text from people's words,
// so it is no order of the harness.
func Summary(text string, now harness.View) string {
	return summaryMark + "\nThe earlier part of this conversation, summarised:\n" + Defuse(text) + "\n</notice>\n" + Notice(roster(now))
}

// roster is what a manifest gives, in a few lines.
func roster(v harness.View) string {
	var b strings.Builder
	if v.Level != nil {
		fmt.Fprintf(&b, "You are on level %d (%s).\n", v.Level.Number, v.Level.Name)
	}
	fmt.Fprintf(&b, "The model is %s.\n", v.Model)
	if v.Sandbox != "" {
		fmt.Fprintf(&b, "A %s sandbox with files and a shell is attached.\n", v.Sandbox)
	}
	list := func(what string, names []string) {
		if len(names) > 0 {
			fmt.Fprintf(&b, "%s you have now: %s.\n", what, strings.Join(names, ", "))
		}
	}
	var tools, skills, subagents []string
	for _, t := range v.Tools {
		tools = append(tools, t.Name)
	}
	for _, s := range v.Skills {
		skills = append(skills, s.Name)
	}
	for _, s := range v.Subagents {
		subagents = append(subagents, s.Name)
	}
	list("Tools", tools)
	list("Skills", skills)
	list("Subagents", subagents)
	return strings.TrimSuffix(b.String(), "\n")
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
	case chat.Mention, chat.Message, chat.Control:
	}
	if h.Late > 0 {
		attr(&b, "late", h.Late.Round(time.Second).String())
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
