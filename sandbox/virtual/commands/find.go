package commands

import (
	"fmt"
	"io"
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

func find(c *Call) int {
	f := &findRun{c: c, args: c.Args[1:], max: 1000}
	var roots []string
	for len(f.args) > 0 && (f.args[0] == "-L" || f.args[0] == "-P" || f.args[0] == "-H") {
		f.args = f.args[1:]
	}
	for len(f.args) > 0 && f.args[0] != "(" && f.args[0] != "!" && !strings.HasPrefix(f.args[0], "-") {
		roots, f.args = append(roots, f.args[0]), f.args[1:]
	}
	if len(roots) == 0 {
		roots = []string{"."}
	}
	expr := test(func(*found) bool { return true })
	if len(f.args) > 0 {
		var err error
		if expr, err = f.or(); err == nil && len(f.args) > 0 {
			err = fmt.Errorf("unexpected %q", f.args[0])
		}
		if err != nil {
			return c.usage("%v", err)
		}
	}
	for _, root := range roots {
		info, err := c.FS.Lstat(c.abs(root))
		if err != nil {
			c.errorf("'%s': %s", root, why(err))
			f.code = 1
			continue
		}
		f.visit(&found{name: root, info: info}, expr)
	}
	for _, b := range f.batches {
		if len(b.names) > 0 && !f.exec(slices.Concat(b.args, b.names)) {
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
			f.c.errorf("'%s': %s", x.name, why(err))
			f.code = 1
		}
		for _, info := range infos {
			f.visit(&found{name: strings.TrimSuffix(x.name, "/") + "/" + info.Name(), depth: x.depth + 1, info: info}, expr)
		}
	}
	if f.postfix && !f.quit {
		try()
	}
}

func (f *findRun) or() (test, error) {
	a, err := f.and()
	for err == nil && len(f.args) > 0 && (f.args[0] == "-o" || f.args[0] == "-or") {
		f.args = f.args[1:]
		var b test
		left := a
		if b, err = f.and(); err == nil {
			a = func(x *found) bool { return left(x) || b(x) }
		}
	}
	return a, err
}

func (f *findRun) and() (test, error) {
	a, err := f.not()
	for err == nil && len(f.args) > 0 && f.args[0] != "-o" && f.args[0] != "-or" && f.args[0] != ")" {
		if f.args[0] == "-a" || f.args[0] == "-and" {
			f.args = f.args[1:]
		}
		var b test
		left := a
		if b, err = f.not(); err == nil {
			a = func(x *found) bool { return left(x) && b(x) }
		}
	}
	return a, err
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
	case "-false":
		return func(*found) bool { return false }, nil
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
	case "-print", "-print0", "-prune", "-quit", "-delete", "-ls":
		return f.action(name), nil
	case "-exec", "-execdir", "-ok":
		return f.execAction()
	}
	arg, err := f.next("argument of " + name)
	if err != nil {
		return nil, err
	}
	switch name {
	case "-name", "-iname", "-path", "-ipath", "-wholename":
		re, err := wildcard(arg, strings.HasPrefix(name, "-i"))
		whole := !strings.HasSuffix(name, "-name") && name != "-iname"
		return func(x *found) bool {
			if whole {
				return re.MatchString(x.name)
			}
			return re.MatchString(path.Base(x.name))
		}, err
	case "-regex", "-iregex":
		re, err := compile("^(?:"+arg+")$", perl, name == "-iregex")
		return func(x *found) bool { return re.MatchString(x.name) }, err
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
	case "-perm":
		mode, err := strconv.ParseUint(strings.TrimLeft(arg, "-/"), 8, 32)
		return func(x *found) bool {
			got := uint64(x.info.Mode().Perm())
			switch arg[0] {
			case '-':
				return got&mode == mode
			case '/':
				return got&mode != 0
			}
			return got == mode
		}, err
	case "-printf":
		f.acts = true
		return func(x *found) bool { f.printf(arg, x); return true }, nil
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
	if at := strings.IndexByte("cwbkMG", arg[max(0, len(arg)-1)]); at >= 0 {
		unit = []int64{1, 2, 512, 1 << 10, 1 << 20, 1 << 30}[at]
		arg = arg[:len(arg)-1]
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
		case "-ls":
			f.c.printf("%s %8d %s %s\n", modeString(x.info.Mode()), x.info.Size(), x.info.ModTime().UTC().Format("Jan _2 15:04"), x.name)
		case "-prune":
			x.prune = true
		case "-quit":
			f.quit = true
		case "-delete":
			if x.name == "." {
				return true
			}
			if err := f.c.FS.Remove(f.c.abs(x.name)); err != nil {
				f.c.errorf("cannot delete '%s': %s", x.name, why(err))
				f.code = 1
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
				with := slices.Clone(args)
				for i := range with {
					with[i] = strings.ReplaceAll(with[i], "{}", x.name)
				}
				return f.exec(with)
			}, nil
		case arg == "+" && len(args) > 1 && args[len(args)-1] == "{}":
			b := &findBatch{args: args[:len(args)-1]}
			f.batches = append(f.batches, b)
			return func(x *found) bool { b.names = append(b.names, x.name); return true }, nil
		}
		args = append(args, arg)
	}
}

func (f *findRun) exec(args []string) bool {
	_ = f.c.out.Flush()
	sub := *f.c
	sub.Args, sub.Stdin = args, strings.NewReader("")
	return f.c.Exec(f.c.ctx, sub) == 0
}

// printf writes a -printf format.
func (f *findRun) printf(format string, x *found) {
	format, _ = unescape(format, false)
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			_, _ = io.WriteString(f.c.out, format[i:i+1])
			continue
		}
		i++
		switch format[i] {
		case 'p':
			f.c.printf("%s", x.name)
		case 'f':
			f.c.printf("%s", path.Base(x.name))
		case 'h':
			f.c.printf("%s", path.Dir(x.name))
		case 's':
			f.c.printf("%d", x.info.Size())
		case 'd':
			f.c.printf("%d", x.depth)
		case 'm':
			f.c.printf("%o", x.info.Mode().Perm())
		case 'y':
			f.c.printf("%s", typeLetter(x.info.Mode()))
		case '%':
			f.c.printf("%%")
		default:
			f.c.printf("%%%c", format[i])
		}
	}
}
