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

type command func(c *Call) int

// Run runs the command that Args[0] names and returns its exit status, 127 if
// there is none. It ends soon after ctx ends.
func Run(ctx context.Context, c Call) int {
	run := table[path.Base(c.Args[0])]
	if run == nil {
		fmt.Fprintf(c.Stderr, "%s: command not found\n", c.Args[0])
		return 127
	}
	c.ctx = ctx
	c.Stdin = guardedReader{ctx, c.Stdin}
	c.out = bufio.NewWriter(guardedWriter{ctx, c.Stdout})
	code := run(&c)
	if err := c.out.Flush(); err != nil {
		if !errors.Is(err, syscall.EPIPE) && ctx.Err() == nil {
			c.errorf("write error: %s", why(err))
		}
		code = max(code, 1)
	}
	return code
}

// Known reports whether there is a command of that name.
func Known(name string) bool { return table[name] != nil }

// A guardedReader fails once its context has ended.
type guardedReader struct {
	ctx context.Context
	r   io.Reader
}

func (g guardedReader) Read(p []byte) (int, error) {
	if err := g.ctx.Err(); err != nil {
		return 0, err
	}
	return g.r.Read(p)
}

type guardedWriter struct {
	ctx context.Context
	w   io.Writer
}

func (g guardedWriter) Write(p []byte) (int, error) {
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

func (c *Call) printf(format string, args ...any) { fmt.Fprintf(c.out, format, args...) }

// env returns a variable, "" if it is not exported.
func (c *Call) env(name string) string {
	for _, kv := range c.Env() {
		if k, v, _ := strings.Cut(kv, "="); k == name {
			return v
		}
	}
	return ""
}

// abs makes a path absolute.
func (c *Call) abs(name string) string { return Abs(c.Dir, name) }

// Abs makes a path absolute, keeping "" as it leads nowhere.
func Abs(dir, name string) string {
	if name == "" || path.IsAbs(name) {
		return name
	}
	return path.Join(dir, name)
}

// exists reports whether a path leads to a file.
func (c *Call) exists(name string) bool {
	_, err := c.FS.Stat(c.abs(name))
	return err == nil
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
	return guardedReader{c.ctx, f}, nil
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

// each calls fn for every input, the standard input if there are no names, and
// reports those that fail. It returns 1 if one did.
func (c *Call) each(names []string, fn func(name string, r io.Reader) error) int {
	if len(names) == 0 {
		names = []string{"-"}
	}
	code := 0
	for _, name := range names {
		r, err := c.open(name)
		if err == nil {
			err = fn(name, r)
		}
		if errors.Is(err, errStop) {
			break
		}
		if err != nil && c.out.Flush() != nil { // it was the output; Run tells
			return 1
		}
		if err != nil {
			c.errorf("%s: %s", name, why(err))
			code = 1
		}
		if c.ctx.Err() != nil {
			return 1
		}
	}
	return code
}

// errStop ends each and lines early, without a message.
var errStop = errors.New("stop")

// slurp reads an input to its end.
func slurp(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxInput+1))
	if err == nil && len(data) > maxInput {
		err = errInput
	}
	return data, err
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

// lines calls fn for each line without its end; nl tells whether it had one.
func lines(r io.Reader, end byte, fn func(line []byte, nl bool) error) error {
	br := bufio.NewReader(r)
	var long []byte
	for {
		part, err := br.ReadSlice(end)
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
			return err
		}
		line := part
		if long != nil || err != nil {
			if len(long)+len(part) > maxInput {
				return errInput
			}
			long = append(long, part...)
			line = long
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			if len(line) == 0 {
				return nil
			}
			return fn(line, false)
		}
		long = nil
		if err := fn(line[:len(line)-1], true); err != nil {
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

// why is the reason of an error, worded as other systems do.
func why(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	s := err.Error()
	return strings.ToUpper(s[:1]) + s[1:]
}

// Why is the reason of an error without its path.
func Why(err error) string { return why(err) }
