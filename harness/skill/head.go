package skill

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"golang.org/x/text/unicode/norm"
)

// parse reads a SKILL.md into the skill.
func (l *loader) parse(at string, text []byte) {
	if !utf8.Valid(text) {
		l.refuse(at, "not UTF-8")
		return
	}
	head, body, err := split(string(text))
	if err != nil {
		l.refuse(at, err.Error())
		return
	}
	fields, err := mapping(head)
	if err != nil {
		l.refuse(at, err.Error())
		return
	}
	for _, f := range fields {
		l.field(at, f)
	}
	l.name(at)
	l.description(at)
	if n := utf8.RuneCountInString(l.skill.Compatibility); n > maxCompatibility {
		l.object(at, fmt.Sprintf("compatibility has %d characters, at most %d are allowed", n, maxCompatibility))
	}
	l.skill.Body = strings.TrimSpace(body)
	switch lines := strings.Count(l.skill.Body, "\n") + 1; {
	case l.skill.Body == "":
		l.note(at, "has no text below the frontmatter")
	case len(l.skill.Body) > longBytes || lines > longLines:
		l.note(at, fmt.Sprintf("is long (%d lines, %d bytes): move what is not always needed into files beside it", lines, len(l.skill.Body)))
	}
}

// split parts the frontmatter from the body.
func split(text string) (head, body string, err error) {
	text = strings.TrimPrefix(text, "\uFEFF")
	first, rest, _ := strings.Cut(text, "\n")
	if strings.TrimRight(first, " \t\r") != "---" {
		return "", "", errors.New(`does not begin with a line "---", the frontmatter`)
	}
	at := 0
	for line := range strings.Lines(rest) {
		if strings.TrimRight(line, " \t\r\n") == "---" {
			return rest[:at], rest[at+len(line):], nil
		}
		if at += len(line); at > maxHeadBytes {
			return "", "", fmt.Errorf("the frontmatter is longer than %d bytes", maxHeadBytes)
		}
	}
	return "", "", errors.New(`the frontmatter is not closed by a line "---"`)
}

// A pair is a key of a YAML mapping and what belongs to it.
type pair struct {
	key   string
	value ast.Node
}

// mapping reads the pairs of the frontmatter. Only plain values are read: there
// is nothing in it that could refer to something else and grow.
func mapping(head string) ([]pair, error) {
	file, err := parser.ParseBytes([]byte(head), 0)
	if err != nil {
		var y yaml.Error
		if errors.As(err, &y) && y.GetToken() != nil && y.GetToken().Position != nil {
			return nil, fmt.Errorf("the frontmatter is not YAML: line %d: %s", y.GetToken().Position.Line+1, y.GetMessage())
		}
		return nil, errors.New("the frontmatter is not YAML")
	}
	if len(file.Docs) != 1 || file.Docs[0].Body == nil {
		return nil, errors.New("the frontmatter is empty or in several parts")
	}
	fields, ok := pairs(file.Docs[0].Body)
	if !ok {
		return nil, errors.New("the frontmatter is not a mapping")
	}
	return fields, nil
}

func pairs(n ast.Node) ([]pair, bool) {
	var nodes []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		nodes = n.Values
	case *ast.MappingValueNode:
		nodes = append(nodes, n)
	default:
		return nil, false
	}
	var list []pair
	for _, v := range nodes {
		key, ok := scalar(v.Key)
		if !ok {
			return nil, false
		}
		list = append(list, pair{key, v.Value})
	}
	return list, true
}

// scalar returns the text of a plain value as it was written: 1.0 stays "1.0".
func scalar(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.NullNode:
		return "", true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	}
	return "", false
}

func (l *loader) field(at string, f pair) {
	s := &l.skill
	var into *string
	switch f.key {
	case "name":
		into = &s.Name
	case "description":
		into = &s.Description
	case "license":
		into = &s.License
	case "compatibility":
		into = &s.Compatibility
	case "metadata":
		l.metadata(at, f.value)
		return
	case "allowed-tools":
		l.allowedTools(at, f.value)
		return
	default:
		l.object(at, fmt.Sprintf("unknown field %q", clip(f.key)))
		return
	}
	text, ok := scalar(f.value)
	if !ok {
		l.object(at, f.key+" is not a plain text")
	}
	*into = strings.TrimSpace(text)
}

func (l *loader) metadata(at string, n ast.Node) {
	if n.Type() == ast.NullType {
		return
	}
	list, ok := pairs(n)
	if !ok {
		l.object(at, "metadata is not a mapping")
		return
	}
	l.skill.Metadata = map[string]string{}
	for _, p := range list {
		text, ok := scalar(p.value)
		if !ok {
			l.object(at, fmt.Sprintf("metadata %q is not a plain text", clip(p.key)))
			continue
		}
		l.skill.Metadata[p.key] = text
	}
}

// A tool is named as it is mounted, in any case. Of bash's commands a part may
// be allowed: "bash(make test)" is one, "bash(git:*)" and "bash(git *)" are all
// that begin so.
var toolForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$|^(?i:bash)\([^()]+\)$`)

// allowedTools reads a list, or one text with blanks or commas between the
// names. What cannot be enforced allows nothing.
func (l *loader) allowedTools(at string, n ast.Node) {
	var list []string
	switch n := n.(type) {
	case *ast.NullNode:
		return
	case *ast.StringNode:
		list = words(n.Value)
	case *ast.LiteralNode:
		list = words(n.Value.Value)
	case *ast.SequenceNode:
		for _, v := range n.Values {
			text, ok := v.(*ast.StringNode)
			if !ok {
				l.object(at, "allowed-tools holds something that is not a text")
				continue
			}
			list = append(list, strings.TrimSpace(text.Value))
		}
	default:
		l.object(at, "allowed-tools is neither a text nor a list of texts")
	}
	l.skill.AllowedTools = []string{}
	for _, tool := range list {
		if !toolForm.MatchString(tool) {
			l.object(at, fmt.Sprintf("allowed-tools: %q names no tool, or a part of one that cannot be told apart", clip(tool)))
			continue
		}
		l.skill.AllowedTools = append(l.skill.AllowedTools, tool)
	}
}

// words splits at blanks and commas outside of brackets.
func words(text string) []string {
	depth := 0
	return strings.FieldsFunc(text, func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth = max(depth-1, 0)
		}
		return depth == 0 && (r == ',' || unicode.IsSpace(r))
	})
}

func (l *loader) name(at string) {
	s := &l.skill
	s.Name = strings.TrimSpace(norm.NFKC.String(s.Name))
	n := utf8.RuneCountInString(s.Name)
	letters := func(also string) bool {
		return !strings.ContainsFunc(s.Name, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !strings.ContainsRune(also, r)
		})
	}
	switch {
	case s.Name == "":
		l.refuse(at, "has no name")
		return
	case n > 2*maxName || !letters("-_. "):
		l.refuse(at, "the name may hold lower-case letters, digits and hyphens")
		return
	case n > maxName:
		l.object(at, fmt.Sprintf("the name has %d characters, at most %d are allowed", n, maxName))
	case !letters("-"):
		l.object(at, "the name may hold lower-case letters, digits and hyphens")
	}
	if strings.ToLower(s.Name) != s.Name {
		l.object(at, "the name must be in lower case")
	}
	if strings.HasPrefix(s.Name, "-") || strings.HasSuffix(s.Name, "-") || strings.Contains(s.Name, "--") {
		l.object(at, "hyphens of a name stand alone and between other characters")
	}
	if dir := path.Base(s.Dir); dir != "." && norm.NFKC.String(dir) != s.Name {
		l.object(at, fmt.Sprintf("the name %q differs from that of its folder", s.Name))
	}
}

func (l *loader) description(at string) {
	s := &l.skill
	switch n := utf8.RuneCountInString(s.Description); {
	case n == 0:
		l.refuse(at, "has no description")
	case n > maxDescription:
		l.object(at, fmt.Sprintf("the description has %d characters, at most %d are allowed", n, maxDescription))
		s.Description = string([]rune(s.Description)[:maxDescription])
	}
}

// clip keeps a foreign word short in a problem.
func clip(s string) string {
	if len(s) <= 60 {
		return s
	}
	return string(bytes.ToValidUTF8([]byte(s[:60]), nil)) + "..."
}
