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

func echo(c *Call) int {
	args, newline, escapes := c.Args[1:], true, false
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && strings.Trim(args[0][1:], "neE") == "" {
		for _, o := range args[0][1:] {
			switch o {
			case 'n':
				newline = false
			case 'e':
				escapes = true
			case 'E':
				escapes = false
			}
		}
		args = args[1:]
	}
	s := strings.Join(args, " ")
	if escapes {
		var stop bool
		if s, stop = unescape(s, true); stop {
			newline = false
		}
	}
	c.printf("%s", s)
	if newline {
		c.printf("\n")
	}
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
func printf(c *Call) int {
	args := c.Args[1:]
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
		p.c.printf(strings.ReplaceAll(spec, "0", "0")+"s", p.next())
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

func seq(c *Call) int {
	var format, sep string
	sep = "\n"
	equal := false
	args := c.Args[1:]
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && strings.IndexByte("wsf", args[0][1]) >= 0 {
		switch {
		case args[0] == "-w":
			equal = true
		case len(args[0]) > 2 && args[0][1] == 's':
			sep = args[0][2:]
		case len(args) < 2:
			return c.usage("option %s needs a value", args[0])
		case args[0] == "-s":
			sep, args = args[1], args[1:]
		case args[0] == "-f":
			format, args = args[1], args[1:]
		}
		args = args[1:]
	}
	if len(args) < 1 || len(args) > 3 {
		return c.usage("one to three numbers are needed")
	}
	nums, decimals := []float64{}, 0
	for _, arg := range args {
		v, err := strconv.ParseFloat(arg, 64)
		if err != nil {
			return c.usage("invalid number '%s'", arg)
		}
		nums = append(nums, v)
	}
	first, step, last := 1.0, 1.0, nums[len(nums)-1]
	if len(nums) > 1 {
		first = nums[0]
	}
	if len(nums) > 2 {
		step = nums[1]
	}
	for _, arg := range args[:max(1, len(args)-1)] {
		if _, fraction, ok := strings.Cut(arg, "."); ok {
			decimals = max(decimals, len(fraction))
		}
	}
	if step == 0 {
		return c.usage("the step must not be 0")
	}
	if format == "" {
		format = fmt.Sprintf("%%.%df", decimals)
		if equal {
			width := max(len(fmt.Sprintf(format, first)), len(fmt.Sprintf(format, last)))
			format = fmt.Sprintf("%%0%d.%df", width, decimals)
		}
	} else if verbs := strings.ReplaceAll(format, "%%", ""); strings.Count(verbs, "%") != 1 {
		return c.usage("invalid format '%s'", format)
	}
	for i := 0; ; i++ {
		v := first + float64(i)*step
		if step > 0 && v > last+step*1e-10 || step < 0 && v < last+step*1e-10 {
			if i > 0 {
				c.printf("\n")
			}
			return 0
		}
		if i > 0 {
			c.printf("%s", sep)
		}
		if _, err := fmt.Fprintf(c.out, format, v); err != nil {
			return 1
		}
	}
}

func yes(c *Call) int {
	line := "y"
	if len(c.Args) > 1 {
		line = strings.Join(c.Args[1:], " ")
	}
	block := strings.Repeat(line+"\n", 1+4096/(len(line)+1))
	for {
		if _, err := c.out.WriteString(block); err != nil {
			return 1
		}
	}
}

func sleep(c *Call) int {
	total := time.Duration(0)
	for _, arg := range c.Args[1:] {
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
	if s != "" {
		switch s[len(s)-1] {
		case 's':
			s = s[:len(s)-1]
		case 'm':
			s, unit = s[:len(s)-1], time.Minute
		case 'h':
			s, unit = s[:len(s)-1], time.Hour
		case 'd':
			s, unit = s[:len(s)-1], 24*time.Hour
		}
	}
	v, err := strconv.ParseFloat(s, 64)
	return time.Duration(v * float64(unit)), err == nil && v >= 0 && v < 1e8
}

func timeout(c *Call) int {
	f, ok := c.flags("+s|signal: k|kill-after: preserve-status foreground v")
	if !ok {
		return 125
	}
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

func env(c *Call) int {
	f, ok := c.flags("+i|ignore-environment u|unset: 0|null C|chdir: S|split-string:")
	if !ok {
		return 125
	}
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

func printenv(c *Call) int {
	if len(c.Args) == 1 {
		return env(c)
	}
	code := 0
	for _, name := range c.Args[1:] {
		if v := c.env(name); v != "" {
			c.printf("%s\n", v)
		} else {
			code = 1
		}
	}
	return code
}

func which(c *Call) int {
	f, ok := c.flags("a s")
	if !ok {
		return 2
	}
	code := 0
	for _, name := range f.args {
		if !c.Known(name) {
			code = 1
			continue
		}
		if !f.has("s") {
			c.printf("/usr/bin/%s\n", name)
		}
	}
	return code
}

// nohup, nice and the like run their command and no more.
func plainly(c *Call) int {
	args := c.Args[1:]
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		takes := args[0] == "-n"
		args = args[1:]
		if takes && len(args) > 0 {
			args = args[1:]
		}
	}
	if len(args) == 0 {
		return c.usage("missing command")
	}
	sub := *c
	sub.Args = args
	return c.Exec(c.ctx, sub)
}

func uname(c *Call) int {
	f, ok := c.flags("a|all s n|nodename r m o p v")
	if !ok {
		return 2
	}
	if f.has("a") {
		c.printf("Linux sandbox 0 virtual\n")
		return 0
	}
	var out []string
	for _, kv := range [][2]string{{"s", "Linux"}, {"n", "sandbox"}, {"r", "0"}, {"v", "0"}, {"m", "virtual"}, {"p", "virtual"}, {"o", "GNU/Linux"}} {
		if f.has(kv[0]) || len(f.vals) == 0 && kv[0] == "s" {
			out = append(out, kv[1])
		}
	}
	c.printf("%s\n", strings.Join(out, " "))
	return 0
}

func whoami(c *Call) int {
	text := "user"
	switch c.name() {
	case "hostname":
		text = "sandbox"
	case "nproc":
		text = "1"
	case "tty":
		text = "not a tty"
	case "id":
		text = "uid=1000(user) gid=1000(user) groups=1000(user)"
		if len(c.Args) > 1 && strings.HasPrefix(c.Args[1], "-u") || len(c.Args) > 1 && c.Args[1] == "-g" {
			text = "1000"
		}
		if len(c.Args) > 1 && strings.Contains(c.Args[1], "n") {
			text = "user"
		}
	}
	c.printf("%s\n", text)
	if c.name() == "tty" {
		return 1
	}
	return 0
}
