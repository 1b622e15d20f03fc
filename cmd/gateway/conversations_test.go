package main

import "testing"

func TestPrintable(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a\tb\nc":               "a\tb\nc",
		"fam\u200bily 👩\u200d💻": "fam\u200bily 👩\u200d💻",
		"\x1b[31mred\x1b[0m":    "\uFFFD[31mred\uFFFD[0m",
		"a\rb\x00\u202ec":       "a\uFFFDb\uFFFD\uFFFDc",
		"\xff":                  "\uFFFD",
	} {
		if got := printable(in); got != want {
			t.Errorf("printable(%q) = %q, want %q", in, got, want)
		}
	}
}
