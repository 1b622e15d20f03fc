package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// DefaultPath is the settings file that is read, if it exists, when none is named.
const DefaultPath = "gateway.yaml"

// maxFileBytes bounds the settings file and every file named by a variable.
const maxFileBytes = 1 << 20

// Path returns the settings file in use, "" if there is none.
func (s *Settings) Path() string { return s.path }

// open finds and parses the file and notes its top-level sections.
func (s *Settings) open(path string) {
	optional := false
	if path == "" {
		if path = s.read(File.Name); path == "" {
			path, optional = DefaultPath, true
		}
	}
	text, err := readFile(path)
	if optional && errors.Is(err, fs.ErrNotExist) {
		return
	}
	s.path = path
	if err != nil {
		s.Refuse(File.Name, err.Error(), "a file that can be read")
		return
	}
	s.parse(text)
}

func (s *Settings) parse(text []byte) {
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		var y yaml.Error
		if errors.As(err, &y) {
			s.problems = append(s.problems, Problem{At: s.position(y.GetToken()), Setting: "syntax", Found: y.GetMessage(), Want: "YAML"})
		} else {
			s.Refuse(s.path, err.Error(), "YAML")
		}
		return
	}
	var bodies []ast.Node
	for _, d := range file.Docs {
		if d.Body != nil && d.Body.Type() != ast.NullType {
			bodies = append(bodies, d.Body)
		}
	}
	if len(bodies) == 0 {
		return
	}
	values, ok := pairs(bodies[0])
	if !ok || len(bodies) > 1 {
		s.Refuse(s.path, "something else", "one document of sections, such as \"models:\"")
		return
	}
	for _, kv := range values {
		name := keyText(kv.Key)
		s.sections[name] = kv
		s.at[name] = s.position(kv.Key.GetToken())
	}
}

// Section decodes the top-level section into what into points to, and says
// whether the file has it. Only keys that the type has are accepted. What into
// holds already are the defaults. Fields are named by their `yaml` tag;
// durations are written "90s", a list of one may be written without brackets,
// and ${NAME}, ${NAME:-default} and $$ are expanded in every scalar.
func (s *Settings) Section(name string, into any) bool {
	s.asked[name] = true
	kv, ok := s.sections[name]
	if !ok {
		return false
	}
	s.decode(kv.Value, reflect.ValueOf(into).Elem(), name)
	return true
}

// unused refuses the sections that nobody asked for.
func (s *Settings) unused() {
	known := slices.Sorted(maps.Keys(s.asked))
	for _, name := range slices.Sorted(maps.Keys(s.sections)) {
		if !s.asked[name] {
			s.Refuse(name, "an unknown section", oneOf(known))
		}
	}
}

// position reads "gateway.yaml:3:7".
func (s *Settings) position(t *token.Token) string {
	if t == nil || t.Position == nil {
		return filepath.Base(s.path)
	}
	return fmt.Sprintf("%s:%d:%d", filepath.Base(s.path), t.Position.Line, t.Position.Column)
}

// pairs returns the entries of a mapping.
func pairs(n ast.Node) ([]*ast.MappingValueNode, bool) {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, true
	}
	return nil, false
}

func keyText(k ast.MapKeyNode) string {
	if s, ok := k.(*ast.StringNode); ok {
		return s.Value
	}
	return k.GetToken().Value
}

func oneOf(names []string) string {
	if len(names) == 0 {
		return "no keys"
	}
	return "one of " + strings.Join(names, ", ")
}
