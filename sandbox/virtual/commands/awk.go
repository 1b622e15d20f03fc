package commands

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/benhoyt/goawk/interp"
	"github.com/benhoyt/goawk/parser"
	"github.com/itchyny/timefmt-go"
)

var assignment = regexp.MustCompile(`^[_a-zA-Z][_a-zA-Z0-9]*=`)

// awk runs GoAWK without files and processes. What a program says of files is
// rewritten (see awkrewrite.go) to calls of the functions below; getline from
// a file or command, pipes and system are refused.
func awk(c *Call, f *flags) int {
	src, ok := c.program(f, "", false)
	if !ok {
		return 2
	}
	a := &awkRun{c: c, to: c.out, outs: map[string]io.Writer{}}
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
		fs, _ := unescape(f.str("F", ""), false)
		config.Vars = append(config.Vars, "FS", fs)
	}
	for _, kv := range f.vals["v"] {
		k, v, _ := strings.Cut(kv, "=")
		v, _ = unescape(v, false)
		config.Vars = append(config.Vars, k, v)
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
	if err != nil && c.ctx.Err() == nil {
		return c.usage("%v", refused.Replace(err.Error()))
	}
	return max(code, a.code)
}

// refused says what GoAWK means by its settings.
var refused = strings.NewReplacer("due to NoExec", "here; use the shell around awk", "due to NoFileReads", "here; give it as an argument")

// An awkRun is the files of a program. It is its standard input: each of the
// files comes as one input that ends, so that FNR and nextfile work.
type awkRun struct {
	c     *Call
	files []string
	file  string
	cur   io.Reader // nil between files
	code  int

	to   io.Writer // where print goes
	on   bool      // a redirected print is yet to run
	outs map[string]io.Writer
}

func (a *awkRun) Read(p []byte) (int, error) {
	if a.cur == nil {
		if len(a.files) == 0 {
			return 0, io.EOF
		}
		a.file, a.files = a.files[0], a.files[1:]
		r, err := a.c.open(a.file)
		if err != nil {
			a.c.fail(a.file, err)
			a.code = 2
			return 0, io.EOF
		}
		a.cur = r
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
		"__close": func(name string) int { delete(a.outs, name); return 0 },
		"systime": func() int { return int(a.c.Now().Unix()) },
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
	}
}

// redirect makes the next print go to a file.
func (a *awkRun) redirect(mode, name string) (int, error) {
	if a.outs[name] == nil {
		w, err := a.c.create(name, mode == ">>")
		if err != nil {
			return 0, fmt.Errorf("%s: %s", name, Why(err))
		}
		a.outs[name] = w
	}
	a.to = a.outs[name]
	return 0, nil
}
