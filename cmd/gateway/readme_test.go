package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddlehq/heddle/config"
)

// block returns the fenced block of a Markdown file that begins with a text.
func block(t *testing.T, file, language, begin string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split(string(b), "```"+language+"\n")[1:] {
		text, _, _ := strings.Cut(part, "```")
		if strings.HasPrefix(text, begin) {
			return text
		}
	}
	t.Fatalf("%s has no %s block that begins with %q", file, language, begin)
	return ""
}

// exports are the variables that the README sets.
func exports(t *testing.T) (names []string) {
	t.Helper()
	for line := range strings.Lines(block(t, "../../README.md", "sh", "   export")) {
		if name, _, ok := strings.Cut(strings.TrimPrefix(line, "   export "), "="); ok && strings.HasPrefix(line, "   export ") {
			names = append(names, name)
		}
	}
	return names
}

// TestReadmeSettings checks that the settings file of the README is accepted as
// it stands there, beside the variables that the README sets and nothing else.
func TestReadmeSettings(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	if err := os.WriteFile(path, []byte(block(t, "../../README.md", "yaml", "models:")), 0o600); err != nil {
		t.Fatal(err)
	}
	vars := map[string]string{}
	for _, name := range exports(t) {
		vars[name] = "xoxb-1-2-abc"
	}
	s := config.Open(path, func(name string) (string, bool) { v, ok := vars[name]; return v, ok })
	p := partsOf(s)
	defer p.close()
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	if w := s.Warnings(); w != nil {
		t.Errorf("warnings: %v", w)
	}
	if len(p.channels) != 1 || len(p.agents) != 1 || len(p.routes) != 1 {
		t.Errorf("%d channels, %d agents, %d routes; want one of each", len(p.channels), len(p.agents), len(p.routes))
	}
}

// TestReadmeVariables checks that the README names no variable that nothing reads.
func TestReadmeVariables(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, g := range vars {
		for _, v := range g.Vars {
			known[v.Name] = true
		}
	}
	for _, name := range exports(t) {
		if !known[name] {
			t.Errorf("the README sets %s, which nothing reads", name)
		}
	}
}
