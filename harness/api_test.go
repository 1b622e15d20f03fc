package harness_test

import (
	"bytes"
	"flag"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

var blanks = regexp.MustCompile(`\s+`)

// What agent authors can name is listed, a declaration a line; a change of it is
// meant. Nothing of the engine, the log or the store is in it.
func TestAPI(t *testing.T) {
	t.Parallel()
	got := strings.Join(exported(t, "."), "\n") + "\n"
	golden := filepath.Join("testdata", "api.txt")
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
		t.Errorf("what is exported has changed; run with -update if that is meant (-was +is):\n%s", d)
	}
	for _, inner := range []string{"record.", "turn.", "state.", "lease", "Lease"} {
		if strings.Contains(got, inner) {
			t.Errorf("%q of the engine is in the API", inner)
		}
	}
}

// exported are the exported declarations of a package.
func exported(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.FileExports(f)
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				d.Body = nil
				if d.Recv == nil || ast.IsExported(receiver(d.Recv.List[0].Type)) {
					out = append(out, line(t, fset, d))
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if d.Tok != token.IMPORT {
						out = append(out, d.Tok.String()+" "+line(t, fset, s))
					}
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// receiver is the name of the type that a method is of.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

func line(t *testing.T, fset *token.FileSet, node any) string {
	t.Helper()
	var b bytes.Buffer
	if err := printer.Fprint(&b, fset, node); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(blanks.ReplaceAllString(b.String(), " "))
}
