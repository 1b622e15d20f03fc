package skill_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/harness/skill"
)

// TestLock changes each byte of a locked skill in turn: none of the changed
// skills is mounted.
func TestLock(t *testing.T) {
	t.Parallel()
	skills, _, err := skill.LoadAll(tree(foreign), ".", skill.Strict)
	if err != nil {
		t.Fatal(err)
	}
	lock, err := skill.ParseLock(skill.Pin(skills).String())
	if err != nil {
		t.Fatal(err)
	}
	if good, problems := lock.Verify(skills); len(good) != 1 || len(problems) != 0 {
		t.Fatalf("as locked: %d mounted, %v", len(good), problems)
	}
	for name, text := range foreign {
		for i := range text {
			m := tree(foreign)
			m[name].Data[i] ^= 1
			changed, _, err := skill.LoadAll(m, ".", skill.Lenient)
			if err != nil {
				t.Fatal(err)
			}
			good, problems := lock.Verify(changed)
			if len(good) != 0 || len(problems) == 0 {
				t.Fatalf("%s: byte %d changed, and the skill is mounted", name, i)
			}
			if len(changed) == 1 && changed[0].Name == "pdf" && !strings.Contains(problems[0].Text, "has changed") {
				t.Fatalf("%s: byte %d: %v", name, i, problems)
			}
		}
	}
}

func TestVerify(t *testing.T) {
	t.Parallel()
	a, b, c := skill.Skill{Name: "a", Digest: "sha256:1", Dir: "s/a"}, skill.Skill{Name: "b", Digest: "sha256:2", Dir: "s/b"}, skill.Skill{Name: "c", Digest: "sha256:3", Dir: "s/c"}
	good, problems := skill.Lock{"a": "sha256:1", "b": "sha256:0", "gone": "sha256:4"}.Verify([]skill.Skill{a, b, c})
	if names(good) != "a" {
		t.Errorf("mounted %q", names(good))
	}
	want := []skill.Problem{
		{Path: "s/b", Text: `skill "b" has changed: it is sha256:2, the lock has sha256:0; it is not mounted`},
		{Path: "s/c", Text: `skill "c" is not in the lock; it is not mounted`},
		{Path: "skills.lock", Text: `skill "gone" is locked and not there`},
	}
	if d := cmp.Diff(want, problems); d != "" {
		t.Error(d)
	}
	if good, _ := skill.Lock(nil).Verify([]skill.Skill{a}); len(good) != 0 {
		t.Error("an empty lock lets a skill through")
	}
}

func TestParseLock(t *testing.T) {
	t.Parallel()
	d := "sha256:" + strings.Repeat("0f", 32)
	for text, want := range map[string]string{
		"# skills.lock 1\n": "",
		"# skills.lock 1\n" + d + "  a\n" + d + "  b c\n":  "",
		"# skills.lock 1\r\n# why\r\n\r\n" + d + "  a\r\n": "",
		"":                                                 "line 1",
		d + "  a\n":                                        "line 1",
		"# skills.lock 2\n" + d + "  a\n":                  "line 1",
		"# skills.lock 1\nsha256:0f  a\n":                  "line 2",
		"# skills.lock 1\n" + d + " a\n":                   "line 2",
		"# skills.lock 1\n" + d + "  \n":                   "line 2",
		"# skills.lock 1\n" + d + "  a \n":                 "line 2",
		"# skills.lock 1\n<<<<<<< ours\n":                  "line 2",
		"# skills.lock 1\n" + strings.Repeat(d+"  a\n", 2): "line 3",
	} {
		l, err := skill.ParseLock(text)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
		if err != nil {
			continue
		}
		if again, err := skill.ParseLock(l.String()); err != nil || !cmp.Equal(l, again) {
			t.Errorf("%q: written and read: %v, %v", text, again, err)
		}
	}
}
