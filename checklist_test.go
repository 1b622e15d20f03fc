package heddle_test

import (
	"go/ast"
	"go/token"
	"os"
	"path"
	"strconv"
	"strings"
	"testing"
)

// checklistRows is how many rows docs/checklist.md has; none may get lost.
const checklistRows = 190

// TestChecklist checks that every row of the checklist names tests that exist,
// or says that it is open.
func TestChecklist(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("docs/checklist.md")
	if err != nil {
		t.Fatal(err)
	}
	have := findTests(t)
	rows, open := 0, 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		n, err := strconv.Atoi(strings.TrimSpace(cells[0]))
		if err != nil {
			continue
		}
		rows++
		if n != rows || len(cells) != 5 {
			t.Fatalf("row %d: it is numbered %d and has %d columns, want 5", rows, n, len(cells))
		}
		proof := strings.TrimSpace(cells[4])
		if proof == "*open*" {
			open++
			continue
		}
		for name := range strings.SplitSeq(proof, ",") {
			if name = strings.Trim(strings.TrimSpace(name), "`"); !have.has(name) {
				t.Errorf("row %d: there is no test %q", n, name)
			}
		}
	}
	if rows != checklistRows {
		t.Errorf("the checklist has %d rows, want %d", rows, checklistRows)
	}
	t.Logf("%d of %d rows are done", rows-open, rows)
}

// tests are what can prove a row.
type tests struct {
	funcs   map[string]bool // TestX, FuzzX, BenchmarkX, ExampleX
	cases   map[string]bool // texts in tests and suites: what subtests are named after
	scripts map[string]bool // paths below a testdata folder
}

// has looks for "TestX", "TestX/case" or the path of a script.
func (h tests) has(name string) bool {
	if path.Ext(name) != "" && strings.Contains(name, "/testdata/") {
		return h.scripts[name]
	}
	parts := strings.Split(name, "/")
	for _, c := range parts[1:] {
		if !h.cases[strings.ReplaceAll(c, "_", " ")] && !h.cases[c] {
			return false
		}
	}
	return h.funcs[parts[0]]
}

func findTests(t *testing.T) tests {
	t.Helper()
	have := tests{funcs: map[string]bool{}, cases: map[string]bool{}, scripts: map[string]bool{}}
	for _, f := range goFiles(t) {
		if !f.test && !isSuite(f.pkg) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if f.test && n.Recv == nil && isTestName(n.Name.Name) {
					have.funcs[n.Name.Name] = true
				}
			case *ast.BasicLit:
				if s, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil {
					have.cases[s] = true
				}
			}
			return true
		})
	}
	walk(t, func(p string) {
		if strings.Contains(p, "/testdata/") {
			have.scripts[p] = true
		}
	})
	return have
}

func isTestName(name string) bool {
	for _, kind := range []string{"Test", "Fuzz", "Benchmark", "Example"} {
		if rest, ok := strings.CutPrefix(name, kind); ok && rest != "" {
			return true
		}
	}
	return false
}

// TestChecklistRefuses proves that a name of nothing is seen.
func TestChecklistRefuses(t *testing.T) {
	t.Parallel()
	have := findTests(t)
	for name, want := range map[string]bool{
		"TestChecklist":                           true,
		"TestSection/unknown_key":                 true,
		"FuzzExpand":                              true,
		"TestNothingOfThisName":                   false,
		"TestSection/" + strings.Repeat("no ", 3): false,
		"cmd/gateway/testdata/script/none.txtar":  false,
		"open":                                    false,
		"":                                        false,
	} {
		if got := have.has(name); got != want {
			t.Errorf("has(%q) = %t, want %t", name, got, want)
		}
	}
}
