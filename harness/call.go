package harness

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/sandbox"
)

// A Call is one invocation of a tool. It is the only thing that can write
// state or reach a sandbox, and it exists only while the tool runs.
type Call struct {
	ID     string // of this call, the same on every attempt
	Tool   string
	scope  *Scope
	mu     sync.Mutex
	err    error
	steps  map[string]bool // names used in Step
	voices []Voice
	images []Image
	tries  []Try
}

// Key names the call everywhere, the same on every attempt: the idempotency key
// of what it does outside. ID is unique within its log only.
func (c *Call) Key() string { return c.scope.snap.Turn + "/" + c.ID }

// Thread is where the conversation happens.
func (c *Call) Thread() chat.Thread { return c.scope.snap.Thread }

// Turn is the id of the turn.
func (c *Call) Turn() string { return c.scope.snap.Turn }

// Event is the newest event taken by this turn.
func (c *Call) Event() chat.Event { return c.scope.snap.Event }

// Trust is the role of the weakest author whose text the model can see.
func (c *Call) Trust() chat.Role { return c.scope.snap.Trust }

// Now is the time of this step.
func (c *Call) Now() time.Time { return c.scope.snap.Now }

// Sandbox returns the sandbox that this step declared, opening it if need be.
func (c *Call) Sandbox(ctx context.Context) (sandbox.Sandbox, error) { return c.scope.sandbox(ctx) }

// Err is the first misuse of the call, such as a state value without a JSON form.
func (c *Call) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *Call) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
}

// A Scope is what the calls of one step share. The engine makes one a step;
// agent authors never see it.
type Scope struct {
	snap    Snapshot
	sandbox func(context.Context) (sandbox.Sandbox, error)
	values  *values
	memos   Memos
	paths   *locks
	mu      sync.Mutex // guards parts, cited, sent, posted and result
	parts   []Part
	cited   []Citation
	sent    []Message
	posted  []Posted
	result  *Result
	// delegate gives a task to a subagent.
	delegate func(ctx context.Context, call *Call, to Subagent, t Task) (string, error)
}

// NewScope makes the scope of a step. open is asked for the step's sandbox; nil
// if there is none.
func NewScope(s Snapshot, open func(context.Context) (sandbox.Sandbox, error)) *Scope {
	if open == nil {
		open = func(context.Context) (sandbox.Sandbox, error) { return nil, errors.New("there is no sandbox here") }
	}
	return &Scope{snap: s, sandbox: open, values: newValues(s), memos: &forgetful{values: map[[2]string]json.RawMessage{}}, paths: &locks{by: map[string]*sync.Mutex{}}, delegate: alone}
}

// alone is the delegate of a scope that is given none.
func alone(context.Context, *Call, Subagent, Task) (string, error) {
	return "", errors.New("tasks cannot be given here")
}

// Remember makes the scope keep the values of finished steps in m.
func (s *Scope) Remember(m Memos) { s.memos = m }

// Call makes a call of this step.
func (s *Scope) Call(id, tool string) *Call { return &Call{ID: id, Tool: tool, scope: s} }

// Writes returns the state changes made so far, in order.
func (s *Scope) Writes() []Write {
	s.values.mu.Lock()
	defer s.values.mu.Unlock()
	return slices.Clone(s.values.writes)
}

// locks are mutexes by name.
type locks struct {
	mu sync.Mutex
	by map[string]*sync.Mutex
}

// lock serialises what calls do to one name; it returns the unlock.
func (l *locks) lock(name string) func() {
	l.mu.Lock()
	m := l.by[name]
	if m == nil {
		m = &sync.Mutex{}
		l.by[name] = m
	}
	l.mu.Unlock()
	m.Lock()
	return m.Unlock
}
