package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// A Skill is a text the model reads when it needs it.
type Skill struct {
	Name string `json:"name"`
	Doc  string `json:"doc"` // one line: what it is for and when to use it
	Body string `json:"-"`   // Markdown

	// AllowedTools, unless nil, are the only tools that run in a turn after the
	// step in which the skill was read, those of its tasks included: their names,
	// in any case. "bash(git:*)" and "bash(git *)" allow single commands that
	// begin so.
	AllowedTools []string `json:"allowed_tools,omitzero"`
	Digest       string   `json:"digest,omitempty"` // of all that belongs to it
	// Resource reads a file of the skill; nil if it has none. What it fails with
	// is told to the model.
	Resource func(ctx context.Context, path string) (string, error) `json:"-"`
}

// validSkill is wider than validName: no provider reads the names of skills.
var validSkill = regexp.MustCompile(`^[\p{L}\p{N} _.-]{1,128}$`)

// boundState is the state with the skills that bind the newest turn.
const boundState = "skill"

// A bound says which tools each skill allows that was read in a turn.
type bound struct {
	Turn  string              `json:"turn"`
	Tools map[string][]string `json:"tools"`
}

// free are the tools that no skill takes away: to read on, to look for tools, and to end.
var free = []string{"skill", "search_tools", FinishTool, GiveUpTool}

// skillTool hands out the bodies and files of the declared skills.
func skillTool(skills []Skill, read State[bound]) Tool {
	type in struct {
		Name     string `json:"name" jsonschema:"name of the skill, from the catalogue"`
		Resource string `json:"resource,omitempty" jsonschema:"a file of the skill to read, instead of its text"`
	}
	return NewTool("skill", "Reads a skill from the catalogue, or one of its files.", func(ctx context.Context, call *Call, a in) (string, error) {
		i := slices.IndexFunc(skills, func(s Skill) bool { return s.Name == a.Name })
		if i < 0 {
			var names []string
			for _, s := range skills {
				names = append(names, s.Name)
			}
			return "", fmt.Errorf("no skill %q; there are: %s", a.Name, strings.Join(names, ", "))
		}
		s := skills[i]
		if s.AllowedTools != nil {
			read.Update(call, func(b bound) bound {
				next := bound{Turn: call.scope.snap.Turn, Tools: map[string][]string{}}
				if b.Turn == next.Turn {
					maps.Copy(next.Tools, b.Tools)
				}
				next.Tools[s.Name] = s.AllowedTools
				return next
			})
		}
		switch {
		case a.Resource == "":
			return s.Body, nil
		case s.Resource == nil:
			return "", fmt.Errorf("skill %q has no files", s.Name)
		}
		return s.Resource(ctx, a.Resource)
	}).Quiet()
}

// A Bound is a skill, read in this turn or in one that led to its task, with the
// only tools that may run.
type Bound struct {
	Skill string
	Tools []string
}

// bind makes the tools refuse what a bound does not allow. They stay in the
// list, so that a provider's cache holds.
func (c *Context) bind(b bound) {
	c.m.Bounds = slices.Clone(c.snap.Bounds)
	if b.Turn == c.snap.Turn {
		for _, skill := range slices.Sorted(maps.Keys(b.Tools)) {
			c.m.Bounds = append(c.m.Bounds, Bound{Skill: skill, Tools: b.Tools[skill]})
		}
	}
	for _, b := range c.m.Bounds {
		for i, t := range c.m.Tools {
			if !slices.Contains(free, t.Name) {
				c.m.Tools[i] = t.only(b.Skill, b.Tools)
			}
		}
	}
}

// errNothingRun begins what a tool says that a skill takes away.
var errNothingRun = errors.New("nothing was run")

func (t Tool) only(skill string, allowed []string) Tool {
	run := t.run
	t.run = func(ctx context.Context, call *Call, args json.RawMessage) (string, error) {
		if !allows(allowed, t.Name, args) {
			return "", fmt.Errorf("%w: skill %q, read in this turn, allows only these tools: %s", errNothingRun, skill, strings.Join(allowed, ", "))
		}
		return run(ctx, call, args)
	}
	return t
}

func allows(allowed []string, tool string, args json.RawMessage) bool {
	return slices.ContainsFunc(allowed, func(one string) bool {
		name, part, ok := strings.Cut(one, "(")
		if !strings.EqualFold(name, tool) || !ok {
			return strings.EqualFold(name, tool)
		}
		var in bashArgs
		return tool == "bash" && json.Unmarshal(args, &in) == nil && begins(in.Command, strings.TrimSuffix(part, ")"))
	})
}

// begins says whether a script is one plain command that a pattern allows. What
// could hold a second command, even quoted, is none.
func begins(script, pattern string) bool {
	prefix, rest := strings.CutSuffix(pattern, ":*")
	if !rest {
		prefix, rest = strings.CutSuffix(pattern, " *")
	}
	script = strings.TrimSpace(script)
	if pattern == "*" {
		return true
	}
	return !strings.ContainsAny(script, ";&|<>$`(){}\\\r\n") && (script == prefix || rest && strings.HasPrefix(script, prefix+" "))
}
