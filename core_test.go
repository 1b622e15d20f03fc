package heddle_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// core are the packages of the loop, the log and the harness.
const core = "harness harness/record harness/turn model sandbox state chat policy"

// The loop is ours: what the core uses of others is listed, and no framework for
// agents is among it. A new line there is a decision.
func TestCoreDependencies(t *testing.T) {
	t.Parallel()
	var lines []string
	for _, f := range goFiles(t) {
		if f.test || !matches(core, f.pkg) {
			continue
		}
		for _, imported := range f.imports() {
			if strings.Contains(strings.Split(imported, "/")[0], ".") && !strings.HasPrefix(imported, module) {
				lines = append(lines, f.pkg+" "+imported)
			}
		}
	}
	slices.Sort(lines)
	got := strings.Join(slices.Compact(lines), "\n") + "\n"
	golden := filepath.Join("testdata", "core.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("run with -update if that is meant (-was +is):\n%s", d)
	}
}
