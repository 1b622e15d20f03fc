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
	n     int   // size of cur
	style style // marks that are open
	last  rune  // last rune of a word, 0 at the start of a line
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
			p.write(s)
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
	p.write(b.first)
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
	case p.last != 0 && (p.style != 0 && (wordy(next) || w.style != 0) || w.style != 0 && wordy(p.last)):
		gap = p.d.joint
	}
	return closing + gap + p.open(w.style)
}

// word writes a word, in the next part if this one is full, in pieces if it is
// longer than a part.
func (p *packer) word(w word, rest string) {
	text := w.text
	if !w.atom {
		text = p.d.plain(text)
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
		}
		if !fits {
			p.pieces(w, rest, lead)
			return
		}
	}
	p.write(lead + text)
	p.style = w.style
	p.last, _ = utf8.DecodeLastRuneInString(w.text)
}

// next ends the part and begins the next with the block's indent.
func (p *packer) next(rest string) {
	p.marks(0)
	p.flush()
	p.write(rest)
}

// pieces writes a word that is longer than a part.
func (p *packer) pieces(w word, rest, lead string) {
	closers := p.d.size(p.open(w.style))
	p.write(lead)
	p.style = w.style
	for g := range graphemes(w.text) {
		for _, piece := range p.cut(g, p.limit-p.d.size(rest)-2*closers) {
			t := p.d.plain(piece)
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
	if p.d.size(p.d.plain(g)) <= room {
		return []string{g}
	}
	return strings.Split(g, "")
}

// codeBlock writes lines of code; each part has the fence around it and begins
// with the lines that are repeated.
func (p *packer) codeBlock(b block) {
	end := "\n" + p.d.fence
	closers := p.d.size(end)
	p.write(p.d.fence)
	next := func(repeat []string) {
		p.write(end)
		p.flush()
		p.write(p.d.fence)
		for _, h := range repeat {
			if t := "\n" + p.codeLine(h); p.n+p.d.size(t)+closers < p.limit/2 {
				p.write(t)
			}
		}
	}
	for i, line := range b.code {
		repeat := b.code[:min(b.head, i)]
		t := "\n" + p.codeLine(line)
		if p.n+p.d.size(t)+closers > p.limit && i > 0 {
			next(repeat)
		}
		if p.n+p.d.size(t)+closers <= p.limit {
			p.write(t)
			continue
		}
		p.write("\n")
		for g := range graphemes(p.guard(line)) {
			for _, piece := range p.cut(g, p.limit/2) {
				t := p.d.plain(piece)
				if p.n+p.d.size(t)+closers > p.limit {
					next(repeat)
					p.write("\n")
				}
				p.write(t)
			}
		}
	}
	p.write(end)
}

// codeLine is a line of code that cannot end the block.
func (p *packer) codeLine(s string) string { return p.d.plain(p.guard(s)) }

func (p *packer) guard(s string) string { return strings.ReplaceAll(s, p.d.fence, p.d.fenceBroken) }
