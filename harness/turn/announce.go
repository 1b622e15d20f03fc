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
	switch l := now.Level; {
	case l == nil && was.Level != nil:
		say("There are no levels any more.")
	case l != nil && (was.Level == nil || *was.Level != *l):
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
	if was.Instructions != now.Instructions {
		say("Your instructions have changed; the system prompt holds the new ones.")
	}
	sayDiff(say, "Skills", diff(was.Skills, now.Skills, skillName, sameSkill))
	sayDiff(say, "Subagents", diff(was.Subagents, now.Subagents, delegateName, sameDelegate))
	if d := diff(was.Tools, now.Tools, toolName, sameTool); !d.none() {
		sayDiff(say, "Tools", delta{
			shortened(d.added, found(f, now), "%d more that search_tools finds"),
			shortened(d.gone, found(f, was), "%d more that search_tools found"),
			shortened(d.changed, found(f, now), "%d more that search_tools finds"),
		})
		var names []string
		for _, t := range now.Tools {
			names = append(names, t.Name)
		}
		if names == nil {
			names = []string{"none"}
		}
		say("Tools you have now: %s.", strings.Join(shortened(names, found(f, now), "%d more that search_tools finds"), ", "))
	}
	return strings.Join(lines, "\n")
}

// mostNamed is how many tools that the model has not loaded a line names.
const mostNamed = 20

// found are the tools of a view that no request has defined yet.
func found(f *record.Fold, v harness.View) map[string]bool {
	names := map[string]bool{}
	for _, name := range v.Deferred {
		names[name] = !slices.Contains(f.Order, name)
	}
	return names
}

// shortened counts the names beyond mostNamed that only a search finds.
func shortened(names []string, found map[string]bool, rest string) []string {
	var out []string
	left, more := mostNamed, 0
	for _, name := range names {
		switch {
		case !found[name]:
			out = append(out, name)
		case left > 0:
			out = append(out, name)
			left--
		default:
			more++
		}
	}
	if more > 0 {
		out = append(out, fmt.Sprintf(rest, more))
	}
	return out
}

func sayDiff(say func(string, ...any), what string, d delta) {
	for _, part := range []struct {
		how   string
		names []string
	}{{"added", d.added}, {"gone", d.gone}, {"changed", d.changed}} {
		if len(part.names) > 0 {
			say("%s %s: %s.", what, part.how, strings.Join(part.names, ", "))
		}
	}
}

func toolName(t model.Tool) string     { return t.Name }
func skillName(s harness.Skill) string { return s.Name }

func delegateName(d harness.Delegate) string { return d.Name }

func sameDelegate(a, b harness.Delegate) bool { return a == b }

func sameTool(a, b model.Tool) bool { return a.Doc == b.Doc && bytes.Equal(a.Schema, b.Schema) }
func sameSkill(a, b harness.Skill) bool {
	return a.Doc == b.Doc && a.Digest == b.Digest && slices.Equal(a.AllowedTools, b.AllowedTools)
}

// A delta is how one list of names differs from another.
type delta struct{ added, gone, changed []string }

func (d delta) none() bool { return len(d.added)+len(d.gone)+len(d.changed) == 0 }

// diff compares two lists by name, ignoring their order.
func diff[T any](was, now []T, name func(T) string, same func(a, b T) bool) (d delta) {
	for _, n := range now {
		i := slices.IndexFunc(was, func(w T) bool { return name(w) == name(n) })
		switch {
		case i < 0:
			d.added = append(d.added, name(n))
		case !same(was[i], n):
			d.changed = append(d.changed, name(n))
		}
	}
	for _, w := range was {
		if !slices.ContainsFunc(now, func(n T) bool { return name(n) == name(w) }) {
			d.gone = append(d.gone, name(w))
		}
	}
	return d
}
