package text

import (
	"bufio"
	"bytes"
	"html"
	"strings"
	"unicode"

	"github.com/yuin/goldmark/ast"
	ghtml "github.com/yuin/goldmark/renderer/html"
)

// A liner gathers words.
type liner struct {
	d           Dialect
	out         []word
	space, line bool // owed to the next word
	label       bool // of a link: links in it are text
}

// text adds raw text; its white space parts words, its ends of lines stay.
func (l *liner) text(s string, st style) {
	for s != "" {
		i := strings.IndexFunc(s, func(r rune) bool { return r == ' ' || r == '\n' || r == '\t' || r == '\r' })
		if i != 0 {
			if i < 0 {
				i = len(s)
			}
			l.add(word{text: s[:i], style: st})
			s = s[i:]
			continue
		}
		if s[0] == '\n' {
			l.line = true
		}
		l.space = true
		s = s[1:]
	}
}

func (l *liner) add(w word) {
	w.line = l.line && len(l.out) > 0
	w.space = l.space && !w.line && len(l.out) > 0
	l.line, l.space = false, false
	if k := len(l.out) - 1; k >= 0 && !w.space && !w.line && !w.atom && !l.out[k].atom && w.style == l.out[k].style && w.style&(1<<code) == 0 {
		l.out[k].text += w.text // the parser cuts words where a mark might be
		return
	}
	l.out = append(l.out, w)
}

// words returns what was gathered, addresses done as the dialect does them.
func (l *liner) words() []word {
	if l.d.bare == nil && !l.d.wary {
		return l.out
	}
	in := l.out
	l.out = nil
	for _, w := range in {
		l.space, l.line = w.space, w.line
		if w.atom || !l.bare(w.text, w.style) {
			l.add(w)
		}
	}
	return l.out
}

// link adds a link; what must not be one, or would be too long, is spelled out,
// and so is the target of one whose label shows another.
func (l *liner) link(dest, label string, s style) {
	d := l.d
	if l.label {
		l.text(label, s)
		return
	}
	if d.wary {
		l.text(label, s)
		if label != dest && "mailto:"+label != dest {
			l.text(" ("+dest+")", s)
		}
		return
	}
	if u, ok := address(dest); ok && s&(1<<code) == 0 {
		if t := d.link(u, label); d.size(t) <= d.limit/2 && !misleads(label, u) {
			l.add(word{text: t, style: s, atom: true})
			return
		}
		if t := d.link(u, u); d.size(t) <= d.limit/2 {
			l.text(label+" (", s)
			l.add(word{text: t, style: s, atom: true})
			l.text(")", s)
			return
		}
	}
	l.text(label, s)
	if dest != "" && dest != label && "mailto:"+label != dest {
		l.text(" ("+dest+")", s)
	}
}

// flat is the text of the words alone.
func (l *liner) flat() string {
	var b strings.Builder
	for _, w := range l.out {
		if w.space || w.line {
			b.WriteByte(' ')
		}
		b.WriteString(w.text)
	}
	return b.String()
}

// bare adds a word that is an address, if the dialect does something about those.
func (l *liner) bare(w string, s style) bool {
	if s&(1<<code) != 0 || l.d.bare == nil && !l.d.wary {
		return false
	}
	if l.d.wary {
		safe := defang(w)
		if safe != w {
			l.add(word{text: safe, style: s})
		}
		return safe != w
	}
	from := strings.Index(strings.ToLower(w), "http")
	if from < 0 || strings.ContainsFunc(w[:from], wordy) {
		return false
	}
	u := strings.TrimRight(w[from:], ".,;:!?)]}'\"*_")
	if _, ok := address(u); !ok || strings.ContainsAny(u, "<>") || l.d.size(u) > l.d.limit/2 {
		return false
	}
	if from > 0 {
		l.add(word{text: w[:from], style: s})
	}
	l.add(word{text: l.d.bare(u), style: s, atom: true})
	if rest := w[from+len(u):]; rest != "" {
		l.add(word{text: rest, style: s})
	}
	return true
}

// defang writes addresses so that nothing makes links of them.
func defang(w string) string {
	w = strings.ReplaceAll(w, "://", "[:]//")
	if len(w) > 4 && strings.EqualFold(w[:4], "www.") {
		w = w[:3] + "[.]" + w[4:]
	}
	return w
}

// split makes words of raw text.
func split(d Dialect, s string, st style) []word {
	l := liner{d: d}
	l.text(s, st)
	return l.words()
}

// unescaped is a text node as a reader sees it.
func (r *reader) unescaped(t *ast.Text) string {
	b := t.Segment.Value(r.src)
	if t.IsRaw() || bytes.IndexByte(b, '\\') < 0 && bytes.IndexByte(b, '&') < 0 {
		return string(b)
	}
	// goldmark resolves escapes and entities in one pass only while writing HTML.
	var buf bytes.Buffer
	w := bufio.NewWriterSize(&buf, len(b))
	ghtml.DefaultWriter.Write(w, b)
	if err := w.Flush(); err != nil {
		return string(b) // unreachable: a buffer takes everything
	}
	return html.UnescapeString(buf.String())
}

// wordy tells whether a mark beside the rune would not be taken as one.
func wordy(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) || r == '_'
}
