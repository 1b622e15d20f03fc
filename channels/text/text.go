// Package text is the one text engine of the channels: it renders Markdown in a
// provider's dialect, in parts that fit the provider's limit, with whatever
// could notify people or hide a link defused.
package text

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/heddlehq/heddle/chat"
)

// A Dialect is how one provider writes.
type Dialect struct {
	limit int              // of one part, in what size counts
	size  func(string) int // adds up: the size of a joined text is the sum of the sizes

	// plain is a text without any effect, wherever it stands. A dialect in which
	// that depends on the place has word instead: start tells the first of a line,
	// before is the word before. Neither: nothing has an effect.
	plain func(string) string
	word  func(before, w string, start bool) string
	code  func(string) string      // what stands between marks of code or in a fence; nil leaves it
	link  func(u, l string) string // u is an absolute address, l its label, both raw
	bare  func(u string) string    // an address that was written as such; nil leaves it

	marks       [styles]string // opening and closing mark of each style
	joint       string         // goes between a mark and what would disable it
	flanks      bool           // a letter disables only a mark that has no letter on its other side
	fence       string         // opens and closes a code block; "" for none
	fenceBroken string         // stands for a fence inside a code block
	names       bool           // a fence names its language
	headings    int            // levels with marks of their own; others are bold
	tables      bool           // tables are shown as such
	quote       string
	bullet      string
	nest        string // indents what is in a list, besides the width of its mark; "" where four spaces mean code
	rule        string

	wary bool // see For
}

// For is the dialect for a text of some trust. What an outsider may have steered
// has links that can be read and not followed.
func (d Dialect) For(trust chat.Role) Dialect {
	d.wary = trust < chat.Member
	return d
}

// words renders the characters of a word that is neither code nor a link.
func (d Dialect) words(before, w string, start bool) string {
	switch {
	case d.word != nil:
		return d.word(before, w, start)
	case d.plain != nil:
		return d.plain(w)
	}
	return w
}

// coded renders what is code.
func (d Dialect) coded(s string) string {
	if d.code == nil {
		return s
	}
	return d.code(s)
}

// A style is a bit of a set; the later ones are the inner ones.
type style uint8

const (
	bold style = iota
	italic
	strike
	code
	styles
)

// Compose renders Markdown in parts of at most the dialect's limit. No part is
// blank; there is none only for text without content. It cuts at blocks, then
// lines, then words, then graphemes, and never inside a mark, link or entity.
// Time and parts are bounded: a text that would take too many of either is shown,
// in the part of it that would, as it was written.
func (d Dialect) Compose(markdown string) []string {
	markdown = strings.ToValidUTF8(markdown, "\uFFFD")
	if d.word == nil && literal(markdown) && !(d.wary && strings.Contains(markdown, "://")) {
		if s := d.words("", strings.TrimSpace(markdown), true); d.size(s) <= d.limit {
			if s == "" {
				return nil
			}
			return []string{s}
		}
	}
	markdown = clean.Replace(markdown)
	// What makes too many posts (marks that are written again and again, indents)
	// or none (such as definitions of links) is shown as it was written.
	if len(markdown) <= maxText {
		var blocks []block
		for _, s := range sections(markdown) {
			if len(s) > maxBytes {
				blocks = append(blocks, block{words: split(d, s, 0)})
				continue
			}
			blocks = append(blocks, parse(d, s)...)
		}
		if parts := pack(d, blocks); len(parts) > 0 && len(parts) <= d.maxParts(markdown) {
			return parts
		}
	}
	return pack(d, []block{{words: split(d, markdown, 0)}})
}

// maxParts is twice what the text needs at least, and some more.
func (d Dialect) maxParts(s string) int { return 2*d.size(d.words("", s, true))/d.limit + 4 }

var clean = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x00", "\uFFFD")

func blank(s string) bool { return strings.TrimFunc(s, invisible) == "" }

func invisible(r rune) bool {
	return unicode.IsSpace(r) || !unicode.IsGraphic(r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
}

// literal tells text that is the same in Markdown and in every dialect, quickly
// and with false alarms: letters first in every line, no character with a meaning.
func literal(s string) bool {
	start := true // of a line
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\n':
			if start || s[i-1] == ' ' {
				return false
			}
			start = true
			continue
		case '\\', '`', '*', '_', '~', '[', ']', '<', '>', '&', '|', '#', '!':
			return false
		case ' ':
			if start || s[i-1] == ' ' {
				return false
			}
		default:
			if c < ' ' || c >= utf8.RuneSelf || start && (c < 'A' || c > 'z') {
				return false
			}
		}
		start = false
	}
	return true
}
