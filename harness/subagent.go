package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/heddlehq/heddle/model"
)

// A Subagent is an agent that another one can give a task to. It works in a log
// of its own, sees the text of the task and nothing of the conversation, and
// answers once; only that answer comes back.
type Subagent struct {
	Name  string
	Doc   string // one line: what it is good at
	Agent Agent  // rendered before each of its own model calls

	// Model and Thinking are used when Agent declares no model; empty for those
	// of the step that gives the task.
	Model    string
	Thinking model.Thinking
	// OwnFiles gives it files of its own, which end with the task. Otherwise it
	// works on the files of who gives the task, if it declares the same sandbox.
	OwnFiles bool
	// Untrusted makes it trusted as little as a stranger, for work on texts that
	// nobody here has written. It is never trusted more than who gives the task.
	Untrusted bool
}

// MaxDepth is how deep tasks may be nested. A render at this depth has no
// subagents.
const MaxDepth = 4

// TaskTool is the name of the tool that gives a task to a subagent.
const TaskTool = "task"

// ErrDepth is why no task is given at MaxDepth.
var ErrDepth = errors.New("tasks are nested four deep already, which is the most: do it yourself")

// taskTime bounds one task.
const taskTime = time.Hour

// UseSubagent offers a subagent: its line stands in the catalogue, and the tool
// task gives it work. Tasks of one step run side by side; a crash goes on inside
// them. Names are unique within a render.
func UseSubagent(c *Context, s Subagent) {
	c.use("UseSubagent")
	if !validName.MatchString(s.Name) {
		c.misuse("UseSubagent", "subagent name %q: want 1 to 64 letters, digits, _ or -", s.Name)
		return
	}
	if strings.TrimSpace(s.Doc) == "" || strings.ContainsAny(s.Doc, "\r\n") {
		c.misuse("UseSubagent", "subagent %q: want a description of one line", s.Name)
		return
	}
	if s.Agent == nil {
		c.misuse("UseSubagent", "subagent %q has no agent function; give it one", s.Name)
		return
	}
	if !canThink(s.Thinking) {
		c.misuse("UseSubagent", "subagent %q: thinking %q; want off, low, medium or high", s.Name, s.Thinking)
		return
	}
	if _, ok := c.m.Subagent(s.Name); ok {
		c.misuse("UseSubagent", "subagent %q is declared twice; names are unique within a render", s.Name)
		return
	}
	c.m.Subagents = append(c.m.Subagents, s)
}

// Subagent finds a declared subagent.
func (m *Manifest) Subagent(name string) (Subagent, bool) {
	for _, s := range m.Subagents {
		if s.Name == name {
			return s, true
		}
	}
	return Subagent{}, false
}

// taskTool gives tasks to the declared subagents.
func taskTool(subs []Subagent) Tool {
	type in struct {
		Agent  string   `json:"agent" jsonschema:"name of the subagent, from the catalogue"`
		Prompt string   `json:"prompt" jsonschema:"the whole task: the subagent sees nothing else"`
		Files  []string `json:"files,omitempty" jsonschema:"files that people attached, by sandbox-path, which it is to see as well; at most 4"`
	}
	return NewTool(TaskTool, "Gives a task to a subagent and returns its answer.", func(ctx context.Context, call *Call, a in) (string, error) {
		var names []string
		for _, s := range subs {
			if s.Name == a.Agent {
				if strings.TrimSpace(a.Prompt) == "" {
					return "", fmt.Errorf("%w: say in prompt what is to be done", ErrArgs)
				}
				slices.Sort(a.Files)
				if a.Files = slices.Compact(a.Files); len(a.Files) > maxTaskFiles {
					return "", fmt.Errorf("%w: a task may be given at most %d files", ErrArgs, maxTaskFiles)
				}
				return call.scope.delegate(ctx, call, s, Task{Prompt: a.Prompt, Files: a.Files})
			}
			names = append(names, s.Name)
		}
		return "", fmt.Errorf("no subagent %q; there are: %s", a.Agent, strings.Join(names, ", "))
	}).Durable().Timeout(taskTime)
}

// A Task is what a subagent is to do.
type Task struct {
	Prompt string
	Files  []string // that people attached, by their paths in the sandbox; none twice
}

// maxTaskFiles bounds the files of a task.
const maxTaskFiles = 4

// Delegate makes the scope give tasks to f, which fails with ErrArgs for files
// that nobody attached.
func (s *Scope) Delegate(f func(ctx context.Context, call *Call, to Subagent, t Task) (string, error)) {
	s.delegate = f
}

// Share makes the scope wait for edits of the files that the call's step makes,
// and the other way round: both work on the same ones.
func (s *Scope) Share(call *Call) { s.paths = call.scope.paths }
