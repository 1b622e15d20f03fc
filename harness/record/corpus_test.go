package record_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/state"
)

var update = flag.Bool("update", false, "write the golden files of new logs")

// A present is what a conversation goes on from.
type present struct {
	Messages []model.Message            `json:"messages"`
	State    map[string]json.RawMessage `json:"state,omitempty"`
	Voices   []record.Voice             `json:"voices,omitempty"`
	Turn     *record.Turn               `json:"turn,omitempty"`
	Turns    int                        `json:"turns"`
	Usage    model.Usage                `json:"usage"`
	Cost     float64                    `json:"cost,omitempty"`
}

// The logs of the corpus are named by the version of their format. None of
// them is ever written again: what an old version wrote must read as it did.
// A kind of record that no log has yet gets one with -update, made of bodies;
// the logs of whole turns are made by harness/turn.TestScenarioLogs.
func TestCorpus(t *testing.T) {
	t.Parallel()
	logs, err := filepath.Glob(filepath.Join("testdata", "corpus", "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, name := range logs {
		records := corpusLog(t, name)
		for _, r := range records {
			seen[r.Kind] = true
		}
		if _, err := record.Verify(records); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		checkPresent(t, strings.TrimSuffix(name, ".jsonl")+".golden", fold(t, records))
	}
	added := false
	for _, kind := range kinds(t) {
		switch {
		case seen[kind], added:
		case *update:
			addLog(t, kind)
			added = true
		default:
			t.Errorf("no log of the corpus has a record of kind %q: add one to bodies in record_test.go, then run this test twice with -update", kind)
		}
	}
}

func corpusLog(t *testing.T, name string) []state.Record {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var records []state.Record
	for line := range bytes.Lines(data) {
		var l struct {
			Kind string
			Data json.RawMessage
		}
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		records = append(records, state.Record{Seq: int64(len(records) + 1), Kind: l.Kind, Data: l.Data})
	}
	return records
}

// checkPresent compares a fold with its golden file. With -update a file that
// is missing is written, none is replaced.
func checkPresent(t *testing.T, golden string, f *record.Fold) {
	t.Helper()
	if f.Turn != nil {
		for _, task := range f.Turn.Tasks {
			task.Work = record.Work{} // newer than some of the logs
		}
	}
	plain(f)
	got, err := json.MarshalIndent(present{f.Messages, f.State, f.Voices, f.Turn, f.Turns, f.Usage, f.Cost}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(golden); err != nil && *update {
		if err := os.WriteFile(golden, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)+"\n"); d != "" {
		t.Errorf("%s (-want +got):\n%s", golden, d)
	}
}

// plain takes the names of messages out of a fold, which no model sees and which
// are newer than some of the logs.
func plain(f *record.Fold) {
	for _, m := range f.Messages {
		for i := range m.Parts {
			m.Parts[i].Of = ""
		}
	}
	if f.Turn != nil {
		f.Turn.Refs = nil
		for _, task := range f.Turn.Tasks {
			plain(task)
		}
	}
}

// addLog writes bodies as a new log of the corpus.
func addLog(t *testing.T, kind string) {
	t.Helper()
	var b bytes.Buffer
	for _, r := range log(t, bodies()) {
		fmt.Fprintf(&b, "{\"kind\":%q,\"data\":%s}\n", r.Kind, r.Data)
	}
	name := filepath.Join("testdata", "corpus", "v2-kinds-"+kind+".jsonl")
	if err := os.WriteFile(name, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// kinds lists every kind of record there is, as the source says.
func kinds(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, name := range names {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || fn.Name.Name != "kind" {
				continue
			}
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
					out = append(out, strings.Trim(l.Value, `"`))
				}
				return true
			})
		}
	}
	slices.Sort(out)
	if len(out) < 13 {
		t.Fatalf("found only the kinds %v", out)
	}
	return out
}
