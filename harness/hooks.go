package harness

import (
	"regexp"
	"slices"
	"strings"

	"github.com/heddlehq/heddle/model"
)

var validName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// A ModelOption says how the model of a step is used.
type ModelOption func(*Manifest)

// Thinking is how much the model thinks; what it cannot do is left out.
func Thinking(level model.Thinking) ModelOption {
	return func(m *Manifest) { m.Thinking = level }
}

// Compact changes how a conversation that has become long is summarised.
func Compact(o Compaction) ModelOption { return func(m *Manifest) { m.Compaction = o } }

// Compaction says when older messages are replaced by a summary and how. It
// happens before a model call, when the request would leave less than Reserve
// of the model's window. A provider that refuses a request as too long is
// asked again after one compaction, even with Off.
type Compaction struct {
	Off     bool   // not before the provider refuses
	Reserve int    // tokens, at most half the window; 0 for the model's longest answer, at most 20 000, at most a third of a small window
	Keep    int    // tokens of the newest messages that stay as they are, 0 for 8 000
	Model   string // who writes the summary, "" for the step's own model
}

// UseModel names the model of the next call: a name from the settings ("fast")
// or "provider/model". Exactly one UseModel must run in a render.
func UseModel(c *Context, name string, options ...ModelOption) {
	c.use("UseModel")
	switch {
	case name == "":
		c.misuse("UseModel", "the name is empty; name a model of the settings, or provider/model")
	case c.m.Model != "" && c.m.Model != name:
		c.misuse("UseModel", "called for %q and for %q; one render has one model", c.m.Model, name)
	case c.m.Model != "":
		c.misuse("UseModel", "called twice for %q; remove one", name)
	default:
		c.m.Model = name
		for _, o := range options {
			o(&c.m)
		}
		if !canThink(c.m.Thinking) {
			c.misuse("UseModel", "thinking %q; want off, low, medium or high", c.m.Thinking)
		}
		if c.m.Compaction.Reserve < 0 || c.m.Compaction.Keep < 0 {
			c.misuse("UseModel", "a compaction with fewer than 0 tokens; want 0 for the usual, or more")
		}
	}
}

// canThink says whether there is such a level; "" is the model's own.
func canThink(t model.Thinking) bool {
	return slices.Contains([]model.Thinking{"", model.ThinkOff, model.ThinkLow, model.ThinkMedium, model.ThinkHigh}, t)
}

// UseSandbox attaches the files and the shell of a sandbox kind ("virtual") and
// with them the tools read, write, edit, bash, grep and glob. At most one
// UseSandbox may run in a render.
func UseSandbox(c *Context, name string) {
	c.use("UseSandbox")
	switch {
	case name == "":
		c.misuse("UseSandbox", "the name is empty; name a kind of sandbox")
	case c.m.Sandbox != "":
		c.misuse("UseSandbox", "called for %q and for %q; one render has one sandbox", c.m.Sandbox, name)
	default:
		c.m.Sandbox = name
	}
}

// UseTool mounts a tool for the next call. Names are unique within a render.
func UseTool(c *Context, t Tool) {
	c.use("UseTool")
	c.mount("UseTool", t)
}

func (c *Context) mount(hook string, t Tool) {
	_, twice := c.m.Tool(t.Name)
	switch {
	case t.err != nil:
		c.misuse(hook, "tool %q: %v; correct its arguments", t.Name, t.err)
	case !validName.MatchString(t.Name):
		c.misuse(hook, "tool name %q: want 1 to 64 letters, digits, _ or -", t.Name)
	case t.run == nil:
		c.misuse(hook, "tool %q has no function; give NewTool or NewRawTool one", t.Name)
	case t.timeout <= 0 || t.retries < 0:
		c.misuse(hook, "tool %q has a timeout of %v and %d retries; want a timeout above 0 and no fewer than 0 retries", t.Name, t.timeout, t.retries)
	case twice:
		c.misuse(hook, "tool %q is declared twice; names are unique within a render", t.Name)
	default:
		c.m.Tools = append(c.m.Tools, t)
	}
}

// UseSkill offers a skill: its line stands in the catalogue, its body is read
// by the model when it needs it. Names are unique within a render.
func UseSkill(c *Context, s Skill) {
	c.use("UseSkill")
	if !validSkill.MatchString(s.Name) {
		c.misuse("UseSkill", "skill name %q: want 1 to 128 letters, digits, blanks or any of _.-", s.Name)
		return
	}
	if strings.TrimSpace(s.Doc) == "" || strings.ContainsAny(s.Doc, "\r\n") {
		c.misuse("UseSkill", "skill %q: want a description of one line", s.Name)
		return
	}
	for _, o := range c.m.Skills {
		if o.Name == s.Name {
			c.misuse("UseSkill", "skill %q is declared twice; names are unique within a render", s.Name)
			return
		}
	}
	c.m.Skills = append(c.m.Skills, s)
}

// UseInstruction adds a paragraph to the instructions, after the agent's own
// text and in the order of the calls.
func UseInstruction(c *Context, text string) {
	c.use("UseInstruction")
	if text != "" {
		c.m.Instructions = append(c.m.Instructions, text)
	}
}

// UseLevel says on which level of a ladder the next call stands. People see it
// beside the step; the model is told when it changes.
func UseLevel(c *Context, level int, name string) {
	c.use("UseLevel")
	if c.m.Level != nil {
		c.misuse("UseLevel", "called for %q and for %q; one render has one ladder", c.m.Level.Name, name)
		return
	}
	c.m.Level = &Level{Number: level, Name: name}
}
