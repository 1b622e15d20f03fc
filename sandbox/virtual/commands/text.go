package commands

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

func cat(c *Call, f *flags) int {
	if len(f.vals) == 0 {
		return c.each(f.args, func(_ string, r io.Reader) error {
			_, err := io.Copy(c.out, r)
			return err
		})
	}
	ends, tabs, visible := f.has("E", "A"), f.has("T", "A"), f.has("v", "A")
	number, blank := 0, false
	return c.eachLine(f.args, func(line []byte, nl bool) error {
		if f.has("s") && len(line) == 0 && blank {
			return nil
		}
		blank = len(line) == 0
		if f.has("n") && !f.has("b") || f.has("b") && !blank {
			number++
			c.printf("%6d\t", number)
		}
		for _, b := range line {
			if b == '\t' && tabs || b != '\t' && visible {
				c.printf("%s", caret(b))
			} else {
				_ = c.out.WriteByte(b)
			}
		}
		if ends && nl {
			c.printf("$")
		}
		c.line(nil, nl)
		return c.ctx.Err()
	})
}

// caret shows a byte, as ^X or M-X if it does not print.
func caret(b byte) string {
	switch {
	case b >= 0x80:
		return "M-" + caret(b-0x80)
	case b < ' ' || b == 0x7f:
		return "^" + string(rune(b^0x40))
	}
	return string(rune(b))
}

func (c *Call) line(line []byte, nl bool) {
	_, _ = c.out.Write(line) // an error stays with the writer
	if nl {
		_ = c.out.WriteByte('\n')
	}
}

// A part is what head and tail show of each input.
type part struct {
	n     int
	sign  string // "+" or "-" before the number, or ""
	bytes bool
}

// part reads the options of head and tail; ok is false if they are bad.
func (c *Call) part(f *flags) (p part, ok bool) {
	spec := f.str("n", "10")
	if p.bytes = f.has("c"); p.bytes {
		spec = f.str("c", "")
	}
	number := strings.TrimLeft(spec, "+-")
	p.sign = spec[:len(spec)-len(number)]
	n, err := strconv.Atoi(number)
	if err != nil {
		c.errorf("invalid number '%s'", spec)
	}
	p.n = n
	return p, err == nil
}

// parts runs fn for each input, under a heading if there are several.
func (c *Call) parts(f *flags, fn func(io.Reader) error) int {
	first := true
	return c.each(f.args, func(name string, r io.Reader) error {
		if (len(f.args) > 1 || f.has("v")) && !f.has("q") {
			if !first {
				c.printf("\n")
			}
			if name == "-" {
				name = "standard input"
			}
			c.printf("==> %s <==\n", name)
		}
		first = false
		return fn(r)
	})
}

func head(c *Call, f *flags) int {
	p, ok := c.part(f)
	if !ok {
		return 2
	}
	return c.parts(f, func(r io.Reader) error {
		switch {
		case p.sign == "-":
			data, err := slurp(r)
			if err == nil {
				_, err = c.out.Write(data[:lastPart(data, p)])
			}
			return err
		case p.bytes:
			_, err := io.Copy(c.out, io.LimitReader(r, int64(p.n)))
			return err
		case p.n == 0:
			return nil
		}
		left := p.n
		return lines(r, func(line []byte, nl bool) error {
			c.line(line, nl)
			if left--; left == 0 {
				return errStop
			}
			return nil
		})
	})
}

// lastPart is where the last n lines, or bytes, of data begin.
func lastPart(data []byte, p part) int {
	if p.bytes {
		return max(0, len(data)-p.n)
	}
	if p.n == 0 {
		return len(data)
	}
	at := len(data)
	if bytes.HasSuffix(data, []byte("\n")) {
		at--
	}
	for range p.n {
		if at = bytes.LastIndexByte(data[:at], '\n'); at < 0 {
			return 0
		}
	}
	return at + 1
}

func tail(c *Call, f *flags) int {
	p, ok := c.part(f)
	if !ok {
		return 2
	}
	return c.parts(f, func(r io.Reader) error {
		if p.sign == "+" && !p.bytes {
			number := 0
			return lines(r, func(line []byte, nl bool) error {
				if number++; number >= p.n {
					c.line(line, nl)
				}
				return c.ctx.Err()
			})
		}
		data, err := slurp(r)
		if err != nil {
			return err
		}
		from := lastPart(data, p)
		if p.sign == "+" {
			from = min(len(data), max(0, p.n-1))
		}
		_, err = c.out.Write(data[from:])
		return err
	})
}

func tac(c *Call, f *flags) int {
	return c.each(f.args, func(_ string, r io.Reader) error {
		data, err := slurp(r)
		for _, line := range slices.Backward(splitLines(data)) {
			c.printf("%s\n", line)
		}
		return err
	})
}

func rev(c *Call, f *flags) int {
	return c.eachLine(f.args, func(line []byte, nl bool) error {
		runes := []rune(string(line))
		slices.Reverse(runes)
		c.line([]byte(string(runes)), nl)
		return nil
	})
}

func wc(c *Call, f *flags) int {
	columns := []string{"l", "w", "m", "c"}
	type counts [4]int // of the columns
	var rows []counts
	var names []string
	var total counts
	code := c.each(f.args, func(name string, r io.Reader) error {
		var n counts
		err := lines(r, func(line []byte, nl bool) error {
			n[1] += len(bytes.Fields(line))
			n[2] += utf8.RuneCount(line)
			n[3] += len(line)
			if nl {
				n[0]++
				n[2]++
				n[3]++
			}
			return nil
		})
		for i := range n {
			total[i] += n[i]
		}
		rows, names = append(rows, n), append(names, name)
		return err
	})
	if len(f.args) == 0 {
		names = []string{""}
	}
	if len(rows) > 1 {
		rows, names = append(rows, total), append(names, "total")
	}
	width := len(strconv.Itoa(total[3]))
	switch {
	case len(f.vals) == 1 && len(rows) == 1:
		width = 1
	case len(f.args) == 0 || slices.Contains(f.args, "-"):
		width = max(width, 7)
	}
	for i, n := range rows {
		sep := ""
		for j, key := range columns {
			if f.has(key) || len(f.vals) == 0 && key != "m" {
				c.printf("%s%*d", sep, width, n[j])
				sep = " "
			}
		}
		if names[i] != "" {
			c.printf(" %s", names[i])
		}
		c.printf("\n")
	}
	return code
}

func uniq(c *Call, f *flags) int {
	if len(f.args) > 1 {
		return c.usage("an output file is not supported; use >")
	}
	key := func(line string) string {
		for n := f.num("f", 0); n > 0 && line != ""; n-- {
			line = strings.TrimLeftFunc(strings.TrimLeft(line, " \t"), notBlank)
		}
		if f.has("i") {
			line = strings.ToLower(line)
		}
		return line
	}
	var last, lastKey string
	n := 0
	flush := func() {
		switch {
		case n == 0, f.has("d") && n < 2, f.has("u") && n > 1:
		case f.has("c"):
			c.printf("%7d %s\n", n, last)
		default:
			c.printf("%s\n", last)
		}
	}
	code := c.eachLine(f.args, func(line []byte, _ bool) error {
		if k := key(string(line)); n == 0 || k != lastKey {
			flush()
			last, lastKey, n = string(line), k, 0
		}
		n++
		return nil
	})
	flush()
	return code
}

func notBlank(r rune) bool { return r != ' ' && r != '\t' }

func tee(c *Call, f *flags) int {
	outs := []io.Writer{c.out}
	code := 0
	for _, name := range f.args {
		w, err := c.create(name, f.has("a"))
		if err != nil {
			code = c.fail(name, err)
			continue
		}
		outs = append(outs, w)
	}
	if _, err := io.Copy(io.MultiWriter(outs...), c.Stdin); err != nil {
		return c.fail("write", err)
	}
	return code
}
