package turn

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the logs of new scenarios to the corpus")

// Every scenario has its log in the corpus of package record, once calm and once
// with a crash in the middle. With -update those that are missing are written;
// what is there stays, as today's code is not to change it.
func TestScenarioLogs(t *testing.T) {
	t.Parallel()
	for name, s := range scenarios {
		points := 0
		s.in(t, calm, func(t *testing.T, w *world, r *runs) {
			points = r.life.n
			inCorpus(t, name, w)
		})
		s.in(t, func(n int) bool { return n == points/2 }, func(t *testing.T, w *world, _ *runs) {
			inCorpus(t, name+" crashed", w)
		})
	}
}

func inCorpus(t *testing.T, name string, w *world) {
	t.Helper()
	file := filepath.Join("..", "record", "testdata", "corpus", "v2-"+strings.ReplaceAll(name, " ", "-")+".jsonl")
	if _, err := os.Stat(file); err == nil {
		return
	}
	if !*update {
		t.Errorf("the log of %q is not in the corpus: run this test with -update, then harness/record.TestCorpus with -update", name)
		return
	}
	var b bytes.Buffer
	for _, r := range w.view().Records {
		fmt.Fprintf(&b, "{\"kind\":%q,\"data\":%s}\n", r.Kind, r.Data)
	}
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
