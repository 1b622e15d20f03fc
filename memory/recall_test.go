package memory

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/heddlehq/heddle/memory/embedder"
)

// A pair is a query and the text that it should find. They share no word
// beyond those that every text has.
type pair struct{ Lang, Query, Text string }

// common are words that say nothing of what a text is about.
var common = []string{"the", "is", "are", "for", "of", "to", "and", "who", "by", "in"}

func pairs(t *testing.T) []pair {
	t.Helper()
	f, err := os.Open("testdata/pairs.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []pair
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var p pair
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
		for _, w := range words(p.Query) {
			if slices.Contains(words(p.Text), w) && !slices.Contains(common, w) {
				t.Errorf("%q shares the word %q with its text", p.Query, w)
			}
		}
	}
	return out
}

// TestRecall searches one index of three languages for texts that share parts
// of words with the query, but no word: inflections, compounds, abbreviations,
// typing errors. It is what an embedder without a model can know; that synonyms
// are found is up to a model and not shown here.
func TestRecall(t *testing.T) {
	t.Parallel()
	set := pairs(t)
	x := newIndex("", embedder.Dimension)
	var texts, queries []string
	for _, p := range set {
		texts, queries = append(texts, p.Text), append(queries, p.Query)
	}
	m := New(Options{Embedder: embedder.NGram{}})
	vecs, err := m.embed(context.Background(), head{}, texts)
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range texts {
		x.add(fmt.Sprint(i), 0, Item{ID: fmt.Sprint(i), Text: text}, vecs[i], 0)
	}
	asked, err := m.embed(context.Background(), head{}, queries)
	if err != nil {
		t.Fatal(err)
	}
	all := func(*row) bool { return true }
	total, byMeaning, byWord, joined := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	for i, p := range set {
		if p.Query == "" {
			continue // a text that nobody looks for
		}
		found := func(hits []hit, in map[string]int) bool {
			ok := slices.ContainsFunc(hits[:min(5, len(hits))], func(h hit) bool { return h.row == i })
			if ok {
				in[p.Lang]++
			}
			return ok
		}
		total[p.Lang]++
		if !found(x.nearest(asked[i], 5, all), byMeaning) {
			t.Logf("%s: %q does not find %q", p.Lang, p.Query, p.Text)
		}
		found(x.byWords(words(p.Query), 5, all), byWord)
		found(x.rank(asked[i], p.Query, 100, all), joined)
	}
	for _, lang := range []string{"en", "zh", "ko"} {
		n := float64(total[lang])
		t.Logf("%s: recall@5 of %d pairs: keywords %.2f, n-grams %.2f, both %.2f", lang, total[lang],
			float64(byWord[lang])/n, float64(byMeaning[lang])/n, float64(joined[lang])/n)
		if total[lang] < 20 || float64(byMeaning[lang]) < 0.8*n || float64(joined[lang]) < 0.8*n || byMeaning[lang] <= byWord[lang] {
			t.Errorf("%s: want 20 pairs or more, 0.80 of them found, and more than by keywords", lang)
		}
	}
}
