package commands

import (
	"context"
	"fmt"
	"regexp"
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

// escapedNumber is a character by its number.
var escapedNumber = regexp.MustCompile(`^\\(?:x[0-9A-Fa-f]{1,2}|u[0-9A-Fa-f]{1,4}|U[0-9A-Fa-f]{1,8}|0?[0-7]{1,3})`)

// unescape resolves backslashes as echo -e and printf %b do (echo) or as the
// format of printf does; stop tells that it met \c.
func unescape(s string, echo bool) (out string, stop bool) {
	var b strings.Builder
	for s != "" {
		if s[0] != '\\' || len(s) == 1 {
			b.WriteByte(s[0])
			s = s[1:]
			continue
		}
		text := s[:2]
		number := escapedNumber.FindString(s)
		if !echo && strings.HasPrefix(number, `\0`) {
			number = number[:min(4, len(number))] // three digits, with the 0
		}
		switch at := strings.IndexByte(`abefnrtv\`, s[1]); {
		case at >= 0:
			text = "\a\b\x1b\f\n\r\t\v\\"[at : at+1]
		case echo && s[1] == 'c':
			return b.String(), true
		case !echo && (s[1] == '"' || s[1] == '\''):
			text = s[1:2]
		case number == "": // not an escape
		case number[1] == 'u' || number[1] == 'U':
			n, _ := strconv.ParseInt(number[2:], 16, 64) // the digits fit
			text = string(rune(n))
		case number[1] == 'x':
			n, _ := strconv.ParseUint(number[2:], 16, 8)
			text = string([]byte{byte(n)})
		default:
			n, _ := strconv.ParseUint(number[1:], 8, 16)
			text = string([]byte{byte(n)})
		}
		b.WriteString(text)
		s = s[max(2, len(number)):]
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
	format, _ := unescape(args[0], false)
	for {
		before := len(p.args)
		if p.once(format) || len(p.args) == 0 || len(p.args) == before || c.ctx.Err() != nil {
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

// directive is one of a format: what stands before the verb, and the verb.
var directive = regexp.MustCompile(`^%([-+ #0\x27]*(?:\*|\d*)(?:\.(?:\*|\d*))?)[hlLjzt]*([a-zA-Z])`)

// once writes the format once; it reports whether all output ends.
func (p *printfRun) once(format string) (stop bool) {
	for format != "" {
		plain, _, _ := strings.Cut(format, "%")
		p.c.printf("%s", plain)
		if format = format[len(plain):]; strings.HasPrefix(format, "%%") {
			p.c.printf("%%")
			format = format[2:]
			continue
		}
		if format == "" {
			break
		}
		m := directive.FindStringSubmatch(format)
		if m == nil {
			return p.fail("%s: missing format character", format)
		}
		spec := strings.ReplaceAll(m[1], "'", "")
		for strings.Contains(spec, "*") {
			spec = strings.Replace(spec, "*", strconv.FormatInt(p.integer(), 10), 1)
		}
		if p.verb("%"+spec, m[2][0]) {
			return true
		}
		format = format[len(m[0]):]
	}
	return false
}

// fail reports what ends all output.
func (p *printfRun) fail(format string, args ...any) (stop bool) {
	p.c.errorf(format, args...)
	p.code = 1
	return true
}

// verb writes one argument.
func (p *printfRun) verb(spec string, verb byte) (stop bool) {
	if width := strings.Trim(spec, "%-+ #0."); len(strings.TrimLeft(width, "0")) > 6 {
		return p.fail("width is too large")
	}
	switch verb {
	case 's':
		p.c.printf(spec+"s", p.next())
	case 'b':
		text, end := unescape(p.next(), true)
		p.c.printf(spec+"s", text)
		return end
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
		return p.fail("%%%c: invalid directive", verb)
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
	return c.Exec(c.ctx, sub)
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
