package text

import (
	"math"
	"strings"
	"unicode/utf8"
)

// A packer writes blocks into parts.
type packer struct {
	d     Dialect
	limit int
	parts []string
	cur   strings.Builder
	n     int    // size of cur
	style style  // marks that are open
	last  rune   // last rune of a word, 0 at the start of a line
	prev  string // the word before, raw
}

// pack writes the blocks into as few parts as keep blocks whole.
func pack(d Dialect, blocks []block) []string {
	p := packer{d: d, limit: d.limit}
	for _, b := range blocks {
		whole := packer{d: d, limit: math.MaxInt}
		whole.block(b)
		gap := "\n\n"
		if p.n == 0 {
			gap = ""
		} else if b.tight {
			gap = "\n"
		}
		s := whole.cur.String()
		switch {
		case p.n+len(gap)+whole.n <= p.limit:
			p.write(gap + s)
		case whole.n <= p.limit:
			p.flush()
			p.write(p.margin(b.first) + s[len(b.first):])
		default:
			if p.limit-p.n < p.limit/4 {
				p.flush()
				gap = ""
			}
			p.write(gap)
			p.block(b)
		}
	}
	p.flush()
	return p.parts
}

func (p *packer) write(s string) {
	p.cur.WriteString(s)
	p.n += p.d.size(s)
}

func (p *packer) flush() {
	if s := strings.TrimRight(p.cur.String(), " \n"); !blank(s) {
		p.parts = append(p.parts, s)
	}
	p.cur.Reset()
	p.n, p.last = 0, 0
}

func (p *packer) block(b block) {
	if b.code != nil {
		p.codeBlock(b)
		return
	}
	if p.n == 0 && p.limit < math.MaxInt {
		p.write(p.margin(b.first))
	} else {
		p.write(b.first)
	}
	p.last = 0
	for _, w := range b.words {
		p.word(w, b.rest)
	}
	p.marks(0)
}

// marks changes the open styles to s: all are closed and opened again, so that
// they nest.
func (p *packer) marks(s style) {
	p.write(p.change(s))
	p.style = s
}

func (p *packer) change(s style) string {
	if s == p.style {
		return ""
	}
	var out string
	for i := styles; i > 0; i-- {
		if p.style&(1<<(i-1)) != 0 {
			out += p.d.marks[i-1]
		}
	}
	return out + p.open(s)
}

func (p *packer) open(s style) string {
	var out string
	for i := range styles {
		if s&(1<<i) != 0 {
			out += p.d.marks[i]
		}
	}
	return out
}

// lead is what comes before a word: marks that close, white space, marks that open.
func (p *packer) lead(w word, rest string) string {
	if w.line { // marks do not span lines
		return p.change(0) + "\n" + rest + p.open(w.style)
	}
	if w.style == p.style {
		if w.space {
			return " "
		}
		return ""
	}
	next, _ := utf8.DecodeRuneInString(w.text)
	closing := p.change(0)
	gap := ""
	switch {
	case w.space:
		gap = " "
	case p.last == 0:
	case p.style != 0 && w.style != 0,
		p.style != 0 && wordy(next) && !(p.d.flanks && wordy(p.last)),
		w.style != 0 && wordy(p.last) && !(p.d.flanks && wordy(next)):
		gap = p.d.joint
	}
	return closing + gap + p.open(w.style)
}

// word writes a word, in the next part if this one is full, in pieces if it is
// longer than a part.
func (p *packer) word(w word, rest string) {
	text := w.text
	if !w.atom {
		text = p.render(w, w.text, w.line || p.last == 0)
	}
	closers := p.d.size(p.open(w.style))
	lead := p.lead(w, rest)
	need := p.d.size(lead) + p.d.size(text) + closers
	if p.n+need > p.limit {
		fits := p.d.size(rest)+p.d.size(text)+2*closers <= p.limit
		if fits || p.limit-p.n < p.limit/4 {
			p.next(rest)
			w.space, w.line = false, false
			lead = p.lead(w, rest)
			if !w.atom {
				text = p.render(w, w.text, true)
			}
		}
		if !fits {
			p.pieces(w, rest, lead)
			return
		}
	}
	p.write(lead + text)
	p.style = w.style
	p.last, _ = utf8.DecodeLastRuneInString(w.text)
	p.prev = w.text
}

// render writes a word, or a piece of one, in the dialect.
func (p *packer) render(w word, s string, start bool) string {
	if w.style&(1<<code) != 0 {
		return p.d.coded(s)
	}
	return p.d.words(p.prev, s, start && w.style == 0)
}

// next ends the part and begins the next with the block's indent.
func (p *packer) next(rest string) {
	p.marks(0)
	p.flush()
	p.write(p.margin(rest))
}

// margin is an indent at the start of a part, where spaces alone mean nothing
// and many of them may mean code.
func (p *packer) margin(rest string) string {
	if p.d.nest != "" || !strings.HasPrefix(rest, " ") {
		return rest
	}
	return strings.TrimLeft(rest, " ")
}

// pieces writes a word that is longer than a part.
func (p *packer) pieces(w word, rest, lead string) {
	closers := p.d.size(p.open(w.style))
	p.write(lead)
	p.style = w.style
	text, render := w.text, func(s string) string { return p.render(w, s, false) }
	if p.d.word != nil && w.style&(1<<code) == 0 { // what has an effect depends on what is around it
		text, render = p.render(w, w.text, p.last == 0), func(s string) string { return s }
	}
	for g := range graphemes(text) {
		for _, piece := range p.cut(g, p.limit-p.d.size(rest)-2*closers) {
			t := render(piece)
			if p.n+p.d.size(t)+closers > p.limit {
				p.next(rest)
				p.marks(w.style)
			}
			p.write(t)
		}
	}
	p.last, _ = utf8.DecodeLastRuneInString(w.text)
}

// cut returns a grapheme whole, or its runes if it is larger than a whole part.
func (p *packer) cut(g string, room int) []string {
	if p.d.size(p.d.words("", g, true)) <= room {
		return []string{g}
	}
	return strings.Split(g, "")
}

// codeBlock writes lines of code, or of a table; each part has the fence around
// it and begins with the lines that are repeated.
func (p *packer) codeBlock(b block) {
	opening, end := p.d.fence, "\n"+p.d.fence
	if p.d.names && len(b.name) <= maxName {
		opening += b.name
	}
	if b.table || p.d.fence == "" {
		opening, end = "", ""
	}
	closers := p.d.size(end)
	br := "" // before a line
	line := func(s string) {
		p.write(br + s)
		br = "\n"
	}
	open := func() {
		br = ""
		if opening != "" {
			line(opening)
		}
	}
	open()
	fits := func(s string) bool { return p.n+len(br)+p.d.size(s)+closers <= p.limit }
	next := func(repeat []string) {
		p.write(end)
		p.flush()
		open()
		for _, h := range repeat {
			if t := p.codeLine(b, h); p.n+1+p.d.size(t)+closers < p.limit/2 {
				line(t)
			}
		}
	}
	for i, l := range b.code {
		repeat := b.code[:min(b.head, i)]
		t := p.codeLine(b, l)
		if !fits(t) && i > 0 {
			next(repeat)
		}
		if fits(t) {
			line(t)
			continue
		}
		p.write(br)
		br = "\n"
		for g := range graphemes(p.guard(l)) {
			for _, piece := range p.cut(g, p.limit/2) {
				t := p.codePiece(b, piece)
				if p.n+p.d.size(t)+closers > p.limit {
					next(repeat)
					p.write(br)
				}
				p.write(t)
			}
		}
	}
	p.write(end)
}

// maxName is how long the name of a language may be.
const maxName = 20

// codeLine is a line of code that cannot end the block.
func (p *packer) codeLine(b block, s string) string { return p.codePiece(b, p.guard(s)) }

func (p *packer) codePiece(b block, s string) string {
	if b.table || p.d.fence == "" {
		return s // rendered already, or without effect
	}
	if p.d.plain == nil {
		return s // nothing has an effect inside a fence
	}
	return p.d.plain(s)
}

func (p *packer) guard(s string) string {
	if p.d.fence == "" {
		return s
	}
	return strings.ReplaceAll(s, p.d.fence, p.d.fenceBroken)
}
