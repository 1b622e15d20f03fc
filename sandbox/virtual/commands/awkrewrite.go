package commands

import (
	"regexp"
	"strings"

	"github.com/benhoyt/goawk/lexer"
)

// rewriteAwk rewrites what GoAWK would do to files itself:
//
//	print ... > f      for(__to(">",(f));__on();) print ...
//	nextfile           while(__nextfile()) nextfile
//	FILENAME           __file()
//	close              __close
//
// A program that does not even make tokens comes back as it is.
func rewriteAwk(src string) string {
	toks, ok := awkTokens(src)
	if !ok {
		return src
	}
	var out strings.Builder
	at := 0
	put := func(from, to int, with string) { // in place of from to to
		out.WriteString(src[at:from] + with)
		at = to
	}
	op, destEnd := -1, 0 // the token of a redirection, and where its file ends
	for i, t := range toks {
		switch {
		case t.at < at: // left out with the redirection
		case i == op:
			put(t.at, destEnd, "")
		case t.kind == lexer.NAME && t.val == "FILENAME" && toks[i+1].kind != lexer.ASSIGN:
			put(t.at, t.at+len("FILENAME"), "__file()")
		case t.kind == lexer.NEXTFILE:
			put(t.at, t.at+len("nextfile"), "while(__nextfile()) nextfile")
		case t.kind == lexer.F_CLOSE:
			put(t.at, t.at+len("close"), "__close")
		case t.kind == lexer.PRINT || t.kind == lexer.PRINTF:
			var end int
			if op, end = awkRedirection(toks, i+1); op < 0 || op+1 == end {
				continue
			}
			last := toks[end-1].at
			destEnd = last + len(awkOperand.FindString(src[last:toks[end].at]))
			mark := map[lexer.Token]string{lexer.GREATER: ">", lexer.APPEND: ">>"}[toks[op].kind]
			put(t.at, t.at, `for(__to("`+mark+`",(`+rewriteAwk(src[toks[op].at+len(mark):destEnd])+`));__on();) `)
		}
	}
	return out.String() + src[at:]
}

// awkOperand is a token that ends an expression, without a comment after it.
var awkOperand = regexp.MustCompile(`^"(?:\\.|[^"\\])*"|^[^#]*`)

type awkToken struct {
	kind lexer.Token
	val  string
	at   int // in the source
}

// awkTokens makes tokens, telling patterns from divisions by what came before.
func awkTokens(src string) (toks []awkToken, ok bool) {
	starts := []int{0} // of the lines
	for i := range len(src) {
		if src[i] == '\n' {
			starts = append(starts, i+1)
		}
	}
	l := lexer.NewLexer([]byte(src))
	operand := false
	for {
		pos, kind, val := l.Scan()
		if (kind == lexer.DIV || kind == lexer.DIV_ASSIGN) && !operand {
			_, kind, val = l.ScanRegex()
		}
		toks = append(toks, awkToken{kind, val, min(starts[pos.Line-1]+pos.Column-1, len(src))})
		switch kind {
		case lexer.ILLEGAL:
			return nil, false
		case lexer.EOF:
			return toks, true
		case lexer.NAME, lexer.NUMBER, lexer.STRING, lexer.REGEX, lexer.RPAREN, lexer.RBRACKET, lexer.DOLLAR, lexer.INCR, lexer.DECR, lexer.F_LENGTH:
			operand = true
		default:
			operand = false
		}
	}
}

// awkRedirection finds the > or >> of a print statement, -1 if there is none,
// and the token after the statement.
func awkRedirection(toks []awkToken, i int) (op, end int) {
	op = -1
	for depth := 0; ; i++ {
		switch toks[i].kind {
		case lexer.LPAREN, lexer.LBRACKET:
			depth++
		case lexer.RPAREN, lexer.RBRACKET:
			depth--
		case lexer.GREATER, lexer.APPEND:
			if depth == 0 && op < 0 {
				op = i
			}
		case lexer.NEWLINE:
			if depth <= 0 {
				return op, i
			}
		case lexer.SEMICOLON, lexer.RBRACE, lexer.EOF:
			return op, i
		}
	}
}
