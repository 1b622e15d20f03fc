package commands

import (
	"bytes"
	"io"
	"regexp"
	"slices"
	"strings"
)

// A grepRun is one run of grep.
type grepRun struct {
	c             *Call
	f             *flags
	re            *regexp.Regexp
	names         bool // print file names
	before, after int
	most          int // matching lines per file, -1 for all
	found, failed bool
}

func grep(c *Call, f *flags) int {
	both := f.num("C", 0)
	g := &grepRun{c: c, f: f, before: f.num("B", both), after: f.num("A", both), most: f.num("m", -1)}
	if code := g.prepare(); code != 0 {
		return code
	}
	recursive := f.has("r", "R")
	files := f.args
	bare := len(files) == 0 && recursive
	if bare {
		files = []string{"."}
	}
	if len(files) == 0 {
		files = []string{"-"}
	}
	g.names = f.has("H") || !f.has("h") && (len(files) > 1 || recursive)
	for _, file := range files {
		g.operand(file, recursive, bare)
		if c.ctx.Err() != nil || g.found && f.has("q") {
			break
		}
	}
	switch {
	case g.found && f.has("q"):
		return 0
	case g.failed:
		return 2
	case g.found:
		return 0
	}
	return 1
}

// prepare reads the patterns and numbers.
func (g *grepRun) prepare() int {
	c, f := g.c, g.f
	as := basic
	switch {
	case f.has("F") || c.name() == "fgrep":
		as = fixed
	case f.has("P"):
		as = perl
	case f.has("E") || c.name() == "egrep":
		as = extended
	}
	patterns := f.vals["e"]
	for _, file := range f.vals["f"] {
		data, err := c.load(file)
		if err != nil {
			return c.usage("%s: %s", file, Why(err))
		}
		patterns = append(patterns, splitLines(data)...)
	}
	if !f.has("e", "f") {
		if len(f.args) == 0 {
			return c.usage("no pattern")
		}
		patterns, f.args = f.args[:1], f.args[1:]
	}
	var alternatives []string
	for _, p := range patterns {
		for p := range strings.SplitSeq(p, "\n") {
			re, err := compile(p, as, false)
			if err != nil {
				return c.usage("%v", err)
			}
			alternatives = append(alternatives, "(?:"+re.String()+")")
		}
	}
	expr := strings.Join(alternatives, "|")
	if len(alternatives) == 0 {
		expr = `[^\x00-\x{10FFFF}]` // no pattern matches nothing
	}
	if f.has("x") {
		expr = "^(?:" + expr + ")$"
	}
	var err error
	if g.re, err = compile(expr, perl, f.has("i")); err != nil {
		return c.usage("%v", err)
	}
	if as != perl {
		g.re.Longest()
	}
	return 0
}

func (g *grepRun) operand(file string, recursive, bare bool) {
	info, err := g.c.FS.Stat(g.c.abs(file))
	if err == nil && info.IsDir() && file != "-" {
		if !recursive {
			g.fail(file, "Is a directory")
			return
		}
		g.dir(file, bare)
		return
	}
	r, err := g.c.open(file)
	if err != nil {
		g.fail(file, Why(err))
		return
	}
	if file == "-" {
		file = "(standard input)"
	}
	if err := g.search(file, r); err != nil {
		g.fail(file, Why(err))
	}
}

func (g *grepRun) fail(file, reason string) {
	g.failed = true
	if !g.f.has("s") {
		g.c.errorf("%s: %s", file, reason)
	}
}

func (g *grepRun) dir(dir string, bare bool) {
	infos, err := g.c.FS.ReadDir(g.c.abs(dir))
	if err != nil {
		g.fail(dir, Why(err))
		return
	}
	for _, info := range infos {
		name := info.Name()
		if !bare {
			name = strings.TrimSuffix(dir, "/") + "/" + name
		}
		switch {
		case g.c.ctx.Err() != nil || g.found && g.f.has("q"):
			return
		case info.IsDir():
			if !matchAny(g.f.vals["exclude-dir"], info.Name()) {
				g.dir(name, false)
			}
		case !info.Mode().IsRegular():
		case g.f.has("include") && !matchAny(g.f.vals["include"], info.Name()), matchAny(g.f.vals["exclude"], info.Name()):
		default:
			g.operand(name, true, false)
		}
	}
}

func matchAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, _ := wildcard(p, name, false)
		return ok
	})
}

// search looks through one file.
func (g *grepRun) search(file string, r io.Reader) error {
	f, c := g.f, g.c
	count, binary := 0, false
	prefix := func(sep string, number int) {
		if g.names {
			c.printf("%s%s", file, sep)
		}
		if f.has("n") {
			c.printf("%d%s", number, sep)
		}
	}
	var held [][]byte // lines that may become context before a match
	number, last, left := 0, 0, 0
	err := lines(r, func(line []byte, _ bool) error {
		number++
		if !binary && !f.has("a") && bytes.IndexByte(line, 0) >= 0 {
			binary = true
		}
		spans := g.match(line)
		if (len(spans) > 0) == f.has("v") || g.most >= 0 && count >= g.most {
			switch {
			case f.has("c", "l", "L", "o", "q"):
			case left > 0:
				left--
				last = number
				prefix("-", number)
				c.printf("%s\n", line)
			case g.most >= 0 && count >= g.most:
				return errStop
			case g.before > 0:
				if held = append(held, bytes.Clone(line)); len(held) > g.before {
					held = held[1:]
				}
			}
			return nil
		}
		count++
		g.found = g.found || !f.has("L")
		switch {
		case f.has("q", "l", "L"):
			return errStop
		case f.has("c"):
			return nil
		case binary:
			c.printf("grep: %s: binary file matches\n", file)
			return errStop
		}
		if (g.before > 0 || g.after > 0) && last > 0 && number-len(held) > last+1 && !f.has("o") {
			c.printf("--\n")
		}
		for i, h := range held {
			prefix("-", number-len(held)+i)
			c.printf("%s\n", h)
		}
		held, last, left = nil, number, g.after
		if !f.has("o") {
			prefix(":", number)
			c.printf("%s\n", line)
			return nil
		}
		for _, s := range spans {
			if s[0] < s[1] {
				prefix(":", number)
				c.printf("%s\n", line[s[0]:s[1]])
			}
		}
		return nil
	})
	if err == nil {
		g.total(file, count)
	}
	return err
}

// total prints what is said once per file.
func (g *grepRun) total(file string, count int) {
	f, c := g.f, g.c
	switch {
	case f.has("q"):
	case f.has("l") && count > 0, f.has("L") && count == 0:
		g.found = true
		c.printf("%s%s", file, map[bool]string{true: "\x00", false: "\n"}[f.has("Z")])
	case f.has("l", "L"):
	case f.has("c"):
		if g.names {
			c.printf("%s:", file)
		}
		c.printf("%d\n", count)
	}
}

// match returns the spans that match in a line.
func (g *grepRun) match(line []byte) [][]int {
	if !g.f.has("w") && (!g.f.has("o") || g.f.has("v")) {
		if span := g.re.FindIndex(line); span != nil {
			return [][]int{span}
		}
		return nil
	}
	spans := g.re.FindAllIndex(line, -1)
	if g.f.has("w") {
		spans = slices.DeleteFunc(spans, func(s []int) bool {
			return s[0] > 0 && wordByte(line[s[0]-1]) || s[1] < len(line) && wordByte(line[s[1]])
		})
	}
	return spans
}

func wordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || lower(c) >= 'a' && lower(c) <= 'z' || c >= 0x80
}
