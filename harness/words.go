package harness

import (
	"strings"
	"unicode"
)

// words are those of a text that say something, in lower case and without
// endings, so that "Issues" is found by "issue". Names in camelCase or
// snake_case fall into their words; scripts without blanks fall into runes.
func words(text string) []string {
	var out []string
	var word []rune
	end := func() {
		if w := string(word); len(word) > 1 && !hollow[w] {
			out = append(out, stem(w))
		}
		word = word[:0]
	}
	small := false // the rune before is a lower-case letter
	for _, r := range text {
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana):
			end()
			out = append(out, string(r))
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end()
		default:
			if small && unicode.IsUpper(r) {
				end()
			}
			word = append(word, unicode.ToLower(r))
		}
		small = unicode.IsLower(r)
	}
	end()
	return out
}

// hollow words stand in every sentence.
var hollow = setOf("an the of to in on at by for with from and or is are was were be been it its this that these those as not no if do does did " +
	"you your we our us me my he she they them their his her who whom what which when where why how has have had will can could should would may mcp tool id")

func setOf(list string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(list) {
		out[w] = true
	}
	return out
}

// beginning is how many runes of a word count: "deployment" is found by "deploy".
const beginning = 6

// stem takes common English endings off; what is left need not be a word.
func stem(w string) string {
	if strings.ContainsAny(w, "0123456789") {
		return w
	}
	cut := func(suffix, by string, least int) bool {
		if rest, ok := strings.CutSuffix(w, suffix); ok && len(rest) >= least {
			w = rest + by
			return true
		}
		return false
	}
	if !cut("ies", "y", 2) && !cut("sses", "ss", 1) && !strings.HasSuffix(w, "ss") && !strings.HasSuffix(w, "us") {
		cut("s", "", 3)
	}
	if cut("ing", "", 3) || cut("ed", "", 3) {
		if n := len(w); n > 2 && w[n-1] == w[n-2] && w[n-1] != 'l' && w[n-1] != 's' { // "planned"
			w = w[:n-1]
		}
	}
	cut("e", "", 3) // "creat" of "create", "created" and "creating"
	if r := []rune(w); len(r) > beginning {
		return string(r[:beginning])
	}
	return w
}

// alike are verbs that people use for the same act, the first being the one that
// tools are mostly named after.
var alike = [...]string{
	"create add new make open post write insert put send publish set schedule",
	"delete remove drop erase cancel revoke stop",
	"update edit change modify move rename correct replace",
	"list find search look show all",
	"get read show fetch look see view open",
}

// Weights of the words of a query.
const (
	said  = 1.0
	meant = 0.5
)

// queryTerms are the words of a query and, with less weight, verbs like them.
func queryTerms(query string) map[string]float64 {
	out := map[string]float64{}
	for _, w := range words(query) {
		for _, group := range alike {
			verbs := words(group)
			for _, v := range verbs {
				if v == w {
					out[verbs[0]] = max(out[verbs[0]], meant)
				}
			}
		}
	}
	for _, w := range words(query) {
		out[w] = said
	}
	return out
}
