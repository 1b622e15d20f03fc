package memory

import (
	"math"
	"strings"
	"unicode"
)

// words splits a text into what the search by words compares: runs of letters
// and digits in lower case, and of scripts that put no blanks between words
// every two characters that stand together.
func words(text string) []string {
	var out []string
	var run []rune
	joined := false // the run is of such a script
	flush := func() {
		switch {
		case joined && len(run) > 1:
			for i := range run[1:] {
				out = append(out, string(run[i:i+2]))
			}
		case len(run) > 0:
			out = append(out, string(run))
		}
		run = run[:0]
	}
	for _, r := range strings.ToLower(text) {
		if !unicode.In(r, unicode.L, unicode.N, unicode.M) {
			flush()
			continue
		}
		if j := unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar); j != joined && r != 'ー' {
			flush()
			joined = j
		}
		run = append(run, r)
	}
	flush()
	return out
}

// A posting says how often a row has a word.
type posting struct {
	row   int32
	times int32
}

// The usual constants of BM25.
const (
	bmK = 1.2
	bmB = 0.75
)

// byWords ranks rows by BM25 over the words of a query, those with none left out.
func (x *index) byWords(query []string, k int, ok func(*row) bool) []hit {
	n := float64(x.live)
	mean := float64(x.length) / max(n, 1)
	scores := map[int32]float64{}
	seen := map[string]bool{}
	for _, w := range query {
		list := x.words[w]
		if seen[w] || len(list) == 0 {
			continue
		}
		seen[w] = true
		df := float64(len(list))
		idf := math.Log(1 + (max(n, df)-df+0.5)/(df+0.5))
		for _, p := range list {
			r := &x.rows[p.row]
			if r.gone || !ok(r) {
				continue
			}
			tf := float64(p.times)
			scores[p.row] += idf * tf * (bmK + 1) / (tf + bmK*(1-bmB+bmB*float64(r.length)/max(mean, 1)))
		}
	}
	var hits []hit
	for i, s := range scores {
		hits = append(hits, hit{int(i), s})
	}
	return first(k, hits)
}
