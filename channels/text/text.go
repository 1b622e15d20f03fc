// Package text is the one text engine of the channels: it renders Markdown in a
// provider's dialect, in parts that fit the provider's limit, with whatever
// could notify people or hide a link defused.
package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Dialect is how one provider writes.
type Dialect struct {
	limit int                      // of one part, in what size counts
	size  func(string) int         // adds up: the size of a joined text is the sum of the sizes
	plain func(string) string      // text without any effect
	link  func(u, l string) string // u is an absolute address, l its label, both raw

	marks       [styles]string // opening and closing mark of each style
	joint       string         // goes between a mark and a letter that would disable it
	fence       string         // opens and closes a code block
	fenceBroken string         // stands for a fence inside a code block
	quote       string
	bullet      string
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

// Slack is mrkdwn, the language of Slack's "text". Slack shows 4,000 characters
// of a text well; the rest is margin for its own way to count.
var Slack = Dialect{
	limit: 3500, size: utf8.RuneCountInString,
	plain: slackPlain.Replace,
	link: func(u, l string) string {
		u, l = slackAddress.Replace(u), slackPlain.Replace(l)
		if l == u {
			return "<" + u + ">"
		}
		return "<" + u + "|" + l + ">"
	},
	marks: [styles]string{bold: "*", italic: "_", strike: "~", code: "`"},
	joint: "\u200b", fence: "```", fenceBroken: "`\u200b`\u200b`",
	quote: "> ", bullet: "• ",
}

var (
	slackPlain   = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	slackAddress = strings.NewReplacer("&", "&amp;", "<", "%3C", ">", "%3E", "|", "%7C", "`", "%60")
)

// Compose renders Markdown in parts of at most the dialect's limit. No part is
// blank; there is none only for text without content. It cuts at blocks, then
// lines, then words, then graphemes, and never inside a mark, link or entity.
// Time and parts are bounded: a text that would take too many of either is shown,
// in the part of it that would, as it was written.
func (d Dialect) Compose(markdown string) []string {
	markdown = strings.ToValidUTF8(markdown, "\uFFFD")
	if literal(markdown) {
		if s := d.plain(strings.TrimSpace(markdown)); d.size(s) <= d.limit {
			if s == "" {
				return nil
			}
			return []string{s}
		}
	}
	markdown = clean.Replace(markdown)
	// What makes too many posts (marks that are written again and again, indents)
	// or none (such as definitions of links) is shown as it was written.
	if len(markdown) <= maxBytes {
		if parts := pack(d, parse(d, markdown)); len(parts) > 0 && len(parts) <= d.maxParts(markdown) {
			return parts
		}
	}
	return pack(d, []block{{words: split(markdown, 0)}})
}

// maxParts is twice what the text needs at least, and some more.
func (d Dialect) maxParts(s string) int { return 2*d.size(d.plain(s))/d.limit + 4 }

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
