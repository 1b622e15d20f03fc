package commands

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

func base(c *Call) int {
	f, ok := c.flags("d|D|decode w|wrap: i|ignore-garbage")
	if !ok {
		return 2
	}
	data, code := c.slurpAll(f.args)
	if code != 0 {
		return code
	}
	encode, decode := base64.StdEncoding.EncodeToString, base64.StdEncoding.DecodeString
	if c.name() == "base32" {
		encode, decode = base32.StdEncoding.EncodeToString, base32.StdEncoding.DecodeString
	}
	if f.has("d") {
		out, err := decode(strings.Join(strings.Fields(string(data)), ""))
		_, _ = c.out.Write(out) // as far as it went
		if err != nil {
			c.errorf("invalid input")
			return 1
		}
		return 0
	}
	wrap, ok := f.num("w", 76)
	if !ok || wrap < 0 {
		return c.usage("invalid wrap size")
	}
	text := encode(data)
	if wrap == 0 {
		c.printf("%s", text)
		return 0
	}
	for len(text) > wrap {
		c.printf("%s\n", text[:wrap])
		text = text[wrap:]
	}
	if text != "" {
		c.printf("%s\n", text)
	}
	return 0
}

func newHash(name string) hash.Hash {
	switch name {
	case "md5sum":
		return md5.New()
	case "sha1sum":
		return sha1.New()
	case "sha512sum":
		return sha512.New()
	}
	return sha256.New()
}

func sum(c *Call) int {
	f, ok := c.flags("c|check b|binary t|text quiet status")
	if !ok {
		return 2
	}
	of := func(r io.Reader) (string, error) {
		h := newHash(c.name())
		_, err := io.Copy(h, r)
		return hex.EncodeToString(h.Sum(nil)), err
	}
	if !f.has("c") {
		return c.each(f.args, func(name string, r io.Reader) error {
			digest, err := of(r)
			if err == nil {
				c.printf("%s  %s\n", digest, name)
			}
			return err
		})
	}
	failed := 0
	code := c.each(f.args, func(_ string, r io.Reader) error {
		return lines(r, '\n', func(line []byte, _ bool) error {
			want, name, found := strings.Cut(string(line), " ")
			if name = strings.TrimLeft(name, " *"); !found {
				return nil
			}
			result := "FAILED"
			if r, err := c.open(name); err != nil {
				result = "FAILED open or read"
			} else if got, err := of(r); err == nil && got == want {
				result = "OK"
			}
			if result != "OK" {
				failed++
			}
			if !f.has("status") && !(f.has("quiet") && result == "OK") {
				c.printf("%s: %s\n", name, result)
			}
			return nil
		})
	})
	if failed > 0 {
		c.errorf("WARNING: %d computed checksum did NOT match", failed)
		return 1
	}
	return code
}

func xxd(c *Call) int {
	f, ok := c.flags("r|revert p|ps|plain l: c: s: u g:")
	if !ok {
		return 2
	}
	data, code := c.slurpAll(f.args)
	if code != 0 {
		return code
	}
	if f.has("r") {
		return c.unhex(data, f.has("p"))
	}
	width, ok1 := f.num("c", 16)
	most, ok2 := f.num("l", len(data))
	skip, ok3 := f.num("s", 0)
	if !ok1 || !ok2 || !ok3 || width < 1 || most < 0 || skip < 0 {
		return c.usage("not a number")
	}
	data = data[min(skip, len(data)):]
	data = data[:min(most, len(data))]
	if f.has("p") {
		text := hex.EncodeToString(data)
		for len(text) > 60 {
			c.printf("%s\n", text[:60])
			text = text[60:]
		}
		c.printf("%s\n", text)
		return 0
	}
	for at := 0; at < len(data); at += width {
		row := data[at:min(at+width, len(data))]
		c.printf("%08x: ", at+skip)
		for i := range width {
			if i < len(row) {
				c.printf("%02x", row[i])
			} else {
				c.printf("  ")
			}
			if i%2 == 1 {
				c.printf(" ")
			}
		}
		c.printf(" %s\n", printable(row))
	}
	return 0
}

// unhex reverts a dump.
func (c *Call) unhex(data []byte, plain bool) int {
	var text strings.Builder
	for _, line := range splitLines(data) {
		if !plain {
			_, rest, found := strings.Cut(line, ": ")
			if !found {
				continue
			}
			line, _, _ = strings.Cut(rest, "  ")
		}
		text.WriteString(strings.Join(strings.Fields(line), ""))
	}
	out, err := hex.DecodeString(text.String())
	_, _ = c.out.Write(out) // as far as it went
	if err != nil {
		return c.usage("not a hex dump")
	}
	return 0
}

func printable(row []byte) string {
	out := bytes.Clone(row)
	for i, b := range out {
		if b < ' ' || b > '~' {
			out[i] = '.'
		}
	}
	return string(out)
}

// hexdump knows -C, and od the forms -c, -b, -x and -t x1.
func hexdump(c *Call) int {
	f, ok := c.flags("C|canonical n: v")
	if !ok || !f.has("C") {
		return c.usage("only -C is supported")
	}
	data, code := c.slurpAll(f.args)
	if n, ok := f.num("n", len(data)); ok && n >= 0 {
		data = data[:min(n, len(data))]
	}
	for at := 0; at < len(data); at += 16 {
		row := data[at:min(at+16, len(data))]
		text := ""
		for i := range 16 {
			if i%8 == 0 {
				text += " "
			}
			if i < len(row) {
				text += fmt.Sprintf(" %02x", row[i])
			} else {
				text += "   "
			}
		}
		c.printf("%08x%s  |%s|\n", at, text, printable(row))
	}
	if len(data) > 0 {
		c.printf("%08x\n", len(data))
	}
	return code
}

func od(c *Call) int {
	f, ok := c.flags("c b x A|address-radix: t|format: N|read-bytes: v w?")
	if !ok {
		return 2
	}
	data, code := c.slurpAll(f.args)
	if n, ok := f.num("N", len(data)); ok && n >= 0 {
		data = data[:min(n, len(data))]
	}
	kind := f.str("t", "o2")
	for key, k := range map[string]string{"c": "c", "b": "o1", "x": "x2"} {
		if f.has(key) {
			kind = k
		}
	}
	address := map[string]string{"x": "%06x", "d": "%07d", "n": ""}
	head, ok := address[f.str("A", "o")]
	if !ok {
		head = "%07o"
	}
	mark := func(at int) {
		if head != "" {
			c.printf(head, at)
		}
	}
	for at := 0; at < len(data); at += 16 {
		row := data[at:min(at+16, len(data))]
		mark(at)
		for i := 0; i < len(row); i++ {
			switch strings.TrimRight(kind, "z") {
			case "c":
				c.printf(" %3s", odChar(row[i]))
			case "o1":
				c.printf(" %03o", row[i])
			case "x1":
				c.printf(" %02x", row[i])
			case "u1", "d1":
				c.printf(" %3d", row[i])
			case "x2", "o2":
				word := int(row[i])
				if i++; i < len(row) {
					word |= int(row[i]) << 8
				}
				c.printf(map[string]string{"x2": " %04x", "o2": " %06o"}[kind], word)
			default:
				return c.usage("unsupported format '%s'", kind)
			}
		}
		c.printf("\n")
	}
	mark(len(data))
	if head != "" {
		c.printf("\n")
	}
	return code
}

func odChar(b byte) string {
	if at := strings.IndexByte("\x00\a\b\t\n\v\f\r", b); at >= 0 {
		return []string{`\0`, `\a`, `\b`, `\t`, `\n`, `\v`, `\f`, `\r`}[at]
	}
	if b < ' ' || b > '~' {
		return fmt.Sprintf("%03o", b)
	}
	return string(rune(b))
}

func stringsOf(c *Call) int {
	f, ok := c.flags("n|bytes: a")
	if !ok {
		return 2
	}
	least, ok := f.num("n", 4)
	if !ok || least < 1 {
		return c.usage("invalid length")
	}
	data, code := c.slurpAll(f.args)
	start := 0
	for i := 0; i <= len(data); i++ {
		if i < len(data) && (data[i] >= ' ' && data[i] <= '~' || data[i] == '\t') {
			continue
		}
		if i-start >= least {
			c.printf("%s\n", data[start:i])
		}
		start = i + 1
	}
	return code
}

func gzipFiles(c *Call) int {
	f, ok := c.flags("d|decompress c|stdout k|keep f|force n q v 1 2 3 4 5 6 7 8 9")
	if !ok {
		return 2
	}
	unpack := f.has("d") || c.name() != "gzip"
	toOut := f.has("c") || c.name() == "zcat" || len(f.args) == 0
	convert := func(w io.Writer, r io.Reader) error {
		if unpack {
			z, err := gzip.NewReader(r)
			if err == nil {
				var n int64
				if n, err = io.Copy(w, io.LimitReader(z, maxInput)); err == nil && n == maxInput {
					err = errInput
				}
			}
			return err
		}
		z := gzip.NewWriter(w)
		_, err := io.Copy(z, r)
		return errors.Join(err, z.Close())
	}
	if toOut {
		return c.each(f.args, func(_ string, r io.Reader) error { return convert(c.out, r) })
	}
	return c.all(f.args, 1, func(name string) error {
		to := name + ".gz"
		if unpack {
			to = strings.TrimSuffix(name, ".gz")
			if to == name {
				return errors.New("unknown suffix -- ignored")
			}
		}
		if c.exists(to) && !f.has("f") {
			return fs.ErrExist
		}
		r, err := c.open(name)
		if err != nil {
			return err
		}
		var out bytes.Buffer
		if err = convert(&out, r); err == nil {
			err = c.FS.WriteFile(c.abs(to), out.Bytes(), 0o644)
		}
		if err == nil && !f.has("k") {
			err = c.FS.Remove(c.abs(name))
		}
		return err
	})
}

func tarFiles(c *Call) int {
	if len(c.Args) > 1 && !strings.HasPrefix(c.Args[1], "-") {
		c.Args[1] = "-" + c.Args[1] // tar xf
	}
	f, ok := c.flags("c|create x|extract|get t|list z|gzip f|file: v|verbose C|directory: O|to-stdout exclude: strip-components: p a")
	if !ok {
		return 2
	}
	strip, ok := f.num("strip-components", 0)
	if !ok {
		return c.usage("not a number")
	}
	dir := c.abs(f.str("C", "."))
	var err error
	if f.has("c") {
		err = c.tarCreate(f, dir)
	} else if f.has("x") || f.has("t") {
		err = c.tarRead(f, dir, strip)
	} else {
		return c.usage("one of -c, -x and -t is needed")
	}
	if err != nil {
		c.errorf("%s", why(err))
		return 2
	}
	return 0
}

func (c *Call) tarCreate(f *flags, dir string) error {
	var out bytes.Buffer
	var w io.Writer = &out
	var z *gzip.Writer
	if f.has("z") || strings.HasSuffix(f.str("f", ""), "gz") && f.has("a") {
		z = gzip.NewWriter(&out)
		w = z
	}
	t := tar.NewWriter(w)
	var add func(name string) error
	add = func(name string) error {
		info, err := c.FS.Lstat(Abs(dir, name))
		if err != nil {
			return err
		}
		if matchAny(f.vals["exclude"], info.Name()) || matchAny(f.vals["exclude"], name) {
			return nil
		}
		to, _ := c.FS.Readlink(Abs(dir, name)) // "" if it is no link
		head, err := tar.FileInfoHeader(info, to)
		if err != nil {
			return err
		}
		if head.Name = strings.TrimLeft(name, "/"); info.IsDir() {
			head.Name = strings.TrimSuffix(head.Name, "/") + "/"
		}
		head.Uname, head.Gname, head.Uid, head.Gid = "user", "user", 1000, 1000
		if f.has("v") {
			fmt.Fprintln(c.Stderr, head.Name)
		}
		if err := t.WriteHeader(head); err != nil {
			return err
		}
		if info.Mode().IsRegular() {
			data, err := c.FS.ReadFile(Abs(dir, name))
			if err == nil {
				_, err = t.Write(data)
			}
			return err
		}
		if !info.IsDir() {
			return nil
		}
		kids, err := c.FS.ReadDir(Abs(dir, name))
		for _, kid := range kids {
			if err == nil {
				err = add(strings.TrimSuffix(name, "/") + "/" + kid.Name())
			}
		}
		return err
	}
	for _, name := range f.args {
		if err := add(name); err != nil {
			return err
		}
	}
	err := t.Close()
	if z != nil {
		err = errors.Join(err, z.Close())
	}
	if err != nil {
		return err
	}
	if name := f.str("f", "-"); name != "-" {
		return c.FS.WriteFile(c.abs(name), out.Bytes(), 0o644)
	}
	_, err = c.out.Write(out.Bytes())
	return err
}

func (c *Call) tarRead(f *flags, dir string, strip int) error {
	in, err := c.open(f.str("f", "-"))
	if err != nil {
		return err
	}
	r := bufio.NewReader(in)
	t := tar.NewReader(r)
	if magic, _ := r.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(r)
		if err != nil {
			return err
		}
		t = tar.NewReader(z)
	}
	for {
		head, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path.Clean("/"+head.Name), "/")
		if len(f.args) > 0 && !wanted(f.args, name) || matchAny(f.vals["exclude"], path.Base(name)) {
			continue
		}
		if f.has("t") || f.has("v") {
			if f.has("t") && f.has("v") {
				c.printf("%s user/user %9d %s ", modeString(head.FileInfo().Mode()), head.Size, head.ModTime.UTC().Format("2006-01-02 15:04"))
			}
			c.printf("%s\n", head.Name)
		}
		if f.has("t") {
			continue
		}
		parts := strings.Split(name, "/")
		if strip >= len(parts) {
			continue
		}
		if err := c.untar(f, head, t, path.Join(dir, path.Join(parts[strip:]...))); err != nil {
			return err
		}
	}
}

func wanted(names []string, name string) bool {
	for _, w := range names {
		if w = strings.TrimPrefix(path.Clean("/"+w), "/"); name == w || strings.HasPrefix(name, w+"/") {
			return true
		}
	}
	return false
}

func (c *Call) untar(f *flags, head *tar.Header, r io.Reader, to string) error {
	mode := fs.FileMode(head.Mode) & fs.ModePerm
	switch {
	case f.has("O"):
		_, err := io.Copy(c.out, r)
		return err
	case head.Typeflag == tar.TypeDir:
		return c.FS.MkdirAll(to, mode|0o700)
	}
	if err := c.FS.MkdirAll(path.Dir(to), 0o755); err != nil {
		return err
	}
	if head.Typeflag == tar.TypeSymlink {
		_ = c.FS.Remove(to) // if it is there
		return c.FS.Symlink(head.Linkname, to)
	}
	if head.Typeflag != tar.TypeReg {
		return nil
	}
	data, err := slurp(r)
	if err == nil {
		err = c.FS.WriteFile(to, data, mode)
	}
	if err == nil {
		err = c.FS.Chtimes(to, head.ModTime)
	}
	return err
}

// fileType guesses what a file holds.
func fileType(c *Call) int {
	f, ok := c.flags("b|brief i|mime")
	if !ok {
		return 2
	}
	return c.all(f.args, 1, func(name string) error {
		kind := "data"
		info, err := c.FS.Lstat(c.abs(name))
		var data []byte
		if err == nil && info.Mode().IsRegular() {
			data, err = c.FS.ReadFile(c.abs(name))
		}
		switch {
		case err != nil:
			kind = "cannot open (" + why(err) + ")"
		case info.IsDir():
			kind = "directory"
		case info.Mode()&fs.ModeSymlink != 0:
			to, _ := c.FS.Readlink(c.abs(name)) // it is a link
			kind = "symbolic link to " + to
		case len(data) == 0:
			kind = "empty"
		case bytes.HasPrefix(data, []byte{0x1f, 0x8b}):
			kind = "gzip compressed data"
		case bytes.HasPrefix(data, []byte("#!")):
			line, _, _ := bytes.Cut(data[2:], []byte("\n"))
			kind = path.Base(strings.TrimSpace(string(line))) + " script, ASCII text executable"
		case bytes.IndexByte(data, 0) >= 0:
		case strings.Trim(strconv.QuoteToASCII(string(data)), `"`) != "" && isASCII(data):
			kind = "ASCII text"
		default:
			kind = "UTF-8 Unicode text"
		}
		if f.has("b") {
			c.printf("%s\n", kind)
		} else {
			c.printf("%s: %s\n", name, kind)
		}
		return nil
	})
}

func isASCII(data []byte) bool {
	return bytes.IndexFunc(data, func(r rune) bool { return r > 0x7e }) < 0
}
