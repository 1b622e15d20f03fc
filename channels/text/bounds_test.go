package text

import (
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	gtext "github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// hostile are texts of n bytes that make a parser or a renderer work without end.
func hostile(n int) map[string]string {
	texts := map[string]string{
		"wide and short rows": strings.Repeat("|a", n/8) + "\n" + strings.Repeat("|-", n/8) + "\n" + strings.Repeat("|\n", n/4),
		"one wide row":        "|a|\n|-|\n" + strings.Repeat("|"+strings.Repeat("x", 64)+"|\n", n/128) + "|" + strings.Repeat("y", n/2) + "|",
		"wide head":           strings.Repeat("|"+strings.Repeat("h", 64), n/256) + "|\n" + strings.Repeat("|-", n/256) + "|\n" + strings.Repeat(strings.Repeat("|a", n/256)+"|\n", 64),
		"one wide column":     "|" + strings.Repeat("x", maxColumn) + "|b|\n|-|-|\n" + strings.Repeat("|a|b|\n", n/6),
		"lazy lines":          strings.Repeat("> ", maxIndent) + strings.Repeat("a\n", n/2),
		"deep and flat":       strings.Repeat("- ", n/8) + "a\n" + strings.Repeat("b\n", n/4),
		"marks in marks":      "**~~" + strings.Repeat("x*y*", n/4) + "~~**",
		"one run of marks":    strings.Repeat("*", n/2) + "a" + strings.Repeat("*", n/2),
	}
	for _, s := range []string{
		"[a](`", "[a](<b", "> ", "a*a_", "1. ", "- ", "* ", "[", "]", "![", "[[a]", "[a](b \"", "<?", "<!--", "<a b=\"", "`", "``a`", "**a ",
		"\\|`", "|`\\|`", "[a]: b\n", "[a]\n", "a\n", "a\n\n", "- a\n", "-\n", "> a\n", "<b>\n", "# a*\n", "&amp;", "&", " ", "\n&",
		"![a](http://x.test/", "<http://a.b", "[x](http://a.b)", "***a**b*", "[a][", "-\t", "漢", "e\u0301", "|||\n|-|-|\n", "\\_\n",
	} {
		texts[s] = strings.Repeat(s, n/len(s))
	}
	return texts
}

// Not parallel: it counts what the process allocates.
func TestHostile(t *testing.T) {
	for _, n := range []int{3 << 10, maxBytes, 128 << 10} {
		for name, in := range hostile(n) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			var parts []string
			dialects := []Dialect{Slack}
			if n < maxBytes {
				dialects = append(dialects, Discord, GFM)
			}
			for _, d := range dialects {
				parts = d.Compose(in)
				if limit := partsLimit(d, in); len(parts) > limit || len(parts) == 0 && !blank(in) {
					t.Errorf("%q, %d bytes: %d parts, want at most %d", name, len(in), len(parts), limit)
				}
			}
			runtime.ReadMemStats(&after)
			if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > 50 {
				t.Errorf("%q, %d bytes: %d MiB allocated", name, len(in), got)
			}
			if limit := partsLimit(Slack, in); len(parts) > limit || len(parts) == 0 && !blank(in) {
				t.Errorf("%q, %d bytes: %d parts, want at most %d", name, len(in), len(parts), limit)
			}
		}
	}
}

// partsLimit is how many parts a text may become, at most.
func partsLimit(d Dialect, in string) int {
	return 2*utf8.RuneCountInString(d.words("", strings.ToValidUTF8(in, "\uFFFD"), true))/d.limit + 4
}

// A marks parser reads nothing and counts, for each block, the marks that get
// past the bound.
type marks struct{ n, most int }

func (m *marks) Trigger() []byte { return markBound{}.Trigger() }

func (m *marks) Parse(ast.Node, gtext.Reader, parser.Context) ast.Node {
	m.n++
	m.most = max(m.most, m.n)
	return nil
}

func (m *marks) CloseBlock(ast.Node, gtext.Reader, parser.Context) { m.n = 0 }

// The parser's work is bounded: marks in a block, depth, and cells.
func TestBounds(t *testing.T) {
	t.Parallel()
	reached := map[string]bool{}
	for name, in := range hostile(maxBytes) {
		var m marks
		p := goldmark.New(bounds, goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList),
			goldmark.WithParserOptions(parser.WithInlineParsers(util.Prioritized(&m, 0)))).Parser()
		root := p.Parse(gtext.NewReader([]byte(in)))
		depth, deepest, cells := 0, 0, 0
		err := ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
			switch {
			case n.Type() == ast.TypeInline:
				return ast.WalkSkipChildren, nil
			case !entering:
				depth--
				return ast.WalkContinue, nil
			case n.Kind() == east.KindTableCell:
				cells++
			}
			depth++
			deepest = max(deepest, depth)
			return ast.WalkContinue, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if m.most > maxMarks || deepest > maxDepth+2 || cells > len(in)/2+32 {
			t.Errorf("%q: %d marks in a block, %d blocks deep, %d cells for %d bytes", name, m.most, deepest, cells, len(in))
		}
		reached["marks"] = reached["marks"] || m.most == maxMarks
		reached["depth"] = reached["depth"] || deepest > maxDepth
		reached["cells"] = reached["cells"] || cells > len(in)/8
	}
	for _, b := range []string{"marks", "depth", "cells"} {
		if !reached[b] {
			t.Errorf("no text comes near the bound of %s", b)
		}
	}
}

// Beyond a bound, what was written is shown; the rest of the text is rendered.
func TestBeyondBounds(t *testing.T) {
	t.Parallel()
	const half = maxMarks / 2
	many := strings.Repeat("*a* b ", maxMarks)
	for name, tc := range map[string]struct{ in, want string }{
		"marks":     {many + "\n**rest**\n\n**next**", strings.TrimSpace(strings.Repeat("_a_ b ", half)+strings.Repeat("*a* b ", half)) + "\n**rest**\n\n*next*"},
		"depth":     {strings.Repeat(">", 40) + "a\n\n**next**", strings.Repeat("> ", maxIndent) + strings.Repeat("&gt;", 41-maxDepth) + "a\n\n*next*"},
		"table":     {strings.Repeat("|a", 20) + "\n" + strings.Repeat("|-", 20) + strings.Repeat("\n|b", 20) + "\n\n**next**", strings.Repeat("|a", 20) + "\n" + strings.Repeat("|-", 20) + strings.Repeat("\n|b", 20) + "\n\n*next*"},
		"wide row":  {"|h|i|\n|-|-|\n|**b**|" + strings.Repeat("word ", 200) + "|\n|c||", "h | i\nb | " + strings.TrimSpace(strings.Repeat("word ", 200)) + "\nc |"},
		"few cells": {"|a|b|\n|-|-|\n|1|\n|2|\n|3|", "```\na | b\n- | -\n1 | \n2 | \n3 | \n```"},
	} {
		d := limited(4000)
		if got := d.Compose(tc.in); len(got) != 1 || got[0] != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}
