package embedder

import (
	"context"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"
)

// Dimension of the vectors of NGram.
const Dimension = 1024

// NGram needs no server: it turns a text into the hashed counts of its
// sequences of characters. Texts lie near each other when they share parts of
// words: other forms of a word, compounds, typing errors, in every script. It
// knows no synonyms; a model does.
type NGram struct{}

// Name implements memory.Embedder. The number changes with the vectors.
func (NGram) Name() string { return "ngram/1" }

// Embed implements memory.Embedder. It fails with ctx's error only.
func (NGram) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, t := range texts {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		out[i] = vector(t)
	}
	return out, nil
}

func vector(text string) []float32 {
	counts := map[string]float64{}
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.In(r, unicode.L, unicode.N, unicode.M)
	}) {
		grams(w, counts)
	}
	v := make([]float32, Dimension)
	for _, g := range slices.Sorted(maps.Keys(counts)) { // sums depend on their order
		h := fnv.New64a()
		_, _ = h.Write([]byte(g)) // never fails
		sum := h.Sum64()
		weight := 1 + math.Log(counts[g])
		if sum>>63 == 0 { // a sign of its own keeps texts that only collide apart
			weight = -weight
		}
		v[sum%Dimension] += float32(weight)
	}
	return v
}

// grams counts the sequences of a word: of three to five letters with the
// word's ends marked, and of one or two characters of a script whose characters
// are syllables or words.
func grams(word string, counts map[string]float64) {
	runes := []rune("^" + word + "$")
	for i := range runes {
		if dense(runes[i]) {
			counts[string(runes[i])]++
			if i+1 < len(runes) && dense(runes[i+1]) {
				counts[string(runes[i:i+2])]++
			}
			continue
		}
		for n := 3; n <= 5 && i+n <= len(runes); n++ {
			if dense(runes[i+n-1]) {
				break
			}
			counts[string(runes[i:i+n])]++
		}
	}
}

func dense(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana)
}
