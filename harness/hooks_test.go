package harness_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/harness"
)

var review = harness.Skill{Name: "review", Doc: "how we review", Body: "Read twice."}

// Every mistake of a render is told at once, by the name of its hook.
func TestMisuse(t *testing.T) {
	t.Parallel()
	type plain struct{}
	for name, tt := range map[string]struct {
		agent harness.Agent
		want  []string // a mistake each
	}{
		"no model": {func(*harness.Context) string { return "" }, []string{"UseModel: no model declared"}},
		"two models": {func(c *harness.Context) string {
			harness.UseModel(c, "fast")
			harness.UseModel(c, "strong")
			return ""
		}, []string{`UseModel: called for "fast" and for "strong"`}},
		"one model twice": {func(c *harness.Context) string {
			harness.UseModel(c, "fast")
			harness.UseModel(c, "fast")
			return ""
		}, []string{`UseModel: called twice for "fast"`}},
		"names": {func(c *harness.Context) string {
			harness.UseModel(c, "")
			harness.UseSandbox(c, "")
			harness.UseState(c, "", 0)
			harness.UseTool(c, echo("a tool"))
			harness.UseTool(c, echo(strings.Repeat("x", 65)))
			harness.UseSkill(c, harness.Skill{Name: "a/b", Doc: "x"})
			return ""
		}, []string{"UseModel: the name", "UseSandbox: the name", "UseState: the name", `UseTool: tool name "a tool"`, "UseTool: tool name \"xxx", "UseSkill: skill name", "UseModel: no model"}},
		"declared twice": {func(c *harness.Context) string {
			harness.UseModel(c, "fast")
			harness.UseSandbox(c, "virtual")
			harness.UseSandbox(c, "isolated")
			harness.UseTool(c, echo("a"))
			harness.UseTool(c, echo("a"))
			harness.UseSkill(c, review)
			harness.UseSkill(c, review)
			harness.UseLevel(c, 0, "low")
			harness.UseLevel(c, 1, "high")
			harness.UseState(c, "n", 0)
			harness.UseState(c, "n", "")
			return ""
		}, []string{`UseSandbox: called for "virtual" and for "isolated"`, `UseTool: tool "a" is declared twice`, `UseSkill: skill "review"`, `UseLevel: called for "low" and for "high"`, `UseState: "n" is declared as int and as string`}},
		"names of tools that come with others": {func(c *harness.Context) string {
			harness.UseModel(c, "fast")
			harness.UseTool(c, echo("bash"))
			harness.UseTool(c, echo("skill"))
			harness.UseSandbox(c, "virtual")
			harness.UseSkill(c, review)
			return ""
		}, []string{`UseSandbox: tool "bash"`, `UseSkill: tool "skill"`}},
		"a skill without its line": {func(c *harness.Context) string {
			harness.UseModel(c, "fast")
			harness.UseSkill(c, harness.Skill{Name: "a", Doc: " "})
			harness.UseSkill(c, harness.Skill{Name: "b", Doc: "one\n- c: two"})
			return ""
		}, []string{`UseSkill: skill "a"`, `UseSkill: skill "b"`}},
		"arguments that are no struct": {func(c *harness.Context) string {
			harness.UseModel(c, "fast")
			harness.UseTool(c, harness.NewTool[int, string]("a", "", nil))
			harness.UseTool(c, harness.NewTool[struct{ F func() }, string]("b", "", nil))
			harness.UseTool(c, harness.NewTool("c", "", func(context.Context, *harness.Call, plain) (string, error) { return "", nil }))
			return ""
		}, []string{`UseTool: tool "a": the arguments are a int`, `UseTool: tool "b": arguments`}},
		"stored state of another form": {func(c *harness.Context) string {
			harness.UseModel(c, "fast")
			harness.UseState(c, "visits", map[string]int{})
			return ""
		}, []string{`UseState: "visits": the stored value does not fit map[string]int`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := snapshot()
			s.State = map[string]json.RawMessage{"visits": json.RawMessage("3")}
			m, err := harness.Render(tt.agent, s)
			var re *harness.RenderError
			if !errors.As(err, &re) {
				t.Fatalf("got %v, want a RenderError", err)
			}
			if !cmp.Equal(m, harness.Manifest{}, cmp.Comparer(func(a, b harness.Tool) bool { return a.Name == b.Name })) {
				t.Errorf("a render with mistakes gave a manifest: %+v", m)
			}
			if re.Agent != "tested" || !strings.HasPrefix(err.Error(), `agent "tested": `) {
				t.Errorf("the agent is not named: %v", err)
			}
			if len(re.Errs) != len(tt.want) {
				t.Errorf("%d mistakes, want %d: %v", len(re.Errs), len(tt.want), err)
			}
			for i, e := range re.Errs[:min(len(re.Errs), len(tt.want))] {
				if !strings.HasPrefix(e.Error(), tt.want[i]) || !strings.Contains(err.Error(), e.Error()) {
					t.Errorf("mistake %d is %q, want %q", i, e, tt.want[i])
				}
			}
		})
	}
}

func TestRenderSurvivesPanics(t *testing.T) {
	t.Parallel()
	_, err := harness.Render(func(c *harness.Context) string {
		harness.UseSandbox(c, "")
		var none []int
		return fmt.Sprint(none[len(c.Thread().Root)])
	}, snapshot())
	var re *harness.RenderError
	if !errors.As(err, &re) || re.Panic == nil || !strings.Contains(re.Detail, "TestRenderSurvivesPanics") {
		t.Fatalf("got %#v", err)
	}
	if got := err.Error(); !strings.Contains(got, "panicked") || !strings.Contains(got, "UseSandbox") {
		t.Errorf("the text is %q", got)
	}
}

// Each kind of thing may be declared under a condition.
func TestConditionalHooks(t *testing.T) {
	t.Parallel()
	agent := func(c *harness.Context) string {
		on := harness.UseState(c, "on", "").Value
		if on == "model" {
			harness.UseModel(c, "strong")
		} else {
			harness.UseModel(c, "fast")
		}
		if on == "sandbox" {
			harness.UseSandbox(c, "virtual")
		}
		if on == "tool" {
			harness.UseTool(c, echo("a"))
		}
		if on == "skill" {
			harness.UseSkill(c, review)
		}
		if on == "instruction" {
			harness.UseInstruction(c, "Be brief.")
		}
		if on == "level" {
			harness.UseLevel(c, 1, "high")
		}
		if on == "state" {
			harness.UseState(c, "more", 0)
		}
		return "Help."
	}
	type got struct {
		Model, Sandbox, Tools, System string
		Level                         *harness.Level
	}
	for on, want := range map[string]got{
		"":            {"fast", "", "", "Help.", nil},
		"model":       {"strong", "", "", "Help.", nil},
		"sandbox":     {"fast", "virtual", "read write edit bash grep glob", "Help.", nil},
		"tool":        {"fast", "", "a", "Help.", nil},
		"skill":       {"fast", "", "skill", "Help.\n\nSkills (read one with the skill tool before you use it):\n- review: how we review", nil},
		"instruction": {"fast", "", "", "Help.\n\nBe brief.", nil},
		"level":       {"fast", "", "", "Help.", &harness.Level{Number: 1, Name: "high"}},
		"state":       {"fast", "", "", "Help.", nil},
	} {
		s := snapshot()
		s.State = map[string]json.RawMessage{"on": json.RawMessage(fmt.Sprintf("%q", on))}
		m := render(t, agent, s)
		if d := cmp.Diff(want, got{m.Model, m.Sandbox, names(m), m.System(), m.Level}); d != "" {
			t.Errorf("%s (-want +got):\n%s", on, d)
		}
	}
}

// The manifest follows from the snapshot alone: the digest is the same on any
// machine, whatever the order of declarations.
func TestDigest(t *testing.T) {
	t.Parallel()
	tidy := harness.Skill{Name: "tidy", Doc: "how we tidy", Body: "Throw away."}
	agent := func(tools, skills []int) harness.Agent {
		return func(c *harness.Context) string {
			harness.UseModel(c, "fast")
			for _, i := range tools {
				harness.UseTool(c, echo([]string{"a", "b", "c"}[i]))
			}
			for _, i := range skills {
				harness.UseSkill(c, []harness.Skill{review, tidy}[i])
			}
			return "Help."
		}
	}
	digest := func(a harness.Agent) string {
		m := render(t, a, snapshot())
		return m.View().Digest()
	}
	const want = "f80881e8f6e976a68516306f"
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}} {
		for _, skills := range [][]int{{0, 1}, {1, 0}} {
			a := agent(order, skills)
			if got := digest(a); got != want {
				t.Errorf("tools %v, skills %v: digest %s, want %s", order, skills, got, want)
			}
			m := render(t, a, snapshot())
			if first := render(t, agent([]int{0, 1, 2}, []int{0, 1}), snapshot()); m.System() != first.System() {
				t.Errorf("skills %v: equal digests with different system texts:\n%s\n%s", skills, m.System(), first.System())
			}
		}
	}
	for name, other := range map[string]harness.Agent{
		"a tool less":  agent([]int{0, 1}, []int{0, 1}),
		"a skill less": agent([]int{0, 1, 2}, []int{0}),
		"other words":  func(c *harness.Context) string { agent([]int{0, 1, 2}, []int{0, 1})(c); return "Help!" },
		"another level": func(c *harness.Context) string {
			harness.UseLevel(c, 1, "x")
			return agent([]int{0, 1, 2}, []int{0, 1})(c)
		},
		"with instructions": func(c *harness.Context) string {
			harness.UseInstruction(c, "x")
			return agent([]int{0, 1, 2}, []int{0, 1})(c)
		},
	} {
		if got := digest(other); got == want {
			t.Errorf("%s: the digest is the same", name)
		}
	}
}

// A hook of one's own is a function that calls hooks; two agents that use it
// get the same from it.
func TestCustomHook(t *testing.T) {
	t.Parallel()
	useTracker := func(c *harness.Context, project string) {
		seen := harness.UseState(c, "tracker", 0)
		harness.UseTool(c, echo("tracker_search"))
		harness.UseTool(c, echo("tracker_comment"))
		harness.UseSkill(c, harness.Skill{Name: "tracker", Doc: "how " + project + " uses its tracker", Body: "..."})
		harness.UseInstruction(c, fmt.Sprintf("The tracker of %s was used %d times.", project, seen.Value))
	}
	one := render(t, func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		useTracker(c, "loom")
		return "You triage."
	}, snapshot())
	two := render(t, func(c *harness.Context) string {
		harness.UseModel(c, "strong")
		harness.UseTool(c, echo("other"))
		useTracker(c, "loom")
		return "You write."
	}, snapshot())
	sub := func(m harness.Manifest) harness.View {
		v := m.View()
		v.Model, v.Tools = "", v.Tools[len(v.Tools)-3:]
		_, v.Instructions, _ = strings.Cut(v.Instructions, "\n\n")
		return v
	}
	if d := cmp.Diff(sub(one), sub(two)); d != "" {
		t.Errorf("the hook gave two agents different things:\n%s", d)
	}
	if got := sub(one); len(got.Skills) != 1 || got.Instructions != "The tracker of loom was used 0 times." || names(one) != "tracker_search tracker_comment skill" {
		t.Errorf("the hook gave %+v", got)
	}
}

func TestSkillTool(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		harness.UseSkill(c, review)
		return ""
	})
	if got := b.m.System(); strings.Contains(got, review.Body) || !strings.Contains(got, "- review: how we review") {
		t.Errorf("the system text is %q", got)
	}
	if got := b.must("skill", object{"name": "review"}); got != review.Body {
		t.Errorf("the body is %q", got)
	}
	if _, err := b.run("skill", object{"name": "none"}); err == nil || !strings.Contains(err.Error(), `no skill "none"; there are: review`) {
		t.Errorf("a miss says %v", err)
	}
}

func BenchmarkRender(b *testing.B) {
	s := snapshot()
	s.State = map[string]json.RawMessage{"n": json.RawMessage("3")}
	agent := func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		for i := range 20 {
			harness.UseTool(c, echo(fmt.Sprintf("tool_%d", i)))
		}
		return fmt.Sprint("Asked ", harness.UseState(c, "n", 0).Value, " times.")
	}
	for b.Loop() {
		m, err := harness.Render(agent, s)
		if err != nil || len(m.Tools) != 20 {
			b.Fatal(err)
		}
	}
}
