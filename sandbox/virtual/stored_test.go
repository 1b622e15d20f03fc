package virtual

import (
	"errors"
	"io/fs"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/sandbox/virtual/memfs"
	"github.com/heddlehq/heddle/sandbox/virtual/shell"
)

// What a sandbox stored can be read without one: the files below its working
// directory, and neither what lies elsewhere nor where links lead.
func TestStored(t *testing.T) {
	t.Parallel()
	tree := memfs.New(time.Now)
	for _, err := range []error{
		tree.MkdirAll(shell.Dir+"/b/c", 0o755),
		tree.WriteFile(shell.Dir+"/a.txt", []byte("one"), 0o644),
		tree.WriteFile(shell.Dir+"/b/c/.hidden", []byte{0xFF}, 0o600),
		tree.WriteFile("/tmp/else", []byte("not ours"), 0o644),
		tree.Symlink("/tmp/else", shell.Dir+"/link"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	snapshot, err := tree.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Stored(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string][]byte{"a.txt": []byte("one"), "b/c/.hidden": {0xFF}}, got); diff != "" {
		t.Error(diff)
	}
	if got, err := Stored(nil); err != nil || len(got) != 0 {
		t.Errorf("of nothing: %v, %v", got, err)
	}
	if _, err := Stored([]byte("no snapshot")); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("of anything: %v", err)
	}
}
