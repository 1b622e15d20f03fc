package commands

import (
	"bufio"
	"errors"
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

func cut(c *Call, f *flags) int {
	key, sep := "f", f.str("d", "\t")
	for _, k := range []string{"c", "b"} {
		if f.has(k) {
			key, sep = k, ""
		}
	}
	list, err := spans(f.str(key, ""))
	if err != nil {
		return c.usage("%v", err)
	}
	within := func(n int) bool {
		in := slices.ContainsFunc(list, func(s span) bool { return s.from <= n && n <= s.to })
		return in != f.has("complement")
	}
	return c.eachLine(f.args, func(line []byte, _ bool) error {
		text := string(line)
		var parts, kept []string
		switch {
		case key == "b":
			for i := range line {
				parts = append(parts, text[i:i+1])
			}
		case sep == "" || strings.Contains(text, sep):
			parts = strings.Split(text, sep)
		case f.has("s"):
			return nil
		default:
			c.printf("%s\n", text)
			return nil
		}
		for i, p := range parts {
			if within(i + 1) {
				kept = append(kept, p)
			}
		}
		c.printf("%s\n", strings.Join(kept, f.str("output-delimiter", sep)))
		return c.ctx.Err()
	})
}

func paste(c *Call, f *flags) int {
	delims, _ := unescape(f.str("d", "\t"), false)
	seps := strings.Split(strings.ReplaceAll(delims, `\0`, ""), "")
	var rows [][]string
	var dashes []int // the rows that share the standard input
	code := c.each(f.args, func(name string, r io.Reader) error {
		if name == "-" {
			dashes = append(dashes, len(rows))
		}
		data, err := slurp(r)
		rows = append(rows, splitLines(data))
		return err
	})
	if len(dashes) > 1 {
		all := rows[dashes[0]]
		rows[dashes[0]] = nil
		for n, line := range all {
			at := dashes[n%len(dashes)]
			rows[at] = append(rows[at], line)
		}
	}
	if !f.has("s") {
		rows = transpose(rows)
	}
	for _, row := range rows {
		for i, cell := range row {
			if i > 0 && len(seps) > 0 {
				c.printf("%s", seps[(i-1)%len(seps)])
			}
			c.printf("%s", cell)
		}
		c.printf("\n")
	}
	return code
}

// transpose turns columns into rows, with "" where a column is short.
func transpose(columns [][]string) [][]string {
	var rows [][]string
	for at, column := range columns {
		for i, cell := range column {
			if i == len(rows) {
				rows = append(rows, make([]string, len(columns)))
			}
			rows[i][at] = cell
		}
	}
	return rows
}

func tr(c *Call, f *flags) int {
	if len(f.args) == 0 || len(f.args) == 1 && !f.has("d", "s") {
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
		index[r] = i
	}
	member := func(r rune) (int, bool) {
		i, in := index[r]
		if f.has("c") {
			return len(from), !in // complemented characters all become the last
		}
		return i, in
	}
	squeezed := func(r rune) bool {
		if len(f.args) > 1 {
			return slices.Contains(to, r)
		}
		_, in := member(r)
		return in
	}
	prev := rune(-1)
	return c.each(nil, func(_ string, r io.Reader) error {
		return runes(r, func(ch rune) error {
			i, in := member(ch)
			if in && f.has("d") {
				return nil
			}
			if in && len(to) > 0 {
				ch = to[min(i, len(to)-1)]
			}
			if f.has("s") && ch == prev && squeezed(ch) {
				return nil
			}
			prev = ch
			if ch >= 0xf700 && ch <= 0xf7ff { // a byte that is not UTF-8
				return c.out.WriteByte(byte(ch))
			}
			_, err := c.out.WriteRune(ch)
			return err
		})
	})
}

// runes calls fn for each character; bytes that are none come as U+F700 + byte.
func runes(r io.Reader, fn func(rune) error) error {
	br := bufio.NewReader(r)
	for {
		ch, size, err := br.ReadRune()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if ch == utf8.RuneError && size == 1 {
			_ = br.UnreadRune()
			b, _ := br.ReadByte() // is there again
			ch = 0xf700 + rune(b)
		}
		if err == nil {
			err = fn(ch)
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
		end := max(2, len(escapedNumber.FindString(s)))
		if plain, _ := unescape(s[:end], false); plain != s[:end] {
			return rune(plain[0]), s[end:]
		}
		return rune(s[1]), s[2:]
	}
	r, size := utf8.DecodeRuneInString(s)
	return r, s[size:]
}
