package commands

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"

	"github.com/heddlehq/heddle/sandbox/virtual/memfs"
)

// all runs fn for each operand, reports failures and returns the status.
func (c *Call) all(names []string, least int, fn func(name string) error) int {
	if len(names) < least {
		return c.usage("missing operand")
	}
	code := 0
	for _, name := range names {
		if err := fn(name); err != nil {
			c.errorf("%s: %s", name, why(err))
			code = 1
		}
		if c.ctx.Err() != nil {
			return 1
		}
	}
	return code
}

func mkdir(c *Call) int {
	f, ok := c.flags("p|parents v|verbose m|mode:")
	if !ok {
		return 2
	}
	mode, err := strconv.ParseUint(f.str("m", "755"), 8, 12)
	if err != nil {
		return c.usage("bad mode %s", f.str("m", ""))
	}
	return c.all(f.args, 1, func(name string) error {
		err := c.FS.Mkdir(c.abs(name), fs.FileMode(mode))
		if f.has("p") {
			if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
				err = c.FS.MkdirAll(c.abs(name), fs.FileMode(mode))
			}
		}
		if err == nil && f.has("v") {
			c.printf("mkdir: created directory '%s'\n", name)
		}
		return err
	})
}

func rmdir(c *Call) int {
	f, ok := c.flags("p|parents v|verbose")
	if !ok {
		return 2
	}
	return c.all(f.args, 1, func(name string) error {
		for {
			info, err := c.FS.Lstat(c.abs(name))
			if err == nil && !info.IsDir() {
				err = syscall.ENOTDIR
			}
			if err == nil {
				err = c.FS.Remove(c.abs(name))
			}
			if name = path.Dir(name); err != nil || !f.has("p") || name == "." || name == "/" {
				return err
			}
		}
	})
}

func rm(c *Call) int {
	f, ok := c.flags("r|R|recursive f|force v|verbose d|dir i")
	if !ok {
		return 2
	}
	least := 1
	if f.has("f") {
		least = 0
	}
	return c.all(f.args, least, func(name string) error {
		info, err := c.FS.Lstat(c.abs(name))
		switch {
		case err != nil && f.has("f"):
			return nil
		case err != nil:
			return err
		case path.Base(name) == "." || path.Base(name) == ".." || path.Clean(c.abs(name)) == "/":
			return errors.New("refusing to remove this directory")
		case f.has("r"):
			err = c.FS.RemoveAll(c.abs(name))
		case info.IsDir() && !f.has("d"):
			return syscall.EISDIR
		default:
			err = c.FS.Remove(c.abs(name))
		}
		if err == nil && f.has("v") {
			c.printf("removed '%s'\n", name)
		}
		return err
	})
}

// targets splits the operands of cp, mv and ln into sources and where each goes.
func (c *Call) targets(f *flags) (from, to []string, ok bool) {
	args := f.args
	if f.has("t") {
		args = append(args, f.str("t", ""))
	}
	if len(args) < 2 {
		c.errorf("missing operand")
		return nil, nil, false
	}
	from, last := args[:len(args)-1], args[len(args)-1]
	info, err := c.FS.Stat(c.abs(last))
	dir := err == nil && info.IsDir() && !f.has("T")
	if !dir && len(from) > 1 {
		c.errorf("target '%s' is not a directory", last)
		return nil, nil, false
	}
	for _, name := range from {
		if dir {
			to = append(to, path.Join(last, path.Base(path.Clean(name))))
		} else {
			to = append(to, last)
		}
	}
	return from, to, true
}

func cp(c *Call) int {
	f, ok := c.flags("r|R|recursive a|archive p f|force n|no-clobber v|verbose t|target-directory: T|no-target-directory L P d")
	if !ok {
		return 2
	}
	from, to, ok := c.targets(f)
	if !ok {
		return 1
	}
	i := -1
	return c.all(from, 1, func(name string) error {
		i++
		info, err := c.FS.Stat(c.abs(name))
		if err != nil {
			return err
		}
		if info.IsDir() && !f.has("r") && !f.has("a") {
			return errors.New("-r not specified; omitting directory")
		}
		if dst, err := c.FS.Stat(c.abs(to[i])); err == nil {
			if memfs.Same(info, dst) {
				return errors.New("source and target are the same file")
			}
			if f.has("n") {
				return nil
			}
		}
		src, dst := path.Clean(c.abs(name)), path.Clean(c.abs(to[i]))
		if info.IsDir() && strings.HasPrefix(dst+"/", src+"/") {
			return errors.New("cannot copy a directory into itself")
		}
		if f.has("v") {
			c.printf("'%s' -> '%s'\n", name, to[i])
		}
		return c.copy(src, dst, f.has("p") || f.has("a"))
	})
}

// copy copies a file or a directory with all in it.
func (c *Call) copy(from, to string, keepTime bool) error {
	info, err := c.FS.Lstat(from)
	if err != nil {
		return err
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0 && keepTime:
		target, err := c.FS.Readlink(from)
		if err == nil {
			err = c.FS.Symlink(target, to)
		}
		return err
	case !info.IsDir():
		data, err := c.FS.ReadFile(from)
		if err != nil {
			return err
		}
		if err := c.FS.WriteFile(to, data, info.Mode().Perm()); err != nil {
			return err
		}
	default:
		if err := c.FS.MkdirAll(to, info.Mode().Perm()); err != nil {
			return err
		}
		kids, err := c.FS.ReadDir(from)
		if err != nil {
			return err
		}
		for _, kid := range kids {
			if err := c.copy(path.Join(from, kid.Name()), path.Join(to, kid.Name()), keepTime); err != nil {
				return err
			}
		}
	}
	if keepTime {
		return c.FS.Chtimes(to, info.ModTime())
	}
	return c.ctx.Err()
}

func mv(c *Call) int {
	f, ok := c.flags("f|force n|no-clobber v|verbose t|target-directory: T|no-target-directory")
	if !ok {
		return 2
	}
	from, to, ok := c.targets(f)
	if !ok {
		return 1
	}
	i := -1
	return c.all(from, 1, func(name string) error {
		i++
		if _, err := c.FS.Lstat(c.abs(to[i])); err == nil && f.has("n") {
			return nil
		}
		err := c.FS.Rename(c.abs(name), c.abs(to[i]))
		if err == nil && f.has("v") {
			c.printf("renamed '%s' -> '%s'\n", name, to[i])
		}
		return err
	})
}

// ln makes links; a hard one is a copy, as files here have one name.
func ln(c *Call) int {
	f, ok := c.flags("s|symbolic f|force n|no-dereference v|verbose t: T")
	if !ok {
		return 2
	}
	if len(f.args) == 1 {
		f.args = append(f.args, ".")
	}
	from, to, ok := c.targets(f)
	if !ok {
		return 1
	}
	i := -1
	return c.all(from, 1, func(name string) error {
		i++
		at := c.abs(to[i])
		if _, err := c.FS.Lstat(at); err == nil {
			if !f.has("f") {
				return fs.ErrExist
			}
			if err := c.FS.Remove(at); err != nil {
				return err
			}
		}
		if f.has("s") {
			return c.FS.Symlink(name, at)
		}
		return c.copy(c.abs(name), at, true)
	})
}

func touch(c *Call) int {
	f, ok := c.flags("c|no-create a m d|date: t: r|reference: h")
	if !ok {
		return 2
	}
	when := c.Now()
	var err error
	switch {
	case f.has("r"):
		var info memfs.Info
		info, err = c.FS.Stat(c.abs(f.str("r", "")))
		when = info.ModTime()
	case f.has("d"):
		when, err = parseDate(f.str("d", ""), c.Now())
	case f.has("t"):
		when, err = parseStamp(f.str("t", ""), c.Now())
	}
	if err != nil {
		return c.usage("%s", why(err))
	}
	return c.all(f.args, 1, func(name string) error {
		if _, err := c.FS.Stat(c.abs(name)); errors.Is(err, fs.ErrNotExist) {
			if f.has("c") {
				return nil
			}
			if _, err := c.FS.Open(c.abs(name), os.O_WRONLY|os.O_CREATE, 0o644); err != nil {
				return err
			}
		}
		return c.FS.Chtimes(c.abs(name), when)
	})
}

func chmod(c *Call) int {
	args := c.Args[1:]
	recursive := false
	for len(args) > 0 && (args[0] == "-R" || args[0] == "-f" || args[0] == "-v" || args[0] == "--") {
		recursive = recursive || args[0] == "-R"
		args = args[1:]
	}
	if len(args) < 2 {
		return c.usage("missing operand")
	}
	if _, err := newMode(args[0], 0); err != nil {
		return c.usage("%v", err)
	}
	var set func(name string) error
	set = func(name string) error {
		info, err := c.FS.Stat(name)
		if err != nil {
			return err
		}
		mode, _ := newMode(args[0], info.Mode()) // was tried above
		if err := c.FS.Chmod(name, mode); err != nil || !recursive || !info.IsDir() {
			return err
		}
		kids, err := c.FS.ReadDir(name)
		for _, kid := range kids {
			err = errors.Join(err, set(path.Join(name, kid.Name())))
		}
		return err
	}
	return c.all(args[1:], 1, func(name string) error { return set(c.abs(name)) })
}

// newMode applies "755" or "u+x,go=r" to a mode.
func newMode(spec string, old fs.FileMode) (fs.FileMode, error) {
	if n, err := strconv.ParseUint(spec, 8, 12); err == nil {
		return fs.FileMode(n) & fs.ModePerm, nil
	}
	mode := old.Perm()
	for clause := range strings.SplitSeq(spec, ",") {
		at := strings.IndexAny(clause, "+-=")
		if at < 0 || strings.Trim(clause[:at], "ugoa") != "" || strings.Trim(clause[at+1:], "rwxX") != "" {
			return 0, fmt.Errorf("bad mode %s", spec)
		}
		var who, what fs.FileMode
		for _, w := range clause[:at] {
			who |= map[rune]fs.FileMode{'u': 0o700, 'g': 0o070, 'o': 0o007, 'a': 0o777}[w]
		}
		if at == 0 {
			who = 0o777
		}
		for _, w := range clause[at+1:] {
			if w == 'X' && (old.IsDir() || old&0o111 != 0) {
				w = 'x'
			}
			what |= map[rune]fs.FileMode{'r': 0o444, 'w': 0o222, 'x': 0o111}[w]
		}
		switch clause[at] {
		case '+':
			mode |= who & what
		case '-':
			mode &^= who & what
		case '=':
			mode = mode&^who | who&what
		}
	}
	return mode, nil
}

func basename(c *Call) int {
	f, ok := c.flags("+a|multiple s|suffix: z|zero")
	if !ok {
		return 2
	}
	if len(f.args) == 0 {
		return c.usage("missing operand")
	}
	suffix := f.str("s", "")
	if len(f.args) == 2 && !f.has("a") && !f.has("s") {
		f.args, suffix = f.args[:1], f.args[1]
	}
	for _, name := range f.args {
		base := path.Base(name)
		if cut := strings.TrimSuffix(base, suffix); cut != "" {
			base = cut
		}
		c.printf("%s\n", base)
	}
	return 0
}

func dirname(c *Call) int {
	f, ok := c.flags("z|zero")
	if !ok {
		return 2
	}
	return c.all(f.args, 1, func(name string) error {
		if trimmed := strings.TrimRight(name, "/"); trimmed != "" {
			name = trimmed
		}
		at := strings.LastIndexByte(name, '/')
		switch {
		case at < 0:
			name = "."
		default:
			if name = strings.TrimRight(name[:at], "/"); name == "" {
				name = "/"
			}
		}
		c.printf("%s\n", name)
		return nil
	})
}

// realpath also is readlink: both print where paths lead.
func realpath(c *Call) int {
	f, ok := c.flags("f|canonicalize e|canonicalize-existing m|canonicalize-missing n|no-newline s|no-symlinks q|quiet relative-to: L P z")
	if !ok {
		return 2
	}
	resolve := c.name() == "realpath" || f.has("f") || f.has("e") || f.has("m")
	code := 0
	for _, name := range f.args {
		var out string
		var err error
		if resolve {
			out, err = c.resolve(c.abs(name), f.has("m"), f.has("e"))
		} else {
			out, err = c.FS.Readlink(c.abs(name))
		}
		if err != nil {
			if resolve && !f.has("q") && c.name() == "realpath" {
				c.errorf("%s: %s", name, why(err))
			}
			code = 1
			continue
		}
		if f.has("relative-to") {
			out = relative(path.Clean(c.abs(f.str("relative-to", ""))), out)
		}
		c.printf("%s", out)
		if !f.has("n") {
			c.printf("\n")
		}
	}
	return code
}

// resolve follows all links of a path; unless missing is set, only its last
// name may not exist, and with exists not even that.
func (c *Call) resolve(name string, missing, exists bool) (string, error) {
	name = path.Clean(name)
	for range 40 {
		if name == "/" {
			return name, nil
		}
		dir, err := c.resolve(path.Dir(name), missing, true)
		if err != nil {
			return "", err
		}
		name = path.Join(dir, path.Base(name))
		info, err := c.FS.Lstat(name)
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) && (missing || !exists) {
				return name, nil
			}
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			return name, nil
		}
		to, err := c.FS.Readlink(name)
		if err != nil {
			return "", err
		}
		name = path.Clean(Abs(dir, to))
	}
	return "", syscall.ELOOP
}

// relative is the path from a directory to a target, both clean and absolute.
func relative(from, to string) string {
	a, b := strings.Split(from, "/"), strings.Split(to, "/")
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	out := path.Join(strings.Repeat("../", len(a)), path.Join(b...))
	if out == "" {
		return "."
	}
	return out
}

func pwd(c *Call) int {
	c.printf("%s\n", c.Dir)
	return 0
}

func mktemp(c *Call) int {
	f, ok := c.flags("d|directory u|dry-run q|quiet p|tmpdir? t suffix:")
	if !ok {
		return 2
	}
	name := "/tmp/tmp.XXXXXXXXXX"
	if len(f.args) > 0 {
		if name = f.args[0]; f.has("p") || f.has("t") {
			name = path.Join("/tmp", name)
		}
	}
	stem := strings.TrimRight(name, "X")
	width := len(name) - len(stem)
	if width < 3 {
		return c.usage("too few X's in template '%s'", name)
	}
	for n := c.Now().UnixNano() / 1000; ; n++ {
		digits := fmt.Sprintf("%0*d", width, n)
		try := stem + digits[len(digits)-width:] + f.str("suffix", "")
		if _, err := c.FS.Lstat(c.abs(try)); err == nil {
			continue
		}
		var err error
		switch {
		case f.has("u"):
		case f.has("d"):
			err = c.FS.Mkdir(c.abs(try), 0o700)
		default:
			_, err = c.FS.Open(c.abs(try), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		}
		if err != nil {
			return c.usage("%s: %s", try, why(err))
		}
		c.printf("%s\n", try)
		return 0
	}
}
