package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"strings"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/model"
)

// An Agent declares what the next model call may use and returns its
// instructions. It may be called at any time and any number of times.
type Agent func(c *Context) string

// A Snapshot is everything a render can read. Equal snapshots give equal manifests.
type Snapshot struct {
	Agent        string // the agent's name in the settings
	Conversation string
	Turn         string // its id
	Thread       chat.Thread
	Event        chat.Event // the newest event taken by this turn
	Trust        chat.Role  // the weakest author whose text is in the context
	Depth        int        // of a task: 1 for one that the conversation's own agent gave, 0 for that agent
	Model        string     // of who gave the task, for an agent that declares none; "" outside tasks
	Thinking     model.Thinking
	Bounds       []Bound // of the steps that led to a task
	State        map[string]json.RawMessage
	Versions     map[string]int  // of the forms of the values in State, without those of version 1
	Initial      json.RawMessage // the data that the conversation began with, nil for none
	Want         json.RawMessage // JSON Schema that the answer of this turn must fit, nil if it is free
	Hops         int             // how many dispatches led to this turn
	Files        bool            // files can be posted in the thread
	Now          time.Time       // of this step; recorded, so that a render can be repeated
}

// A Context is handed to an agent for the time of one render. Its methods are
// facts; the Use functions declare.
type Context struct {
	snap   Snapshot
	m      Manifest
	states map[string]form         // by name, declared so far
	data   map[string]reflect.Type // by name, declared so far
	result reflect.Type            // of UseResult, nil for none
	attach bool                    // UseAttach was called
	errs   []error
	done   bool
}

// Thread is where the conversation happens.
func (c *Context) Thread() chat.Thread { return c.snap.Thread }

// Depth is 0 for a conversation's own agent, 1 for one that it gave a task, and so on.
func (c *Context) Depth() int { return c.snap.Depth }

// Event is the newest event taken by this turn.
func (c *Context) Event() chat.Event { return c.snap.Event }

// Trust is the role of the weakest author whose text the model can see.
func (c *Context) Trust() chat.Role { return c.snap.Trust }

// Now is the time of this step, the same for the whole render.
func (c *Context) Now() time.Time { return c.snap.Now }

// use begins a hook. A hook that is called later than the render is a mistake
// that no render can report.
func (c *Context) use(hook string) {
	if c.done {
		panic(fmt.Sprintf("harness.%s called after the render ended: hooks work only inside the agent function", hook))
	}
}

// misuse notes a programmer's mistake; Render reports all of them at once.
func (c *Context) misuse(hook, format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf("%s: %w", hook, fmt.Errorf(format, args...)))
}

// Misuse notes a mistake in the use of a hook of your own, "mine.Use", and what to
// do about it. The render fails with it, as with those of the built-in hooks.
func Misuse(c *Context, hook, mistake, fix string) {
	c.use(hook)
	c.misuse(hook, "%s; %s", mistake, fix)
}

// A RenderError tells what is wrong with an agent. Every mistake is listed.
type RenderError struct {
	Agent  string
	Errs   []error
	Panic  any    // what the agent panicked with, nil if it did not
	Detail string // the stack of a panic, for the log of an operator
}

func (e *RenderError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "agent %q", e.Agent)
	if e.Panic != nil {
		b.WriteString(": panicked while rendering")
	}
	for i, err := range e.Errs {
		sep := "; "
		if i == 0 {
			sep = ": "
		}
		b.WriteString(sep + err.Error())
	}
	return b.String()
}

// Unwrap returns the mistakes.
func (e *RenderError) Unwrap() []error { return e.Errs }

// Render runs the agent once. Misuse of hooks and panics come back as a
// *RenderError; it never takes the process down.
func Render(a Agent, s Snapshot) (m Manifest, err error) {
	c := &Context{snap: s, states: map[string]form{}, data: map[string]reflect.Type{}}
	defer func() {
		c.done = true
		if p := recover(); p != nil {
			m, err = Manifest{}, &RenderError{Agent: s.Agent, Errs: c.errs, Panic: p, Detail: string(debug.Stack())}
		}
	}()
	text := a(c)
	if text != "" {
		c.m.Instructions = append([]string{text}, c.m.Instructions...)
	}
	c.finish()
	if len(c.errs) > 0 {
		return Manifest{}, &RenderError{Agent: s.Agent, Errs: c.errs}
	}
	return c.m, nil
}

// finish adds what follows from the declarations and checks the whole.
func (c *Context) finish() {
	if c.m.Model == "" {
		c.m.Model, c.m.Thinking = c.snap.Model, c.snap.Thinking
	}
	if c.m.Model == "" {
		c.errs = append(c.errs, errors.New("UseModel: no model declared; call harness.UseModel once"))
	}
	if c.m.Sandbox != "" {
		for _, t := range fileTools() {
			c.mount("UseSandbox", t)
		}
	}
	c.mountAttach()
	if c.snap.Depth >= MaxDepth {
		c.m.Subagents = nil
	}
	if len(c.m.Subagents) > 0 {
		c.mount("UseSubagent", taskTool(c.m.Subagents))
	}
	switch r, err := c.want(); {
	case err != nil:
		c.misuse("UseResult", "%w", err)
	case r != nil:
		for _, t := range r.tools() {
			c.mount("UseResult", t)
		}
		c.m.Result = true
	}
	read := UseState(c, boundState, bound{})
	if len(c.m.Skills) > 0 {
		c.mount("UseSkill", skillTool(c.m.Skills, read))
	}
	c.mountSearch()
	c.bind(read.Value)
}
