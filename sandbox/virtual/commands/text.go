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

func cat(c *Call) int {
	f, ok := c.flags("n|number b|number-nonblank s|squeeze-blank A|show-all E|show-ends T|show-tabs v|show-nonprinting e t u")
	if !ok {
		return 2
	}
	if len(f.vals) == 0 || len(f.vals) == 1 && f.has("u") {
		return c.each(f.args, func(_ string, r io.Reader) error {
			_, err := io.Copy(c.out, r)
			return err
		})
	}
	ends := f.has("E") || f.has("A") || f.has("e")
	tabs := f.has("T") || f.has("A") || f.has("t")
	visible := f.has("v") || f.has("A") || f.has("e") || f.has("t")
	number, blank := 0, false
	return c.each(f.args, func(_ string, r io.Reader) error {
		return lines(r, '\n', func(line []byte, nl bool) error {
			if f.has("s") && len(line) == 0 && blank {
				return nil
			}
			blank = len(line) == 0
			if f.has("n") && !f.has("b") || f.has("b") && !blank {
				number++
				c.printf("%6d\t", number)
			}
			for _, b := range line {
				switch {
				case b == '\t' && tabs:
					c.printf("^I")
				case visible && b != '\t' && (b < ' ' || b >= 0x7f):
					c.printf("%s", caret(b))
				default:
					_ = c.out.WriteByte(b)
				}
			}
			if ends && nl {
				c.printf("$")
			}
			if nl {
				c.printf("\n")
			}
			return c.ctx.Err()
		})
	})
}

// caret shows a byte that does not print.
func caret(b byte) string {
	switch {
	case b >= 0x80:
		if low := b - 0x80; low < ' ' || low == 0x7f {
			return "M-" + caret(low)
		}
		return "M-" + string(rune(b-0x80))
	case b == 0x7f:
		return "^?"
	case b < ' ':
		return "^" + string(rune(b+'@'))
	}
	return string(rune(b))
}

// count parses "10", "2K" and the like.
func count(s string) (int, bool) {
	unit := 1
	if s != "" {
		switch s[len(s)-1] {
		case 'k', 'K':
			unit = 1 << 10
		case 'm', 'M':
			unit = 1 << 20
		case 'b':
			unit = 512
		}
	}
	if unit > 1 {
		s = s[:len(s)-1]
	}
	n, err := strconv.Atoi(s)
	return n * unit, err == nil && n < 1<<40
}

func head(c *Call) int {
	c.Args = dashNumber(c.Args, "-n")
	f, ok := c.flags("n|lines: c|bytes: q|quiet|silent v|verbose z")
	if !ok {
		return 2
	}
	spec := f.str("n", "10")
	if f.has("c") {
		spec = f.str("c", "")
	}
	n, ok := count(spec)
	if !ok {
		return c.usage("invalid number '%s'", spec)
	}
	return c.parts(f, func(r io.Reader) error {
		if n < 0 || strings.HasPrefix(spec, "-") {
			data, err := slurp(r)
			if err == nil {
				_, err = c.out.Write(data[:lastPart(data, -n, f.has("c"))])
			}
			return err
		}
		if f.has("c") {
			_, err := io.CopyN(c.out, r, int64(n))
			if err == io.EOF {
				err = nil
			}
			return err
		}
		left := n
		if left == 0 {
			return nil
		}
		err := lines(r, '\n', func(line []byte, nl bool) error {
			c.line(line, nl)
			if left--; left == 0 {
				return errStop
			}
			return nil
		})
		if err == errStop {
			return nil
		}
		return err
	})
}

func (c *Call) line(line []byte, nl bool) {
	_, _ = c.out.Write(line) // an error stays with the writer
	if nl {
		_ = c.out.WriteByte('\n')
	}
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

// lastPart is where the last n lines, or bytes, of data begin.
func lastPart(data []byte, n int, inBytes bool) int {
	if inBytes {
		return max(0, len(data)-n)
	}
	if n == 0 {
		return len(data)
	}
	at := len(data)
	if bytes.HasSuffix(data, []byte("\n")) {
		at--
	}
	for ; n > 0; n-- {
		at = bytes.LastIndexByte(data[:at], '\n')
		if at < 0 {
			return 0
		}
	}
	return at + 1
}

func tail(c *Call) int {
	c.Args = dashNumber(c.Args, "-n")
	if len(c.Args) > 1 && len(c.Args[1]) > 1 && c.Args[1][0] == '+' {
		c.Args = append([]string{c.Args[0], "-n", c.Args[1]}, c.Args[2:]...)
	}
	f, ok := c.flags("n|lines: c|bytes: q|quiet|silent v|verbose f|follow? F z")
	if !ok {
		return 2
	}
	if f.has("f") || f.has("F") {
		return c.usage("following a file is not supported")
	}
	spec := f.str("n", "10")
	if f.has("c") {
		spec = f.str("c", "")
	}
	n, ok := count(strings.TrimLeft(spec, "+-"))
	if !ok {
		return c.usage("invalid number '%s'", spec)
	}
	return c.parts(f, func(r io.Reader) error {
		if strings.HasPrefix(spec, "+") {
			if f.has("c") {
				if _, err := io.CopyN(io.Discard, r, int64(max(0, n-1))); err != nil && err != io.EOF {
					return err
				}
				_, err := io.Copy(c.out, r)
				return err
			}
			number := 0
			return lines(r, '\n', func(line []byte, nl bool) error {
				if number++; number >= n {
					c.line(line, nl)
				}
				return c.ctx.Err()
			})
		}
		data, err := c.lastOf(r, n, f.has("c"))
		if err == nil {
			_, err = c.out.Write(data)
		}
		return err
	})
}

// lastOf reads to the end and keeps the last n lines or bytes.
func (c *Call) lastOf(r io.Reader, n int, inBytes bool) ([]byte, error) {
	var kept []byte
	buf := make([]byte, 64<<10)
	for {
		m, err := r.Read(buf)
		kept = append(kept, buf[:m]...)
		if err == io.EOF {
			return kept[lastPart(kept, n, inBytes):], nil
		}
		if err != nil {
			return nil, err
		}
		if len(kept) > maxInput/4 {
			kept = bytes.Clone(kept[lastPart(kept, n+1, inBytes):])
			if len(kept) > maxInput {
				return nil, errInput
			}
		}
	}
}

func tac(c *Call) int {
	f, ok := c.flags("")
	if !ok {
		return 2
	}
	return c.each(f.args, func(_ string, r io.Reader) error {
		data, err := slurp(r)
		for _, line := range slices.Backward(splitLines(data)) {
			c.printf("%s\n", line)
		}
		return err
	})
}

func rev(c *Call) int {
	return c.each(c.Args[1:], func(_ string, r io.Reader) error {
		return lines(r, '\n', func(line []byte, nl bool) error {
			runes := []rune(string(line))
			slices.Reverse(runes)
			c.line([]byte(string(runes)), nl)
			return nil
		})
	})
}

func wc(c *Call) int {
	f, ok := c.flags("l|lines w|words c|bytes m|chars L|max-line-length")
	if !ok {
		return 2
	}
	type counts [5]int
	var rows []counts
	var names []string
	var total counts
	code := c.each(f.args, func(name string, r io.Reader) error {
		var n counts
		err := lines(r, '\n', func(line []byte, nl bool) error {
			chars := utf8.RuneCount(line)
			n[1] += len(bytes.Fields(line))
			n[2] += chars
			n[3] += len(line)
			n[4] = max(n[4], chars)
			if nl {
				n[0]++
				n[2]++
				n[3]++
			}
			return nil
		})
		for i := range 4 {
			total[i] += n[i]
		}
		total[4] = max(total[4], n[4])
		rows, names = append(rows, n), append(names, name)
		return err
	})
	if len(f.args) == 0 {
		names = []string{""}
	}
	if len(rows) > 1 {
		rows, names = append(rows, total), append(names, "total")
	}
	columns := []string{"l", "w", "m", "c", "L"}
	shown := func(key string) bool { return f.has(key) || len(f.vals) == 0 && key != "m" && key != "L" }
	width, several := len(strconv.Itoa(total[3])), 0
	for _, key := range columns {
		if shown(key) {
			several++
		}
	}
	switch {
	case several == 1 && len(rows) == 1:
		width = 1
	case slices.Contains(f.args, "-") || len(f.args) == 0:
		width = max(width, 7)
	}
	for i, n := range rows {
		sep := ""
		for j, key := range columns {
			if shown(key) {
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

func nl(c *Call) int {
	f, ok := c.flags("b|body-numbering: w|number-width: s|number-separator: v|starting-line-number: i|line-increment: n|number-format:")
	if !ok {
		return 2
	}
	width, ok1 := f.num("w", 6)
	next, ok2 := f.num("v", 1)
	step, ok3 := f.num("i", 1)
	if !ok1 || !ok2 || !ok3 || width > 1000 {
		return c.usage("not a number")
	}
	verb := map[string]string{"ln": "%-*d", "rz": "%0*d"}[f.str("n", "rn")]
	if verb == "" {
		verb = "%*d"
	}
	return c.each(f.args, func(_ string, r io.Reader) error {
		return lines(r, '\n', func(line []byte, nl bool) error {
			if len(line) == 0 && f.str("b", "t") != "a" || f.str("b", "t") == "n" {
				c.printf("%*s", width+len(f.str("s", "\t")), "")
			} else {
				c.printf(verb+"%s", width, next, f.str("s", "\t"))
				next += step
			}
			c.line(line, true)
			return nil
		})
	})
}

func uniq(c *Call) int {
	f, ok := c.flags("c|count d|repeated u|unique i|ignore-case f|skip-fields: s|skip-chars: w|check-chars: D")
	if !ok {
		return 2
	}
	fields, ok1 := f.num("f", 0)
	chars, ok2 := f.num("s", 0)
	most, ok3 := f.num("w", -1)
	if !ok1 || !ok2 || !ok3 {
		return c.usage("not a number")
	}
	key := func(line string) string {
		for range fields {
			line = strings.TrimLeft(line, " \t")
			if at := strings.IndexAny(line, " \t"); at >= 0 {
				line = line[at:]
			} else {
				line = ""
			}
		}
		line = line[min(chars, len(line)):]
		if most >= 0 {
			line = line[:min(most, len(line))]
		}
		if f.has("i") {
			line = strings.ToLower(line)
		}
		return line
	}
	var out io.Writer = c.out
	if len(f.args) > 1 {
		w, err := c.create(f.args[1], false)
		if err != nil {
			return c.usage("%s: %s", f.args[1], why(err))
		}
		out, f.args = w, f.args[:1]
	}
	var last, lastKey string
	n := 0
	flush := func() {
		switch {
		case n == 0, f.has("d") && n < 2, f.has("u") && n > 1:
		case f.has("D"):
			for range n {
				fmt.Fprintln(out, last)
			}
		case f.has("c"):
			fmt.Fprintf(out, "%7d %s\n", n, last)
		default:
			fmt.Fprintln(out, last)
		}
	}
	code := c.each(f.args, func(_ string, r io.Reader) error {
		return lines(r, '\n', func(line []byte, _ bool) error {
			if k := key(string(line)); n == 0 || k != lastKey {
				flush()
				last, lastKey, n = string(line), k, 0
			}
			n++
			return nil
		})
	})
	if !f.has("D") || n > 1 {
		flush()
	}
	return code
}

func fold(c *Call) int {
	c.Args = dashNumber(c.Args, "-w")
	f, ok := c.flags("w|width: s|spaces b|bytes")
	if !ok {
		return 2
	}
	width, ok := f.num("w", 80)
	if !ok || width < 1 {
		return c.usage("invalid width")
	}
	return c.each(f.args, func(_ string, r io.Reader) error {
		return lines(r, '\n', func(line []byte, nl bool) error {
			runes := []rune(string(line))
			for len(runes) > width {
				at := width
				if f.has("s") {
					for i := width - 1; i > 0; i-- {
						if runes[i] == ' ' {
							at = i + 1
							break
						}
					}
				}
				c.printf("%s\n", string(runes[:at]))
				runes = runes[at:]
			}
			c.line([]byte(string(runes)), nl)
			return nil
		})
	})
}

func expand(c *Call) int {
	f, ok := c.flags("t|tabs: i|initial")
	if !ok {
		return 2
	}
	width, ok := f.num("t", 8)
	if !ok || width < 1 || width > 1000 {
		return c.usage("invalid tab width")
	}
	return c.each(f.args, func(_ string, r io.Reader) error {
		return lines(r, '\n', func(line []byte, nl bool) error {
			col := 0
			for _, ch := range string(line) {
				if ch == '\t' {
					n := width - col%width
					c.printf("%*s", n, "")
					col += n
				} else {
					c.printf("%c", ch)
					col++
				}
			}
			c.line(nil, nl)
			return nil
		})
	})
}

func tee(c *Call) int {
	f, ok := c.flags("a|append i")
	if !ok {
		return 2
	}
	outs := []io.Writer{c.out}
	code := 0
	for _, name := range f.args {
		w, err := c.create(name, f.has("a"))
		if err != nil {
			c.errorf("%s: %s", name, why(err))
			code = 1
			continue
		}
		outs = append(outs, w)
	}
	if _, err := io.Copy(io.MultiWriter(outs...), c.Stdin); err != nil {
		c.errorf("%s", why(err))
		code = 1
	}
	return code
}
