package commands

import (
	"cmp"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/heddlehq/heddle/sandbox/virtual/memfs"
)

// An entry is a file with the name to show it under.
type entry struct {
	show, path string
	info       memfs.Info
}

func ls(c *Call, f *flags) int {
	if len(f.args) == 0 {
		f.args = []string{"."}
	}
	var files, dirs []entry
	code := 0
	for _, name := range f.args {
		info, err := c.FS.Stat(c.abs(name))
		if err != nil {
			info, err = c.FS.Lstat(c.abs(name)) // a link that leads nowhere
		}
		switch e := (entry{name, c.abs(name), info}); {
		case err != nil:
			c.errorf("cannot access '%s': %s", name, Why(err))
			code = 2
		case info.IsDir() && !f.has("d"):
			dirs = append(dirs, e)
		default:
			files = append(files, e)
		}
	}
	arrange(f, files)
	c.list(f, files)
	arrange(f, dirs)
	for i, d := range dirs {
		if len(f.args) > 1 || f.has("R") {
			if i > 0 || len(files) > 0 {
				c.printf("\n")
			}
			c.printf("%s:\n", d.show)
		}
		c.listDir(f, d)
	}
	return code
}

func (c *Call) listDir(f *flags, d entry) {
	infos, err := c.FS.ReadDir(d.path)
	if err != nil {
		c.errorf("cannot open directory '%s': %s", d.show, Why(err))
		return
	}
	var kids []entry
	if f.has("a") {
		up, _ := c.FS.Stat(path.Dir(d.path)) // a parent is there
		kids = append(kids, entry{".", d.path, d.info}, entry{"..", path.Dir(d.path), up})
	}
	blocks := int64(0)
	for _, info := range infos {
		if f.has("a", "A") || !strings.HasPrefix(info.Name(), ".") {
			kids = append(kids, entry{info.Name(), path.Join(d.path, info.Name()), info})
			blocks += blocksOf(info)
		}
	}
	arrange(f, kids)
	if f.has("l") {
		c.printf("total %d\n", blocks)
	}
	c.list(f, kids)
	if !f.has("R") || c.ctx.Err() != nil {
		return
	}
	for _, k := range kids {
		if k.info.IsDir() && k.show != "." && k.show != ".." {
			show := strings.TrimSuffix(d.show, "/") + "/" + k.show
			c.printf("\n%s:\n", show)
			c.listDir(f, entry{show, k.path, k.info})
		}
	}
}

// blocksOf is the size in KiB as a disk would count it.
func blocksOf(i memfs.Info) int64 {
	if i.IsDir() {
		return 4
	}
	if i.Mode()&fs.ModeSymlink != 0 {
		return 0
	}
	return (i.Size() + 4095) / 4096 * 4
}

func arrange(f *flags, entries []entry) {
	slices.SortStableFunc(entries, func(a, b entry) int {
		by := strings.Compare(a.show, b.show)
		switch {
		case f.has("t"):
			by = cmp.Or(b.info.ModTime().Compare(a.info.ModTime()), by)
		case f.has("S"):
			by = cmp.Or(cmp.Compare(b.info.Size(), a.info.Size()), by)
		}
		if f.has("r") {
			by = -by
		}
		return by
	})
}

func (c *Call) list(f *flags, entries []entry) {
	width := 0
	size := func(e entry) string {
		if f.has("h") {
			return human(e.info.Size())
		}
		return fmt.Sprint(e.info.Size())
	}
	for _, e := range entries {
		width = max(width, len(size(e)))
	}
	for _, e := range entries {
		name := e.show
		switch m := e.info.Mode(); {
		case f.has("F", "p") && m.IsDir():
			name += "/"
		case f.has("F") && m&fs.ModeSymlink != 0 && !f.has("l"):
			name += "@"
		case f.has("F") && m.IsRegular() && m&0o111 != 0:
			name += "*"
		}
		if f.has("l") {
			if to, err := c.FS.Readlink(e.path); err == nil && e.info.Mode()&fs.ModeSymlink != 0 {
				name += " -> " + to
			}
			c.printf("%s 1 user user %*s %s ", modeString(e.info.Mode()), width, size(e), c.listTime(e.info))
		}
		c.printf("%s\n", name)
	}
}

func (c *Call) listTime(i memfs.Info) string {
	const halfYear = 182 * 24 * time.Hour
	at := i.ModTime().UTC()
	if age := c.Now().Sub(at); age > halfYear || age < -time.Hour {
		return at.Format("Jan _2  2006")
	}
	return at.Format("Jan _2 15:04")
}

// modeString is the ten letters of ls -l.
func modeString(m fs.FileMode) string {
	kind := "-"
	if l := typeLetter(m); l != "f" {
		kind = l
	}
	return kind + m.Perm().String()[1:]
}

// human rounds a size up to three digits with a unit.
func human(n int64) string {
	v, unit := float64(n), ""
	for _, u := range "KMGT" {
		if v >= 1024 {
			v, unit = v/1024, string(u)
		}
	}
	if v = math.Ceil(v*10) / 10; unit != "" && v < 10 {
		return fmt.Sprintf("%.1f%s", v, unit)
	}
	return fmt.Sprintf("%.0f%s", math.Ceil(v), unit)
}

func stat(c *Call, f *flags) int {
	return c.all(f.args, func(name string) error {
		info, err := c.FS.Lstat(c.abs(name))
		if err != nil {
			return err
		}
		format := "  File: %n\n  Size: %s\t%F\nAccess: (0%a/%A)  Uid: ( 1000/    user)   Gid: ( 1000/    user)\nModify: %y"
		if f.has("c") {
			format = f.str("c", "")
		}
		for i := 0; i < len(format); i++ {
			if format[i] == '%' && i+1 < len(format) {
				i++
				c.printf("%s", statField(format[i], name, info))
			} else {
				_ = c.out.WriteByte(format[i])
			}
		}
		c.printf("\n")
		return nil
	})
}

func statField(verb byte, name string, i memfs.Info) string {
	kinds := map[string]string{"d": "directory", "l": "symbolic link", "f": "regular file", "c": "character special file"}
	switch verb {
	case 'n':
		return name
	case 's':
		return fmt.Sprint(i.Size())
	case 'a':
		return fmt.Sprintf("%o", i.Mode().Perm())
	case 'A':
		return modeString(i.Mode())
	case 'F':
		if i.Mode().IsRegular() && i.Size() == 0 {
			return "regular empty file"
		}
		return kinds[typeLetter(i.Mode())]
	case 'Y':
		return fmt.Sprint(i.ModTime().Unix())
	case 'y':
		return i.ModTime().UTC().Format("2006-01-02 15:04:05.000000000 -0700")
	case 'U', 'G':
		return "user"
	case '%':
		return "%"
	}
	return "?"
}
