package shell

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// The corpus that TestCorpus plays has a hundred scripts and more.
func TestCorpusIsLarge(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../testdata/corpus/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			if strings.HasSuffix(f.Name, ".sh") {
				seen[string(f.Data)] = true
			}
		}
	}
	if len(seen) < 100 {
		t.Errorf("the corpus has %d scripts, want at least 100", len(seen))
	}
}
