package heddle_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path"
	"slices"
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
	rows, open, partly := 0, 0, 0
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
		if shown, ok := strings.CutSuffix(proof, ", *rest open*"); ok {
			proof = shown
			partly++
		}
		for name := range strings.SplitSeq(proof, ",") {
			if why := have.lacks(strings.Trim(strings.TrimSpace(name), "`")); why != "" {
				t.Errorf("row %d: %s", n, why)
			}
		}
	}
	if rows != checklistRows {
		t.Errorf("the checklist has %d rows, want %d", rows, checklistRows)
	}
	t.Logf("of %d rows %d are done, %d in part", rows, rows-open-partly, partly)
}

// TestComparedNamesTests checks that what docs/compared.md claims names tests that exist.
func TestComparedNamesTests(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("docs/compared.md")
	if err != nil {
		t.Fatal(err)
	}
	have := findTests(t)
	lines := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if len(cells) != 3 || !strings.Contains(cells[2], "`") {
			continue
		}
		lines++
		for name := range strings.SplitSeq(cells[2], ",") {
			if why := have.lacks(strings.Trim(strings.TrimSpace(name), "`")); why != "" {
				t.Errorf("%s: %s", strings.TrimSpace(cells[0]), why)
			}
		}
	}
	if lines < 30 {
		t.Errorf("%d lines name tests", lines)
	}
}

// tests are what can prove a row.
type tests struct {
	funcs   map[string][]string // folders that have a TestX, FuzzX, BenchmarkX or ExampleX
	cases   map[string]bool     // "folder.text": texts in its tests, what subtests are named after; no folder for suites
	scripts map[string]bool     // paths below a testdata folder
}

// lacks looks for "TestX", "TestX/case", each perhaps after its package's
// folder and a dot, or for the path of a script. It says what is wrong with a
// name, "" if exactly one thing has it.
func (h tests) lacks(name string) string {
	missing := fmt.Sprintf("there is no test %q", name)
	if path.Ext(name) != "" && strings.Contains(name, "/testdata/") {
		if h.scripts[name] {
			return ""
		}
		return missing
	}
	folder, rest := "", name
	if !isTestName(name) {
		folder, rest, _ = strings.Cut(name, ".")
	}
	parts := strings.Split(rest, "/")
	folders := h.funcs[parts[0]]
	switch {
	case folder == "" && len(folders) > 1:
		return fmt.Sprintf("%s is in %s: write which", parts[0], strings.Join(folders, ", "))
	case folder == "" && len(folders) == 1:
		folder = folders[0]
	case !slices.Contains(folders, folder):
		return missing
	}
	for _, c := range parts[1:] {
		spaced := strings.ReplaceAll(c, "_", " ")
		if c == "" || !h.cases[folder+"."+c] && !h.cases[folder+"."+spaced] && !h.cases["."+c] && !h.cases["."+spaced] {
			return missing
		}
	}
	return ""
}

func findTests(t *testing.T) tests {
	t.Helper()
	have := tests{funcs: map[string][]string{}, cases: map[string]bool{}, scripts: map[string]bool{}}
	for _, f := range goFiles(t) {
		if !f.test && !isSuite(f.pkg) {
			continue
		}
		folder := f.pkg
		if !f.test {
			folder = ""
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				name := n.Name.Name
				if f.test && n.Recv == nil && isTestName(name) && !slices.Contains(have.funcs[name], folder) {
					have.funcs[name] = append(have.funcs[name], folder)
				}
			case *ast.BasicLit:
				if s, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil {
					have.cases[folder+"."+s] = true
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

// TestChecklistRefuses proves that a name of nothing, and one of several
// things, is seen.
func TestChecklistRefuses(t *testing.T) {
	t.Parallel()
	have := findTests(t)
	for name, want := range map[string]string{
		"TestChecklist":                          "",
		"TestSection/unknown_key":                "",
		"config.TestSection/unknown_key":         "",
		"config.FuzzExpand":                      "",
		"harness/turn.TestRandomCrashes":         "",
		"state/mem.TestStore":                    "",
		"state/sqlite.TestStore":                 "",
		"cmd/gateway/testdata/script/kill.txtar": "",

		"TestStore":                              "TestStore is in ",
		"TestNothingOfThisName":                  "there is no test",
		"harness.TestRandomCrashes":              "there is no test",
		"harness/turn.TestNothingOfThisName":     "there is no test",
		"nowhere.TestStore":                      "there is no test",
		"TestSection/no such case":               "there is no test",
		"state/mem.TestStore/unknown_key":        "there is no test", // a case of another folder
		"TestSection/":                           "there is no test",
		"cmd/gateway/testdata/script/none.txtar": "there is no test",
		"open":                                   "there is no test",
		"*rest open*":                            "there is no test",
		"":                                       "there is no test",
	} {
		if got := have.lacks(name); (got == "") != (want == "") || !strings.HasPrefix(got, want) {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
