package harness

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/heddlehq/heddle/model"
)

// BytesPerToken estimates tokens where no provider has counted them.
const BytesPerToken = 3.6

// TokensOf estimates what definitions take in a request.
func TokensOf(tools []model.Tool) int {
	bytes := 0
	for _, t := range tools {
		bytes += len(t.Name) + len(t.Doc) + len(t.Schema)
	}
	return int(float64(bytes) / BytesPerToken)
}

const (
	// mostDefined is how many tokens the definitions of a step may take before
	// deferred tools are left out, and those that one search loads.
	mostDefined = 4000
	mostTools   = 128 // in a request, as OpenAI takes them
	mostLoaded  = 64
	mostFound   = 8
	defaultFind = 5
	// loadedState is the state with the tools that searches have loaded.
	loadedState = "search_tools"
)

// mountSearch leaves deferred tools to be found when the definitions of all
// tools are large. The rest stays whole, however large.
func (c *Context) mountSearch() {
	loaded := UseState(c, loadedState, []string{})
	var all, deferred []model.Tool
	for _, t := range c.m.Tools {
		all = append(all, t.definition())
		if t.deferred {
			deferred = append(deferred, t.definition())
		}
	}
	if len(deferred) == 0 || TokensOf(all) <= mostDefined && len(all) <= mostTools {
		return
	}
	for _, t := range deferred {
		c.m.Deferred = append(c.m.Deferred, t.Name)
	}
	for _, name := range loaded.Value {
		if slices.Contains(c.m.Deferred, name) {
			c.m.Loaded = append(c.m.Loaded, name)
		}
	}
	c.mount("search_tools", searchTool(deferred, loaded))
}

// searchTool finds deferred tools of this step, and no others. What it finds is
// defined from the next step on, for as long as the conversation.
func searchTool(tools []model.Tool, loaded State[[]string]) Tool {
	type in struct {
		Query string `json:"query" jsonschema:"what the tool should do and of which service, in a few words"`
		Limit int    `json:"limit,omitempty" jsonschema:"most tools to load, 1 to 8, usually 5"`
	}
	made := sync.OnceValue(func() *index { return indexOf(tools) })
	return NewTool("search_tools", "Finds and loads more tools, by what they do. Use it when no tool in your list can do what is needed.",
		func(_ context.Context, call *Call, a in) (string, error) {
			if a.Limit <= 0 {
				a.Limit = defaultFind
			}
			found := made().find(a.Query, min(a.Limit, mostFound))
			for i := range found {
				if i > 0 && TokensOf(found[:i+1]) > mostDefined {
					found = found[:i]
					break
				}
			}
			if len(found) == 0 {
				return "No tool was found. Try other words for what it does, or the name of the service.", nil
			}
			var have []string
			loaded.Update(call, func(names []string) []string {
				names = slices.DeleteFunc(names, func(name string) bool {
					return !slices.ContainsFunc(tools, func(t model.Tool) bool { return t.Name == name })
				})
				for _, t := range found {
					if !slices.Contains(names, t.Name) && len(names) < mostLoaded {
						names = append(names, t.Name)
					}
				}
				have = names
				return names
			})
			var b strings.Builder
			b.WriteString("Call them by name:\n")
			for _, t := range found {
				line, _, _ := strings.Cut(t.Doc, "\n")
				fmt.Fprintf(&b, "- %s: %s\n", t.Name, line)
				if !slices.Contains(have, t.Name) { // the model gets to know what to call it with all the same
					fmt.Fprintf(&b, "  arguments: %s\n", t.Schema)
				}
			}
			return b.String(), nil
		}).Quiet()
}

// An index is what tools are found by.
type index struct {
	tools []model.Tool
	terms []map[string]float64 // of each tool, weighted by where they stand
	sizes []float64
	mean  float64            // of sizes
	in    map[string]float64 // how many tools have a word
}

func indexOf(tools []model.Tool) *index {
	x := &index{tools: tools, in: map[string]float64{}}
	for _, t := range tools {
		terms, size := terms(t), 0.0
		for w, n := range terms {
			x.in[w]++
			size += n
		}
		x.terms, x.sizes = append(x.terms, terms), append(x.sizes, size)
		x.mean += size / float64(len(tools))
	}
	return x
}

// find ranks tools by BM25. It returns at most limit, the best first, and none
// that has no word of the query.
func (x *index) find(query string, limit int) []model.Tool {
	const k, b = 0.9, 0.4
	type hit struct {
		at    int
		score float64
	}
	var hits []hit
	terms := queryTerms(query)
	order := slices.Sorted(maps.Keys(terms)) // sums of floats depend on it
	for i := range x.tools {
		score := 0.0
		for _, w := range order {
			if n := x.terms[i][w]; n > 0 {
				rare := math.Log(1 + (float64(len(x.tools))-x.in[w]+0.5)/(x.in[w]+0.5))
				score += terms[w] * rare * n * (k + 1) / (n + k*(1-b+b*x.sizes[i]/x.mean))
			}
		}
		if score > 0 {
			hits = append(hits, hit{i, score})
		}
	}
	slices.SortFunc(hits, func(a, b hit) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(x.tools[a.at].Name, x.tools[b.at].Name))
	})
	var out []model.Tool
	for _, h := range hits[:min(limit, len(hits))] {
		out = append(out, x.tools[h.at])
	}
	return out
}

// Weights of the places where a word of a tool stands.
const (
	inName  = 2
	inDoc   = 1
	inParam = 0.5
)

// terms counts the words of a tool, each place with its weight.
func terms(t model.Tool) map[string]float64 {
	out := map[string]float64{}
	add := func(text string, weight float64) {
		for _, w := range words(text) {
			out[w] += weight
		}
	}
	add(t.Name, inName)
	add(t.Doc, inDoc)
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	_ = json.Unmarshal(t.Schema, &s) // a schema without properties has no names to find
	for name := range maps.Keys(s.Properties) {
		add(name, inParam)
	}
	return out
}
