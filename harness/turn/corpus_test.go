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
// with the crash that leaves the most in it. With -update those that are missing
// are written; what is there stays, as today's code is not to change it.
func TestScenarioLogs(t *testing.T) {
	t.Parallel()
	for name, s := range scenarios {
		calmFile, crashedFile := inCorpus(name), inCorpus(name+" crashed")
		if exists(calmFile) && exists(crashedFile) {
			continue
		}
		if !*update {
			t.Errorf("the logs of %q are not in the corpus: run this test with -update, then harness/record.TestCorpus with -update", name)
			continue
		}
		points := 0
		var log, longest []byte
		s.in(t, calm, func(t *testing.T, w *world, r *runs) { points, log = r.life.n, jsonLines(w) })
		for n := range points {
			s.in(t, func(at int) bool { return at == n+1 }, func(t *testing.T, w *world, _ *runs) {
				if got := jsonLines(w); bytes.Count(got, []byte("\n")) > bytes.Count(longest, []byte("\n")) {
					longest = got
				}
			})
		}
		for file, data := range map[string][]byte{calmFile: log, crashedFile: longest} {
			if exists(file) {
				continue
			}
			if err := os.WriteFile(file, data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func inCorpus(name string) string {
	return filepath.Join("..", "record", "testdata", "corpus", "v2-"+strings.ReplaceAll(name, " ", "-")+".jsonl")
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

func jsonLines(w *world) []byte {
	var b bytes.Buffer
	for _, r := range w.view().Records {
		fmt.Fprintf(&b, "{\"kind\":%q,\"data\":%s}\n", r.Kind, r.Data)
	}
	return b.Bytes()
}
