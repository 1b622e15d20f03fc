// Package harnesstest helps the authors of agents to show that an agent only
// reads and declares: Pure looks at its source, Same at what it does.
package harnesstest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Pure fails the test for each place where an agent function of a folder's
// package reads the clock, files, the network, the environment or randomness,
// prints, starts a goroutine or uses a channel. Agent functions are those with a
// *harness.Context, and the functions of the package that these use. What runs
// with a *harness.Call or a context is outside a render and may do all that.
func Pure(t testing.TB, folder string) {
	t.Helper()
	p, err := parse(folder)
	if err != nil {
		t.Errorf("pure: %v", err)
		return
	}
	for _, f := range p.files {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				p.enter(f, n.Type, n.Body)
			case *ast.FuncLit:
				p.enter(f, n.Type, n.Body)
			}
			return true
		})
	}
	if p.agents == 0 {
		t.Errorf("pure: %s has no function with a *harness.Context", folder)
	}
	slices.Sort(p.found)
	for _, found := range slices.Compact(p.found) {
		t.Errorf("%s: an agent function only reads its context and declares; do it in a tool or a callback", found)
	}
}

// pkg is the source of one package.
type pkg struct {
	fset   *token.FileSet
	files  []*file
	funcs  map[string][]function // by name, methods as well
	seen   map[*ast.BlockStmt]bool
	agents int
	found  []string
}

type file struct {
	ast     *ast.File
	imports map[string]string // local name to path
}

type function struct {
	in   *file
	decl *ast.FuncDecl
}

func parse(folder string) (*pkg, error) {
	p := &pkg{fset: token.NewFileSet(), funcs: map[string][]function{}, seen: map[*ast.BlockStmt]bool{}}
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		// Objects tell a package's name from a variable of that name.
		f, err := parser.ParseFile(p.fset, name, nil, 0)
		if err != nil {
			return nil, err
		}
		in := &file{ast: f, imports: map[string]string{}}
		for _, i := range f.Imports {
			from, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return nil, err
			}
			local := path.Base(from)
			if local == "v2" {
				local = path.Base(path.Dir(from))
			}
			if i.Name != nil {
				local = i.Name.Name
			}
			in.imports[local] = from
		}
		p.files = append(p.files, in)
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				p.funcs[fn.Name.Name] = append(p.funcs[fn.Name.Name], function{in, fn})
			}
		}
	}
	return p, nil
}

// enter looks at a function if it is an agent's.
func (p *pkg) enter(f *file, t *ast.FuncType, body *ast.BlockStmt) {
	if f.takes(t, "harness", "Context") {
		p.agents++
		p.look(f, body)
	}
}

// takes says whether a function has a parameter of a type: of the harness, or of
// the package context.
func (f *file) takes(t *ast.FuncType, from, name string) bool {
	return slices.ContainsFunc(t.Params.List, func(field *ast.Field) bool {
		typ := field.Type
		if star, ok := typ.(*ast.StarExpr); ok {
			typ = star.X
		}
		sel, ok := typ.(*ast.SelectorExpr)
		if !ok || sel.Sel.Name != name {
			return false
		}
		x, ok := sel.X.(*ast.Ident)
		return ok && path.Base(f.imports[x.Name]) == from
	})
}

// outside says whether a function runs when there is no render.
func (f *file) outside(t *ast.FuncType) bool {
	return f.takes(t, "harness", "Call") || f.takes(t, "context", "Context")
}

// look notes what a function does to the world, and looks at what it uses.
func (p *pkg) look(f *file, body *ast.BlockStmt) {
	if body == nil || p.seen[body] {
		return
	}
	p.seen[body] = true
	note := func(n ast.Node, what string) {
		at := p.fset.Position(n.Pos())
		p.found = append(p.found, fmt.Sprintf("%s:%d: %s", filepath.Base(at.Filename), at.Line, what))
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return !f.outside(n.Type)
		case *ast.GoStmt:
			note(n, "starts a goroutine")
		case *ast.SendStmt, *ast.SelectStmt:
			note(n, "uses a channel")
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				note(n, "uses a channel")
			}
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			from := ""
			if ok && x.Obj == nil {
				from = f.imports[x.Name]
			}
			if from == "" {
				p.follow(n.Sel.Name)
			} else if why := world(from, n.Sel.Name); why != "" {
				note(n, fmt.Sprintf("%s.%s %s", path.Base(from), n.Sel.Name, why))
			}
		case *ast.Ident:
			p.follow(n.Name)
		}
		return true
	})
}

// follow looks at the functions of the package that a name may mean.
func (p *pkg) follow(name string) {
	for _, fn := range p.funcs[name] {
		if !fn.in.outside(fn.decl.Type) {
			p.look(fn.in, fn.decl.Body)
		}
	}
}

// touches are the packages and functions that reach the world, and how. A name
// that ends in * stands for all that begin so.
var touches = []struct{ from, names, how string }{
	{"time", "Now Since Until Sleep After AfterFunc Tick NewTimer NewTicker", "reads the clock: use Context.Now"},
	{"math/rand", "*", "is random"},
	{"math/rand/v2", "*", "is random"},
	{"crypto/rand", "*", "is random"},
	{"os", "Getenv LookupEnv Environ ExpandEnv Hostname Getpid Getwd Args Stdin Stdout Stderr", "reads the environment"},
	{"os", "*", "reaches files"},
	{"os/exec", "*", "starts a process"},
	{"os/user", "*", "reads the environment"},
	{"io/ioutil", "*", "reaches files"},
	{"path/filepath", "Walk* Glob Abs EvalSymlinks", "reaches files"},
	{"net", "*", "reaches the network"},
	{"net/http", "*", "reaches the network"},
	{"net/rpc", "*", "reaches the network"},
	{"net/smtp", "*", "reaches the network"},
	{"database/sql", "*", "reaches a database"},
	{"syscall", "*", "reaches the system"},
	{"fmt", "Print* Scan*", "reads or prints"},
	{"log", "*", "prints"},
	{"log/slog", "*", "prints"},
	{"context", "*", "begins work that waits"},
}

func world(from, name string) string {
	for _, t := range touches {
		if t.from != from {
			continue
		}
		for _, n := range strings.Fields(t.names) {
			if n == name || strings.HasSuffix(n, "*") && strings.HasPrefix(name, strings.TrimSuffix(n, "*")) {
				return t.how
			}
		}
	}
	return ""
}
