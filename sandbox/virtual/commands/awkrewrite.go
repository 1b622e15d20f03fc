package commands

import (
	"slices"
	"strings"

	"github.com/benhoyt/goawk/lexer"
)

// rewriteAwk rewrites what GoAWK would do to files and processes itself:
//
//	print ... > f      for(__to(">",(f));__on();) print ...
//	getline x < f      ((__r=__read(f))>0?(split(__line(f),__t,"\n")>=0?((x=__t[1])==x):0):__r)
//	nextfile           while(__nextfile()) nextfile
//	FILENAME           __file()
//	close, fflush, system, and the pattern of gensub
//
// A program that does not even make tokens comes back as it is.
func rewriteAwk(src string) string {
	r := &awkRewriter{src: src}
	if !r.scan() {
		return src
	}
	for i := range r.toks {
		r.token(i)
	}
	slices.SortStableFunc(r.edits, func(a, b awkEdit) int { return a.from - b.from })
	var out strings.Builder
	at := 0
	for _, e := range r.edits {
		if e.from < at { // within another, as in "print FILENAME > FILENAME"
			continue
		}
		out.WriteString(src[at:e.from])
		out.WriteString(e.with)
		at = e.to
	}
	return out.String() + src[at:]
}

type awkToken struct {
	kind     lexer.Token
	val      string
	from, to int // in the source
}

type awkEdit struct {
	from, to int
	with     string
}

type awkRewriter struct {
	src   string
	toks  []awkToken
	edits []awkEdit
}

// scan makes tokens, telling patterns from divisions by what came before.
func (r *awkRewriter) scan() bool {
	starts := []int{0}
	for i := range len(r.src) {
		if r.src[i] == '\n' {
			starts = append(starts, i+1)
		}
	}
	l := lexer.NewLexer([]byte(r.src))
	operand := false
	for {
		pos, kind, val := l.Scan()
		if (kind == lexer.DIV || kind == lexer.DIV_ASSIGN) && !operand {
			_, kind, val = l.ScanRegex()
		}
		from := min(starts[pos.Line-1]+pos.Column-1, len(r.src))
		t := awkToken{kind: kind, val: val, from: from}
		t.to = r.end(t)
		r.toks = append(r.toks, t)
		switch kind {
		case lexer.ILLEGAL:
			return false
		case lexer.EOF:
			return true
		case lexer.NAME, lexer.NUMBER, lexer.STRING, lexer.REGEX, lexer.RPAREN, lexer.RBRACKET, lexer.DOLLAR, lexer.INCR, lexer.DECR, lexer.F_LENGTH:
			operand = true
		default:
			operand = false
		}
	}
}

// end is where a token ends, so far as it matters.
func (r *awkRewriter) end(t awkToken) int {
	switch t.kind {
	case lexer.NAME, lexer.NUMBER:
		return t.from + len(t.val)
	case lexer.STRING, lexer.REGEX:
		quote := r.src[t.from]
		for i := t.from + 1; i < len(r.src); i++ {
			if r.src[i] == '\\' {
				i++
			} else if r.src[i] == quote {
				return i + 1
			}
		}
		return len(r.src)
	case lexer.NEXTFILE:
		return t.from + len("nextfile")
	case lexer.GETLINE:
		return t.from + len("getline")
	case lexer.F_CLOSE:
		return t.from + len("close")
	case lexer.F_FFLUSH, lexer.F_SYSTEM:
		return t.from + len("fflush")
	case lexer.INCR, lexer.DECR, lexer.APPEND:
		return t.from + 2
	}
	return min(t.from+1, len(r.src))
}

func (r *awkRewriter) edit(from, to int, with string) {
	r.edits = append(r.edits, awkEdit{from, to, with})
}

func (r *awkRewriter) token(i int) {
	t := r.toks[i]
	switch t.kind {
	case lexer.NAME:
		switch {
		case t.val == "FILENAME" && r.toks[i+1].kind != lexer.ASSIGN:
			r.edit(t.from, t.to, "__file()")
		case t.val == "gensub" && r.toks[i+1].kind == lexer.LPAREN && r.toks[i+2].kind == lexer.REGEX:
			re := r.toks[i+2]
			r.edit(re.from, re.to, `"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(re.val)+`"`)
		}
	case lexer.NEXTFILE:
		r.edit(t.from, t.to, "while(__nextfile()) nextfile")
	case lexer.F_CLOSE:
		r.edit(t.from, t.to, "__close")
	case lexer.F_FFLUSH:
		if r.toks[i+1].kind == lexer.LPAREN && r.toks[i+2].kind != lexer.RPAREN {
			r.edit(t.from, t.to, "__flush")
		}
	case lexer.F_SYSTEM:
		r.edit(t.from, t.to, "__system")
	case lexer.PRINT, lexer.PRINTF:
		r.print(i)
	case lexer.GETLINE:
		r.getline(i)
	}
}

// print rewrites a print statement that goes elsewhere.
func (r *awkRewriter) print(i int) {
	depth, at := 0, -1
	for j := i + 1; ; j++ {
		switch t := r.toks[j]; t.kind {
		case lexer.LPAREN, lexer.LBRACKET:
			depth++
		case lexer.RPAREN, lexer.RBRACKET:
			depth--
		case lexer.GREATER, lexer.APPEND, lexer.PIPE:
			if depth == 0 && at < 0 {
				at = j
			}
		case lexer.SEMICOLON, lexer.NEWLINE, lexer.RBRACE, lexer.EOF:
			if depth > 0 && t.kind == lexer.NEWLINE {
				continue
			}
			if at >= 0 && j > at+1 {
				op := map[lexer.Token]string{lexer.GREATER: ">", lexer.APPEND: ">>", lexer.PIPE: "|"}[r.toks[at].kind]
				dest := rewriteAwk(r.src[r.toks[at+1].from:r.toks[j-1].to])
				r.edit(r.toks[i].from, r.toks[i].from, `for(__to("`+op+`",(`+dest+`));__on();) `)
				r.edit(r.toks[at].from, r.toks[j-1].to, "")
			}
			return
		}
	}
}

// getline rewrites "getline [lvalue] < file".
func (r *awkRewriter) getline(i int) {
	less := i + 1
	if r.toks[less].kind != lexer.LESS {
		less = r.primary(i + 1)
	}
	if less < 0 || r.toks[less].kind != lexer.LESS {
		return
	}
	end := r.primary(less + 1)
	if end < 0 {
		return
	}
	into := "$0"
	if less > i+1 {
		into = r.src[r.toks[i+1].from:r.toks[less-1].to]
	}
	file := rewriteAwk(r.src[r.toks[less+1].from:r.toks[end-1].to])
	r.edit(r.toks[i].from, r.toks[end-1].to,
		"((__r=__read("+file+"))>0?(split(__line("+file+`),__t,"\n")>=0?((`+into+"=__t[1])=="+into+"):0):__r)")
}

// primary returns the token after a simple operand, -1 if there is none.
func (r *awkRewriter) primary(i int) int {
	switch r.toks[i].kind {
	case lexer.STRING, lexer.NUMBER:
		return i + 1
	case lexer.DOLLAR:
		return r.primary(i + 1)
	case lexer.NAME:
		if k := r.toks[i+1].kind; k != lexer.LBRACKET {
			return i + 1
		}
		i++
	case lexer.LPAREN:
	default:
		return -1
	}
	depth := 0
	for ; r.toks[i].kind != lexer.EOF; i++ {
		switch r.toks[i].kind {
		case lexer.LPAREN, lexer.LBRACKET:
			depth++
		case lexer.RPAREN, lexer.RBRACKET:
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}
