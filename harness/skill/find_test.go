package skill_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/harness/skill"
)

func TestLoadAll(t *testing.T) {
	t.Parallel()
	one := func(name string) string { return md("name: "+name, "description: d") }
	for name, tt := range map[string]struct {
		files   map[string]string
		root    string
		want    string // names after a lenient load
		problem string
		strict  bool // a strict load takes all
	}{
		"workspace": {map[string]string{".agents/skills/b/SKILL.md": one("b"), ".agents/skills/a/SKILL.md": one("a"), "c/SKILL.md": one("c")}, skill.Workspace, "a b", "", true},
		"none":      {map[string]string{"c/SKILL.md": one("c")}, skill.Workspace, "", "", true},
		"grouped":   {map[string]string{"s/x/b/SKILL.md": one("b"), "s/a/SKILL.md": one("a")}, "s", "a b", "", true},
		"inside a skill": {
			map[string]string{"s/a/SKILL.md": one("a"), "s/a/b/SKILL.md": one("b")},
			"s", "a",
			"", true,
		},
		"version control and packages": {map[string]string{"s/.git/a/SKILL.md": one("a"), "s/node_modules/b/SKILL.md": one("b"), "s/vendor/c/SKILL.md": one("c"), "s/.venv/d/SKILL.md": one("d"), "s/e/SKILL.md": one("e")}, "s", "e", "", true},
		"nearer first":                 {map[string]string{"s/a/x/SKILL.md": one("x"), "s/x/SKILL.md": one("x")}, "s", "x", `left out: s/x is named "x" too`, false},
		"then by path":                 {map[string]string{"s/b/x/SKILL.md": one("x"), "s/a/x/SKILL.md": one("x")}, "s", "x", `left out: s/a/x is named "x" too`, false},
		"one is broken":                {map[string]string{"s/a/SKILL.md": one("a"), "s/b/SKILL.md": "x"}, "s", "a", `left out: s/b/SKILL.md: does not begin`, false},
		"six deep":                     {map[string]string{"s/1/2/3/4/5/a/SKILL.md": one("a")}, "s", "a", "", true},
		"seven deep":                   {map[string]string{"s/1/2/3/4/5/6/a/SKILL.md": one("a")}, "s", "", "too deep", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			skills, problems, err := skill.LoadAll(tree(tt.files), tt.root, skill.Lenient)
			if err != nil || names(skills) != tt.want {
				t.Errorf("lenient: %q, %v, want %q", names(skills), err, tt.want)
			}
			if all := strings.Join(texts(problems), "\n"); !strings.Contains(all, tt.problem) || (all == "") != (tt.problem == "") {
				t.Errorf("lenient: problems %q, want %q", all, tt.problem)
			}
			skills, _, err = skill.LoadAll(tree(tt.files), tt.root, skill.Strict)
			if tt.strict && (err != nil || names(skills) != tt.want) {
				t.Errorf("strict: %q, %v", names(skills), err)
			}
			if want := strings.TrimPrefix(tt.problem, "left out: "); !tt.strict && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("strict: %q, %v", names(skills), err)
			}
		})
	}
}

func TestLoadAllBounds(t *testing.T) {
	t.Parallel()
	fsys := tree(map[string]string{"s/a/SKILL.md": md("name: a", "description: d"), "s/zz/SKILL.md": md("name: zz", "description: d")})
	for i := range 2100 {
		fsys[fmt.Sprintf("s/m%d/x", i)] = &fstest.MapFile{}
	}
	skills, problems, err := skill.LoadAll(fsys, "s", skill.Lenient)
	if err != nil || names(skills) != "a" || len(problems) != 1 || !strings.Contains(problems[0].Text, "more than 2000 folders") {
		t.Errorf("%q, %v, %v", names(skills), problems, err)
	}
	if _, _, err := skill.LoadAll(fsys, "s/a/SKILL.md", skill.Lenient); err == nil {
		t.Error("a file was taken for a folder of skills")
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	at := func(dir, name string) skill.Skill { return skill.Skill{Dir: dir, Name: name} }
	got, problems := skill.Merge([]skill.Skill{at("p/a", "a"), at("p/b", "b")}, []skill.Skill{at("u/b", "b"), at("u/c", "c")})
	var dirs []string
	for _, s := range got {
		dirs = append(dirs, s.Dir)
	}
	if want := []string{"p/a", "p/b", "u/c"}; !slices.Equal(dirs, want) {
		t.Errorf("%q, want %q", dirs, want)
	}
	if d := cmp.Diff([]skill.Problem{{Path: "u/b", Text: `left out: p/b is named "b" too`}}, problems); d != "" {
		t.Error(d)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	if got := skill.Check(tree(foreign), "."); len(got) != 0 {
		t.Errorf("a good skill has problems: %v", got)
	}
	if got := skill.Check(tree(nil), "."); len(got) != 1 || got[0].Text != "there is no skill" {
		t.Errorf("nothing: %v", got)
	}
	long := md("name: s", "description: d") + strings.Repeat("x\n", 600)
	if got := skill.Check(tree(map[string]string{"s/skill.md": long}), "s"); len(got) != 2 || !strings.Contains(got[0].Text, "better named") || !strings.Contains(got[1].Text, "is long") {
		t.Errorf("advice: %v", got)
	}
}
