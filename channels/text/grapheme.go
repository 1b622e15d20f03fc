package text

import (
	"iter"
	"unicode"
	"unicode/utf8"
)

const (
	joiner       = '\u200d'
	maxGrapheme  = 64 // runes; more is a game with combining marks
	flagA, flagZ = 0x1F1E6, 0x1F1FF
)

// graphemes yields what a reader takes for one character: a rune with its
// marks, a joined emoji, a flag, a Hangul syllable in letters. It follows the
// rules of Unicode as far as cutting a text needs.
func graphemes(s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for s != "" {
			prev, n := utf8.DecodeRuneInString(s)
			flag := isFlag(prev)
			for count := 1; n < len(s) && count < maxGrapheme; count++ {
				r, w := utf8.DecodeRuneInString(s[n:])
				if !extends(prev, r) && !(flag && isFlag(r)) {
					break
				}
				flag = false
				prev = r
				n += w
			}
			if !yield(s[:n]) {
				return
			}
			s = s[n:]
		}
	}
}

func isFlag(r rune) bool { return r >= flagA && r <= flagZ }

// extends tells whether r belongs to the grapheme that ends with prev.
func extends(prev, r rune) bool {
	switch {
	case r < 0x300:
		return prev == '\r' && r == '\n'
	case unicode.IsMark(r), r == joiner, prev == joiner,
		r >= 0x1F3FB && r <= 0x1F3FF, // skin tones
		r >= 0xE0020 && r <= 0xE007F: // tags of flags
		return true
	case r >= 0x1160 && r <= 0x11FF: // Hangul vowels and finals
		return prev >= 0x1100 && prev <= 0x11FF || prev >= 0xAC00 && prev <= 0xD7A3
	}
	return false
}
