// Package commands holds the programs of the virtual shell: the usual text and
// file tools over a file tree in memory. They touch nothing else: no host file,
// process, clock (but through Call.Now) or network.
package commands

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/heddlehq/heddle/sandbox/virtual/memfs"
)

// maxInput bounds what a command holds in memory of its input.
const maxInput = 32 << 20

var errInput = fmt.Errorf("input of more than %d MiB", maxInput>>20)

// A Call is one run of a command.
type Call struct {
	Args   []string // name and arguments
	FS     *memfs.FS
	Dir    string
	Stdin  io.Reader // never nil
	Stdout io.Writer
	Stderr io.Writer
	Env    func() []string // exported variables, NAME=value
	Now    func() time.Time
	Known  func(name string) bool                // whether a name is a command
	Exec   func(ctx context.Context, c Call) int // runs another command

	ctx context.Context // of this run; set by Run
	out *bufio.Writer   // buffers Stdout
}

// Run runs the command that Args[0] names and returns its exit status, 127 if
// there is none. It ends soon after ctx ends.
func Run(ctx context.Context, c Call) int {
	cmd, ok := table[path.Base(c.Args[0])]
	if !ok {
		fmt.Fprintf(c.Stderr, "%s: command not found\n", c.Args[0])
		return 127
	}
	c.ctx = ctx
	c.Stdin = guarded{ctx: ctx, r: c.Stdin}
	c.out = bufio.NewWriter(guarded{ctx: ctx, w: c.Stdout})
	code := 2
	if f, err := parseFlags(cmd.flags, c.Args[1:]); err != nil {
		c.errorf("%v", err)
	} else {
		code = cmd.run(&c, f)
	}
	if err := c.out.Flush(); err != nil {
		if !errors.Is(err, syscall.EPIPE) && ctx.Err() == nil {
			c.errorf("write error: %s", Why(err))
		}
		code = max(code, 1)
	}
	return code
}

// Known reports whether there is a command of that name.
func Known(name string) bool { return table[name].run != nil }

// A guarded reader or writer fails once its context has ended.
type guarded struct {
	ctx context.Context
	r   io.Reader
	w   io.Writer
}

func (g guarded) Read(p []byte) (int, error) {
	if err := g.ctx.Err(); err != nil {
		return 0, err
	}
	return g.r.Read(p)
}

func (g guarded) Write(p []byte) (int, error) {
	if err := g.ctx.Err(); err != nil {
		return 0, err
	}
	return g.w.Write(p)
}

// name is what messages begin with.
func (c *Call) name() string { return path.Base(c.Args[0]) }

// errorf prints a message after what was printed so far.
func (c *Call) errorf(format string, args ...any) {
	_ = c.out.Flush() // a failure shows at the end
	fmt.Fprintf(c.Stderr, "%s: %s\n", c.name(), fmt.Sprintf(format, args...))
}

// usage prints a message and returns the status for bad arguments.
func (c *Call) usage(format string, args ...any) int {
	c.errorf(format, args...)
	return 2
}

// fail prints why something about a file failed and returns 1.
func (c *Call) fail(name string, err error) int {
	c.errorf("%s: %s", name, Why(err))
	return 1
}

func (c *Call) printf(format string, args ...any) { fmt.Fprintf(c.out, format, args...) }

// abs makes a path absolute.
func (c *Call) abs(name string) string { return Abs(c.Dir, name) }

// Abs makes a path absolute, keeping "" as it leads nowhere.
func Abs(dir, name string) string {
	if name == "" || path.IsAbs(name) {
		return name
	}
	return path.Join(dir, name)
}

// open opens an input; "-" is the standard input.
func (c *Call) open(name string) (io.Reader, error) {
	switch name {
	case "-", "/dev/stdin", "/dev/fd/0":
		return c.Stdin, nil
	}
	f, err := c.FS.Open(c.abs(name), os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	return guarded{ctx: c.ctx, r: f}, nil
}

// create opens an output.
func (c *Call) create(name string, appendTo bool) (io.Writer, error) {
	switch name {
	case "/dev/stdout", "/dev/fd/1":
		return c.out, nil
	case "/dev/stderr", "/dev/fd/2":
		return c.Stderr, nil
	}
	flag := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if appendTo {
		flag = os.O_WRONLY | os.O_CREATE | os.O_APPEND
	}
	return c.FS.Open(c.abs(name), flag, 0o644)
}

// each calls fn for every input, the standard input if there are no names (see
// all).
func (c *Call) each(names []string, fn func(name string, r io.Reader) error) int {
	if len(names) == 0 {
		names = []string{"-"}
	}
	return c.all(names, func(name string) error {
		r, err := c.open(name)
		if err != nil {
			return err
		}
		return fn(name, r)
	})
}

// eachLine calls fn for each line of every input (see each and lines).
func (c *Call) eachLine(names []string, fn func(line []byte, nl bool) error) int {
	return c.each(names, func(_ string, r io.Reader) error { return lines(r, fn) })
}

// all runs fn for each operand, of which there must be one, reports failures
// and returns the status.
func (c *Call) all(names []string, fn func(name string) error) int {
	if len(names) == 0 {
		return c.usage("missing operand")
	}
	code := 0
	for _, name := range names {
		err := fn(name)
		if err != nil && c.out.Flush() != nil { // it was the output; Run tells
			return 1
		}
		if err != nil {
			code = c.fail(name, err)
		}
		if c.ctx.Err() != nil {
			return 1
		}
	}
	return code
}

// spawn runs another command, without input, after what was printed so far.
func (c *Call) spawn(args []string) int {
	_ = c.out.Flush() // a failure shows at the end
	sub := *c
	sub.Args, sub.Stdin = args, strings.NewReader("")
	return c.Exec(c.ctx, sub)
}

// errStop ends lines early, without an error.
var errStop = errors.New("stop")

// slurp reads an input to its end.
func slurp(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxInput+1))
	if err == nil && len(data) > maxInput {
		err = errInput
	}
	return data, err
}

// load reads one input to its end.
func (c *Call) load(name string) ([]byte, error) {
	r, err := c.open(name)
	if err != nil {
		return nil, err
	}
	return slurp(r)
}

// program returns the text of the program that awk, sed or jq is to run: that of
// the -f files, or else the first operand. A fault is reported.
func (c *Call) program(f *flags, text string, given bool) (string, bool) {
	for _, file := range f.vals["f"] {
		data, err := c.load(file)
		if err != nil {
			c.fail(file, err)
			return "", false
		}
		text += string(data) + "\n"
	}
	if !given && !f.has("f") {
		if len(f.args) == 0 {
			c.errorf("no program")
			return "", false
		}
		text, f.args = f.args[0], f.args[1:]
	}
	if err := CheckSource(text); err != nil {
		c.errorf("%v", err)
		return "", false
	}
	return text, true
}

// slurpAll reads all inputs, one after the other.
func (c *Call) slurpAll(names []string) (data []byte, code int) {
	code = c.each(names, func(_ string, r io.Reader) error {
		more, err := slurp(r)
		if err == nil && len(data)+len(more) > maxInput {
			err = errInput
		}
		if err == nil {
			data = append(data, more...)
		}
		return err
	})
	return data, code
}

// readLine reads a line without its end; nl tells whether it had one. The line
// is good until the next is read. At the end of the input it returns io.EOF.
func readLine(br *bufio.Reader) (line []byte, nl bool, err error) {
	for {
		part, err := br.ReadSlice('\n')
		if line == nil && err == nil {
			return part[:len(part)-1], true, nil
		}
		if len(line)+len(part) > maxInput {
			return nil, false, errInput
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line[:len(line)-1], true, nil
		case errors.Is(err, io.EOF) && len(line) > 0:
			return line, false, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, false, err
		}
	}
}

// lines calls fn for each line (see readLine).
func lines(r io.Reader, fn func(line []byte, nl bool) error) error {
	br := bufio.NewReader(r)
	for {
		line, nl, err := readLine(br)
		if err == nil {
			err = fn(line, nl)
		}
		if errors.Is(err, io.EOF) || errors.Is(err, errStop) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// splitLines cuts data into lines without their ends.
func splitLines(data []byte) []string {
	if len(data) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

// Why is the reason of an error without its path, worded as other systems do.
func Why(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	s := err.Error()
	return strings.ToUpper(s[:1]) + s[1:]
}
