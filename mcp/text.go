package mcp

import (
	"fmt"
	"strings"
	"unicode"
)

// Bounds on what a server may say.
const (
	maxDoc    = 2 << 10  // bytes of one description
	maxResult = 64 << 10 // bytes of what one call tells the model
	maxReason = 300      // bytes of an error
)

// lookalikes turns what begins a mark of the harness into what does not.
var lookalikes = strings.NewReplacer("<", "‹", "\uFE64", "‹", "\uFF1C", "‹")

// describe makes a description fit to stand in a prompt: nothing that people
// cannot see, no mark of the harness, at most so many bytes.
func describe(text string, most int) string {
	return clip(lookalikes.Replace(strip(text, hidden)), most)
}

// plain makes a result fit for the model. Its marks are defused where every
// tool's are.
func plain(text string) string { return strip(text, treacherous) }

func strip(text string, drop func(rune) bool) string {
	return strings.Map(func(r rune) rune {
		if drop(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "�"))
}

// treacherous runes show text in another order than it is read, or are not
// shown at all.
func treacherous(r rune) bool {
	return unicode.Is(unicode.Cc, r) && r != '\n' && r != '\t' && r != '\r' ||
		r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069 || r >= 0xE0000 && r <= 0xE0FFF
}

// hidden runes are those and all others without a form of their own.
func hidden(r rune) bool {
	return treacherous(r) || unicode.In(r, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// clip cuts text to at most so many bytes and says so.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	note := fmt.Sprintf(" [cut: %d bytes in all]", len(text))
	return strings.ToValidUTF8(text[:max(0, most-len(note))], "") + note
}
