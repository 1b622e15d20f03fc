package commands

import (
	"errors"
	"path"
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
		t.out.WriteByte(c)
		return nil
	case special && (c == '{' && !t.start || c == '}'):
		t.out.WriteByte(c) // RE2 takes one that repeats nothing for itself
		return nil
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
	t.start = false
}

func (t *translator) literal(c byte) { t.put(regexp.QuoteMeta(string([]byte{c}))) }

// escapes are those of GNU that RE2 writes otherwise, or alike.
var escapes = map[byte]string{
	'<': `\b`, '>': `\b`, '`': `\A`, '\'': `\z`, 'w': `\w`, 'W': `\W`, 's': `\s`, 'S': `\S`, 'b': `\b`, 'B': `\B`, 'n': `\n`, 't': `\t`,
}

func (t *translator) escape(c byte) error {
	if c >= '1' && c <= '9' {
		return errors.New("backreferences in a pattern are not supported")
	}
	if expr, ok := escapes[c]; ok {
		t.put(expr)
	} else {
		t.literal(c)
	}
	return nil
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
		case c == '[' && strings.HasPrefix(p[i:], ":"):
			end := strings.Index(p[i:], ":]")
			if end < 0 {
				return errors.New("unmatched [ in pattern")
			}
			out += p[i-1 : i+end+2]
			i += end + 2
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

// wildcard matches a name with a pattern, whose * crosses slashes.
func wildcard(pattern, name string, ignoreCase bool) (bool, error) {
	if ignoreCase {
		pattern, name = strings.ToLower(pattern), strings.ToLower(name)
	}
	flat := strings.NewReplacer("/", "\x00", "[!", "[^")
	return path.Match(flat.Replace(pattern), strings.ReplaceAll(name, "/", "\x00"))
}
