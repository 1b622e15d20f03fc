package commands

import (
	"errors"
	"regexp"
	"strings"
)

// A syntax is a kind of regular expression.
type regexSyntax int

const (
	basic    regexSyntax = iota // POSIX BRE with GNU's \+ \? \|
	extended                    // POSIX ERE
	perl                        // RE2 itself
	fixed                       // plain text
)

var errBackref = errors.New("backreferences in a pattern are not supported")

// compile compiles a pattern; matches are the leftmost-longest, but for perl.
func compile(pattern string, as regexSyntax, ignoreCase bool) (*regexp.Regexp, error) {
	var err error
	switch as {
	case fixed:
		pattern = regexp.QuoteMeta(pattern)
	case basic, extended:
		pattern, err = translate(pattern, as == extended)
	case perl:
	}
	if err != nil {
		return nil, err
	}
	flags := "(?s)"
	if ignoreCase {
		flags = "(?si)"
	}
	re, err := regexp.Compile(flags + pattern)
	if err != nil {
		return nil, errors.New("bad pattern: " + strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	if as != perl {
		re.Longest()
	}
	return re, nil
}

// translate rewrites a POSIX pattern for RE2.
func translate(p string, ere bool) (string, error) {
	t := translator{p: p, ere: ere, start: true}
	for t.i < len(p) {
		if err := t.next(); err != nil {
			return "", err
		}
	}
	return t.out.String(), nil
}

type translator struct {
	p     string
	i     int
	ere   bool
	out   strings.Builder
	start bool // nothing to repeat or anchor before here
	quant byte // the repetition just written, or 0
}

func (t *translator) next() error {
	c := t.p[t.i]
	special := t.ere
	if c == '\\' {
		if t.i++; t.i == len(t.p) {
			return errors.New("trailing backslash in pattern")
		}
		c = t.p[t.i]
		if strings.IndexByte("(){}|+?", c) < 0 {
			t.i++
			return t.escape(c)
		}
		special = !t.ere
	}
	t.i++
	switch {
	case c == '[':
		return t.bracket()
	case c == '*' && !t.start, special && !t.start && (c == '+' || c == '?'):
		t.repeat(c)
		return nil
	case special && c == '{' && !t.start:
		if end := strings.IndexByte(t.p[t.i:], '}'); end >= 0 && interval(strings.TrimSuffix(t.p[t.i:t.i+end], `\`)) {
			t.out.WriteString("{" + zeroFirst(strings.TrimSuffix(t.p[t.i:t.i+end], `\`)) + "}")
			t.i += end + 1
			t.quant = '{'
			return nil
		}
		if !t.ere {
			return errors.New(`bad \{ in pattern`)
		}
	case special && (c == '(' || c == '|'):
		t.put(string(c))
		t.start = true
		return nil
	case special && c == ')':
		t.put(")")
		return nil
	case c == '^' && (t.ere || t.start):
		t.put("^")
		t.start = true
		return nil
	case c == '$' && (t.ere || t.i == len(t.p) || strings.HasPrefix(t.p[t.i:], `\)`) || strings.HasPrefix(t.p[t.i:], `\|`)):
		t.put("$")
		return nil
	case c == '.':
		t.put(".")
		return nil
	}
	t.literal(c)
	return nil
}

func (t *translator) put(s string) {
	t.out.WriteString(s)
	t.start, t.quant = false, 0
}

func (t *translator) literal(c byte) {
	if c < 0x80 {
		t.put(regexp.QuoteMeta(string(rune(c))))
	} else {
		t.out.WriteByte(c)
		t.start, t.quant = false, 0
	}
}

// repeat writes *, + or ?; of two in a row, unless equal, both mean *.
func (t *translator) repeat(c byte) {
	if t.quant != 0 && t.quant != '{' {
		if t.quant != c {
			s := t.out.String()
			t.out.Reset()
			t.out.WriteString(s[:len(s)-1] + "*")
			t.quant = '*'
		}
		return
	}
	t.out.WriteByte(c)
	t.quant = c
}

func (t *translator) escape(c byte) error {
	switch {
	case c >= '1' && c <= '9':
		return errBackref
	case c == '<' || c == '>':
		t.put(`\b`)
	case c == '`':
		t.put(`\A`)
	case c == '\'':
		t.put(`\z`)
	case strings.IndexByte("wWsSbB", c) >= 0:
		t.put(`\` + string(c))
	case c == 'n':
		t.put(`\n`)
	case c == 't':
		t.put(`\t`)
	default:
		t.literal(c)
	}
	return nil
}

// interval reports whether s is n, n, or n,m.
func interval(s string) bool {
	return s != "" && s != "," && strings.Trim(s, "0123456789,") == "" && strings.Count(s, ",") <= 1
}

func zeroFirst(s string) string {
	if strings.HasPrefix(s, ",") {
		return "0" + s
	}
	return s
}

// bracket copies [...], where a backslash is itself but for \n and \t.
func (t *translator) bracket() error {
	out, i, p := "[", t.i, t.p
	if i < len(p) && p[i] == '^' {
		out, i = "[^", i+1
	}
	for first := true; ; first = false {
		if i >= len(p) {
			return errors.New("unmatched [ in pattern")
		}
		c := p[i]
		i++
		switch {
		case c == ']' && !first:
			t.i = i
			t.put(out + "]")
			return nil
		case c == '[' && i < len(p) && strings.IndexByte(":.=", p[i]) >= 0:
			kind := p[i]
			end := strings.Index(p[i+1:], string(kind)+"]")
			if end < 0 {
				return errors.New("unmatched [ in pattern")
			}
			name := p[i+1 : i+1+end]
			i += end + 3
			if kind == ':' {
				out += "[:" + name + ":]"
			} else {
				out += regexp.QuoteMeta(name)
			}
		case c == '\\' && i < len(p) && (p[i] == 'n' || p[i] == 't'):
			out += `\` + p[i:i+1]
			i++
		case c == '\\' || c == '[' || c == ']' || c == '^' && !first:
			out += `\` + string(rune(c))
		default:
			out += p[i-1 : i]
		}
	}
}

// wildcard compiles a file name pattern, whose * crosses slashes.
func wildcard(pattern string, ignoreCase bool) (*regexp.Regexp, error) {
	expr := "^"
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '*':
			expr += ".*"
		case c == '?':
			expr += "."
		case c == '[' && strings.IndexByte(pattern[i+1:], ']') > 0:
			end := i + 2 + strings.IndexByte(pattern[i+2:], ']')
			set := strings.ReplaceAll(pattern[i+1:end], `\`, `\\`)
			if set[0] == '!' {
				set = "^" + set[1:]
			}
			expr += "[" + set + "]"
			i = end
		case c == '\\' && i+1 < len(pattern):
			i++
			expr += regexp.QuoteMeta(pattern[i : i+1])
		case c < 0x80:
			expr += regexp.QuoteMeta(pattern[i : i+1])
		default:
			expr += pattern[i : i+1]
		}
	}
	return compile(expr+"$", perl, ignoreCase)
}
