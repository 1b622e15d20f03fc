package commands

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/sandbox/virtual/memfs"
)

func TestParseFlags(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spec, args string
		vals       map[string][]string
		operands   []string
		err        string
	}{
		"cluster":          {"n|number s v:", "-nsvx a", map[string][]string{"n": {""}, "s": {""}, "v": {"x"}}, []string{"a"}, ""},
		"long":             {"n|lines: q|quiet", "a --lines=3 --quiet --lines 4", map[string][]string{"n": {"3", "4"}, "q": {""}}, []string{"a"}, ""},
		"two values":       {"arg;", "--arg k v .", map[string][]string{"arg": {"k\x00v"}}, []string{"."}, ""},
		"attached only":    {"i|in-place? n", "-i -n -i.bak f", map[string][]string{"i": {"", ".bak"}, "n": {""}}, []string{"f"}, ""},
		"end of options":   {"n", "-n -- -n", map[string][]string{"n": {""}}, []string{"-n"}, ""},
		"first operand":    {"+n", "-n a -n", map[string][]string{"n": {""}}, []string{"a", "-n"}, ""},
		"negative operand": {"+w", "-w -3 3", map[string][]string{"w": {""}}, []string{"-3", "3"}, ""},
		"number option":    {"-n|lines:", "-5 f", map[string][]string{"n": {"5"}}, []string{"f"}, ""},
		"raw":              {raw, "-x --y", nil, []string{"-x", "--y"}, ""},
		"unsupported":      {"n", "-nx", nil, nil, "unsupported option -x"},
		"unsupported long": {"n", "--n", nil, nil, "unsupported option --n"},
		"no value":         {"n:", "-n", nil, nil, "option -n needs a value"},
		"one value of two": {"arg;", "--arg k", nil, nil, "option --arg needs a value"},
		"too much":         {"q|quiet", "--quiet=1", nil, nil, "option --quiet takes no value"},
		"not a number":     {"n|max#", "--max=x", nil, nil, "option --max needs a number, not 'x'"},
		"negative":         {"n#", "-n -1", nil, nil, "option -n needs a number, not '-1'"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := parseFlags(c.spec, strings.Fields(c.args))
			if err != nil || c.err != "" {
				if err == nil || err.Error() != c.err {
					t.Errorf("got error %v, want %q", err, c.err)
				}
				return
			}
			if c.vals == nil {
				c.vals = map[string][]string{}
			}
			if diff := cmp.Diff(c.vals, f.vals); diff != "" {
				t.Errorf("options (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.operands, f.args); diff != "" {
				t.Errorf("operands (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRefused calls what is not supported: each says so and ends with 2.
func TestRefused(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"cat --nope", "sort -R", "sort -k1V", "ls -Z", "tail -f x", "sed -z p", "sed s/a/b/w", "find . -printf x", "diff -r a b", "uniq a b", "date -s x", "xargs -L1",
		"awk BEGIN{system(\"id\")}", "awk BEGIN{getline<\"x\"}", "awk BEGIN{print|\"sort\"}", "jq --args .", "grep \\(a\\)\\1", "stat -f x", "seq 1 0 2", "mktemp -u", "tr a",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			args := strings.Fields(line)
			code := Run(t.Context(), Call{
				Args: args, FS: memfs.New(time.Now), Dir: "/home/user", Stdin: strings.NewReader(""),
				Stdout: &out, Stderr: &errs, Env: func() []string { return nil }, Now: time.Now,
			})
			if code != 2 || !strings.HasPrefix(errs.String(), args[0]+": ") || out.Len() > 0 {
				t.Errorf("exit %d, prints %q, says %q", code, out.String(), errs.String())
			}
		})
	}
}
