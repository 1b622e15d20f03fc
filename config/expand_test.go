package config

import (
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml/ast"
)

func TestExpand(t *testing.T) {
	t.Parallel()
	env := map[string]string{"A": "1", "DOLLAR": "${A} $$", "EMPTY": ""}
	for _, tt := range []struct{ in, want, err string }{
		{"", "", ""},
		{"plain", "plain", ""},
		{"${A}", "1", ""},
		{"x${A}y${A}z", "x1y1z", ""},
		{"$$", "$", ""},
		{"$${A}", "${A}", ""},
		{"$$$${A}$", "$${A}$", ""},
		{"costs $5", "costs $5", ""},
		{"$A", "$A", ""},
		{"${DOLLAR}", "${A} $$", ""},
		{"${NO:-x y}", "x y", ""},
		{"${NO:-}", "", ""},
		{"${NO:-a:-b}", "a:-b", ""},
		{"${EMPTY:-x}", "x", ""},
		{"${A:-x}", "1", ""},
		{"${NO}", "", "${NO}, which is not set"},
		{"${EMPTY}", "", "${EMPTY}, which is not set"},
		{"${A", "", "a ${ without its }"},
		{"${}", "", "names no variable"},
		{"${1A}", "", "names no variable"},
		{"${A-x}", "", "names no variable"},
		{"${ A }", "", "names no variable"},
	} {
		got, err := expand(tt.in, func(name string) string { return env[name] })
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("expand(%q) = %q, %v, want %q, %q", tt.in, got, err, tt.want, tt.err)
		}
	}
}

// FuzzExpand holds expand to what its comment says: doubled dollars give back
// any text, and neither values nor errors are looked into again.
func FuzzExpand(f *testing.F) {
	for _, s := range []string{"", "$", "$$", "${A}", "${A:-${B}}", "a${", "$${A}", "${A:-x}y"} {
		f.Add(s, "v$$")
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		look := func(string) string { return value }
		if got, err := expand(strings.ReplaceAll(text, "$", "$$"), look); err != nil || got != text {
			t.Errorf("expand of escaped %q = %q, %v", text, got, err)
		}
		if got, err := expand("<${A}>", look); value != "" && (err != nil || got != "<"+value+">") {
			t.Errorf("expand to %q = %q, %v", value, got, err)
		}
		got, err := expand(text, look)
		if err == nil && !strings.Contains(text, "$") && got != text {
			t.Errorf("expand(%q) = %q", text, got)
		}
		if err != nil && len(value) > 8 && !strings.Contains(text, value) && strings.Contains(err.Error(), value) {
			t.Errorf("expand(%q): the error holds the value", text)
		}
	})
}

// FuzzSection feeds any text as settings file: no panic, and no value of the
// environment in a problem.
func FuzzSection(f *testing.F) {
	for _, s := range []string{
		"s: {day: 1}", "s:\n  ladder:\n    - name: ${A}\n      for: ${B:-1s}\n", "s: !!map {<<: *x}", "? [a]\n: b", "s: ${A",
		"s: {on: $$${A}}", "s: [1, {a: b}]", "a: &a [*a]", "s:\n - |\n  x\n", "s: >-\n x\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		const value = "hunter-two"
		s := &Settings{
			lookup:   func(name string) (string, bool) { return value, name == "A" },
			sections: map[string]*ast.MappingValueNode{}, asked: map[string]bool{}, at: map[string]string{},
		}
		s.parse([]byte(text))
		var into struct {
			Day    float64
			On     []string
			Ladder []struct {
				Name string
				For  time.Duration
			}
			More map[string]*struct{ Yes bool }
		}
		s.Section("s", &into)
		if err := s.Err(); err != nil && !strings.Contains(text, value) && strings.Contains(err.Error(), value) {
			t.Errorf("a value is in the error: %v", err)
		}
	})
}
