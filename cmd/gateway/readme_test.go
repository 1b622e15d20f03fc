package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/heddlehq/heddle/config"
	"github.com/heddlehq/heddle/mcp"
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
		vars[name] = map[string]string{"SLACK_APP_TOKEN": "xapp-1-2-abc"}[name]
		if vars[name] == "" {
			vars[name] = "xoxb-1-2-abc"
		}
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

// TestGuides checks that the settings of the guides are accepted as they stand
// there, and that the commands they name exist.
func TestGuides(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	vars := map[string]string{"SLACK_BOT_TOKEN": "xoxb-1-2-abc", "SLACK_SIGNING_SECRET": "abc-1-2", "OPENAI_API_KEY": "sk-1-2-abc", "DOCS_TOKEN": "abc-1-2"}
	lookup := func(name string) (string, bool) { v, ok := vars[name]; return v, ok }

	write("gateway.yaml", block(t, "../../docs/skills.md", "yaml", "agents:"))
	write("skills/release-notes/SKILL.md", block(t, "../../docs/skills.md", "markdown", "---"))
	write("skills/release-notes/references/form.md", "One line each.")
	write("skills/deploying/SKILL.md", "---\nname: deploying\ndescription: Deploys.\n---\nDeploy.\n")
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	e := env{lookup: lookup, stdout: null, stderr: null}
	config := "--config=" + filepath.Join(dir, "gateway.yaml")
	for _, args := range [][]string{{"skills", "lock"}, {"skills", "check"}, {"check"}} {
		if code := Main(t.Context(), append([]string{config}, args...), e); code != exitOK {
			t.Errorf("%v: exit code %d", args, code)
		}
	}

	write("gateway.yaml", block(t, "../../docs/mcp.md", "yaml", "agents:"))
	if code := Main(t.Context(), []string{config, "check"}, e); code != exitSettings {
		t.Errorf("servers that are not pinned: exit code %d", code)
	}
	if err := (mcp.Lock{"docs": {}, "tickets": {}}).Write(filepath.Join(dir, mcp.LockName)); err != nil {
		t.Fatal(err)
	}
	if code := Main(t.Context(), []string{config, "check"}, e); code != exitOK {
		t.Errorf("the settings of docs/mcp.md: exit code %d", code)
	}

	named := regexp.MustCompile(`gateway ((?:skills|mcp|memory|secrets) [a-z]+)`)
	write("gateway.yaml", block(t, "../../docs/memory.md", "yaml", "agents:"))
	if code := Main(t.Context(), []string{config, "check"}, e); code != exitOK {
		t.Errorf("the settings of docs/memory.md: exit code %d", code)
	}

	for _, file := range []string{"../../docs/skills.md", "../../docs/mcp.md", "../../docs/memory.md"} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := named.FindAllStringSubmatch(string(b), -1)
		if found == nil {
			t.Errorf("%s names no command", file)
		}
		for _, m := range found {
			if code := Main(t.Context(), append(strings.Fields(m[1]), "--help"), e); code != exitOK {
				t.Errorf("%s names %q, which does not exist", file, m[0])
			}
		}
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
