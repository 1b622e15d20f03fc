package commands

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A span is a range of positions from 1.
type span struct{ from, to int }

// spans parses "1,3-5,7-".
func spans(list string) ([]span, error) {
	var out []span
	for item := range strings.SplitSeq(list, ",") {
		a, b, isRange := strings.Cut(item, "-")
		s := span{1, 1 << 30}
		var err error
		if a != "" {
			s.from, err = strconv.Atoi(a)
		}
		if err == nil && !isRange {
			s.to = s.from
		} else if err == nil && b != "" {
			s.to, err = strconv.Atoi(b)
		}
		if err != nil || s.from < 1 || s.to < s.from || item == "" || item == "-" {
			return nil, fmt.Errorf("invalid list '%s'", list)
		}
		out = append(out, s)
	}
	return out, nil
}

func cut(c *Call) int {
	f, ok := c.flags("d|delimiter: f|fields: c|characters: b|bytes: s|only-delimited complement output-delimiter: n")
	if !ok {
		return 2
	}
	key := "f"
	for _, k := range []string{"c", "b"} {
		if f.has(k) {
			key = k
		}
	}
	list, err := spans(f.str(key, ""))
	if err != nil {
		return c.usage("%v", err)
	}
	delim := f.str("d", "\t")
	if delim == "" {
		delim = "\x00"
	}
	within := func(n int) bool {
		in := slices.ContainsFunc(list, func(s span) bool { return s.from <= n && n <= s.to })
		return in != f.has("complement")
	}
	return c.each(f.args, func(_ string, r io.Reader) error {
		return lines(r, '\n', func(line []byte, _ bool) error {
			text := string(line)
			var parts []string
			sep := ""
			switch key {
			case "f":
				if !strings.Contains(text, delim) {
					if !f.has("s") {
						c.printf("%s\n", text)
					}
					return nil
				}
				parts, sep = strings.Split(text, delim), delim
			case "c":
				parts = strings.Split(text, "")
			case "b":
				for i := range line {
					parts = append(parts, text[i:i+1])
				}
			}
			var kept []string
			for i, p := range parts {
				if within(i + 1) {
					kept = append(kept, p)
				}
			}
			c.printf("%s\n", strings.Join(kept, f.str("output-delimiter", sep)))
			return c.ctx.Err()
		})
	})
}

func paste(c *Call) int {
	f, ok := c.flags("d|delimiters: s|serial")
	if !ok {
		return 2
	}
	delims, _ := unescape(f.str("d", "\t"), false)
	delims = strings.ReplaceAll(delims, `\0`, "")
	if len(f.args) == 0 {
		f.args = []string{"-"}
	}
	sep := func(i int) string {
		if delims == "" {
			return ""
		}
		runes := []rune(delims)
		return string(runes[i%len(runes)])
	}
	var columns [][]string
	stdin := -1
	code := c.each(f.args, func(name string, r io.Reader) error {
		if name == "-" && stdin >= 0 {
			columns = append(columns, nil)
			return nil
		}
		data, err := slurp(r)
		if name == "-" {
			stdin = len(columns)
		}
		columns = append(columns, splitLines(data))
		return err
	})
	if code != 0 {
		return code
	}
	if stdin >= 0 { // several "-" take its lines in turns
		all := columns[stdin]
		var at []int
		for i, name := range f.args {
			if name == "-" {
				at, columns[i] = append(at, i), nil
			}
		}
		for n, line := range all {
			i := at[n%len(at)]
			columns[i] = append(columns[i], line)
		}
	}
	if f.has("s") {
		for _, col := range columns {
			for i, line := range col {
				if i > 0 {
					c.printf("%s", sep(i-1))
				}
				c.printf("%s", line)
			}
			c.printf("\n")
		}
		return code
	}
	rows := 0
	for _, col := range columns {
		rows = max(rows, len(col))
	}
	for row := range rows {
		for i, col := range columns {
			if i > 0 {
				c.printf("%s", sep(i-1))
			}
			if row < len(col) {
				c.printf("%s", col[row])
			}
		}
		c.printf("\n")
	}
	return code
}

func column(c *Call) int {
	f, ok := c.flags("t|table s|separator: o|output-separator:")
	if !ok {
		return 2
	}
	data, code := c.slurpAll(f.args)
	var rows [][]string
	var widths []int
	for _, line := range splitLines(data) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		cells := strings.Fields(line)
		if f.has("s") {
			cells = strings.Split(line, f.str("s", ""))
		}
		if !f.has("t") {
			cells = []string{line}
		}
		for i, cell := range cells {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
		rows = append(rows, cells)
	}
	for _, cells := range rows {
		for i, cell := range cells {
			if i == len(cells)-1 {
				c.printf("%s\n", cell)
			} else {
				c.printf("%-*s%s", widths[i], cell, f.str("o", "  "))
			}
		}
	}
	return code
}

func comm(c *Call) int {
	f, ok := c.flags("1 2 3 check-order nocheck-order")
	if !ok || len(f.args) != 2 {
		return c.usage("two files are needed")
	}
	var sides [][]string
	if code := c.each(f.args, func(_ string, r io.Reader) error {
		data, err := slurp(r)
		sides = append(sides, splitLines(data))
		return err
	}); code != 0 {
		return code
	}
	say := func(column int, line string) {
		if f.has(strconv.Itoa(column)) {
			return
		}
		for i := 1; i < column; i++ {
			if !f.has(strconv.Itoa(i)) {
				c.printf("\t")
			}
		}
		c.printf("%s\n", line)
	}
	a, b := sides[0], sides[1]
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0] < b[0]:
			say(1, a[0])
			a = a[1:]
		case len(a) == 0 || b[0] < a[0]:
			say(2, b[0])
			b = b[1:]
		default:
			say(3, a[0])
			a, b = a[1:], b[1:]
		}
	}
	return 0
}

func tr(c *Call) int {
	f, ok := c.flags("+d|delete s|squeeze-repeats c|C|complement t|truncate-set1")
	if !ok {
		return 2
	}
	if len(f.args) == 0 || len(f.args) == 1 && !f.has("d") && !f.has("s") {
		return c.usage("missing operand")
	}
	from, err := trSet(f.args[0])
	if err != nil {
		return c.usage("%v", err)
	}
	var to []rune
	if len(f.args) > 1 {
		if to, err = trSet(f.args[1]); err != nil {
			return c.usage("%v", err)
		}
	}
	index := map[rune]int{}
	for i, r := range from {
		if _, ok := index[r]; !ok || !f.has("d") {
			index[r] = i
		}
	}
	member := func(r rune) (int, bool) {
		i, in := index[r]
		if f.has("c") {
			return len(from), !in // complemented characters all become the last
		}
		return i, in
	}
	squeeze := map[rune]bool{}
	last := to
	if len(f.args) == 1 || f.has("d") && len(to) == 0 {
		last = from
	}
	for _, r := range last {
		squeeze[r] = true
	}
	prev := rune(-1)
	put := func(r rune, inSet bool) {
		if f.has("s") && r == prev && inSet {
			return
		}
		prev = r
		if r >= 0xf700 && r <= 0xf7ff { // a byte that is not UTF-8
			_ = c.out.WriteByte(byte(r))
		} else {
			_, _ = c.out.WriteRune(r)
		}
	}
	return c.each(nil, func(_ string, r io.Reader) error {
		return runes(r, func(ch rune) error {
			i, in := member(ch)
			switch {
			case in && f.has("d"):
				return nil
			case in && len(to) > 0 && !f.has("d"):
				ch = to[min(i, len(to)-1)]
				put(ch, squeeze[ch])
			case len(f.args) == 1:
				put(ch, in)
			default:
				put(ch, squeeze[ch])
			}
			return nil
		})
	})
}

// runes calls fn for each character; bytes that are none come as U+F700 + byte.
func runes(r io.Reader, fn func(rune) error) error {
	buf := make([]byte, 0, 64<<10)
	for {
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		i := 0
		for i < len(buf) && (utf8.FullRune(buf[i:]) || err != nil) {
			ch, size := utf8.DecodeRune(buf[i:])
			if ch == utf8.RuneError && size == 1 {
				ch = 0xf700 + rune(buf[i])
			}
			if err := fn(ch); err != nil {
				return err
			}
			i += size
		}
		buf = buf[:copy(buf, buf[i:])]
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// trSet expands ranges, classes and escapes.
func trSet(s string) ([]rune, error) {
	classes := map[string]string{
		"digit": "0-9", "lower": "a-z", "upper": "A-Z", "alpha": "A-Za-z", "alnum": "0-9A-Za-z", "space": "\t-\r ",
		"blank": "\t ", "punct": "!-/:-@[-`{-~", "xdigit": "0-9A-Fa-f", "cntrl": "\x00-\x1f\x7f", "print": " -~", "graph": "!-~",
	}
	var out []rune
	for s != "" {
		if strings.HasPrefix(s, "[:") {
			if name, rest, closed := strings.Cut(s[2:], ":]"); closed {
				set, ok := classes[name]
				if !ok {
					return nil, fmt.Errorf("invalid character class '%s'", name)
				}
				more, _ := trSet(set) // classes are well formed
				out, s = append(out, more...), rest
				continue
			}
		}
		from, rest := trRune(s)
		s = rest
		to := from
		if len(s) > 1 && s[0] == '-' {
			to, s = trRune(s[1:])
		}
		if to < from || to-from > 0xffff {
			return nil, fmt.Errorf("range-endpoints of '%c-%c' are in reverse order", from, to)
		}
		for r := from; r <= to; r++ {
			out = append(out, r)
		}
	}
	return out, nil
}

func trRune(s string) (rune, string) {
	if s[0] == '\\' && len(s) > 1 {
		end := 2
		for s[1] >= '0' && s[1] <= '7' && end < min(4, len(s)) && s[end] >= '0' && s[end] <= '7' {
			end++
		}
		if plain, _ := unescape(s[:end], false); plain != s[:end] {
			return rune(plain[0]), s[end:]
		}
		return rune(s[1]), s[2:]
	}
	r, size := utf8.DecodeRuneInString(s)
	return r, s[size:]
}

func split(c *Call) int {
	c.Args = dashNumber(c.Args, "-l")
	f, ok := c.flags("l|lines: b|bytes: d|numeric-suffixes a|suffix-length: additional-suffix:")
	if !ok {
		return 2
	}
	n, ok1 := count(f.str("l", "1000"))
	if f.has("b") {
		n, ok1 = count(f.str("b", ""))
	}
	width, ok2 := f.num("a", 2)
	if !ok1 || !ok2 || n < 1 || width < 1 || width > 9 {
		return c.usage("not a number")
	}
	prefix := "x"
	if len(f.args) > 1 {
		prefix = f.args[1]
	}
	data, code := c.slurpAll(f.args[:min(1, len(f.args))])
	for part := 0; len(data) > 0 && code == 0; part++ {
		end := min(n, len(data))
		if !f.has("b") {
			end = 0
			for i := 0; i < n && end < len(data); i++ {
				at := bytes.IndexByte(data[end:], '\n')
				if at < 0 {
					end = len(data)
				} else {
					end += at + 1
				}
			}
		}
		suffix := fmt.Sprintf("%0*d", width, part)
		if !f.has("d") {
			letters := []byte(strings.Repeat("a", width))
			for i, v := width-1, part; i >= 0; i, v = i-1, v/26 {
				letters[i] += byte(v % 26)
			}
			suffix = string(letters)
		}
		name := prefix + suffix + f.str("additional-suffix", "")
		if err := c.FS.WriteFile(c.abs(name), data[:end], 0o644); err != nil {
			c.errorf("%s: %s", name, why(err))
			return 1
		}
		data = data[end:]
	}
	return code
}
