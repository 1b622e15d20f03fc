package commands

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// A sedAddress is a line number, a step, the last line or a pattern.
type sedAddress struct {
	line, step int
	last       bool
	re         *regexp.Regexp // nil with none set means the last pattern used
	pattern    bool
	plus       bool // as a second address: so many lines on
}

// A sedCommand is one command with its addresses.
type sedCommand struct {
	from, to *sedAddress
	negate   bool
	verb     byte
	text     string // of a i c, a label, a file name, a number
	re       *regexp.Regexp
	with     []sedPiece
	global   bool
	print    bool
	nth      int
	table    *strings.Replacer // of y
	jump     int               // of b, t and T, and of { where its block ends
	active   bool              // within its range
	until    int               // the line where a range with a number ends
}

// A sedPiece of a replacement is text or, if group is not -1, a group; fold is
// one of U L E u l, or 0.
type sedPiece struct {
	text  string
	group int
	fold  byte
}

type sedParser struct {
	src      string
	i        int
	extended bool
}

const digits = "0123456789"

func (p *sedParser) peek() byte {
	if p.i < len(p.src) {
		return p.src[p.i]
	}
	return 0
}

// take takes what is made of a set of characters.
func (p *sedParser) take(set string) string {
	rest := p.src[p.i:]
	taken := rest[:len(rest)-len(strings.TrimLeft(rest, set))]
	p.i += len(taken)
	return taken
}

func (p *sedParser) blanks() { p.take(" \t") }

// accept takes a character if it is the next.
func (p *sedParser) accept(ch byte) bool {
	if p.peek() != ch {
		return false
	}
	p.i++
	return true
}

// commands parses a script. Blocks are flat: { holds where to go if it is not
// selected, as a branch holds where its label is.
func (p *sedParser) commands() ([]*sedCommand, error) {
	var out, open []*sedCommand
	labels := map[string]int{}
	for {
		switch p.take(" \t\n;"); p.peek() {
		case 0:
			if len(open) > 0 {
				return nil, errors.New("unmatched {")
			}
			labels[""] = len(out)
			return out, jumps(out, labels)
		case '#':
			p.before("\n")
			continue
		case '}':
			if len(open) == 0 {
				return nil, errors.New("unexpected }")
			}
			p.i++
			open[len(open)-1].jump = len(out)
			open = open[:len(open)-1]
			continue
		}
		cmd, err := p.command()
		if err != nil {
			return nil, err
		}
		switch cmd.verb {
		case ':':
			labels[cmd.text] = len(out)
		case '{':
			open = append(open, cmd)
		}
		out = append(out, cmd)
	}
}

// jumps resolves the labels of branches; "" is the end.
func jumps(cmds []*sedCommand, labels map[string]int) error {
	for _, cmd := range cmds {
		if strings.IndexByte("btT", cmd.verb) < 0 {
			continue
		}
		at, ok := labels[cmd.text]
		if !ok {
			return fmt.Errorf("can't find label for jump to '%s'", cmd.text)
		}
		cmd.jump = at
	}
	return nil
}

// before takes what stands before any of some characters.
func (p *sedParser) before(set string) string {
	rest := p.src[p.i:]
	if end := strings.IndexAny(rest, set); end >= 0 {
		rest = rest[:end]
	}
	p.i += len(rest)
	return rest
}

func (p *sedParser) command() (*sedCommand, error) {
	cmd := &sedCommand{}
	var err error
	if cmd.from, err = p.address(); err != nil {
		return nil, err
	}
	p.blanks()
	if cmd.from != nil && p.accept(',') {
		p.blanks()
		plus := p.accept('+')
		if cmd.to, err = p.address(); err != nil {
			return nil, err
		}
		if cmd.to == nil {
			return nil, errors.New("missing second address")
		}
		cmd.to.plus = plus
	}
	p.blanks()
	for p.accept('!') {
		cmd.negate = true
		p.blanks()
	}
	cmd.verb = p.peek()
	p.i++
	switch cmd.verb {
	case '{':
		return cmd, nil
	case '=', 'd', 'D', 'p', 'P', 'n', 'N', 'g', 'G', 'h', 'H', 'x', 'z':
		return cmd, p.end()
	case 'q', 'Q':
		p.blanks()
		cmd.text = p.take(digits)
		return cmd, p.end()
	case ':', 'b', 't', 'T':
		p.blanks()
		cmd.text = strings.TrimSpace(p.before(";\n}"))
		return cmd, nil
	case 'a', 'i', 'c':
		cmd.text = p.text()
		return cmd, nil
	case 'r':
		p.blanks()
		cmd.text = strings.TrimSpace(p.before("\n"))
		return cmd, nil
	case 's':
		return cmd, p.substitute(cmd)
	case 'y':
		return cmd, p.transliterate(cmd)
	case 0:
		return nil, errors.New("missing command")
	}
	return nil, fmt.Errorf("unknown command: '%c'", cmd.verb)
}

// end checks that nothing but a separator follows.
func (p *sedParser) end() error {
	p.blanks()
	switch p.peek() {
	case 0, '\n', ';', '}', '#':
		return nil
	}
	return errors.New("extra characters after command")
}

// text reads what a, i and c take: lines, of which a backslash continues one.
func (p *sedParser) text() string {
	p.blanks()
	if p.accept('\\') {
		start := p.i
		if p.blanks(); !p.accept('\n') {
			p.i = start
		}
	}
	var b strings.Builder
	for p.i < len(p.src) && p.src[p.i] != '\n' {
		ch := p.src[p.i]
		if ch == '\\' && p.i+1 < len(p.src) {
			p.i++
			if ch = p.src[p.i]; ch == 't' {
				ch = '\t'
			}
		}
		b.WriteByte(ch)
		p.i++
	}
	return b.String()
}

func (p *sedParser) address() (*sedAddress, error) {
	switch ch := p.peek(); {
	case ch >= '0' && ch <= '9':
		n, err := strconv.Atoi(p.take(digits))
		a := &sedAddress{line: n}
		if err == nil && p.accept('~') {
			if a.step, err = strconv.Atoi(p.take(digits)); a.step == 0 {
				a.step = 1 << 30
			}
		}
		return a, err
	case ch == '$':
		p.i++
		return &sedAddress{last: true}, nil
	case ch == '/' || ch == '\\':
		p.accept('\\')
		delim := p.peek()
		p.i++
		pattern, err := p.until(delim, true)
		a := &sedAddress{pattern: true}
		if fold := p.accept('I'); err == nil && pattern != "" {
			a.re, err = compile(pattern, p.syntax(), fold)
		}
		return a, err
	}
	return nil, nil
}

func (p *sedParser) syntax() regexSyntax {
	if p.extended {
		return extended
	}
	return basic
}

// sedSet is a set in brackets, or else a bracket.
var sedSet = regexp.MustCompile(`^\[\^?\]?(?:\[:[a-z]*:\]|[^\]\n])*\]|^\[`)

// until reads up to an unescaped delimiter. An escaped one loses its backslash;
// in a pattern, one within brackets does not count.
func (p *sedParser) until(delim byte, pattern bool) (string, error) {
	if delim == 0 || delim == '\n' || delim == '\\' {
		return "", errors.New("bad delimiter")
	}
	var b strings.Builder
	for p.i < len(p.src) {
		ch := p.src[p.i]
		p.i++
		switch {
		case ch == delim:
			return b.String(), nil
		case ch == '\\' && p.i < len(p.src):
			next := p.src[p.i]
			p.i++
			if next != delim || pattern && strings.IndexByte("|+?(){}^$.*[", delim) >= 0 {
				b.WriteByte('\\')
			}
			b.WriteByte(next)
		case ch == '[' && pattern:
			set := sedSet.FindString(p.src[p.i-1:])
			b.WriteString(set)
			p.i += len(set) - 1
		default:
			b.WriteByte(ch)
		}
	}
	return "", errors.New("unterminated command")
}

// twoParts reads what s and y take; the first may be a pattern.
func (p *sedParser) twoParts(pattern bool) (first, second string, err error) {
	delim := p.peek()
	p.i++
	if first, err = p.until(delim, pattern); err == nil {
		second, err = p.until(delim, false)
	}
	return first, second, err
}

func (p *sedParser) substitute(cmd *sedCommand) error {
	pattern, with, err := p.twoParts(true)
	if err != nil {
		return err
	}
	fold := false
	for done := false; !done; p.i++ {
		switch ch := p.peek(); {
		case ch == 'g':
			cmd.global = true
		case ch == 'p':
			cmd.print = true
		case ch == 'I' || ch == 'i':
			fold = true
		case strings.IndexByte("mMew", ch) >= 0 && ch != 0:
			return fmt.Errorf("unsupported flag %c of s", ch)
		case ch >= '0' && ch <= '9':
			cmd.nth = cmd.nth*10 + int(ch-'0')
			if cmd.nth == 0 || cmd.nth > 1<<20 {
				return errors.New("number option to s may not be zero")
			}
		default:
			done = true
			p.i--
		}
	}
	groups := 9
	if pattern != "" {
		if cmd.re, err = compile(pattern, p.syntax(), fold); err != nil {
			return err
		}
		groups = cmd.re.NumSubexp()
	}
	if cmd.with, err = sedPieces(with, groups); err != nil {
		return err
	}
	return p.end()
}

// sedPieces cuts up a replacement.
func sedPieces(s string, groups int) ([]sedPiece, error) {
	var out []sedPiece
	text := func(t string) {
		if n := len(out); n > 0 && out[n-1].group < 0 && out[n-1].fold == 0 {
			out[n-1].text += t
		} else {
			out = append(out, sedPiece{text: t, group: -1})
		}
	}
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '&':
			out = append(out, sedPiece{group: 0})
		case s[i] != '\\' || i+1 == len(s):
			text(s[i : i+1])
		default:
			i++
			switch ch := s[i]; {
			case ch >= '0' && ch <= '9':
				if int(ch-'0') > groups {
					return nil, fmt.Errorf("invalid reference \\%c on s command's right side", ch)
				}
				out = append(out, sedPiece{group: int(ch - '0')})
			case strings.IndexByte("ULEul", ch) >= 0:
				out = append(out, sedPiece{group: -1, fold: ch})
			case strings.IndexByte("ntr", ch) >= 0:
				plain, _ := unescape(s[i-1:i+1], false)
				text(plain)
			default:
				text(s[i : i+1])
			}
		}
	}
	return out, nil
}

func (p *sedParser) transliterate(cmd *sedCommand) error {
	from, to, err := p.twoParts(false)
	if err != nil {
		return err
	}
	plain := func(s string) []rune {
		s = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\\`, `\`).Replace(s)
		return []rune(s)
	}
	a, b := plain(from), plain(to)
	if len(a) != len(b) {
		return errors.New("strings for y command are of different lengths")
	}
	var pairs []string
	for i, r := range a {
		pairs = append(pairs, string(r), string(b[i]))
	}
	cmd.table = strings.NewReplacer(pairs...)
	return p.end()
}
