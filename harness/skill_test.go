package harness_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/sandbox"
)

// reader reads skills and has a tool, a shell and files.
func reader(skills ...harness.Skill) harness.Agent {
	return func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		harness.UseSandbox(c, "virtual")
		harness.UseTool(c, echo("echo"))
		for _, s := range skills {
			harness.UseSkill(c, s)
		}
		return ""
	}
}

// shelled is a bench with a shell that does nothing.
func shelled(t *testing.T, a harness.Agent) *bench {
	t.Helper()
	b := newBench(t, a)
	b.files.exec = func(context.Context, sandbox.Command) (sandbox.Result, error) { return sandbox.Result{}, nil }
	return b
}

// after is the bench of the step that follows, with what was written so far.
func (b *bench) after(a harness.Agent, turn string) *bench {
	b.t.Helper()
	s := snapshot()
	s.Turn, s.State = turn, map[string]json.RawMessage{}
	for _, w := range b.scope.Writes() {
		s.State[w.Name] = w.Value
	}
	return &bench{t: b.t, m: render(b.t, a, s), files: b.files, scope: harness.NewScope(s, b.files.open)}
}

func (b *bench) refuses(tool string, args any) {
	b.t.Helper()
	if out, err := b.run(tool, args); err == nil || !strings.Contains(err.Error(), "nothing was run") {
		b.t.Errorf("%s %v: %q, %v, want a refusal", tool, args, out, err)
	}
}

// A skill takes tools away from the step after it was read to the end of the turn.
func TestAllowedTools(t *testing.T) {
	t.Parallel()
	only := func(name string, tools ...string) harness.Skill {
		return harness.Skill{Name: name, Doc: "x", Body: "The body of " + name, AllowedTools: append([]string{}, tools...)}
	}
	a := reader(review, only("reads", "Read", "Echo"))
	hi := object{"text": "hi"}
	b := shelled(t, a).after(a, "t1")
	list := names(b.m)

	if out := b.must("skill", object{"name": "review"}); out != review.Body || len(b.scope.Writes()) != 0 {
		t.Errorf("a skill that allows everything: %q, writes %v", out, b.scope.Writes())
	}
	b.must("skill", object{"name": "reads"})
	b.must("bash", object{"command": "true"}) // the same step: asked for before the skill was read

	next := b.after(a, "t1")
	if names(next.m) != list || next.m.View().Digest() != b.m.View().Digest() {
		t.Error("the list of tools has changed")
	}
	if out := next.must("echo", hi); out != "hi" {
		t.Errorf("an allowed tool returns %q", out)
	}
	next.refuses("bash", object{"command": "true"})
	next.refuses("write", object{"path": "x", "content": "x"})
	if out := next.must("skill", object{"name": "review"}); out != review.Body {
		t.Errorf("skills cannot be read on: %q", out)
	}
}

// Two skills allow what both do, and reading goes on.
func TestAllowedToolsOfTwo(t *testing.T) {
	t.Parallel()
	a := reader(
		harness.Skill{Name: "a", Doc: "x", AllowedTools: []string{"read", "echo"}},
		harness.Skill{Name: "b", Doc: "x", AllowedTools: []string{"bash", "echo"}},
		harness.Skill{Name: "none", Doc: "x", AllowedTools: []string{}},
	)
	b := shelled(t, a).after(a, "t1")
	b.must("skill", object{"name": "a"})
	b.must("skill", object{"name": "b"})
	b = b.after(a, "t1")
	b.must("echo", object{"text": "hi"})
	b.refuses("bash", object{"command": "true"})
	b.refuses("read", object{"path": "x"})
	b.must("skill", object{"name": "none"})
	b = b.after(a, "t1")
	b.refuses("echo", object{"text": "hi"})
	b.must("skill", object{"name": "a"})
	if b = b.after(a, "t2"); b.must("echo", object{"text": "hi"}) != "hi" {
		t.Error("the next turn is bound")
	}
	b.must("bash", object{"command": "true"})
}

// A skill that is no longer declared still binds the turn it was read in.
func TestAllowedToolsOfGoneSkill(t *testing.T) {
	t.Parallel()
	b := newBench(t, reader(harness.Skill{Name: "a", Doc: "x", AllowedTools: []string{"echo"}}))
	b.must("skill", object{"name": "a"})
	b = b.after(reader(), "")
	b.refuses("bash", object{"command": "true"})
}

func TestAllowedCommands(t *testing.T) {
	t.Parallel()
	for pattern, tt := range map[string]struct{ runs, refused []string }{
		"bash(git:*)":     {[]string{"git", "git log", "  git log --format=%H 'a b' "}, []string{"", "gitk", "echo git", "git log; rm x", "git log\nrm x", "git log && rm x", "git log | sh", "git log > x", "git log `rm x`", "git $(rm x)", "git log &", "git log 'a;b'", "X=1 git log"}},
		"Bash(git log *)": {[]string{"git log", "git log -1"}, []string{"git", "git push", "git logs"}},
		"bash(make test)": {[]string{"make test"}, []string{"make", "make test all", "make tests"}},
		"bash(*)":         {[]string{"a; b"}, nil},
		"bash":            {[]string{"a; b"}, nil},
		"Bash(*.sh)":      {nil, []string{"x.sh", "*.sh x"}},
		"bash()":          {nil, []string{"true", "x"}},
		"read(*)":         {nil, []string{"true"}},
	} {
		a := reader(harness.Skill{Name: "a", Doc: "x", AllowedTools: []string{"write", pattern}})
		b := shelled(t, a)
		b.must("skill", object{"name": "a"})
		b = b.after(a, "")
		for _, script := range tt.runs {
			b.must("bash", object{"command": script})
		}
		for _, script := range tt.refused {
			if out, err := b.run("bash", object{"command": script}); err == nil || !strings.Contains(err.Error(), "write, "+pattern) {
				t.Errorf("%s: %q: %q, %v", pattern, script, out, err)
			}
		}
		b.refuses("read", object{"path": "x"})
	}
}

func TestSkillResource(t *testing.T) {
	t.Parallel()
	asked := ""
	a := reader(review, harness.Skill{Name: "files", Doc: "x", Body: "B", AllowedTools: []string{"read"}, Resource: func(ctx context.Context, path string) (string, error) {
		if asked = path; path != "a.md" || ctx.Err() != nil {
			return "", errors.New("no such file")
		}
		return "A", nil
	}})
	b := shelled(t, a)
	if got := b.must("skill", object{"name": "files"}); got != "B" || asked != "" {
		t.Errorf("body %q, asked for %q", got, asked)
	}
	if got := b.must("skill", object{"name": "files", "resource": "a.md"}); got != "A" {
		t.Errorf("resource %q", got)
	}
	if _, err := b.run("skill", object{"name": "files", "resource": "../b"}); err == nil || err.Error() != "no such file" {
		t.Errorf("a miss says %v", err)
	}
	if _, err := b.run("skill", object{"name": "review", "resource": "a.md"}); err == nil || !strings.Contains(err.Error(), `skill "review" has no files`) {
		t.Errorf("without files: %v", err)
	}
	b = shelled(t, a)
	b.must("skill", object{"name": "files", "resource": "a.md"}) // binds like the body
	b.after(a, "").refuses("bash", object{"command": "true"})
}

// What a skill allows and its digest are shown and count as a change.
func TestSkillInView(t *testing.T) {
	t.Parallel()
	view := func(s harness.Skill) harness.View {
		m := render(t, reader(s), snapshot())
		return m.View()
	}
	base := harness.Skill{Name: "a", Doc: "x", Body: "B", Digest: "sha256:1"}
	other, none, some := base, base, base
	other.Digest, none.AllowedTools, some.AllowedTools = "sha256:2", []string{}, []string{"read"}
	seen := map[string]bool{}
	for _, s := range []harness.Skill{base, other, none, some} {
		v := view(s)
		raw, err := json.Marshal(v.Skills[0])
		if err != nil || strings.Contains(string(raw), "B") || seen[v.Digest()] {
			t.Errorf("%s, %v", raw, err)
		}
		seen[v.Digest()] = true
		var back harness.Skill
		if err := json.Unmarshal(raw, &back); err != nil || (back.AllowedTools == nil) != (s.AllowedTools == nil) || back.Digest != s.Digest {
			t.Errorf("%s reads as %+v, %v", raw, back, err)
		}
	}
}
