// Package shell interprets bash scripts over a file tree in memory. The
// interpreter is mvdan.cc/sh with every way to the host closed: see leaks.go.
package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"

	"github.com/heddlehq/heddle/sandbox/virtual/commands"
	"github.com/heddlehq/heddle/sandbox/virtual/memfs"
)

// Limits of a script besides time and memory.
const (
	maxFrames     = 6000     // of the interpreter's stack: some 600 calls deep
	maxGoroutines = 5000     // jobs and pipes at once
	maxShells     = 20       // scripts that run scripts
	maxWritten    = 32 << 20 // bytes that one command writes to a variable or the output
)

// A Shell runs scripts over one tree. Scripts may run at once.
type Shell struct {
	FS  *memfs.FS
	Now func() time.Time

	substs atomic.Int64 // files made for <(...)
}

// Dir is where scripts start.
const Dir = "/home/user"

// Run runs a script from Dir and returns its exit status. Both of its outputs
// go to out, which need not be safe for use at once. It returns soon after ctx
// ends; background jobs end with the script.
func (s *Shell) Run(ctx context.Context, script string, out io.Writer) int {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := s.FS.MkdirAll(Dir, 0o755); err != nil {
		fmt.Fprintln(out, "bash:", commands.Why(err))
		return 1
	}
	both := &lockedWriter{w: out}
	defer both.close()
	p := process{shell: s, dir: Dir, env: baseEnv(), stdout: both, stderr: both}
	return p.run(ctx, script, "bash", nil)
}

// A process is one shell: the script itself or a "bash" that it starts.
type process struct {
	shell          *Shell
	level          int // of shells started by shells
	dir            string
	env            []string
	stdin          io.Reader // nil is empty
	stdout, stderr io.Writer
}

// run interprets a source with its positional parameters.
func (p process) run(ctx context.Context, src, name string, params []string) int {
	file, _, err := harden(src, name)
	if err != nil {
		fmt.Fprintf(p.stderr, "%s: %v\n", name, err)
		return 2
	}
	env := &environ{vars: p.env}
	r, err := interp.New(
		interp.Env(env),
		interp.Params(append([]string{"--"}, params...)...),
		interp.StdIO(p.stdin, p.stdout, p.stderr),
		interp.CallHandler(p.call),
		interp.ExecHandlers(func(interp.ExecHandlerFunc) interp.ExecHandlerFunc { return p.exec }),
		interp.OpenHandler(p.open),
		interp.ReadDirHandler2(p.readDir),
		interp.StatHandler(p.stat),
		interp.AccessHandler(p.access),
		func(r *interp.Runner) error { r.Dir = p.dir; return nil }, // interp.Dir would ask the host
	)
	if err != nil {
		fmt.Fprintf(p.stderr, "%s: %v\n", name, err)
		return 2
	}
	r.Reset()
	env.started = true
	err = r.Run(ctx, file)
	var status interp.ExitStatus
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return int(status)
	case ctx.Err() == nil:
		fmt.Fprintf(p.stderr, "%s: %v\n", name, err)
	}
	return 1
}

var (
	errDeep = errors.New("calls are nested too deeply")
	errJobs = errors.New("too many jobs at once")
)

// call runs before every simple command and may change it.
func (p process) call(ctx context.Context, args []string) ([]string, error) {
	var pc [1]uintptr
	if runtime.Callers(maxFrames, pc[:]) > 0 {
		return nil, errDeep
	}
	if runtime.NumGoroutine() > maxGoroutines {
		return nil, errJobs
	}
	return p.rewrite(ctx, args), nil
}

// exec runs what is neither a function nor a builtin.
func (p process) exec(ctx context.Context, args []string) error {
	hc := interp.HandlerCtx(ctx)
	out := &countedWriter{w: hc.Stdout}
	if _, pipe := hc.Stdout.(*os.File); !pipe {
		out.most = maxWritten
	}
	c := commands.Call{
		Args: args, FS: p.shell.FS, Dir: hc.Dir, Stdin: hc.Stdin, Stdout: out, Stderr: hc.Stderr,
		Env: func() []string { return exported(hc.Env) }, Now: p.shell.Now,
	}
	if hc.Stdin == nil {
		c.Stdin = strings.NewReader("")
	}
	c.Known = func(name string) bool { return p.known(hc, name) }
	c.Exec = func(ctx context.Context, c commands.Call) int { return p.program(ctx, hc, c) }
	code := p.program(ctx, hc, c)
	if out.broken { // as a signal would end it
		return hc.Builtin(ctx, []string{"exit", "141"})
	}
	if code != 0 {
		return interp.ExitStatus(code)
	}
	return nil
}

// program runs a command, a shell or a script by its name.
func (p process) program(ctx context.Context, hc interp.HandlerContext, c commands.Call) (code int) {
	defer func() {
		if e := recover(); e != nil { // a fault in a command of ours is the command's failure
			fmt.Fprintf(c.Stderr, "%s: internal error\n", c.Args[0])
			code = 70
		}
	}()
	switch name := strings.TrimPrefix(c.Args[0], own); name {
	case "echo", "printf", "pwd":
		c.Args = append([]string{name}, c.Args[1:]...)
	}
	name := c.Args[0]
	switch path.Base(name) {
	case "bash", "sh":
		return p.bash(ctx, c)
	case "[", "test", ":":
		var status interp.ExitStatus
		if err := hc.Builtin(ctx, ownerless(c.Args)); err != nil && !errors.As(err, &status) {
			return exitOf(err)
		}
		return int(status)
	case "__subst":
		return p.subst(c)
	case "__which":
		return p.which(hc, c)
	}
	if !strings.Contains(name, "/") && commands.Known(name) {
		return commands.Run(ctx, c)
	}
	file, ok := p.lookPath(hc, name)
	if !ok {
		if dir := path.Dir(name); (dir == "/bin" || dir == "/usr/bin") && commands.Known(path.Base(name)) {
			return commands.Run(ctx, c)
		}
		if strings.Contains(name, "/") {
			fmt.Fprintf(c.Stderr, "bash: %s: No such file or directory\n", name)
		} else {
			fmt.Fprintf(c.Stderr, "bash: %s: command not found\n", name)
		}
		return 127
	}
	return p.script(ctx, c, file)
}

// exitOf finds the status in what HandlerContext.Builtin returns.
func exitOf(err error) int {
	code := 1
	_, _ = fmt.Sscanf(err.Error(), "builtin exit status %d", &code)
	return code
}

// lookPath finds an executable file by its path or along PATH.
func (p process) lookPath(hc interp.HandlerContext, name string) (string, bool) {
	candidates := []string{commands.Abs(hc.Dir, name)}
	if !strings.Contains(name, "/") {
		candidates = nil
		for dir := range strings.SplitSeq(hc.Env.Get("PATH").String(), ":") {
			candidates = append(candidates, path.Join(commands.Abs(hc.Dir, dir), name))
		}
	}
	for _, file := range candidates {
		if info, err := p.shell.FS.Stat(file); err == nil && !info.IsDir() {
			return file, true
		}
	}
	return "", false
}

// script runs an executable file by its first line.
func (p process) script(ctx context.Context, c commands.Call, file string) int {
	info, err := p.shell.FS.Stat(file)
	if err == nil && info.Mode()&0o111 == 0 {
		err = fs.ErrPermission
	}
	if err != nil {
		fmt.Fprintf(c.Stderr, "bash: %s: Permission denied\n", c.Args[0])
		return 126
	}
	src, _ := p.shell.FS.ReadFile(file) // an empty script, if it has gone
	line, _, _ := strings.Cut(string(src), "\n")
	with := []string{"bash"}
	if rest, ok := strings.CutPrefix(line, "#!"); ok {
		if with = strings.Fields(rest); len(with) > 0 && path.Base(with[0]) == "env" {
			with = with[1:]
		}
		if len(with) == 0 {
			with = []string{"bash"}
		}
		with[0] = path.Base(with[0])
	}
	if strings.Contains(c.Args[0], "/") {
		file = c.Args[0]
	}
	c.Args = slices.Concat(with, []string{file}, c.Args[1:])
	if with[0] == "bash" || with[0] == "sh" {
		return p.bash(ctx, c)
	}
	return commands.Run(ctx, c)
}

// bash runs "bash [-eux] [-c source] [file] [arg...]".
func (p process) bash(ctx context.Context, c commands.Call) int {
	if p.level >= maxShells {
		fmt.Fprintf(c.Stderr, "bash: shells are nested too deeply\n")
		return 1
	}
	args, options, inline := c.Args[1:], []string(nil), false
	for len(args) > 0 && len(args[0]) > 1 && (args[0][0] == '-' || args[0][0] == '+') {
		arg := args[0]
		args = args[1:]
		if arg == "--" {
			break
		}
		if strings.HasPrefix(arg, "--") { // --norc and the like
			continue
		}
		inline = inline || strings.Contains(arg, "c")
		if arg = strings.Trim(arg, "cls"); len(arg) > 1 {
			options = append(options, arg)
			if strings.HasSuffix(arg, "o") && len(args) > 0 {
				options, args = append(options, args[0]), args[1:]
			}
		}
	}
	var src []byte
	var err error
	name, fromStdin := "bash", false
	switch {
	case inline && len(args) == 0:
		err = errors.New("-c needs a source")
	case inline:
		src, args = []byte(args[0]), args[1:]
		if len(args) > 0 {
			name, args = args[0], args[1:]
		}
	case len(args) > 0:
		name = args[0]
		src, err = p.shell.FS.ReadFile(commands.Abs(c.Dir, name))
		args = args[1:]
	default:
		fromStdin = true
		src, err = io.ReadAll(io.LimitReader(c.Stdin, 64<<10))
	}
	if err != nil {
		fmt.Fprintf(c.Stderr, "bash: %s: %s\n", name, commands.Why(err))
		return 127
	}
	text := string(src)
	if len(options) > 0 {
		text = "set " + strings.Join(quoteAll(options), " ") + "\n" + text
	}
	inner := process{shell: p.shell, level: p.level + 1, dir: c.Dir, env: c.Env(), stdout: c.Stdout, stderr: c.Stderr}
	if !fromStdin {
		inner.stdin = c.Stdin
	}
	return inner.run(ctx, text, name, args)
}

func quoteAll(words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = quote(w)
	}
	return out
}

// quote makes a word that the shell reads as s.
func quote(s string) string {
	q, err := syntax.Quote(s, syntax.LangBash)
	if err != nil { // a NUL, which no word can hold
		return "''"
	}
	return q
}

// A lockedWriter lets several goroutines write, and none once it is closed:
// background jobs may outlive their script by a moment.
type lockedWriter struct {
	mu     sync.Mutex
	w      io.Writer
	closed bool
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, os.ErrClosed
	}
	return l.w.Write(p)
}

func (l *lockedWriter) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
}

// A countedWriter ends a command that writes too much, and notes a pipe that
// nobody reads any more.
type countedWriter struct {
	w      io.Writer
	most   int // 0 means no bound
	n      int
	broken bool
}

func (c *countedWriter) Write(p []byte) (int, error) {
	if c.n += len(p); c.most > 0 && c.n > c.most {
		return 0, fmt.Errorf("more than %d MiB from one command", c.most>>20)
	}
	n, err := c.w.Write(p)
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) {
		c.broken = true
		err = syscall.EPIPE
	}
	return n, err
}
