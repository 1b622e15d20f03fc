package commands

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/heddlehq/heddle/sandbox/virtual/memfs"
)

func runSed(t *testing.T, ctx context.Context, script, input string) (string, int) {
	t.Helper()
	var out bytes.Buffer
	code := Run(ctx, Call{
		Args: []string{"sed", "-e", script}, FS: memfs.New(time.Now), Dir: "/home/user", Stdin: strings.NewReader(input),
		Stdout: &out, Stderr: &out, Env: func() []string { return nil }, Now: time.Now,
	})
	return out.String(), code
}

// FuzzSed runs any script over any input: it must not panic, and must end.
func FuzzSed(f *testing.F) {
	for _, seed := range []string{
		"s/a/b/g;p", "1~2{N;P;D}", `:a;s/\(x\)*y/\1&\n/2gp;ta`, "/a/,/b/!d;=;y/ab/cd/", "0,/x/c\\text", `s,[^]a[:digit:]]\{2\},\U&\E-\l&,I`, "$!{H;d};x;G;q5", "2,+3i\\\n a",
	} {
		f.Add(seed, "a\nxxy\nb12\nlast")
	}
	f.Fuzz(func(t *testing.T, script, input string) {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		runSed(t, ctx, script, input)
	})
}

// FuzzRegex translates any pattern: what comes out is a pattern or an error.
func FuzzRegex(f *testing.F) {
	for _, seed := range []string{`a\{1,2\}b*`, `[]a-z[:digit:]\n]`, `\(a\|b\)\+$`, `^*x**+?`, `[[.-.]x]`, `a{,3}|(b)`, `\<w\>\.\`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		for _, ere := range []bool{false, true} {
			if expr, err := translate(pattern, ere); err == nil {
				_, _ = regexp.Compile(expr) // either is fine; a panic is not
			}
			_, _ = compile(pattern, basic, true)
		}
	})
}
