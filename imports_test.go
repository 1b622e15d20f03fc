package heddle_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/heddlehq/heddle/"

// mayImport is the import table. The first row whose pattern matches a package
// decides which of our packages it may import; "*" stands for one part of a
// path. A row also holds for the folders below an implementation, which may
// import each other. A package without a row fails.
var mayImport = []struct {
	pkg string
	may string // patterns separated by spaces; "any" for everything
}{
	{"chat", ""},
	{"config", ""},
	{"sandbox", ""},
	{"model", ""},
	{"state", "chat"},
	{"channels", "chat"},
	{"policy", "chat"},

	{"channels/text", "chat channels"},
	{"model/wire", "model"},
	{"model/script", ""},
	{"channels/channeltest", "chat channels channels/text"},
	{"state/statetest", "chat state state/mem"}, // the suite walks at random beside the reference store
	{"model/modeltest", "model"},
	{"sandbox/sandboxtest", "sandbox"},

	{"channels/*", "chat channels channels/text config"},
	{"state/*", "chat state config"},
	{"model/*", "model model/wire model/script config"},
	{"sandbox/*", "sandbox config"},

	{"harness", "chat model sandbox policy"},
	{"harness/harnesstest", "harness"},
	{"harness/record", "harness chat model state"},
	{"harness/turn", "harness harness/record chat model sandbox state policy"},
	{"harness/enhance", "harness chat sandbox policy"},
	{"harness/script", "harness chat sandbox policy"},
	{"harness/skill", "harness harness/record"},
	{"mcp", "harness chat"},
	{"memory", "harness chat state"},
	{"memory/embedder", "model model/wire"},
	{"mcp/conformance", "any"},
	{"vault", "state"},
	{"toolkit/*", "harness chat sandbox policy"},
	{"agents/*", "harness harness/enhance toolkit/* chat sandbox policy"},

	{"dispatch", "chat channels state policy harness/turn"},
	{"ui", "chat state harness/record policy"},
	{"client", ""},
	{"fakes/*", "chat model/script"},
	{"bench", "any"},
	{"bench/*", "any"},
	{"cmd/gateway", "any"},
}

// homes says which packages may import a third-party module. A module that is
// not listed may be imported by nobody; a driver or client lives in its folder.
var homes = map[string]string{
	"charm.land/catwalk":                     "model",
	"github.com/alecthomas/kong":             "cmd/gateway bench bench/*",
	"github.com/benhoyt/goawk":               "sandbox/virtual",
	"github.com/goccy/go-yaml":               "config harness/skill",
	"github.com/google/jsonschema-go":        "harness mcp",
	"github.com/modelcontextprotocol/go-sdk": "mcp mcp/conformance",
	"golang.org/x/oauth2":                    "mcp mcp/conformance",
	"golang.org/x/text":                      "harness/skill harness/record",
	"github.com/gorilla/websocket":           "channels/slack channels/discord fakes/slack fakes/discord",
	"github.com/itchyny/gojq":                "sandbox/virtual",
	"github.com/itchyny/timefmt-go":          "sandbox/virtual",
	"github.com/labstack/echo/v4":            "dispatch ui cmd/gateway",
	"github.com/bwmarrin/discordgo":          "channels/discord",
	"github.com/google/go-github/v62":        "channels/github",
	"github.com/slack-go/slack":              "channels/slack",
	"github.com/stripe/stripe-go/v79":        "channels/stripe",
	"github.com/yuin/goldmark":               "channels/text",
	"golang.org/x/sys":                       "sandbox/* state/sqlite cmd/gateway bench bench/*",
	"modernc.org/sqlite":                     "state/sqlite",
	"mvdan.cc/sh/v3":                         "sandbox/virtual",
	"github.com/google/go-cmp":               "channels/channeltest state/statetest model/modeltest sandbox/sandboxtest", // and every test
	"pgregory.net/rapid":                     "channels/channeltest state/statetest model/modeltest sandbox/sandboxtest", // and every test
	"github.com/rogpeppe/go-internal":        "",                                                                         // tests only
	"go.uber.org/goleak":                     "",                                                                         // tests only
}

// TestModulesAreExplained checks that the record of dependencies has a line for
// each module that has a home.
func TestModulesAreExplained(t *testing.T) {
	t.Parallel()
	const record = "docs/adr/0002-dependencies.md"
	text, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	for name := range homes {
		if !strings.Contains(string(text), "\n| "+name+" | ") {
			t.Errorf("%s has no line for %s", record, name)
		}
	}
}

// A goFile is one parsed file of the product.
type goFile struct {
	path string // "state/sqlite/open.go"
	pkg  string // folder: "state/sqlite", "." at the root
	test bool
	ast  *ast.File
	fset *token.FileSet
}

// goFiles parses every Go file of the module but test data, comments included.
func goFiles(t *testing.T) []goFile {
	t.Helper()
	var files []goFile
	fset := token.NewFileSet()
	walk(t, func(p string) {
		if path.Ext(p) != ".go" || strings.Contains(p, "testdata/") {
			return
		}
		f, err := parser.ParseFile(fset, p, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, goFile{path: p, pkg: path.Dir(p), test: strings.HasSuffix(p, "_test.go"), ast: f, fset: fset})
	})
	if len(files) == 0 {
		t.Fatal("no Go files found")
	}
	return files
}

// walk visits every file of the product: not those of the other module in
// tools, nor what is hidden or built.
func walk(t *testing.T, visit func(path string)) {
	t.Helper()
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		name := d.Name()
		switch {
		case err != nil:
			return err
		case !d.IsDir():
			visit(filepath.ToSlash(p))
		case p != "." && strings.HasPrefix(name, ".") || p == "tools" || p == "bin":
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (f goFile) imports() []string {
	var list []string
	for _, i := range f.ast.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err == nil {
			list = append(list, p)
		}
	}
	return list
}

// TestImportTable holds every package to the import table.
func TestImportTable(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		for _, imported := range f.imports() {
			if why := refused(f, imported); why != "" {
				t.Errorf("%s imports %s: %s", f.path, imported, why)
			}
		}
	}
}

// refused says why a file may not import a path, "" if it may.
func refused(f goFile, imported string) string {
	ours, ok := strings.CutPrefix(imported, module)
	if !ok {
		return refusedModule(f, imported)
	}
	if ours == "dispatch" && f.pkg != "cmd/gateway" && f.pkg != "dispatch" {
		return "nothing but cmd/gateway imports dispatch"
	}
	if f.test {
		return ""
	}
	if strings.HasPrefix(ours, "fakes/") && implementation(f.pkg) != implementation(ours) {
		if f.path != "cmd/gateway/demo.go" && !strings.HasPrefix(f.pkg, "bench") {
			return "fakes are for tests, cmd/gateway/demo.go and bench"
		}
		return ""
	}
	if implementation(f.pkg) == implementation(ours) {
		return ""
	}
	for _, row := range mayImport {
		if matches(row.pkg, implementation(f.pkg)) {
			if row.may == "any" || matches(row.may, ours) {
				return ""
			}
			return "the import table allows " + row.pkg + " only: " + row.may
		}
	}
	return "the import table has no row for " + f.pkg
}

func refusedModule(f goFile, imported string) string {
	if first, _, _ := strings.Cut(imported, "/"); !strings.Contains(first, ".") || f.test {
		return "" // the standard library, or a test
	}
	for m, home := range homes {
		if imported == m || strings.HasPrefix(imported, m+"/") {
			if matches(home, implementation(f.pkg)) {
				return ""
			}
			return "this module is only for: " + home
		}
	}
	return "this module has no home in the table"
}

// implementation cuts a package to its first two parts, so that what lies
// below "state/sqlite" counts as it.
func implementation(pkg string) string {
	parts := strings.SplitN(pkg, "/", 3)
	return strings.Join(parts[:min(2, len(parts))], "/")
}

func matches(patterns, pkg string) bool {
	return slices.ContainsFunc(strings.Fields(patterns), func(p string) bool {
		ok, err := path.Match(p, pkg)
		return ok && err == nil
	})
}

// TestImportTableRefuses proves that the table can fail.
func TestImportTableRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		file, imported string
		refused        bool
	}{
		{"channels/slack/send.go", module + "chat", false},
		{"channels/slack/send.go", module + "channels/text", false},
		{"channels/slack/send.go", module + "state", true},
		{"channels/slack/send.go", module + "channels/discord", true},
		{"channels/slack/send.go", "github.com/slack-go/slack", false},
		{"channels/discord/send.go", "github.com/slack-go/slack", true},
		{"state/sqlite/migrate/run.go", module + "state/sqlite", false},
		{"state/redis/open.go", module + "state/sqlite", true},
		{"chat/event.go", module + "config", true},
		{"chat/event.go", "net/http", false},
		{"chat/event.go", "example.com/unknown", true},
		{"harness/context.go", module + "state", true},
		{"harness/turn/run_test.go", module + "state/mem", false},
		{"harness/turn/run_test.go", module + "dispatch", true},
		{"cmd/gateway/run.go", module + "dispatch", false},
		{"cmd/gateway/run.go", module + "fakes/slack", true},
		{"cmd/gateway/demo.go", module + "fakes/slack", false},
		{"fakes/slack/server.go", module + "channels", true},
		{"somewhere/new.go", module + "chat", true},
	} {
		f := goFile{path: tt.file, pkg: path.Dir(tt.file), test: strings.HasSuffix(tt.file, "_test.go")}
		if got := refused(f, tt.imported); (got != "") != tt.refused {
			t.Errorf("%s importing %s: %q, want refused %t", tt.file, tt.imported, got, tt.refused)
		}
	}
}
