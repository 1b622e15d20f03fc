package skill

import (
	"context"
	"strings"

	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
)

// Mount makes the skill ready for harness.UseSkill.
func (s Skill) Mount() harness.Skill {
	m := harness.Skill{
		Name:         s.Name,
		Doc:          record.Defuse(clean(strings.Join(strings.Fields(s.Description), " "))),
		Body:         s.text(),
		AllowedTools: s.AllowedTools,
		Digest:       s.Digest,
	}
	if len(s.Resources()) > 0 {
		m.Resource = func(_ context.Context, path string) (string, error) { return s.Read(path) }
	}
	return m
}

// text is what the model reads when it takes up the skill.
func (s Skill) text() string {
	var b strings.Builder
	b.WriteString("<skill name=\"" + s.Name + "\">\n")
	if s.Compatibility != "" {
		b.WriteString("Needs: " + clean(strings.Join(strings.Fields(s.Compatibility), " ")) + "\n")
	}
	b.WriteString(s.Body + "\n</skill>\n")
	if s.AllowedTools != nil {
		tools := "none"
		if len(s.AllowedTools) > 0 {
			tools = strings.Join(s.AllowedTools, ", ")
		}
		b.WriteString("From now on and until you have answered, only these tools work, and those that read skills: " + tools + ".\n")
	}
	if len(s.Resources()) > 0 {
		b.WriteString("Files of the skill; read one, when you need it, with the skill tool's argument \"resource\": " + s.list() + ".\n")
	}
	return b.String()
}
