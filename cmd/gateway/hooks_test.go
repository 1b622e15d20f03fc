package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// functions are the names of the package's functions, those of its tests apart.
func functions(t *testing.T, folder string) (code, tests []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(folder), "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in %s: %v", folder, err)
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				if strings.HasSuffix(name, "_test.go") {
					tests = append(tests, fn.Name.Name)
				} else {
					code = append(code, fn.Name.Name)
				}
			}
		}
	}
	return code, tests
}

// The list holds every hook that there is, and each has an example that runs.
func TestHooksAreListedAndShown(t *testing.T) {
	t.Parallel()
	var have, listed []string
	for _, folder := range []string{"harness", "harness/enhance", "mcp", "memory"} {
		code, tests := functions(t, folder)
		for _, name := range code {
			if !strings.HasPrefix(name, "Use") {
				continue
			}
			have = append(have, path.Base(folder)+"."+name)
			if !slices.Contains(tests, "Example"+name) {
				t.Errorf("%s.%s has no example", folder, name)
			}
		}
	}
	for _, h := range hooks {
		listed = append(listed, h.name)
		if h.doc == "" || strings.HasSuffix(h.doc, ".") {
			t.Errorf("%s: %q is no line for a list", h.name, h.doc)
		}
	}
	slices.Sort(have)
	slices.Sort(listed)
	if d := cmp.Diff(have, listed); d != "" {
		t.Errorf("(-there is +listed):\n%s", d)
	}
	if len(listed) < 16 {
		t.Errorf("%d hooks, want 16 and more", len(listed))
	}
}
