package commands

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/benhoyt/goawk/interp"
	"github.com/benhoyt/goawk/lexer"
	"github.com/benhoyt/goawk/parser"
	"github.com/itchyny/timefmt-go"
)

var assignment = regexp.MustCompile(`^[_a-zA-Z][_a-zA-Z0-9]*=`)

// awk runs GoAWK without files and processes. What a program does to files is
// rewritten (see awkrewrite.go) to calls of the functions below.
func awk(c *Call) int {
	f, ok := c.flags("+F|field-separator: v|assign: f|file: version")
	if !ok {
		return 2
	}
	src := ""
	for _, file := range f.vals["f"] {
		r, err := c.open(file)
		var data []byte
		if err == nil {
			data, err = slurp(r)
		}
		if err != nil {
			return c.usage("%s: %s", file, why(err))
		}
		src += string(data) + "\n"
	}
	if !f.has("f") {
		if len(f.args) == 0 {
			return c.usage("no program")
		}
		src, f.args = f.args[0], f.args[1:]
	}
	if err := CheckSource(src); err != nil {
		return c.usage("%v", err)
	}
	a := &awkRun{c: c, to: c.out, outs: map[string]io.Writer{}, pipes: map[string]*bytes.Buffer{}, ins: map[string]*awkLines{}}
	funcs := a.funcs()
	prog, err := parser.ParseProgram([]byte(rewriteAwk(src)), &parser.ParserConfig{Funcs: funcs})
	if err != nil {
		return c.usage("%v", err)
	}
	config := &interp.Config{
		Argv0: "awk", Output: awkOut{a}, Error: c.Stderr, Stdin: c.Stdin, Funcs: funcs, Environ: []string{},
		NoExec: true, NoFileReads: true, NoFileWrites: true,
	}
	for _, kv := range c.Env() {
		k, v, _ := strings.Cut(kv, "=")
		config.Environ = append(config.Environ, k, v)
	}
	if f.has("F") {
		fs := f.str("F", "")
		if fs == "t" {
			fs = "\t"
		}
		config.Vars = append(config.Vars, "FS", unescaped(fs))
	}
	for _, kv := range f.vals["v"] {
		k, v, found := strings.Cut(kv, "=")
		if !found {
			return c.usage("-v needs name=value")
		}
		config.Vars = append(config.Vars, k, unescaped(v))
	}
	for _, arg := range f.args {
		if !assignment.MatchString(arg) {
			a.files = append(a.files, arg)
			arg = "-"
		}
		config.Args = append(config.Args, arg)
	}
	if len(a.files) > 0 {
		config.Stdin = a
	}
	in, err := interp.New(prog)
	if err != nil {
		return c.usage("%v", err)
	}
	code, err := in.ExecuteContext(c.ctx, config)
	for _, cmd := range a.order {
		a.closePipe(cmd)
	}
	if err != nil && c.ctx.Err() == nil {
		return c.usage("%v", err)
	}
	return max(code, a.code)
}

func unescaped(s string) string {
	if plain, err := lexer.Unescape(s); err == nil {
		return plain
	}
	return s
}

// An awkRun is the files of a program. It is its standard input: each of the
// files comes as one input that ends, so that FNR and nextfile work.
type awkRun struct {
	c     *Call
	files []string
	file  string
	cur   io.Reader // nil between files
	code  int

	to    io.Writer // where print goes
	on    bool      // a redirected print is yet to run
	outs  map[string]io.Writer
	pipes map[string]*bytes.Buffer
	order []string // of pipes
	ins   map[string]*awkLines
}

// awkLines is a file read by getline.
type awkLines struct {
	rest []string
	line string
}

func (a *awkRun) Read(p []byte) (int, error) {
	for a.cur == nil {
		if len(a.files) == 0 {
			return 0, io.EOF
		}
		a.file, a.files = a.files[0], a.files[1:]
		r, err := a.c.open(a.file)
		if err == nil {
			a.cur = r
			break
		}
		a.c.errorf("cannot open \"%s\" (%s)", a.file, why(err))
		a.code = 2
		return 0, io.EOF
	}
	n, err := a.cur.Read(p)
	if n == 0 && errors.Is(err, io.EOF) {
		a.cur = nil
	}
	return n, err
}

// awkOut writes to where print goes at the moment.
type awkOut struct{ a *awkRun }

func (o awkOut) Write(p []byte) (int, error) { return o.a.to.Write(p) }

// Flush flushes the standard output.
func (o awkOut) Flush() error { return o.a.c.out.Flush() }

// funcs are what rewritten programs call, and some of gawk's.
func (a *awkRun) funcs() map[string]any {
	return map[string]any{
		"__file":     func() string { return a.file },
		"__nextfile": func() int { a.cur = nil; return 1 },
		"__to":       a.redirect,
		"__on": func() bool {
			if a.on = !a.on; !a.on {
				a.to = a.c.out
			}
			return a.on
		},
		"__close":  a.close,
		"__flush":  func(...string) int { return 0 },
		"__system": func(cmd string) int { return a.shell(cmd, nil) },
		"__read":   a.getline,
		"__line":   func(name string) string { return a.ins[name].line },
		"systime":  func() int { return int(a.c.Now().Unix()) },
		"strftime": func(args ...string) string {
			format, at := "%a %b %e %H:%M:%S UTC %Y", a.c.Now().UTC()
			if len(args) > 0 {
				format = args[0]
			}
			if len(args) > 1 {
				at = time.Unix(int64(leadingFloat(args[1])), 0).UTC()
			}
			return timefmt.Format(at, format)
		},
		"gensub": gensub,
	}
}

// redirect makes the next print go to a file or command.
func (a *awkRun) redirect(mode, name string) (int, error) {
	switch {
	case mode == "|":
		if a.pipes[name] == nil {
			a.pipes[name] = &bytes.Buffer{}
			a.order = append(a.order, name)
		}
		if a.pipes[name].Len() > maxInput {
			return 0, errInput
		}
		a.to = a.pipes[name]
	case a.outs[name] != nil:
		a.to = a.outs[name]
	default:
		w, err := a.c.create(name, mode == ">>")
		if err != nil {
			return 0, fmt.Errorf("%s: %s", name, why(err))
		}
		a.outs[name], a.to = w, w
	}
	return 0, nil
}

// getline reads the next line of a file into line: 1, 0 at its end, -1 if it
// cannot be read.
func (a *awkRun) getline(name string) int {
	in := a.ins[name]
	if in == nil {
		r, err := a.c.open(name)
		var data []byte
		if err == nil {
			data, err = slurp(r)
		}
		if err != nil {
			return -1
		}
		in = &awkLines{rest: splitLines(data)}
		a.ins[name] = in
	}
	if len(in.rest) == 0 {
		return 0
	}
	in.line, in.rest = in.rest[0], in.rest[1:]
	return 1
}

func (a *awkRun) close(name string) int {
	if a.pipes[name] != nil {
		return a.closePipe(name)
	}
	if a.outs[name] == nil && a.ins[name] == nil {
		return -1
	}
	delete(a.outs, name)
	delete(a.ins, name)
	return 0
}

// closePipe runs the command of a pipe with what was printed into it.
func (a *awkRun) closePipe(cmd string) int {
	buf := a.pipes[cmd]
	if buf == nil {
		return -1
	}
	delete(a.pipes, cmd)
	return a.shell(cmd, buf)
}

func (a *awkRun) shell(cmd string, in *bytes.Buffer) int {
	_ = a.c.out.Flush() // before what the command prints
	sub := *a.c
	sub.Args = []string{"bash", "-c", cmd}
	if in != nil {
		sub.Stdin = in
	}
	sub.Stdout = a.c.out
	return a.c.Exec(a.c.ctx, sub)
}

// gensub is gawk's: it replaces all ("g") or the nth match.
func gensub(re, with, how, in string) (string, error) {
	compiled, err := compile(re, extended, false)
	if err != nil {
		return "", err
	}
	pieces, err := sedPieces(with, 9)
	if err != nil {
		return "", err
	}
	nth := int(leadingFloat(how))
	all := strings.HasPrefix(strings.ToLower(how), "g")
	var b strings.Builder
	at := 0
	for i, m := range compiled.FindAllStringSubmatchIndex(in, -1) {
		if !all && i+1 != max(nth, 1) {
			continue
		}
		b.WriteString(in[at:m[0]])
		writePieces(&b, pieces, in, m)
		at = m[1]
	}
	return b.String() + in[at:], nil
}

var _ io.Reader = (*awkRun)(nil)
