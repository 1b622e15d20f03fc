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

func mkdir(c *Call, f *flags) int {
	mode, err := strconv.ParseUint(f.str("m", "755"), 8, 12)
	if err != nil {
		return c.usage("bad mode %s", f.str("m", ""))
	}
	return c.all(f.args, func(name string) error {
		create := c.FS.Mkdir
		if f.has("p") {
			create = c.FS.MkdirAll
		}
		err := create(c.abs(name), fs.FileMode(mode))
		if err == nil && f.has("v") {
			c.printf("mkdir: created directory '%s'\n", name)
		}
		return err
	})
}

func rmdir(c *Call, f *flags) int {
	return c.all(f.args, func(name string) error {
		info, err := c.FS.Lstat(c.abs(name))
		if err == nil && !info.IsDir() {
			err = syscall.ENOTDIR
		}
		if err == nil {
			err = c.FS.Remove(c.abs(name))
		}
		return err
	})
}

func rm(c *Call, f *flags) int {
	if len(f.args) == 0 && f.has("f") {
		return 0
	}
	return c.all(f.args, func(name string) error {
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

// moves runs fn for each source of cp, mv or ln and where it goes.
func (c *Call) moves(f *flags, fn func(from, to string) error) int {
	args := f.args
	if f.has("t") {
		args = append(args, f.str("t", ""))
	}
	if len(args) < 2 {
		return c.usage("missing operand")
	}
	from, last := args[:len(args)-1], args[len(args)-1]
	info, err := c.FS.Stat(c.abs(last))
	dir := err == nil && info.IsDir() && !f.has("T")
	if !dir && len(from) > 1 {
		c.errorf("target '%s' is not a directory", last)
		return 1
	}
	return c.all(from, func(name string) error {
		to := last
		if dir {
			to = path.Join(last, path.Base(path.Clean(name)))
		}
		if _, err := c.FS.Lstat(c.abs(to)); err == nil && f.has("n") && c.name() != "ln" {
			return nil
		}
		err := fn(name, to)
		if err == nil && f.has("v") {
			c.printf("'%s' -> '%s'\n", name, to)
		}
		return err
	})
}

func cp(c *Call, f *flags) int {
	return c.moves(f, func(from, to string) error {
		info, err := c.FS.Stat(c.abs(from))
		if err != nil {
			return err
		}
		if info.IsDir() && !f.has("r", "a") {
			return errors.New("-r not specified; omitting directory")
		}
		if there, err := c.FS.Stat(c.abs(to)); err == nil && memfs.Same(info, there) {
			return errors.New("source and target are the same file")
		}
		src, dst := path.Clean(c.abs(from)), path.Clean(c.abs(to))
		if info.IsDir() && strings.HasPrefix(dst+"/", src+"/") {
			return errors.New("cannot copy a directory into itself")
		}
		return c.copy(src, dst, f.has("p", "a"))
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

func mv(c *Call, f *flags) int {
	return c.moves(f, func(from, to string) error { return c.FS.Rename(c.abs(from), c.abs(to)) })
}

// ln makes links; a hard one is a copy, as files here have one name.
func ln(c *Call, f *flags) int {
	if len(f.args) == 1 {
		f.args = append(f.args, ".")
	}
	return c.moves(f, func(from, to string) error {
		at := c.abs(to)
		if _, err := c.FS.Lstat(at); err == nil {
			if !f.has("f") {
				return fs.ErrExist
			}
			if err := c.FS.Remove(at); err != nil {
				return err
			}
		}
		if f.has("s") {
			return c.FS.Symlink(from, at)
		}
		return c.copy(c.abs(from), at, true)
	})
}

func touch(c *Call, f *flags) int {
	when, err := c.when(f)
	if err != nil {
		return c.usage("%s", Why(err))
	}
	return c.all(f.args, func(name string) error {
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

func chmod(c *Call, f *flags) int {
	args, recursive := f.args, false
	for len(args) > 0 && (args[0] == "-R" || args[0] == "--") {
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
	return c.all(args[1:], func(name string) error { return set(c.abs(name)) })
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

func basename(c *Call, f *flags) int {
	suffix := f.str("s", "")
	if len(f.args) == 2 && !f.has("a", "s") {
		f.args, suffix = f.args[:1], f.args[1]
	}
	return c.all(f.args, func(name string) error {
		base := path.Base(name)
		if cut := strings.TrimSuffix(base, suffix); cut != "" {
			base = cut
		}
		c.printf("%s\n", base)
		return nil
	})
}

func dirname(c *Call, f *flags) int {
	return c.all(f.args, func(name string) error {
		trimmed := strings.TrimRight(name, "/")
		at := strings.LastIndexByte(trimmed, '/')
		dir := strings.TrimRight(trimmed[:max(at, 0)], "/")
		if dir == "" {
			dir = map[bool]string{true: "/", false: "."}[strings.HasPrefix(name, "/")]
		}
		c.printf("%s\n", dir)
		return nil
	})
}

func readlink(c *Call, f *flags) int {
	if f.has("f") {
		return realpath(c, f)
	}
	code := 0
	for _, name := range f.args {
		to, err := c.FS.Readlink(c.abs(name))
		if err != nil {
			code = 1
			continue
		}
		c.printf("%s\n", to)
	}
	return code
}

func realpath(c *Call, f *flags) int {
	return c.all(f.args, func(name string) error {
		to, err := c.resolve(c.abs(name), true)
		if err == nil {
			c.printf("%s\n", to)
		}
		return err
	})
}

// resolve follows all links of a path, whose last name need not exist.
func (c *Call) resolve(name string, lastMayMiss bool) (string, error) {
	name = path.Clean(name)
	for range 40 {
		if name == "/" {
			return name, nil
		}
		dir, err := c.resolve(path.Dir(name), false)
		if err != nil {
			return "", err
		}
		name = path.Join(dir, path.Base(name))
		info, err := c.FS.Lstat(name)
		if err == nil && info.Mode()&fs.ModeSymlink == 0 || lastMayMiss && errors.Is(err, fs.ErrNotExist) {
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

func pwd(c *Call, f *flags) int {
	c.printf("%s\n", c.Dir)
	return 0
}

func mktemp(c *Call, f *flags) int {
	name := "/tmp/tmp.XXXXXXXXXX"
	if len(f.args) > 0 {
		name = f.args[0]
	}
	stem := strings.TrimRight(name, "X")
	width := len(name) - len(stem)
	if width < 3 {
		return c.usage("too few X's in template '%s'", name)
	}
	for n := c.Now().UnixNano() / 1000; ; n++ {
		digits := fmt.Sprintf("%0*d", width, n)
		try := stem + digits[len(digits)-width:]
		if _, err := c.FS.Lstat(c.abs(try)); err == nil {
			continue
		}
		var err error
		if f.has("d") {
			err = c.FS.Mkdir(c.abs(try), 0o700)
		} else {
			err = c.FS.WriteFile(c.abs(try), nil, 0o600)
		}
		if err != nil {
			return c.fail(try, err)
		}
		c.printf("%s\n", try)
		return 0
	}
}
