package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"

	"github.com/heddlehq/heddle/sandbox/virtual/commands"
)

// The interpreter reaches for the host in these places, closed here:
//
//   - <(...) and >(...) make a FIFO in TMPDIR: it reads TMPDIR once, and then
//     gets a path with a NUL, which no system call takes. harden turns <(...)
//     into a file of ours.
//   - ~name reads the user database: environ answers "HOME name" for every name.
//   - type, hash, command, pwd -P stat the host: rewrite runs our own instead.
//   - source looks for its file on the host first: rewrite gives it a path with
//     a NUL, which open turns back.
//   - [[ -O f ]] and -G read the user database: harden makes them -e.
//   - $$ and $PPID are the host's: harden gives them another variable.
//   - alias and unset "x[...]" parse text that harden does not see: refused.
//   - an environment that is not given is the host's: environ is always given.
const nul = "\x00"

// own begins the names of our commands that stand in for builtins.
const own = "__"

// An environ is the environment that a shell begins with.
type environ struct {
	vars    []string // NAME=value, exported
	started bool     // whether the interpreter has read TMPDIR
}

func baseEnv() []string {
	return []string{
		"HOME=" + Dir, "HOSTNAME=sandbox", "LANG=C.UTF-8", "LOGNAME=user", "PATH=/usr/bin:/bin",
		"SHELL=/bin/bash", "TERM=dumb", "TZ=UTC", "USER=user",
	}
}

func (e *environ) Get(name string) expand.Variable {
	if name == "TMPDIR" && !e.started {
		return expand.Variable{Set: true, Kind: expand.String, Str: "/" + nul}
	}
	for _, kv := range slices.Backward(e.vars) {
		if k, v, _ := strings.Cut(kv, "="); k == name {
			return expand.Variable{Set: true, Exported: true, Kind: expand.String, Str: v}
		}
	}
	fixed := expand.Variable{Set: true, ReadOnly: true, Kind: expand.String, Str: "1000"}
	switch user, home := strings.CutPrefix(name, "HOME "); {
	case home:
		fixed.Str = path.Join("/home", user)
		return fixed
	case name == "UID", name == "EUID", name == "GID":
		return fixed
	case name == "HOME": // unset, but the interpreter would ask the host
		return expand.Variable{Set: true, Kind: expand.String, Str: Dir}
	case name == pidVar:
		fixed.Str = "1"
		return fixed
	}
	return expand.Variable{}
}

func (e *environ) Each(fn func(string, expand.Variable) bool) {
	for _, kv := range e.vars {
		k, _, _ := strings.Cut(kv, "=")
		if !fn(k, e.Get(k)) {
			return
		}
	}
}

// exported lists the exported variables of a running shell.
func exported(env expand.Environ) []string {
	vars := map[string]string{}
	env.Each(func(name string, v expand.Variable) bool {
		delete(vars, name)
		if v.Exported && v.IsSet() && v.Kind == expand.String {
			vars[name] = v.Str
		}
		return true
	})
	out := make([]string, 0, len(vars))
	for k, v := range vars {
		out = append(out, k+"="+v)
	}
	slices.Sort(out)
	return out
}

const pidVar = "__pid"

// harden parses a source and takes from it what would reach the host. It
// returns the source as changed, too.
func harden(src, name string) (*syntax.File, string, error) {
	if err := commands.CheckSource(src); err != nil {
		return nil, "", err
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(src), name)
	if err != nil {
		return nil, "", err
	}
	changed := false
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Word:
			for i, part := range n.Parts {
				if ps, ok := part.(*syntax.ProcSubst); ok && ps.Op == syntax.CmdIn {
					n.Parts[i] = substitute(ps)
					changed = true
				}
			}
		case *syntax.ParamExp:
			if n.Param != nil && (n.Param.Value == "$" || n.Param.Value == "PPID") {
				n.Param, n.Short = &syntax.Lit{Value: pidVar}, false
				changed = true
			}
		case *syntax.UnaryTest:
			if n.Op == syntax.TsUsrOwn || n.Op == syntax.TsGrpOwn {
				n.Op = syntax.TsExists
				changed = true
			}
		}
		return true
	})
	if !changed {
		return file, src, nil
	}
	var out bytes.Buffer
	if err := syntax.NewPrinter().Print(&out, file); err != nil {
		return nil, "", err
	}
	return file, out.String(), nil
}

// substitute makes $({ ...; } | __subst) of <(...).
func substitute(ps *syntax.ProcSubst) *syntax.CmdSubst {
	from := &syntax.Stmt{Cmd: &syntax.Block{Stmts: ps.Stmts}}
	to := &syntax.Stmt{Cmd: &syntax.CallExpr{Args: []*syntax.Word{{Parts: []syntax.WordPart{&syntax.Lit{Value: "__subst"}}}}}}
	return &syntax.CmdSubst{Stmts: []*syntax.Stmt{{Cmd: &syntax.BinaryCmd{Op: syntax.Pipe, X: from, Y: to}}}}
}

// subst keeps its input in a file and prints the file's path.
func (p process) subst(c commands.Call) int {
	name := fmt.Sprintf("/tmp/.subst%d", p.shell.substs.Add(1))
	f, err := p.shell.FS.Open(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err == nil {
		_, err = io.Copy(f, c.Stdin)
	}
	if err != nil {
		fmt.Fprintf(c.Stderr, "bash: %s\n", commands.Why(err))
		return 1
	}
	fmt.Fprintln(c.Stdout, name)
	return 0
}

// rewrite changes a simple command so that it stays inside.
func (p process) rewrite(ctx context.Context, args []string) []string {
	hc := interp.HandlerCtx(ctx)
	if args[0] == "command" || args[0] == "builtin" {
		return p.stripped(ctx, args)
	}
	refuse := func(format string, a ...any) []string {
		fmt.Fprintf(hc.Stderr, "bash: "+format+"\n", a...)
		return []string{"false"}
	}
	switch name := args[0]; name {
	case "type", "hash":
		return which(append([]string{"__which", name}, args[1:]...))
	case "pwd", "echo":
		return append([]string{own + name}, args[1:]...)
	case "printf":
		if len(args) > 3 && args[1] == "-v" {
			return p.printfVar(ctx, args)
		}
		return append([]string{own + name}, args[1:]...)
	case "test", "[":
		return ownerless(args)
	case "cd":
		for len(args) > 1 && (args[1] == "--" || args[1] == "-P" || args[1] == "-L") {
			args = append([]string{"cd"}, args[2:]...)
		}
		return args
	case "alias":
		return refuse("alias: not supported; use a function")
	case "unset":
		for _, arg := range args[1:] {
			if strings.ContainsAny(arg, "$`<>") {
				return refuse("unset: %s: not a name", arg)
			}
		}
	case "eval", "trap":
		for i, arg := range args[1:] {
			if name == "eval" {
				arg = strings.Join(args[1:], " ")
			}
			_, src, err := harden(arg, name)
			if err != nil {
				return refuse("%s: %v", name, err)
			}
			args[i+1] = src
			if name == "eval" {
				return args[:2]
			}
		}
	case "source", ".":
		if len(args) > 1 {
			file, ok := p.sourced(hc, args[1])
			if !ok {
				return refuse("%s: No such file or directory", args[1])
			}
			return append([]string{name, nul + file}, args[2:]...)
		}
	}
	return args
}

// stripped rewrites "command x" and "builtin x", which pass by functions.
func (p process) stripped(ctx context.Context, args []string) []string {
	prefix, rest := args[0], args[1:]
	for prefix == "command" && len(rest) > 0 && len(rest[0]) > 1 && rest[0][0] == '-' {
		option := rest[0]
		rest = rest[1:]
		if strings.ContainsAny(option, "vV") && option != "--" {
			return which(append([]string{"__which", "command" + option[:1] + strings.Trim(option, "-p")}, rest...))
		}
	}
	if len(rest) == 0 {
		return []string{"true"}
	}
	inner := p.rewrite(ctx, slices.Clone(rest))
	switch inner[0] {
	case "command", "builtin", "eval", "false":
		return inner
	}
	if strings.HasPrefix(inner[0], own) {
		return inner
	}
	if prefix == "builtin" && !interp.IsBuiltin(inner[0]) {
		return []string{"false"}
	}
	return append([]string{prefix}, inner...)
}

// which makes a script that tells functions from commands: only the
// interpreter knows its functions.
func which(args []string) []string {
	mode, names := args[1], args[2:]
	options := 0
	for options < len(names) && strings.HasPrefix(names[options], "-") {
		options++
	}
	var script strings.Builder
	script.WriteString("true")
	for _, name := range names[options:] {
		found := "echo " + quote(name)
		switch {
		case mode == "hash":
			found = "true"
		case mode == "type" && options > 0 && strings.Contains(names[0], "t"):
			found = "echo function"
		case mode != "command-v":
			found = "echo " + quote(name+" is a function")
		}
		words := quoteAll(slices.Concat([]string{"__which", mode}, names[:options], []string{name}))
		fmt.Fprintf(&script, "; if declare -f %s >/dev/null 2>&1; then %s; else %s; fi", quote(name), found, strings.Join(words, " "))
	}
	return []string{"eval", script.String()}
}

// which prints what a name is, if not a function.
func (p process) which(hc interp.HandlerContext, c commands.Call) int {
	mode, name := c.Args[1], c.Args[len(c.Args)-1]
	short := len(c.Args) > 3 && strings.Contains(c.Args[2], "t")
	file, isFile := p.lookPath(hc, name)
	say := func(brief, kind, long string) int {
		switch {
		case mode == "hash":
		case mode == "command-v":
			fmt.Fprintln(c.Stdout, brief)
		case short:
			fmt.Fprintln(c.Stdout, kind)
		default:
			fmt.Fprintln(c.Stdout, long)
		}
		return 0
	}
	switch {
	case syntax.IsKeyword(name):
		return say(name, "keyword", name+" is a shell keyword")
	case interp.IsBuiltin(name):
		return say(name, "builtin", name+" is a shell builtin")
	case isFile:
		return say(file, "file", name+" is "+file)
	case commands.Known(name) || name == "bash" || name == "sh":
		return say("/usr/bin/"+name, "file", name+" is /usr/bin/"+name)
	}
	if mode == "hash" || mode == "type" && !short {
		fmt.Fprintf(c.Stderr, "bash: %s: %s: not found\n", mode, name)
	}
	return 1
}

// known reports whether a name can be run.
func (p process) known(hc interp.HandlerContext, name string) bool {
	_, file := p.lookPath(hc, name)
	return file || commands.Known(name) || name == "bash" || name == "sh"
}

// printfVar makes an assignment of "printf -v name format...".
func (p process) printfVar(ctx context.Context, args []string) []string {
	hc := interp.HandlerCtx(ctx)
	if !syntax.ValidName(args[2]) {
		fmt.Fprintf(hc.Stderr, "bash: printf: %s: not a name\n", args[2])
		return []string{"false"}
	}
	var out bytes.Buffer
	code := commands.Run(ctx, commands.Call{
		Args: append([]string{"printf"}, args[3:]...), FS: p.shell.FS, Dir: hc.Dir, Stdin: strings.NewReader(""),
		Stdout: &countedWriter{w: &out, most: maxWritten}, Stderr: hc.Stderr, Now: p.shell.Now,
	})
	return []string{"eval", fmt.Sprintf("%s=%s; (exit %d)", args[2], quote(out.String()), code)}
}

// ownerless makes -e of the tests for the owner, who is always the user.
func ownerless(args []string) []string {
	out := slices.Clone(args)
	for i, arg := range out[1:] {
		if arg == "-O" || arg == "-G" {
			out[i+1] = "-e"
		}
	}
	return out
}

// sourced finds the file that source means: along PATH, then in the directory.
func (p process) sourced(hc interp.HandlerContext, name string) (string, bool) {
	if file, ok := p.lookPath(hc, name); ok {
		return file, true
	}
	file := commands.Abs(hc.Dir, name)
	info, err := p.shell.FS.Stat(file)
	return file, err == nil && !info.IsDir()
}

// open opens what redirections name.
func (p process) open(ctx context.Context, name string, flag int, perm os.FileMode) (io.ReadWriteCloser, error) {
	hc := interp.HandlerCtx(ctx)
	if source, ok := strings.CutPrefix(name, nul); ok {
		data, err := p.shell.FS.ReadFile(source)
		if err != nil {
			return nil, pathError(source, err)
		}
		_, src, err := harden(string(data), source)
		if err != nil {
			return nil, pathError(source, err)
		}
		return stream{Reader: strings.NewReader(src)}, nil
	}
	switch name {
	case "/dev/stdin", "/dev/fd/0":
		if hc.Stdin == nil {
			name = "/dev/null"
			break
		}
		return stream{Reader: hc.Stdin}, nil
	case "/dev/stdout", "/dev/fd/1":
		return stream{Writer: hc.Stdout}, nil
	case "/dev/stderr", "/dev/fd/2":
		return stream{Writer: hc.Stderr}, nil
	}
	file := commands.Abs(hc.Dir, name)
	if flag&(os.O_WRONLY|os.O_RDWR) == 0 {
		data, err := p.shell.FS.ReadFile(file)
		if err != nil {
			return nil, pathError(name, err)
		}
		return pipe(data)
	}
	f, err := p.shell.FS.Open(file, flag, perm)
	if err != nil {
		return nil, pathError(name, err)
	}
	return f, nil
}

// pathError words an error as bash does; the interpreter goes on after one.
func pathError(name string, err error) error {
	return &fs.PathError{Op: "bash:", Path: name, Err: errors.New(commands.Why(err))}
}

// pipe returns a pipe that holds data. The interpreter would make one itself,
// but not close its reading end.
func pipe(data []byte) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	if len(data) <= 4096 { // fits into any pipe
		_, err = w.Write(data)
		return r, errors.Join(err, w.Close())
	}
	go func() { // ends when all is read or the interpreter closes r
		_, _ = w.Write(data)
		_ = w.Close()
	}()
	return r, nil
}

// A stream is one of the standard files, not closed.
type stream struct {
	io.Reader
	io.Writer
}

func (stream) Close() error { return nil }

func (p process) readDir(ctx context.Context, name string) ([]fs.DirEntry, error) {
	infos, err := p.shell.FS.ReadDir(commands.Abs(interp.HandlerCtx(ctx).Dir, name))
	entries := make([]fs.DirEntry, len(infos))
	for i, info := range infos {
		entries[i] = fs.FileInfoToDirEntry(info)
	}
	return entries, err
}

func (p process) stat(ctx context.Context, name string, follow bool) (fs.FileInfo, error) {
	name = commands.Abs(interp.HandlerCtx(ctx).Dir, name)
	if follow {
		return p.shell.FS.Stat(name)
	}
	return p.shell.FS.Lstat(name)
}

// access has the owner's bits decide.
func (p process) access(_ context.Context, name string, mode interp.AccessMode) error {
	info, err := p.shell.FS.Stat(name)
	if err == nil && uint32(info.Mode().Perm()>>6)&uint32(mode) != uint32(mode) {
		err = &fs.PathError{Op: "access", Path: name, Err: syscall.EACCES}
	}
	return err
}
