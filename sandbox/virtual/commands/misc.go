package commands

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

func echo(c *Call, f *flags) int {
	args, newline, escapes := f.args, true, false
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && strings.Trim(args[0][1:], "neE") == "" {
		for _, o := range args[0][1:] {
			newline = newline && o != 'n'
			escapes = o == 'e' || escapes && o != 'E'
		}
		args = args[1:]
	}
	s := strings.Join(args, " ")
	if escapes {
		var stop bool
		s, stop = unescape(s, true)
		newline = newline && !stop
	}
	c.line([]byte(s), newline)
	return 0
}

// unescape resolves backslashes as echo -e and printf %b do (echo) or as the
// format of printf does; stop tells that it met \c.
func unescape(s string, echo bool) (out string, stop bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if at := strings.IndexByte(`abefnrtv\`, s[i]); at >= 0 {
			b.WriteByte("\a\b\x1b\f\n\r\t\v\\"[at])
			continue
		}
		digits, most, base := i, 3, 8
		switch s[i] {
		case 'c':
			if echo {
				return b.String(), true
			}
		case '"', '\'':
			if !echo {
				b.WriteByte(s[i])
				continue
			}
		case '0', '1', '2', '3', '4', '5', '6', '7':
			if echo {
				if s[i] != '0' {
					b.WriteString(s[i-1 : i+1])
					continue
				}
				most = 4
			}
		case 'x':
			digits, most, base = i+1, 2, 16
		case 'u':
			digits, most, base = i+1, 4, 16
		case 'U':
			digits, most, base = i+1, 8, 16
		}
		if strings.IndexByte("01234567xuU", s[i]) < 0 {
			b.WriteString(s[i-1 : i+1])
			continue
		}
		n, end := 0, digits
		for end < len(s) && end < digits+most {
			d := strings.IndexByte("0123456789abcdef", lower(s[end]))
			if d < 0 || d >= base {
				break
			}
			n, end = n*base+d, end+1
		}
		switch {
		case end == digits:
			b.WriteString(s[i-1 : i+1])
		case s[i] == 'u' || s[i] == 'U':
			b.WriteRune(rune(n))
		default:
			b.WriteByte(byte(n))
		}
		i = max(end-1, i)
	}
	return b.String(), false
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// printf formats as the shell's does: the format is used again while there are
// arguments.
func printf(c *Call, f *flags) int {
	args := f.args
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return c.usage("usage: printf format [arguments]")
	}
	p := &printfRun{c: c, args: args[1:]}
	for {
		before := len(p.args)
		if p.once(args[0]) || len(p.args) == 0 || len(p.args) == before || c.ctx.Err() != nil {
			return p.code
		}
	}
}

type printfRun struct {
	c    *Call
	args []string
	code int
}

func (p *printfRun) next() string {
	if len(p.args) == 0 {
		return ""
	}
	arg := p.args[0]
	p.args = p.args[1:]
	return arg
}

// number reads an argument as C does, or a character after a quote.
func (p *printfRun) number(s string) float64 {
	if s = strings.TrimSpace(s); s == "" {
		return 0
	}
	if s[0] == '"' || s[0] == '\'' {
		r, _ := utf8.DecodeRuneInString(s[1:])
		return float64(r)
	}
	if n, err := strconv.ParseInt(s, 0, 64); err == nil {
		return float64(n)
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		p.c.errorf("%s: invalid number", s)
		p.code = 1
		return leadingFloat(s)
	}
	return v
}

// once writes the format once; it reports whether \c ended all output.
func (p *printfRun) once(format string) (stop bool) {
	for i := 0; i < len(format); i++ {
		switch {
		case format[i] == '\\':
			end := i + 1
			for end < len(format) && end < i+10 && format[end] != '%' && (end == i+1 || format[end] != '\\') {
				end++
			}
			text, _ := unescape(format[i:end], false)
			p.c.printf("%s", text)
			i = end - 1
		case format[i] != '%':
			_ = p.c.out.WriteByte(format[i])
		case strings.HasPrefix(format[i:], "%%"):
			_ = p.c.out.WriteByte('%')
			i++
		default:
			end := i + 1
			spec := "%"
			for end < len(format) && strings.IndexByte("-+ #0123456789.*'", format[end]) >= 0 {
				switch format[end] {
				case '*':
					spec += strconv.Itoa(int(p.number(p.next())))
				case '\'':
				default:
					spec += format[end : end+1]
				}
				end++
			}
			for end < len(format) && strings.IndexByte("hlLqjzt", format[end]) >= 0 && format[end] != 'q' {
				end++
			}
			if end == len(format) {
				p.c.errorf("%s: missing format character", format[i:])
				p.code = 1
				return true
			}
			if p.verb(spec, format[end]) {
				return true
			}
			i = end
		}
	}
	return false
}

// verb writes one argument.
func (p *printfRun) verb(spec string, verb byte) (stop bool) {
	if width := strings.Trim(spec, "%-+ #0."); len(strings.TrimLeft(width, "0")) > 6 {
		p.c.errorf("width is too large")
		p.code = 1
		return true
	}
	switch verb {
	case 's':
		p.c.printf(spec+"s", p.next())
	case 'b':
		text, end := unescape(p.next(), true)
		p.c.printf(spec+"s", text)
		return end
	case 'q':
		p.c.printf(spec+"s", quoteWord(p.next()))
	case 'c':
		arg := p.next()
		_, size := utf8.DecodeRuneInString(arg)
		p.c.printf(spec+"s", arg[:size])
	case 'd', 'i':
		p.c.printf(spec+"d", p.integer())
	case 'u', 'o', 'x', 'X':
		if verb == 'u' {
			verb = 'd'
		}
		p.c.printf(spec+string(verb), uint64(p.integer()))
	case 'e', 'E', 'f', 'F', 'g', 'G':
		p.c.printf(spec+string(verb), p.number(p.next()))
	default:
		p.c.errorf("%%%c: invalid directive", verb)
		p.code = 1
		return true
	}
	return false
}

func (p *printfRun) integer() int64 {
	s := p.next()
	if n, err := strconv.ParseInt(strings.TrimSpace(s), 0, 64); err == nil {
		return n
	}
	return int64(p.number(s))
}

// quoteWord quotes for the shell as printf %q does.
func quoteWord(s string) string {
	if s == "" {
		return "''"
	}
	if strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) >= 0 {
		return "$'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\t", `\t`, "\r", `\r`, "\x1b", `\E`).Replace(s) + "'"
	}
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune("|&;<>()$`\\\"' *?[]#~=%{}!^,", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

func seq(c *Call, f *flags) int {
	if len(f.args) < 1 || len(f.args) > 3 {
		return c.usage("one to three numbers are needed")
	}
	nums, decimals := []float64{}, 0
	for i, arg := range f.args {
		v, err := strconv.ParseFloat(arg, 64)
		if err != nil {
			return c.usage("invalid number '%s'", arg)
		}
		nums = append(nums, v)
		if _, fraction, _ := strings.Cut(arg, "."); i == 0 || i < len(f.args)-1 {
			decimals = max(decimals, len(fraction))
		}
	}
	first, step, last := 1.0, 1.0, nums[len(nums)-1]
	if len(nums) > 1 {
		first = nums[0]
	}
	if len(nums) > 2 {
		step = nums[1]
	}
	if step == 0 {
		return c.usage("the step must not be 0")
	}
	format := fmt.Sprintf("%%.%df", decimals)
	switch {
	case f.has("w"):
		width := max(len(fmt.Sprintf(format, first)), len(fmt.Sprintf(format, last)))
		format = fmt.Sprintf("%%0%d.%df", width, decimals)
	case f.has("f"):
		if format = f.str("f", ""); strings.Count(strings.ReplaceAll(format, "%%", ""), "%") != 1 {
			return c.usage("invalid format '%s'", format)
		}
	}
	sep := ""
	for i := 0; ; i++ {
		v := first + float64(i)*step
		if step > 0 && v > last+step*1e-10 || step < 0 && v < last+step*1e-10 {
			c.line(nil, i > 0)
			return 0
		}
		if _, err := fmt.Fprintf(c.out, sep+format, v); err != nil {
			return 1
		}
		sep = strings.ReplaceAll(f.str("s", "\n"), "%", "%%")
	}
}

func yes(c *Call, f *flags) int {
	line := "y"
	if len(f.args) > 0 {
		line = strings.Join(f.args, " ")
	}
	block := strings.Repeat(line+"\n", 1+4096/(len(line)+1))
	for {
		if _, err := c.out.WriteString(block); err != nil {
			return 1
		}
	}
}

func sleep(c *Call, f *flags) int {
	total := time.Duration(0)
	for _, arg := range f.args {
		d, ok := duration(arg)
		if !ok {
			return c.usage("invalid time interval '%s'", arg)
		}
		total += d
	}
	t := time.NewTimer(total)
	defer t.Stop()
	select {
	case <-t.C:
		return 0
	case <-c.ctx.Done():
		return 1
	}
}

// duration reads "1.5", "2m" and the like.
func duration(s string) (time.Duration, bool) {
	unit := time.Second
	if at := strings.IndexAny(s, "smhd"); at >= 0 && at == len(s)-1 {
		unit = map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}[s[at]]
		s = s[:at]
	}
	v, err := strconv.ParseFloat(s, 64)
	return time.Duration(v * float64(unit)), err == nil && v >= 0 && v < 1e8
}

func timeout(c *Call, f *flags) int {
	if len(f.args) < 2 {
		return c.usage("a duration and a command are needed")
	}
	d, ok := duration(f.args[0])
	if !ok {
		return c.usage("invalid time interval '%s'", f.args[0])
	}
	ctx, cancel := context.WithTimeout(c.ctx, d)
	defer cancel()
	sub := *c
	sub.Args = f.args[1:]
	code := c.Exec(ctx, sub)
	if ctx.Err() != nil && c.ctx.Err() == nil {
		return 124
	}
	return code
}

func env(c *Call, f *flags) int {
	vars := c.Env()
	if f.has("i") {
		vars = nil
	}
	set := func(name string, kv ...string) {
		vars = append(slices.DeleteFunc(slices.Clone(vars), func(v string) bool { return strings.HasPrefix(v, name+"=") }), kv...)
	}
	for _, name := range f.vals["u"] {
		set(name)
	}
	for len(f.args) > 0 && strings.Contains(f.args[0], "=") {
		name, _, _ := strings.Cut(f.args[0], "=")
		set(name, f.args[0])
		f.args = f.args[1:]
	}
	if len(f.args) == 0 {
		slices.Sort(vars)
		for _, kv := range vars {
			c.printf("%s\n", kv)
		}
		return 0
	}
	sub := *c
	sub.Args, sub.Env = f.args, func() []string { return vars }
	if f.has("C") {
		sub.Dir = c.abs(f.str("C", ""))
	}
	return c.Exec(c.ctx, sub)
}

func printenv(c *Call, f *flags) int {
	if len(f.args) == 0 {
		return env(c, f)
	}
	code := 0
	for _, name := range f.args {
		if v := c.env(name); v != "" {
			c.printf("%s\n", v)
		} else {
			code = 1
		}
	}
	return code
}

func which(c *Call, f *flags) int {
	code := 0
	for _, name := range f.args {
		if !c.Known(name) {
			code = 1
			continue
		}
		c.printf("/usr/bin/%s\n", name)
	}
	return code
}

// say is a command that says what is always the same.
func say(text string) func(*Call, *flags) int {
	return func(c *Call, _ *flags) int {
		c.printf("%s\n", text)
		return 0
	}
}
