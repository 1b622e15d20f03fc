package heddle_test

import (
	"bytes"
	"go/ast"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The hard caps on files and functions that are not tests.
const (
	maxFileLines = 600
	maxFuncLines = 80
)

// longer lists what may break a cap, with the reason. A function is named
// "folder.function". An entry that is not needed fails.
var longer = map[string]string{}

// families name the folders with a port, the suite that every implementation
// in them passes, and the folders that are no implementation. model/scripted
// has no wire format, so no recording can be played to it.
var families = []struct{ port, suite, others string }{
	{"channels", "channels/channeltest", "channels/text"},
	{"state", "state/statetest", ""},
	{"model", "model/modeltest", "model/wire model/script model/scripted"},
	{"sandbox", "sandbox/sandboxtest", ""},
}

// TestFamilies checks that each implementation has a file to begin reading at
// and a test that calls its family's suite.
func TestFamilies(t *testing.T) {
	t.Parallel()
	files := goFiles(t)
	for _, family := range families {
		for _, pkg := range packages(files) {
			if path.Dir(pkg) != family.port || pkg == family.suite || matches(family.others, pkg) {
				continue
			}
			begin, suite := false, false
			for _, f := range files {
				if f.pkg == pkg {
					base := path.Base(f.path)
					begin = begin || base == "setup.go" || base == path.Base(pkg)+".go"
					suite = suite || f.test && slices.Contains(f.imports(), module+family.suite)
				}
			}
			if !begin {
				t.Errorf("%s: has neither setup.go nor %s.go to begin reading at", pkg, path.Base(pkg))
			}
			if !suite {
				t.Errorf("%s: no test of it calls %s", pkg, family.suite)
			}
		}
	}
}

func TestOnePackageComment(t *testing.T) {
	t.Parallel()
	files := goFiles(t)
	for _, pkg := range packages(files) {
		var with []string
		code := false
		for _, f := range files {
			if f.pkg == pkg && !f.test {
				code = true
				if f.ast.Doc != nil {
					with = append(with, f.path)
				}
			}
		}
		if code && len(with) != 1 {
			t.Errorf("%s: %d package comments %v, want one", pkg, len(with), with)
		}
	}
}

func TestPackageNames(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		name := strings.TrimSuffix(f.ast.Name.Name, "_test")
		switch name {
		case "util", "utils", "common", "helper", "helpers", "misc", "models", "types":
			t.Errorf("%s: package %s says nothing; name the thing", f.path, name)
		}
		if base := path.Base(f.pkg); name != base && name != "main" && f.pkg != "." {
			t.Errorf("%s: package %s lies in the folder %s", f.path, name, base)
		}
	}
}

func TestSizeCaps(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	over := func(name string, lines, most int) {
		found[name] = true
		if longer[name] == "" {
			t.Errorf("%s has %d lines, at most %d are allowed", name, lines, most)
		}
	}
	for _, f := range goFiles(t) {
		if f.test || isSuite(f.pkg) || ast.IsGenerated(f.ast) {
			continue
		}
		if n := f.fset.Position(f.ast.FileEnd).Line; n > maxFileLines {
			over(f.path, n, maxFileLines)
		}
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				n := f.fset.Position(fn.End()).Line - f.fset.Position(fn.Pos()).Line + 1
				if n > maxFuncLines {
					over(f.pkg+"."+fn.Name.Name, n, maxFuncLines)
				}
			}
		}
	}
	for name := range longer {
		if !found[name] {
			t.Errorf("%s breaks no cap any more; take it off the list", name)
		}
	}
}

// TestForbidden refuses what the product's code never does.
func TestForbidden(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s: has an init function", f.path)
			}
		}
		if !f.test && !isSuite(f.pkg) {
			ast.Inspect(f.ast, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && isSelector(call.Fun, "time", "Sleep") {
					t.Errorf("%s: calls time.Sleep; wait for a context, a timer or a condition", f.fset.Position(call.Pos()))
				}
				return true
			})
		}
		for _, group := range f.ast.Comments {
			if unfinished.MatchString(group.Text()) {
				t.Errorf("%s: a comment says that something is unfinished", f.fset.Position(group.Pos()))
			}
		}
	}
}

var unfinished = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)

func isSelector(e ast.Expr, pkg, name string) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != name {
		return false
	}
	id, ok := sel.X.(*ast.Ident)
	return ok && id.Name == pkg
}

// isSuite says whether a package is a family's suite, which is test code.
func isSuite(pkg string) bool { return strings.HasSuffix(pkg, "test") }

// packages lists the folders with Go files below the root.
func packages(files []goFile) []string {
	var list []string
	for _, f := range files {
		if f.pkg != "." {
			list = append(list, f.pkg)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

var link = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)

// TestDocLinks checks that every relative link in the documentation leads to a file.
func TestDocLinks(t *testing.T) {
	t.Parallel()
	walk(t, func(p string) {
		if path.Ext(p) != ".md" || strings.Contains(p, "testdata/") {
			return
		}
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range bytes.Split(text, []byte("\n")) {
			for _, m := range link.FindAllSubmatch(line, -1) {
				to := string(m[1])
				if strings.Contains(to, ":") {
					continue
				}
				if _, err := os.Stat(path.Join(path.Dir(p), to)); err != nil {
					t.Errorf("%s:%d: the link to %s leads nowhere", p, i+1, to)
				}
			}
		}
	})
}
