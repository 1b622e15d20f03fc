package text

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	gtext "github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// A block is a run of text or of code lines.
type block struct {
	tight       bool   // follows the block before without an empty line
	first, rest string // what its first and its further lines begin with
	words       []word

	code  []string // lines, instead of words
	head  int      // so many first lines of code are repeated in each part
	name  string   // the language of the code, "" if not known
	table bool     // the lines are rows, rendered already
}

// A word is what is not cut if it can be avoided.
type word struct {
	text  string // raw; rendered already if atom
	style style  // set of 1<<bold and so on
	space bool   // a space before it
	line  bool   // a new line before it
	atom  bool   // a link: cannot be cut at all
}

var markdownParser parser.Parser = goldmark.New(bounds,
	goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList)).Parser()

const maxIndent = 8 // levels of quotes and lists that are shown as such

// parse reads Markdown into blocks, in order.
func parse(d Dialect, markdown string) []block {
	r := reader{d: d, src: []byte(markdown)}
	r.children(markdownParser.Parse(gtext.NewReader(r.src)), indent{})
	return r.out
}

type reader struct {
	d   Dialect
	src []byte
	out []block
}

// An indent is where a container puts its blocks.
type indent struct {
	first, rest string // first is used up by the first block
	depth       int
}

func (r *reader) children(n ast.Node, in indent) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		before := len(r.out)
		r.block(c, in)
		if len(r.out) > before {
			in.first = in.rest
		}
	}
}

func (r *reader) add(b block, in indent) {
	b.first, b.rest = in.first, in.rest
	r.out = append(r.out, b)
}

func (r *reader) block(n ast.Node, in indent) {
	switch n := n.(type) {
	case *ast.Paragraph, *ast.TextBlock:
		r.text(n, 0, in)
	case *ast.Heading:
		if n.Level > r.d.headings {
			r.text(n, 1<<bold, in)
			return
		}
		in.first += strings.Repeat("#", n.Level) + " "
		r.text(n, 0, in)
	case *ast.ThematicBreak:
		r.add(block{words: []word{{text: r.d.rule, atom: true}}}, in)
	case *ast.CodeBlock:
		r.add(block{code: lines(n.Lines().Value(r.src))}, in)
	case *ast.FencedCodeBlock:
		r.add(block{code: lines(n.Lines().Value(r.src)), name: language(n.Language(r.src))}, in)
	case *ast.HTMLBlock:
		s := string(n.Lines().Value(r.src))
		if n.HasClosure() {
			s += string(n.ClosureLine.Value(r.src))
		}
		if w := split(r.d, s, 0); len(w) > 0 {
			r.add(block{words: w}, in)
		}
	case *ast.Blockquote:
		r.children(n, in.deeper(r.d.quote, r.d.quote))
	case *ast.List:
		r.list(n, in)
	case *east.Table:
		r.table(n, in)
	default:
		r.children(n, in)
	}
}

// deeper adds a level whose blocks begin with first, their further lines with rest.
func (in indent) deeper(first, rest string) indent {
	if in.depth++; in.depth > maxIndent {
		return in
	}
	in.first += first
	in.rest += rest
	return in
}

func (r *reader) list(n *ast.List, in indent) {
	number := n.Start
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		mark := r.d.bullet
		if n.IsOrdered() {
			mark = fmt.Sprintf("%d. ", number)
			number++
		}
		before := len(r.out)
		r.children(c, in.deeper(mark, r.d.nest+strings.Repeat(" ", utf8.RuneCountInString(mark))))
		if len(r.out) == before { // an empty item
			r.add(block{words: []word{{text: strings.TrimSpace(mark)}}}, in)
		}
		if c != n.FirstChild() {
			r.out[before].tight = n.IsTight
		}
		for i := before + 1; i < len(r.out) && n.IsTight; i++ {
			r.out[i].tight = true
		}
		in.first = in.rest
	}
}

func (r *reader) text(n ast.Node, s style, in indent) {
	l := liner{d: r.d}
	r.inline(n, s, &l)
	if words := l.words(); len(words) > 0 {
		r.add(block{words: words}, in)
	}
}

// table becomes code where the dialect does not show tables. One with rows
// too wide to be read so, or with far more padding than text, becomes lines of
// text.
func (r *reader) table(n *east.Table, in indent) {
	if r.d.tables && r.native(n, in) {
		return
	}
	var rows [][]string
	var widths []int
	text := 0 // runes in cells
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		var cells []string
		for c := row.FirstChild(); c != nil; c = c.NextSibling() {
			l := liner{d: r.d}
			r.inline(c, 1<<code, &l) // a link is spelled out
			s := l.flat()
			if r.d.wary {
				s = defang(s)
			}
			if len(widths) == len(cells) {
				widths = append(widths, 1)
			}
			w := utf8.RuneCountInString(s)
			text += w
			if w <= maxColumn {
				widths[len(cells)] = max(widths[len(cells)], w)
			}
			cells = append(cells, s)
		}
		rows = append(rows, cells)
	}
	rule := make([]string, len(widths))
	for j, w := range widths {
		rule[j] = strings.Repeat("-", w)
	}
	rows = slices.Insert(rows, 1, rule)
	b := block{head: 2}
	total, widest := 0, 0
	for _, cells := range rows {
		s := row(cells, widths)
		size := r.d.size(r.d.words("", s, true))
		total, widest = total+size, max(widest, size)
		b.code = append(b.code, s)
	}
	if widest > r.d.limit/8 || total > 4*text+r.d.limit {
		l := liner{d: r.d}
		for _, cells := range slices.Delete(rows, 1, 2) {
			l.text(strings.Join(cells, " | "), 0)
			l.line = true
		}
		b = block{words: l.words()}
	}
	r.add(b, in)
}

// native adds a table as rows of the dialect's own, or nothing if one of them is
// too wide to be repeated in a part.
func (r *reader) native(n *east.Table, in indent) bool {
	b := block{head: 2, table: true}
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		line := "|"
		for c := row.FirstChild(); c != nil; c = c.NextSibling() {
			l := liner{d: r.d}
			r.inline(c, 0, &l)
			p := packer{d: r.d, limit: math.MaxInt}
			p.block(block{words: l.words()})
			line += " " + pipes(p.cur.String()) + " |"
		}
		if r.d.size(line) > r.d.limit/8 {
			return false
		}
		b.code = append(b.code, line)
		if row == n.FirstChild() {
			rule := "|"
			for _, a := range n.Alignments {
				rule += map[east.Alignment]string{east.AlignLeft: " :-- |", east.AlignRight: " --: |", east.AlignCenter: " :-: |"}[a]
				if a == east.AlignNone {
					rule += " --- |"
				}
			}
			b.code = append(b.code, rule)
		}
	}
	r.add(b, in)
	return true
}

// pipes escapes what would end a cell, unless it is escaped.
func pipes(s string) string {
	if !strings.Contains(s, "|") {
		return s
	}
	var b strings.Builder
	escaped := false
	for _, r := range s {
		if r == '|' && !escaped {
			b.WriteByte('\\')
		}
		escaped = r == '\\' && !escaped
		b.WriteRune(r)
	}
	return b.String()
}

// language is the name of a language as a fence may have it, "" if it is none.
func language(b []byte) string {
	for _, c := range b {
		if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') && strings.IndexByte("+#._-", c) < 0 {
			return ""
		}
	}
	return string(b)
}

const maxColumn = 40 // a longer cell does not widen its column

func row(cells []string, widths []int) string {
	var b strings.Builder
	for i, c := range cells {
		if i > 0 {
			b.WriteString(" | ")
		}
		b.WriteString(c)
		if pad := widths[i] - utf8.RuneCountInString(c); pad > 0 && i < len(cells)-1 {
			b.WriteString(strings.Repeat(" ", pad))
		}
	}
	return b.String()
}

// inline reads what is inside a paragraph, heading, cell or link.
func (r *reader) inline(n ast.Node, s style, l *liner) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			l.text(r.unescaped(c), s)
			if c.SoftLineBreak() || c.HardLineBreak() {
				l.line = true
			}
		case *ast.String:
			l.text(string(c.Value), s)
		case *ast.CodeSpan:
			l.add(word{text: r.code(c), style: s | 1<<code}) // one word: its spaces count
		case *ast.Emphasis:
			set := style(1 << italic)
			if c.Level == 2 {
				set = 1 << bold
			}
			r.inline(c, s|set, l)
		case *east.Strikethrough:
			r.inline(c, s|1<<strike, l)
		case *ast.Link:
			r.link(c, string(c.Destination), "", s, l)
		case *ast.Image:
			r.link(c, string(c.Destination), "image", s, l)
		case *ast.AutoLink:
			u := string(c.URL(r.src))
			if c.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(u), "mailto:") {
				u = "mailto:" + u
			}
			l.link(u, string(c.Label(r.src)), s)
		case *ast.RawHTML:
			l.text(string(c.Segments.Value(r.src)), s)
		case *east.TaskCheckBox:
			box := "☐ "
			if c.IsChecked {
				box = "☑ "
			}
			l.text(box, s)
		default:
			r.inline(c, s, l)
		}
	}
}

// link reads a link or image; label is for one that has none.
func (r *reader) link(n ast.Node, dest, label string, s style, l *liner) {
	if l.label { // of another link, which leads elsewhere
		r.inline(n, s, l)
		return
	}
	dest = string(util.ResolveEntityNames(util.ResolveNumericReferences([]byte(dest))))
	in := liner{d: r.d, label: true}
	r.inline(n, 0, &in)
	if f := in.flat(); f != "" {
		label = f
	}
	if label == "" {
		label = dest
	}
	l.link(dest, label, s)
}

func (r *reader) code(n *ast.CodeSpan) string {
	var out []byte
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			out = append(out, t.Segment.Value(r.src)...)
		}
	}
	return strings.ReplaceAll(string(out), "\n", " ")
}

// lines cuts at ends of lines, without the last one.
func lines(b []byte) []string {
	return strings.Split(strings.TrimRight(string(b), "\n"), "\n")
}
