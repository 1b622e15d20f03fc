package commands

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/itchyny/timefmt-go"

	"github.com/heddlehq/heddle/sandbox/virtual/memfs"
)

// An entry is a file with the name to show it under.
type entry struct {
	show, path string
	info       memfs.Info
}

func ls(c *Call) int {
	f, ok := c.flags("1 a|all A|almost-all l h|human-readable R|recursive t S r|reverse d|directory F|classify p i s n g o U G C x color? full-time group-directories-first")
	if !ok {
		return 2
	}
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
			c.errorf("cannot access '%s': %s", name, why(err))
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
		c.errorf("cannot open directory '%s': %s", d.show, why(err))
		return
	}
	var kids []entry
	if f.has("a") {
		up, _ := c.FS.Stat(path.Dir(d.path)) // a parent is there
		kids = append(kids, entry{".", d.path, d.info}, entry{"..", path.Dir(d.path), up})
	}
	blocks := int64(0)
	for _, info := range infos {
		if f.has("a") || f.has("A") || !strings.HasPrefix(info.Name(), ".") {
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
		by := 0
		switch {
		case f.has("t"):
			by = b.info.ModTime().Compare(a.info.ModTime())
		case f.has("S"):
			by = cmp.Compare(b.info.Size(), a.info.Size())
		}
		if by == 0 {
			by = strings.Compare(a.show, b.show)
		}
		if f.has("r") {
			by = -by
		}
		if f.has("group-directories-first") && a.info.IsDir() != b.info.IsDir() {
			by = map[bool]int{true: -1, false: 1}[a.info.IsDir()]
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
		case (f.has("F") || f.has("p")) && m.IsDir():
			name += "/"
		case f.has("F") && m&fs.ModeSymlink != 0 && !f.has("l"):
			name += "@"
		case f.has("F") && m.IsRegular() && m&0o111 != 0:
			name += "*"
		}
		if f.has("l") || f.has("n") || f.has("g") || f.has("o") {
			if to, err := c.FS.Readlink(e.path); err == nil && e.info.Mode()&fs.ModeSymlink != 0 {
				name += " -> " + to
			}
			c.printf("%s 1 user user %*s %s ", modeString(e.info.Mode()), width, size(e), c.listTime(f, e.info))
		}
		c.printf("%s\n", name)
	}
}

func (c *Call) listTime(f *flags, i memfs.Info) string {
	at := i.ModTime().UTC()
	switch age := c.Now().Sub(at); {
	case f.has("full-time"):
		return at.Format("2006-01-02 15:04:05.000000000 -0700")
	case age > 182*24*60*60*1e9 || age < -60*60*1e9:
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
	if n < 1024 {
		return fmt.Sprint(n)
	}
	v, unit := float64(n), -1
	for v >= 1024 && unit < 4 {
		v, unit = v/1024, unit+1
	}
	if v < 10 {
		if r := float64(int64(v*10+0.999999)) / 10; r < 10 {
			return fmt.Sprintf("%.1f%c", r, "KMGTP"[unit])
		}
	}
	return fmt.Sprintf("%d%c", int64(v+0.999999), "KMGTP"[unit])
}

func stat(c *Call) int {
	f, ok := c.flags("c|format: printf: L|dereference t f")
	if !ok {
		return 2
	}
	return c.all(f.args, 1, func(name string) error {
		info, err := c.FS.Lstat(c.abs(name))
		if f.has("L") {
			info, err = c.FS.Stat(c.abs(name))
		}
		if err != nil {
			return err
		}
		format := "  File: %n\n  Size: %s\tBlocks: %b\t%F\nAccess: (0%a/%A)  Uid: ( 1000/    user)   Gid: ( 1000/    user)\nModify: %y\n"
		switch {
		case f.has("c"):
			format = f.str("c", "") + "\n"
		case f.has("printf"):
			format, _ = unescape(f.str("printf", ""), false)
		}
		for i := 0; i < len(format); i++ {
			if format[i] == '%' && i+1 < len(format) {
				i++
				c.printf("%s", statField(format[i], name, info))
			} else {
				c.printf("%c", format[i])
			}
		}
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
	case 'b':
		return fmt.Sprint(blocksOf(i) * 2)
	case 'B':
		return "512"
	case 'a':
		return fmt.Sprintf("%o", i.Mode().Perm())
	case 'A':
		return modeString(i.Mode())
	case 'F':
		if i.Mode().IsRegular() && i.Size() == 0 {
			return "regular empty file"
		}
		return kinds[typeLetter(i.Mode())]
	case 'Y', 'X', 'Z', 'W':
		return fmt.Sprint(i.ModTime().Unix())
	case 'y', 'x', 'z', 'w':
		return i.ModTime().UTC().Format("2006-01-02 15:04:05.000000000 -0700")
	case 'U', 'G':
		return "user"
	case 'u', 'g':
		return "1000"
	case 'h':
		return "1"
	case '%':
		return "%"
	}
	return "?"
}

func du(c *Call) int {
	f, ok := c.flags("s|summarize h|human-readable a|all b|bytes c|total k m d|max-depth:")
	if !ok {
		return 2
	}
	if len(f.args) == 0 {
		f.args = []string{"."}
	}
	depth, ok := f.num("d", 1000)
	if !ok {
		return c.usage("bad depth")
	}
	if f.has("s") {
		depth = 0
	}
	say := func(n int64, name string) {
		switch {
		case f.has("h"):
			c.printf("%s\t%s\n", human(n), name)
		case f.has("b"):
			c.printf("%d\t%s\n", n, name)
		case f.has("m"):
			c.printf("%d\t%s\n", (n+1<<20-1)>>20, name)
		default:
			c.printf("%d\t%s\n", (n+1023)/1024, name)
		}
	}
	var sum func(name string, info memfs.Info, level int) int64
	sum = func(name string, info memfs.Info, level int) int64 {
		n := blocksOf(info) * 1024
		if f.has("b") {
			n = info.Size()
		}
		if info.IsDir() {
			kids, _ := c.FS.ReadDir(c.abs(name)) // an empty one, if it has gone
			for _, kid := range kids {
				n += sum(strings.TrimSuffix(name, "/")+"/"+kid.Name(), kid, level+1)
			}
		}
		if level <= depth && (info.IsDir() || f.has("a") || level == 0) {
			say(n, name)
		}
		return n
	}
	total := int64(0)
	code := c.all(f.args, 1, func(name string) error {
		info, err := c.FS.Lstat(c.abs(name))
		if err == nil {
			total += sum(name, info, 0)
		}
		return err
	})
	if f.has("c") {
		say(total, "total")
	}
	return code
}

func date(c *Call) int {
	format, when, args := "%a %b %e %H:%M:%S %Z %Y", c.Now().UTC(), c.Args
	for i, arg := range args { // -I takes its value attached only
		if arg == "-Iseconds" || arg == "--iso-8601=seconds" {
			args[i], format = "-u", "%Y-%m-%dT%H:%M:%S+00:00"
		}
	}
	f, ok := c.flags("u|utc|universal d|date: I|iso-8601? R|rfc-email r|reference: s:")
	if !ok {
		return 2
	}
	var err error
	switch {
	case f.has("s"):
		return c.usage("the clock cannot be set")
	case f.has("d"):
		when, err = parseDate(f.str("d", ""), when)
	case f.has("r"):
		var info memfs.Info
		info, err = c.FS.Stat(c.abs(f.str("r", "")))
		when = info.ModTime().UTC()
	}
	if err != nil {
		c.errorf("%s", why(err))
		return 1
	}
	switch {
	case f.has("I"):
		format = "%Y-%m-%d"
	case f.has("R"):
		format = "%a, %d %b %Y %H:%M:%S +0000"
	}
	for _, arg := range f.args {
		if !strings.HasPrefix(arg, "+") {
			return c.usage("unexpected '%s'", arg)
		}
		format = arg[1:]
	}
	format = strings.ReplaceAll(format, "%N", fmt.Sprintf("%09d", when.Nanosecond()))
	format = strings.ReplaceAll(format, "%3N", fmt.Sprintf("%03d", when.Nanosecond()/1e6))
	c.printf("%s\n", timefmt.Format(when, format))
	return 0
}
