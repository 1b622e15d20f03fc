package text

import (
	"bytes"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	gtext "github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Bounds of what is read as Markdown. The parser's time grows with the square of
// the marks and of the depth, its memory with the cells that it adds to short
// rows of tables. What is beyond a bound is shown as it was written.
const (
	maxText  = 256 << 10 // bytes of a text
	maxBytes = 32 << 10  // of what is read at once
	maxMarks = 400       // in one paragraph, heading or cell
	maxDepth = 32        // blocks in blocks; a level of a list is two
)

// sections cuts a long text at empty lines outside of code and at ends of code into what is read at
// once. One that cannot be cut is longer than maxBytes.
func sections(s string) []string {
	if len(s) <= maxBytes {
		return []string{s}
	}
	var out []string
	from, end, fence := 0, 0, "" // end is the last place to cut, 0 for none
	for at := 0; at < len(s); {
		line, _, _ := strings.Cut(s[at:], "\n")
		next := min(at+len(line)+1, len(s))
		trimmed := strings.TrimSpace(line)
		switch mark := fenceMark(trimmed); {
		case fence != "" && strings.HasPrefix(mark, fence) && mark == trimmed:
			fence, end = "", next
		case fence == "" && mark != "":
			fence = mark
		case fence == "" && trimmed == "":
			end = next
		}
		if next-from > maxBytes && end > from {
			out = append(out, s[from:end])
			from = end
		}
		at = next
	}
	return append(out, s[from:])
}

// fenceMark is what a line of code's fence begins with, "" if it is none.
func fenceMark(line string) string {
	for _, c := range []string{"`", "~"} {
		if n := len(line) - len(strings.TrimLeft(line, c)); n >= 3 {
			return line[:n]
		}
	}
	return ""
}

// bounds go before the parsers that they guard.
var bounds = goldmark.WithParserOptions(
	parser.WithInlineParsers(util.Prioritized(markBound{}, -1)),
	parser.WithBlockParsers(util.Prioritized(depthBound{}, -1)),
	parser.WithParagraphTransformers(util.Prioritized(tableBound{}, -1)))

var marksKey = parser.NewContextKey() // holds an *int, the marks seen in the block

// A markBound takes the rest of a block's lines for text after maxMarks.
type markBound struct{}

func (markBound) Trigger() []byte { return []byte("[]!<*_~`") }

func (markBound) Parse(_ ast.Node, block gtext.Reader, pc parser.Context) ast.Node {
	n := pc.ComputeIfAbsent(marksKey, func() any { return new(int) }).(*int)
	if *n++; *n <= maxMarks {
		return nil
	}
	line, segment := block.PeekLine()
	end := len(bytes.TrimSuffix(line, []byte("\n")))
	block.Advance(end)
	return ast.NewRawTextSegment(segment.WithStop(segment.Stop - len(line) + end))
}

func (markBound) CloseBlock(_ ast.Node, _ gtext.Reader, pc parser.Context) { pc.Set(marksKey, nil) }

// A depthBound takes lines for text where maxDepth blocks are open.
type depthBound struct{}

func (depthBound) Trigger() []byte { return []byte(">-+*0123456789") }

func (depthBound) Open(parent ast.Node, reader gtext.Reader, _ parser.Context) (ast.Node, parser.State) {
	if parent.Kind() == ast.KindList { // may hold items only
		return nil, parser.NoChildren
	}
	depth := 0
	for n := parent; n != nil; n = n.Parent() {
		depth++
	}
	if depth < maxDepth {
		return nil, parser.NoChildren
	}
	_, segment := reader.PeekLine()
	var lines gtext.Segments
	lines.Append(segment)
	reader.AdvanceToEOL()
	return raw(&lines), parser.NoChildren
}

func (depthBound) Continue(ast.Node, gtext.Reader, parser.Context) parser.State { return parser.Close }
func (depthBound) Close(ast.Node, gtext.Reader, parser.Context)                 {}
func (depthBound) CanInterruptParagraph() bool                                  { return true }
func (depthBound) CanAcceptIndentedLine() bool                                  { return false }

// A tableBound takes a paragraph for text if it could become a table with more
// cells than were written: a cell is two bytes at least.
type tableBound struct{}

func (tableBound) Transform(n *ast.Paragraph, reader gtext.Reader, _ parser.Context) {
	lines, columns, size := n.Lines(), 0, 0
	for _, s := range lines.Sliced(0, lines.Len()) {
		line := s.Value(reader.Source())
		size += len(line)
		if len(bytes.Trim(line, "-:| \t\n")) == 0 {
			columns = max(columns, bytes.Count(line, []byte("|")))
		}
	}
	const slack = 64 // bytes, for a small table with short rows
	if 2*columns*lines.Len() > size+slack {
		n.Parent().ReplaceChild(n.Parent(), n, raw(lines))
	}
}

// raw is a block that is not read further.
func raw(lines *gtext.Segments) ast.Node {
	n := ast.NewHTMLBlock(ast.HTMLBlockType7)
	n.SetLines(lines)
	return n
}
