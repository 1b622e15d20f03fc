package harnesstest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/harnesstest"
)

// failing is a test that notes what it fails with.
type failing struct {
	testing.TB
	errs []string
}

func (f *failing) Helper()                        {}
func (f *failing) Errorf(format string, a ...any) { f.errs = append(f.errs, fmt.Sprintf(format, a...)) }

// wanted are the remarks "// want ..." of a file, as Pure says them.
func wanted(t *testing.T, name string) []string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	n := 0
	for line := range strings.Lines(string(b)) {
		n++
		if _, what, ok := strings.Cut(line, "// want "); ok {
			for w := range strings.SplitSeq(strings.TrimSpace(what), "; ") {
				out = append(out, fmt.Sprintf("%d %s", n, w))
			}
		}
	}
	return out
}

// An agent function that touches the world is found, where and how it does so.
func TestPureFinds(t *testing.T) {
	t.Parallel()
	f := &failing{TB: t}
	harnesstest.Pure(f, "testdata/agents")
	want := wanted(t, "testdata/agents/agents.go")
	missing := map[string]bool{}
	for _, w := range want {
		missing[w] = true
	}
	for _, e := range f.errs {
		hit := ""
		for w := range missing {
			at, what, _ := strings.Cut(w, " ")
			if strings.HasPrefix(e, "agents.go:"+at+":") && strings.Contains(e, what) {
				hit = w
			}
		}
		if hit == "" {
			t.Errorf("not wanted: %s", e)
		}
		delete(missing, hit)
	}
	if len(missing) > 0 || len(want) < 15 {
		t.Errorf("of %d not found: %v", len(want), missing)
	}
}

// What runs in tools and callbacks is outside a render.
func TestPureLetsPass(t *testing.T) {
	t.Parallel()
	harnesstest.Pure(t, "testdata/pure")
	f := &failing{TB: t}
	harnesstest.Pure(f, "testdata")
	harnesstest.Pure(f, "[")
	want := []string{"pure: testdata has no function with a *harness.Context", "pure: syntax error in pattern"}
	if d := cmp.Diff(want, f.errs); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// An agent that declares now this and now that, or writes to its snapshot, is found.
func TestSame(t *testing.T) {
	t.Parallel()
	n := 0
	many := map[string]bool{}
	for i := range 20 {
		many[fmt.Sprint(i)] = true
	}
	s := harness.Snapshot{Agent: "a", State: map[string]json.RawMessage{"n": json.RawMessage("1")}}
	fast := func(f func(*harness.Context) string) harness.Agent {
		return func(c *harness.Context) string { harness.UseModel(c, "fast"); return f(c) }
	}
	for name, tt := range map[string]struct {
		agent harness.Agent
		want  string
	}{
		"steady": {fast(func(c *harness.Context) string { return fmt.Sprint(harness.UseState(c, "n", 0).Value) }), ""},
		"counts": {fast(func(*harness.Context) string { n++; return fmt.Sprint(n) }), "snapshot 0: render 2 declares something else"},
		"order of a map": {fast(func(*harness.Context) string {
			for k := range maps.Keys(many) {
				return k
			}
			return ""
		}), "declares something else"},
		"callbacks": {fast(func(c *harness.Context) string {
			n++
			harness.UseTurnStart(c, fmt.Sprint(n), func(context.Context, *harness.Call) error { return nil })
			return ""
		}), "declares something else"},
		"writes": {fast(func(*harness.Context) string { s.State["n"] = json.RawMessage("2"); return "" }), "snapshot 0: a render has changed the snapshot"},
		"wrong":  {func(*harness.Context) string { return "" }, `snapshot 0: agent "a": UseModel: no model declared`},
	} {
		f := &failing{TB: t}
		harnesstest.Same(f, tt.agent, s)
		if got := strings.Join(f.errs, "\n"); tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
		s.State["n"] = json.RawMessage("1")
	}
}
