package harness

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/heddlehq/heddle/model"
)

// A Manifest is what a render declared: all that the next model call may use.
// It is not changed after the render.
type Manifest struct {
	Instructions []string // paragraphs, the agent's own text first
	Model        string
	Thinking     model.Thinking
	Compaction   Compaction
	Sandbox      string // "" for none
	Tools        []Tool // in the order of declaration
	Skills       []Skill
	Subagents    []Subagent
	Level        *Level
	Bounds       []Bound
	Result       bool // the answer must have a form; finish and give_up are among the tools

	// Callbacks, in the order of declaration.
	Starts   []Callback[func(context.Context, *Call) error]
	Finishes []Callback[func(context.Context, *Call, string) (string, error)]
	Guards   []Guard
	Asks     []Callback[func(context.Context, *Call) error]
	Answers  []Callback[func(context.Context, *Call, Response) error]
	Settles  []Callback[func(context.Context, *Call, Settled) error]
	Folds    []Callback[func(context.Context, *Call, Summarised) (string, error)]

	// Deferred are the mounted tools that are not defined before they were
	// loaded; Loaded those of them that were, in that order.
	Deferred []string
	Loaded   []string
}

// A Level is a rung of a ladder, 0 being the lowest.
type Level struct {
	Number int    `json:"number"`
	Name   string `json:"name"`
}

// Tool finds a mounted tool.
func (m *Manifest) Tool(name string) (Tool, bool) {
	for _, t := range m.Tools {
		if t.Name == name {
			return t, true
		}
	}
	return Tool{}, false
}

// System is the text of the system prompt: the instructions, then the
// catalogues of skills and subagents by name.
func (m *Manifest) System() string {
	var skills, subagents []string
	for _, s := range m.Skills {
		skills = append(skills, "- "+s.Name+": "+s.Doc)
	}
	for _, s := range m.Subagents {
		subagents = append(subagents, "- "+s.Name+": "+s.Doc)
	}
	text := m.instructions()
	text = catalogue(text, "Skills (read one with the skill tool before you use it):", skills)
	return catalogue(text, "Subagents (give one a task with the task tool; it sees only what you write there and answers once):", subagents)
}

// catalogue adds a list to a text, nothing if it is empty.
func catalogue(text, head string, lines []string) string {
	if len(lines) == 0 {
		return text
	}
	slices.Sort(lines)
	if text != "" {
		text += "\n\n"
	}
	return text + head + "\n" + strings.Join(lines, "\n")
}

func (m *Manifest) instructions() string { return strings.Join(m.Instructions, "\n\n") }

// A View is the manifest as it is stored and shown: everything that reaches
// the model, without the functions behind it.
type View struct {
	Instructions string         `json:"instructions"` // without the catalogue of skills
	Model        string         `json:"model"`
	Thinking     model.Thinking `json:"thinking,omitempty"`
	Sandbox      string         `json:"sandbox,omitempty"`
	Tools        []model.Tool   `json:"tools,omitempty"`
	Deferred     []string       `json:"deferred,omitempty"` // tools whose definitions are sent once they were loaded
	Skills       []Skill        `json:"skills,omitempty"`
	Subagents    []Delegate     `json:"subagents,omitempty"`
	Level        *Level         `json:"level,omitempty"`
}

// A Delegate is a subagent as it is stored and shown.
type Delegate struct {
	Name string `json:"name"`
	Doc  string `json:"doc"`
}

// View returns the manifest as it is stored and shown.
func (m *Manifest) View() View {
	v := View{Instructions: m.instructions(), Model: m.Model, Thinking: m.Thinking, Sandbox: m.Sandbox, Deferred: m.Deferred, Level: m.Level}
	for _, t := range m.Tools {
		v.Tools = append(v.Tools, t.definition())
	}
	for _, s := range m.Skills {
		v.Skills = append(v.Skills, Skill{Name: s.Name, Doc: s.Doc, AllowedTools: s.AllowedTools, Digest: s.Digest})
	}
	for _, s := range m.Subagents {
		v.Subagents = append(v.Subagents, Delegate{Name: s.Name, Doc: s.Doc})
	}
	return v
}

// Digest names what the view holds: equal views have equal digests on every
// machine, whatever the order in which tools, skills and subagents were declared.
func (v View) Digest() string {
	v.Tools = slices.Clone(v.Tools)
	slices.SortFunc(v.Tools, func(a, b model.Tool) int { return strings.Compare(a.Name, b.Name) })
	v.Deferred = slices.Sorted(slices.Values(v.Deferred))
	v.Skills = slices.Clone(v.Skills)
	slices.SortFunc(v.Skills, func(a, b Skill) int { return strings.Compare(a.Name, b.Name) })
	v.Subagents = slices.Clone(v.Subagents)
	slices.SortFunc(v.Subagents, func(a, b Delegate) int { return strings.Compare(a.Name, b.Name) })
	return digest(v)
}

// digest hashes the JSON form of a value that always has one.
func digest(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("harness: digest of a value without a JSON form: " + err.Error())
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:12])
}
