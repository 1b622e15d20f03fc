package harness

import (
	"context"
	"fmt"
	"strings"
)

// A Skill is a text the model reads when it needs it.
type Skill struct {
	Name string `json:"name"`
	Doc  string `json:"doc"` // one line: what it is for and when to use it
	Body string `json:"-"`   // Markdown
}

// skillTool hands out the bodies of the declared skills.
func skillTool(skills []Skill) Tool {
	type in struct {
		Name string `json:"name" jsonschema:"name of the skill, from the catalogue"`
	}
	return NewTool("skill", "Reads a skill from the catalogue.", func(_ context.Context, _ *Call, a in) (string, error) {
		var names []string
		for _, s := range skills {
			if s.Name == a.Name {
				return s.Body, nil
			}
			names = append(names, s.Name)
		}
		return "", fmt.Errorf("no skill %q; there are: %s", a.Name, strings.Join(names, ", "))
	}).Quiet()
}
