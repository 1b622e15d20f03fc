package skill_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// shuffled lists folders in the opposite order.
type shuffled struct{ fs.FS }

func (s shuffled) ReadDir(name string) ([]fs.DirEntry, error) {
	list, err := fs.ReadDir(s.FS, name)
	slices.Reverse(list)
	return list, err
}

func TestDigest(t *testing.T) {
	t.Parallel()
	want := load(t, tree(foreign), "pdf").Digest
	if !regexp.MustCompile(`^sha256:[0-9a-f]{64}$`).MatchString(want) {
		t.Errorf("digest %q", want)
	}
	if got := load(t, shuffled{tree(foreign)}, "pdf").Digest; got != want {
		t.Error("the order of the file system matters")
	}
	moved := map[string]string{}
	for name, text := range foreign {
		moved["elsewhere/"+name] = text
	}
	if got := load(t, tree(moved), "elsewhere/pdf").Digest; got != want {
		t.Error("the place of the skill matters")
	}
	root := t.TempDir()
	for name, text := range foreign {
		at := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := load(t, os.DirFS(root), "pdf").Digest; got != want {
		t.Error("the kind of file system matters")
	}

	seen := map[string]string{want: "the skill"}
	for name, change := range map[string]func(m map[string]string){
		"a byte more":    func(m map[string]string) { m["pdf/assets/logo.png"] += "x" },
		"a byte less":    func(m map[string]string) { m["pdf/FORMS.md"] = m["pdf/FORMS.md"][1:] },
		"a file more":    func(m map[string]string) { m["pdf/new"] = "" },
		"a file less":    func(m map[string]string) { delete(m, "pdf/LICENSE.txt") },
		"a file renamed": func(m map[string]string) { m["pdf/LICENCE.txt"] = m["pdf/LICENSE.txt"]; delete(m, "pdf/LICENSE.txt") },
		"a file moved":   func(m map[string]string) { m["pdf/x/FORMS.md"] = m["pdf/FORMS.md"]; delete(m, "pdf/FORMS.md") },
		"two swapped": func(m map[string]string) {
			m["pdf/FORMS.md"], m["pdf/LICENSE.txt"] = m["pdf/LICENSE.txt"], m["pdf/FORMS.md"]
		},
		"a deep file":       func(m map[string]string) { m["pdf/a/b/c/d"] = "x" },
		"a deep file else":  func(m map[string]string) { m["pdf/a/b/c/d"] = "y" },
		"a file not shown":  func(m map[string]string) { m["pdf/.env"] = "x" },
		"that one else":     func(m map[string]string) { m["pdf/.env"] = "y" },
		"a large file":      func(m map[string]string) { m["pdf/big"] = strings.Repeat("x", 1<<20+9) },
		"its last byte":     func(m map[string]string) { m["pdf/big"] = strings.Repeat("x", 1<<20+8) + "y" },
		"the body":          func(m map[string]string) { m["pdf/SKILL.md"] += " " },
		"a package's byte":  func(m map[string]string) { m["pdf/scripts/node_modules/x/i.js"] = "1" },
		"a package's other": func(m map[string]string) { m["pdf/scripts/node_modules/x/i.js"] = "2" },
	} {
		m := map[string]string{}
		for k, v := range foreign {
			m[k] = v
		}
		change(m)
		got := load(t, tree(m), "pdf").Digest
		if as := seen[got]; as != "" {
			t.Errorf("%s: the digest is that of %s", name, as)
		}
		seen[got] = name
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	files := tree(map[string]string{
		"secret":              "top secret",
		"s/SKILL.md":          md("name: s", "description: d"),
		"s/a.md":              "A\n",
		"s/references/b c.md": "B",
		"s/assets/logo.png":   "\x89PNG\x00",
		"s/assets/zero.txt":   "a\x00b",
		"s/assets/empty":      "",
		"s/assets/large.bin":  strings.Repeat("\xff", 32<<10+1),
		"s/full.txt":          strings.Repeat("x", 64<<10),
		"s/long.txt":          strings.Repeat("x", 64<<10-1) + "é" + strings.Repeat("x", 100),
		"s/deep/er/file.txt":  "x",
		"s/.env":              "x",
		"s2/other.md":         "x",
	})
	s := load(t, files, "s")
	for name, want := range map[string]string{
		"a.md":              "A\n",
		"./a.md":            "A\n",
		"references/b c.md": "B",
		"assets/empty":      "",
		"assets/logo.png":   "[image/png, 5 bytes in base64]\n" + base64.StdEncoding.EncodeToString([]byte("\x89PNG\x00")),
		"full.txt":          strings.Repeat("x", 64<<10),
		"long.txt":          strings.Repeat("x", 64<<10-1) + "\n[cut here: 65536 of 65637 bytes]",
	} {
		if got, err := s.Read(name); err != nil || got != want {
			t.Errorf("%s: %.80q, %v", name, got, err)
		}
	}
	if got, err := s.Read("assets/zero.txt"); err != nil || !strings.HasSuffix(got, "3 bytes in base64]\nYQBi") {
		t.Errorf("zero.txt: %q, %v", got, err)
	}
	for name, want := range map[string]string{
		"":                      "no resource",
		".":                     "no resource",
		"SKILL.md":              "no resource",
		"none.md":               "there are: a.md, assets/empty",
		"../secret":             "no resource",
		"../s2/other.md":        "no resource",
		"..":                    "no resource",
		"a.md/../../secret":     "no resource",
		"references/../a.md":    "no resource",
		"/etc/passwd":           "no resource",
		"references":            "no resource",
		"s/a.md":                "no resource",
		`references\b c.md`:     "no resource",
		"a.md\x00":              "no resource",
		"deep/er/file.txt":      "deeper than one folder",
		".env":                  "looks like a secret",
		"assets/large.bin":      "is not text and has 32769 bytes",
		strings.Repeat("x", 99): "xxx...",
	} {
		if got, err := s.Read(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %.80q, %v, want %q", name, got, err, want)
		}
	}
	files["s/a.md"] = &fstest.MapFile{Data: []byte("Z\n")}
	if got, err := s.Read("a.md"); err == nil || !strings.Contains(err.Error(), "has changed") {
		t.Errorf("changed after the load: %q, %v", got, err)
	}
	delete(files, "s/a.md")
	if got, err := s.Read("a.md"); err == nil || !strings.Contains(err.Error(), "cannot be read now: file does not exist") {
		t.Errorf("gone after the load: %q, %v", got, err)
	}
	files["s/full.txt"] = &fstest.MapFile{Data: bytes.Repeat([]byte("x"), 1<<20+1)}
	if got, err := s.Read("full.txt"); err == nil || !strings.Contains(err.Error(), "has more than 1048576 bytes") {
		t.Errorf("grown after the load: %.80q, %v", got, err)
	}
}

func TestListIsBounded(t *testing.T) {
	t.Parallel()
	fsys := tree(map[string]string{"s/SKILL.md": md("name: s", "description: d")})
	for i := range 150 {
		fsys[fmt.Sprintf("s/f%03d", i)] = &fstest.MapFile{}
	}
	body := load(t, fsys, "s").Mount().Body
	if !strings.Contains(body, "f099 and 50 more.") || strings.Contains(body, "f100") {
		t.Errorf("%.300q", body)
	}
}
