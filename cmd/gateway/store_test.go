package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNotWritable checks what a script under root cannot see: permissions.
func TestNotWritable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	closed := filepath.Join(dir, "closed")
	if err := os.Mkdir(closed, 0o500); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(closed, "heddle.db"), link); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path, want string
		root       bool // seen by root as well
	}{
		{write("good", 0o600), "", true},
		{filepath.Join(dir, "new"), "", true},
		{write("locked", 0o400), "permission denied", false},
		{filepath.Join(closed, "heddle.db"), "permission denied", false},
		{link + "/heddle.db", "no directory", true},
	} {
		if os.Geteuid() == 0 && !tt.root {
			t.Logf("SKIPPED as root, who may write everywhere: %s", tt.path)
			continue
		}
		if got := notWritable(tt.path); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: found %q, want %q", tt.path, got, tt.want)
		}
	}
}
