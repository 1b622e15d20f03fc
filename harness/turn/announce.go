package turn

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
)

// announce says how the manifest differs from what the model was last told, ""
// if it was told nothing yet: the first manifest is the baseline.
func announce(f *record.Fold, now harness.View) string {
	if f.Digest == "" {
		return ""
	}
	was := f.View
	var lines []string
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if l := now.Level; l != nil && (was.Level == nil || *was.Level != *l) {
		say("You are now on level %d (%s).", l.Number, l.Name)
	}
	if was.Model != now.Model {
		say("The model is now %s; earlier messages may be another model's.", now.Model)
	}
	switch {
	case was.Sandbox == now.Sandbox:
	case now.Sandbox == "":
		say("The %s sandbox is gone, its files cannot be reached.", was.Sandbox)
	case was.Sandbox == "":
		say("A %s sandbox with files and a shell is attached.", now.Sandbox)
	default:
		say("The sandbox is now %s instead of %s; files of the old one are not in it.", now.Sandbox, was.Sandbox)
	}
	added, removed, changed := diff(was.Tools, now.Tools, toolName, sameTool)
	sayDiff(say, "Tools", added, removed, changed)
	added, removed, changed = diff(was.Skills, now.Skills, skillName, func(a, b harness.Skill) bool { return a == b })
	sayDiff(say, "Skills", added, removed, changed)
	if plain(was) != plain(now) {
		say("Your instructions have changed; the system prompt holds the new ones.")
	}
	if len(lines) == 0 {
		return ""
	}
	var names []string
	for _, t := range now.Tools {
		names = append(names, t.Name)
	}
	if len(names) == 0 {
		names = []string{"none"}
	}
	say("Tools you have now: %s.", strings.Join(names, ", "))
	return strings.Join(lines, "\n")
}

// plain is the instructions without the catalogue of skills, which has lines of its own.
func plain(v harness.View) string {
	if len(v.Skills) == 0 {
		return v.Instructions
	}
	text, _, _ := strings.Cut(v.Instructions, "\n\nSkills (")
	return text
}

func sayDiff(say func(string, ...any), what string, added, removed, changed []string) {
	for _, d := range []struct {
		how   string
		names []string
	}{{"added", added}, {"gone", removed}, {"changed", changed}} {
		if len(d.names) > 0 {
			say("%s %s: %s.", what, d.how, strings.Join(d.names, ", "))
		}
	}
}

func toolName(t model.Tool) string     { return t.Name }
func skillName(s harness.Skill) string { return s.Name }

func sameTool(a, b model.Tool) bool {
	return a.Doc == b.Doc && bytes.Equal(a.Schema, b.Schema)
}

// diff compares two lists by name, ignoring their order.
func diff[T any](was, now []T, name func(T) string, same func(a, b T) bool) (added, removed, changed []string) {
	for _, n := range now {
		i := slices.IndexFunc(was, func(w T) bool { return name(w) == name(n) })
		switch {
		case i < 0:
			added = append(added, name(n))
		case !same(was[i], n):
			changed = append(changed, name(n))
		}
	}
	for _, w := range was {
		if !slices.ContainsFunc(now, func(n T) bool { return name(n) == name(w) }) {
			removed = append(removed, name(w))
		}
	}
	return added, removed, changed
}
