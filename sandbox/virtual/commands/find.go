package commands

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heddlehq/heddle/sandbox/virtual/memfs"
)

// A found is a file that find looks at.
type found struct {
	name  string
	depth int
	info  memfs.Info
	prune bool
}

type test func(*found) bool

// A findRun parses and walks.
type findRun struct {
	c        *Call
	args     []string // what is left to parse
	acts     bool     // an action was given, so that -print is not implied
	min, max int
	postfix  bool // -depth or -delete: contents before the directory
	code     int
	quit     bool
	batches  []*findBatch
}

// A findBatch is one -exec ... {} +.
type findBatch struct {
	args  []string
	names []string
}

func find(c *Call, given *flags) int {
	f := &findRun{c: c, args: given.args, max: 1000}
	var roots []string
	for f.peek() == "-L" || f.peek() == "-P" {
		f.args = f.args[1:]
	}
	for len(f.args) > 0 && f.args[0] != "(" && f.args[0] != "!" && !strings.HasPrefix(f.args[0], "-") {
		roots, f.args = append(roots, f.args[0]), f.args[1:]
	}
	if len(roots) == 0 {
		roots = []string{"."}
	}
	if len(f.args) == 0 {
		f.args = []string{"-true"}
	}
	expr, err := f.or()
	if err == nil && len(f.args) > 0 {
		err = fmt.Errorf("unexpected %q", f.args[0])
	}
	if err != nil {
		return c.usage("%v", err)
	}
	for _, root := range roots {
		info, err := c.FS.Lstat(c.abs(root))
		if err != nil {
			f.code = c.fail(root, err)
			continue
		}
		f.visit(&found{name: root, info: info}, expr)
	}
	for _, b := range f.batches {
		if len(b.names) > 0 && c.spawn(slices.Concat(b.args, b.names)) != 0 {
			f.code = 1
		}
	}
	return f.code
}

func (f *findRun) visit(x *found, expr test) {
	if f.quit || f.c.ctx.Err() != nil {
		return
	}
	try := func() {
		if x.depth >= f.min && expr(x) && !f.acts {
			f.c.printf("%s\n", x.name)
		}
	}
	if !f.postfix {
		try()
	}
	if x.info.IsDir() && !x.prune && x.depth < f.max && !f.quit {
		infos, err := f.c.FS.ReadDir(f.c.abs(x.name))
		if err != nil {
			f.code = f.c.fail(x.name, err)
		}
		for _, info := range infos {
			f.visit(&found{name: strings.TrimSuffix(x.name, "/") + "/" + info.Name(), depth: x.depth + 1, info: info}, expr)
		}
	}
	if f.postfix && !f.quit {
		try()
	}
}

// peek returns the next argument, "" at the end.
func (f *findRun) peek() string {
	if len(f.args) == 0 {
		return ""
	}
	return f.args[0]
}

func (f *findRun) or() (test, error) {
	a, err := f.and()
	if err != nil || f.peek() != "-o" && f.peek() != "-or" {
		return a, err
	}
	f.args = f.args[1:]
	b, err := f.or()
	return func(x *found) bool { return a(x) || b(x) }, err
}

func (f *findRun) and() (test, error) {
	a, err := f.not()
	if next := f.peek(); err != nil || next == "" || next == "-o" || next == "-or" || next == ")" {
		return a, err
	}
	if f.peek() == "-a" || f.peek() == "-and" {
		f.args = f.args[1:]
	}
	b, err := f.and()
	return func(x *found) bool { return a(x) && b(x) }, err
}

func (f *findRun) not() (test, error) {
	arg, err := f.next("expression")
	if err != nil {
		return nil, err
	}
	switch arg {
	case "!", "-not":
		t, err := f.not()
		return func(x *found) bool { return !t(x) }, err
	case "(":
		t, err := f.or()
		if err != nil {
			return nil, err
		}
		if end, err := f.next(")"); err != nil || end != ")" {
			return nil, fmt.Errorf("missing )")
		}
		return t, nil
	}
	return f.primary(arg)
}

func (f *findRun) next(what string) (string, error) {
	if len(f.args) == 0 {
		return "", fmt.Errorf("missing %s", what)
	}
	arg := f.args[0]
	f.args = f.args[1:]
	return arg, nil
}

// primary parses a test or an action.
func (f *findRun) primary(name string) (test, error) {
	yes := func(*found) bool { return true }
	switch name {
	case "-true":
		return yes, nil
	case "-depth":
		f.postfix = true
		return yes, nil
	case "-empty":
		return func(x *found) bool {
			if x.info.IsDir() {
				kids, _ := f.c.FS.ReadDir(f.c.abs(x.name))
				return len(kids) == 0
			}
			return x.info.Mode().IsRegular() && x.info.Size() == 0
		}, nil
	case "-print", "-print0", "-prune", "-quit", "-delete":
		return f.action(name), nil
	case "-exec":
		return f.execAction()
	}
	arg, err := f.next("argument of " + name)
	if err != nil {
		return nil, err
	}
	switch name {
	case "-name", "-iname", "-path", "-ipath", "-wholename":
		_, err := wildcard(arg, "", false)
		return func(x *found) bool {
			subject := x.name
			if name == "-name" || name == "-iname" {
				subject = path.Base(subject)
			}
			ok, _ := wildcard(arg, subject, strings.HasPrefix(name, "-i")) // was tried above
			return ok
		}, err
	case "-type":
		return func(x *found) bool { return strings.Contains(arg, typeLetter(x.info.Mode())) }, nil
	case "-maxdepth", "-mindepth":
		n, err := strconv.Atoi(arg)
		if name == "-maxdepth" {
			f.max = n
		} else {
			f.min = n
		}
		return yes, err
	case "-newer":
		ref, err := f.c.FS.Stat(f.c.abs(arg))
		return func(x *found) bool { return x.info.ModTime().After(ref.ModTime()) }, err
	case "-size":
		return sizeTest(arg)
	case "-mtime", "-mmin":
		unit := 24 * time.Hour
		if name == "-mmin" {
			unit = time.Minute
		}
		cmp, err := compared(arg)
		return func(x *found) bool { return cmp(int64(f.c.Now().Sub(x.info.ModTime()) / unit)) }, err
	}
	return nil, fmt.Errorf("unsupported %s", name)
}

func typeLetter(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "d"
	case m&fs.ModeSymlink != 0:
		return "l"
	case m.IsRegular():
		return "f"
	}
	return "c"
}

// compared parses +n, -n or n.
func compared(arg string) (func(int64) bool, error) {
	n, err := strconv.ParseInt(strings.TrimLeft(arg, "+-"), 10, 64)
	switch {
	case strings.HasPrefix(arg, "+"):
		return func(v int64) bool { return v > n }, err
	case strings.HasPrefix(arg, "-"):
		return func(v int64) bool { return v < n }, err
	}
	return func(v int64) bool { return v == n }, err
}

func sizeTest(arg string) (test, error) {
	unit := int64(512)
	if at := strings.IndexAny(arg, "ckMG"); at >= 0 && at == len(arg)-1 {
		unit = map[byte]int64{'c': 1, 'k': 1 << 10, 'M': 1 << 20, 'G': 1 << 30}[arg[at]]
		arg = arg[:at]
	}
	cmp, err := compared(arg)
	return func(x *found) bool { return cmp((x.info.Size() + unit - 1) / unit) }, err
}

func (f *findRun) action(name string) test {
	f.acts = f.acts || name != "-prune" && name != "-quit"
	f.postfix = f.postfix || name == "-delete"
	return func(x *found) bool {
		switch name {
		case "-print":
			f.c.printf("%s\n", x.name)
		case "-print0":
			f.c.printf("%s\x00", x.name)
		case "-prune":
			x.prune = true
		case "-quit":
			f.quit = true
		case "-delete":
			if x.name == "." {
				return true
			}
			if err := f.c.FS.Remove(f.c.abs(x.name)); err != nil {
				f.code = f.c.fail(x.name, err)
				return false
			}
		}
		return true
	}
}

func (f *findRun) execAction() (test, error) {
	f.acts = true
	var args []string
	for {
		arg, err := f.next("; after -exec")
		switch {
		case err != nil:
			return nil, err
		case arg == ";" && len(args) > 0:
			return func(x *found) bool {
				return f.c.spawn(replaceAll(args, "{}", x.name)) == 0
			}, nil
		case arg == "+" && len(args) > 1 && args[len(args)-1] == "{}":
			b := &findBatch{args: args[:len(args)-1]}
			f.batches = append(f.batches, b)
			return func(x *found) bool { b.names = append(b.names, x.name); return true }, nil
		}
		args = append(args, arg)
	}
}
