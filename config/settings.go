// Package config reads what the operator set: environment variables, each
// declared beside its user, and one YAML file, each section decoded by its user.
//
// Reading never fails by itself. What is wrong is gathered, so that one start
// shows every mistake, each with the setting's name, what was found (never a
// secret) and what is wanted.
package config

import (
	"fmt"
	"io"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// A Var declares one environment variable. NAME_FILE, naming a file that holds
// the value, may always be set instead of NAME.
type Var struct {
	Name    string // "SLACK_BOT_TOKEN"
	Doc     string // one line: what it is for
	Secret  bool   // never shown, replaced in logs, refused by Get if it is a placeholder
	Default string // value when it is not set
	Example string // for the documentation, "" for none
}

// File is where the settings file is named.
var File = Var{Name: "HEDDLE_CONFIG", Doc: "The settings file; --config goes before it.", Default: DefaultPath}

// Settings are the environment and the file. They are read at start by one
// goroutine.
type Settings struct {
	lookup   func(string) (string, bool)
	path     string // of the file, "" if there is none
	sections map[string]*ast.MappingValueNode
	asked    map[string]bool   // sections somebody decodes
	at       map[string]string // position by setting: "gateway.yaml:3:7"
	secrets  []string
	problems Problems
	warnings []string
}

// Open reads the environment through lookup and the settings file at path. An
// empty path means the one that HEDDLE_CONFIG names, else ./gateway.yaml if it
// exists.
func Open(path string, lookup func(string) (string, bool)) *Settings {
	s := &Settings{
		lookup:   lookup,
		sections: map[string]*ast.MappingValueNode{},
		asked:    map[string]bool{},
		at:       map[string]string{},
	}
	s.open(path)
	return s
}

// Has says whether the variable or its _FILE form is there, be it empty.
func (s *Settings) Has(v Var) bool {
	_, plain := s.lookup(v.Name)
	_, file := s.lookup(v.Name + "_FILE")
	return plain || file
}

// Get returns the value of the variable, or its default if it is not set or
// empty. A secret must not be a placeholder such as "changeme".
func (s *Settings) Get(v Var) string {
	value := s.read(v.Name)
	if value == "" {
		return v.Default
	}
	if v.Secret {
		s.hide(value)
		if Placeholder(value) {
			s.Refuse(v.Name, "a placeholder", want(v))
		}
	}
	return value
}

// Need is Get for a variable that must be set.
func (s *Settings) Need(v Var) string {
	value := s.Get(v)
	if value == "" {
		s.Refuse(v.Name, s.blank(v.Name), want(v))
	}
	return value
}

// URL is Get for the base address of a server.
func (s *Settings) URL(v Var) string {
	value := s.Get(v)
	s.CheckURL(v, value)
	return value
}

// CheckURL refuses what is no base address of a server: http or https and a
// host, neither user nor query.
func (s *Settings) CheckURL(v Var, address string) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		s.Refuse(v.Name, quote(hideUser(address)), "an address such as https://host/path, without user and query")
	}
}

var userInfo = regexp.MustCompile(`^([^/?#]*//)?.*@`)

// hideUser leaves out of an address what may be a password.
func hideUser(address string) string { return userInfo.ReplaceAllString(address, "${1}[secret]@") }

// NeedList is Need for a list separated by commas, such as signing secrets
// while they are being rotated. Every element must hold.
func (s *Settings) NeedList(v Var) []string {
	value := s.Get(v)
	if value == "" {
		s.Refuse(v.Name, s.blank(v.Name), want(v))
		return nil
	}
	parts := strings.Split(value, ",")
	for i, p := range parts {
		parts[i] = strings.TrimSpace(p)
		switch {
		case parts[i] == "":
			s.Refuse(v.Name, "an empty element between commas", want(v))
		case v.Secret && Placeholder(parts[i]):
			s.Refuse(v.Name, "a placeholder", want(v))
		case v.Secret:
			s.hide(parts[i])
		}
	}
	return parts
}

// Explain says in a few words where the value of a variable comes from, and
// shows it unless it is a secret.
func (s *Settings) Explain(v Var) string {
	value, from := s.read(v.Name), ""
	switch _, file := s.lookup(v.Name + "_FILE"); {
	case value == "" && v.Default == "":
		return s.blank(v.Name)
	case value == "":
		value, from = v.Default, "default"
	case file:
		from = "from " + v.Name + "_FILE"
	default:
		from = "from the environment"
	}
	if v.Secret {
		return fmt.Sprintf("set, %d bytes, %s", len(value), from)
	}
	if strings.Contains(value, "://") {
		value = hideUser(value)
	}
	return fmt.Sprintf("%q, %s", value, from)
}

// Refuse notes that a setting is wrong: what was found, never a secret's value,
// and what is wanted. A setting of the file is named by its path, such as
// "agents.assistant.ladder[1].model", and gets its line in the text.
func (s *Settings) Refuse(setting, found, want string) {
	p := Problem{At: s.at[setting], Setting: setting, Found: found, Want: want}
	if !slices.Contains(s.problems, p) {
		s.problems = append(s.problems, p)
	}
}

// Refused says how many problems there are so far.
func (s *Settings) Refused() int { return len(s.problems) }

// Warn notes what an operator should know about a setting that is not wrong.
func (s *Settings) Warn(setting, text string) {
	if w := setting + ": " + text; !slices.Contains(s.warnings, w) {
		s.warnings = append(s.warnings, w)
	}
}

// Warnings returns what Warn noted.
func (s *Settings) Warnings() []string { return slices.Clone(s.warnings) }

// Err returns all Problems so far, among them the sections of the file that
// nobody asked for, or nil.
func (s *Settings) Err() error {
	s.unused()
	if len(s.problems) == 0 {
		return nil
	}
	return slices.Clone(s.problems)
}

// Redact returns a writer that replaces the secrets read so far by "[secret]".
// Whoever writes to it must not cut a secret into two writes; slog's handlers
// write a record at once.
func (s *Settings) Redact(w io.Writer) io.Writer { return newRedactor(w, s.secrets) }

// read finds NAME, or the contents of the file that NAME_FILE names without
// one newline at the end.
func (s *Settings) read(name string) string {
	value, plain := s.lookup(name)
	file, ok := s.lookup(name + "_FILE")
	if !ok || file == "" {
		return value
	}
	if plain && value != "" {
		s.Refuse(name, "both "+name+" and "+name+"_FILE", "one of them")
		return value
	}
	b, err := readFile(file)
	if err != nil {
		s.Refuse(name+"_FILE", err.Error(), "a file that can be read")
		return ""
	}
	text, _ := strings.CutSuffix(string(b), "\n")
	text, _ = strings.CutSuffix(text, "\r")
	return text
}

// blank says in which way a variable without value has none.
func (s *Settings) blank(name string) string {
	if _, ok := s.lookup(name); ok {
		return "nothing (it is empty)"
	}
	if file, ok := s.lookup(name + "_FILE"); ok {
		return fmt.Sprintf("nothing (in the file %q)", file)
	}
	return "nothing (it is not set)"
}

func (s *Settings) hide(secret string) {
	if !slices.Contains(s.secrets, secret) {
		s.secrets = append(s.secrets, secret)
	}
}

func want(v Var) string {
	if v.Example == "" {
		return v.Doc
	}
	return v.Doc + " Example: " + v.Example
}

// readFile reads a small file whole.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxFileBytes {
		return nil, fmt.Errorf("%s has more than %d bytes", path, maxFileBytes)
	}
	return b, nil
}
