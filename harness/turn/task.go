package turn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/state"
)

// A task is what a run works on that is not the conversation's own turn. Its
// log stands inside the log of its giver, so the same lease guards it, one commit
// holds both, and a crash goes on inside it.
type task struct {
	up      *run   // who gave it
	call    string // the call that gave it
	by      *harness.Call
	kept    *memos // ends with the step that gave it
	to      harness.Subagent
	depth   int
	model   string // of the step that gave it
	think   model.Thinking
	bounds  []harness.Bound
	sandbox string // of the step that gave it
}

// path is the calls that lead to the task, the outermost first.
func (t *task) path() []string {
	if t.up.task == nil {
		return []string{t.call}
	}
	return append(t.up.task.path(), t.call)
}

// agent is who renders, nil if it is gone.
func (r *run) agent() harness.Agent {
	if r.task != nil {
		return r.task.to.Agent
	}
	return r.Agents[r.conv.Agent]
}

// name is what the conversation, or the task, is called outside.
func (r *run) name() string {
	if r.task != nil {
		return string(r.conv.ID) + "/" + strings.Join(r.task.path(), "/")
	}
	return string(r.conv.ID)
}

// below is what a subagent's first render sees.
func below(s harness.Snapshot, m *harness.Manifest, to harness.Subagent) harness.Snapshot {
	s.Agent, s.Depth, s.State, s.Versions, s.Initial, s.Want = to.Name, s.Depth+1, nil, nil, nil, nil
	s.Model, s.Thinking, s.Bounds = m.Model, m.Thinking, m.Bounds
	if to.Model != "" {
		s.Model, s.Thinking = to.Model, to.Thinking
	} else if to.Thinking != "" {
		s.Thinking = to.Thinking
	}
	if to.Untrusted {
		s.Trust = chat.Outsider
	}
	return s
}

func (r *run) taskSnapshot(ctx context.Context) harness.Snapshot {
	return harness.Snapshot{
		Agent: r.task.to.Name, Conversation: string(r.conv.ID), Turn: r.f.Turn.ID, Thread: r.conv.Thread, Event: r.f.Turn.Event,
		Trust: r.trust(ctx), State: r.f.State, Versions: r.f.Versions, Hops: r.task.up.hops(), Files: r.takesFiles(r.f.Turn.Event), Now: r.Clock().UTC().Truncate(time.Microsecond),
		Depth: r.task.depth, Model: r.task.model, Thinking: r.task.think, Bounds: r.task.bounds,
	}
}

// hops is how many dispatches led to the turn.
func (r *run) hops() int {
	if r.task != nil {
		return r.task.up.hops()
	}
	return r.f.Turn.Hops
}

// delegate returns what gives a task of a step to a subagent and waits for its answer.
func (r *run) delegate(m *harness.Manifest, snap harness.Snapshot, kept *memos) func(context.Context, *harness.Call, harness.Subagent, harness.Task) (string, error) {
	return func(ctx context.Context, call *harness.Call, to harness.Subagent, what harness.Task) (string, error) {
		files, err := r.forwarded(what.Files)
		if err != nil {
			return "", err
		}
		first := below(snap, m, to)
		r.memo.Lock()
		c := r.child(first, m.Sandbox, call.ID, to, kept)
		r.memo.Unlock()
		c.task.by = call
		text, err := c.perform(ctx, call, what.Prompt, files, first.Trust)
		if err != nil && c.f.Ended == nil && ctx.Err() == nil && !errors.As(err, new(*harness.Wait)) {
			c.giveUp(err)
		}
		for _, v := range c.f.Voices {
			if v.Author.ID != "" || v.Role < snap.Trust {
				call.Hear(v)
			}
		}
		if cerr := c.boxes.close(); cerr != nil {
			c.log.Warn("sandbox not closed", "err", cerr)
		}
		return text, err
	}
}

// child is the run of a task, from where its log stops. The caller holds memo.
func (r *run) child(first harness.Snapshot, sandbox, call string, to harness.Subagent, kept *memos) *run {
	t := &task{up: r, call: call, kept: kept, to: to, depth: first.Depth, model: first.Model, think: first.Thinking, bounds: first.Bounds, sandbox: sandbox}
	path := strings.Join(t.path(), "/")
	if root := r.root(); !slices.Contains(root.tasks, path) {
		root.tasks = append(root.tasks, path)
	}
	return &run{
		Engine: r.Engine, task: t, soft: r.soft, gentle: r.gentle, lease: r.lease, conv: r.conv, f: r.f.Task(call), memo: r.memo, sums: &summer{}, written: &model.Written{},
		log:   r.log.With("task", call, "subagent", to.Name),
		boxes: &boxes{providers: r.Sandboxes, log: r.Log, id: r.conv.ID, task: path},
	}
}

// perform runs the task to its end, from where its log stops.
func (r *run) perform(ctx context.Context, call *harness.Call, prompt string, files []record.Kept, trust chat.Role) (string, error) {
	if r.f.Turn == nil && r.f.Ended == nil {
		id := call.Event().ID
		r.add(record.Heard{Turn: r.task.up.f.Turn.ID + "/" + call.ID, Role: trust, Event: chat.Event{
			ID: id + "/" + call.ID, Thread: r.conv.Thread, Kind: chat.Notice, Topic: harness.TaskTool, Text: prompt,
		}})
		if err := r.shown(ctx, files, trust); err != nil {
			return "", err
		}
	} else {
		r.tear("")
		if done, err := r.repair(ctx, false); done || err != nil {
			return r.outcome(err)
		}
	}
	for r.f.Ended == nil {
		if r.soft.Err() != nil {
			return "", r.suspend(ctx, r.Clock())
		}
		if done, err := r.step(ctx); done || err != nil {
			return r.outcome(err)
		}
	}
	return r.outcome(nil)
}

// outcome is what the giver is told.
func (r *run) outcome(err error) (string, error) {
	switch e := r.f.Ended; {
	case err != nil:
		return "", err
	case e == nil:
		return "", errors.New("the task ended without an answer")
	case e.Outcome == record.NeedsHuman:
		return "", &unclear{tool: e.Answer}
	case e.Outcome != record.Answered:
		return "", fmt.Errorf("the task was not done (%s): %s", e.Reason, e.Answer)
	default:
		return e.Answer, nil
	}
}

// report settles a task: its giver gets the answer, nothing is posted.
func (r *run) report(ctx context.Context, o record.Outcome, reason, answer string) error {
	t := *r.f.Turn
	r.add(record.Settled{Turn: t.ID, Outcome: o, Reason: reason, Steps: t.Step, Attempt: r.lease.Attempt, Usage: t.Usage, Cost: t.Cost, Answer: answer})
	if err := r.commit(ctx); err != nil {
		return err
	}
	r.log.Info("task settled", "turn", t.ID, "outcome", string(o), "reason", reason, "steps", t.Step, "cost", t.Cost)
	return nil
}

// hand commits what a task has added, as entries of the conversation's log. If
// that fails, the conversation's next commit does, too. The caller holds memo.
func (r *run) hand(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	root, path := r, r.task.path()
	for ; root.task != nil; root = root.task.up {
		if root.task.kept.over {
			return errors.New("the task is over")
		}
	}
	for _, rec := range r.batch.Records {
		if err := r.wrap(path, rec); err != nil {
			root.err = errors.Join(root.err, err)
			return err
		}
	}
	root.batch.Blobs = append(root.batch.Blobs, r.batch.Blobs...)
	root.batch.Posts = append(root.batch.Posts, r.batch.Posts...)
	r.batch = state.Batch{}
	if err := root.commit(ctx); err != nil {
		root.err = errors.Join(root.err, err)
		return err
	}
	return nil
}

// wrap puts an entry into the root's next commit and has every giver count it.
func (r *run) wrap(path []string, rec state.Record) error {
	out, err := record.Encode(record.Child{Task: path, Kind: rec.Kind, Data: rec.Data})
	if err != nil {
		return err
	}
	b, err := record.Decode(out) // what is written must be read
	if err != nil {
		return err
	}
	up := r.task.up
	for ; up.task != nil; up = up.task.up {
		up.f.Spend(b)
	}
	up.f.Spend(b)
	up.f.Chain = record.Link(up.f.Chain, out)
	up.batch.Records = append(up.batch.Records, out)
	return nil
}

// giveUp makes the conversation's next commit fail: the task must not end as a
// tool that failed, since the next attempt can go on inside it.
func (r *run) giveUp(err error) {
	root := r
	for root.task != nil {
		root = root.task.up
	}
	r.memo.Lock()
	defer r.memo.Unlock()
	root.err = errors.Join(root.err, err)
}

// scope makes what the calls of a step share.
func (r *run) scope(snap harness.Snapshot, m *harness.Manifest) *harness.Scope {
	snap.State, snap.Versions = r.f.State, r.f.Versions // callbacks of the step may have written
	boxes := r.boxesFor(m.Sandbox)
	s := harness.NewScope(snap, boxes.opener(m.Sandbox, r.attached(boxes)))
	if boxes != r.boxes {
		s.Share(r.task.by)
	}
	return s
}

// boxesFor is where a sandbox kind of this run is: a task works in the sandbox of
// its giver, if that has the same kind, or in its own.
func (r *run) boxesFor(kind string) *boxes {
	if r.task != nil && !r.task.to.OwnFiles && kind != "" && kind == r.task.sandbox {
		return r.task.up.boxesFor(kind)
	}
	return r.boxes
}
