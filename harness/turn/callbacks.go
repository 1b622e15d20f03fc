package turn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
)

// maxSent is how often finish callbacks may send the model back in one turn.
const maxSent = 32

// start runs the turn's start callbacks and commits what they wrote, so that
// the first model call sees it. The step begins again after it.
func (r *run) start(ctx context.Context, n int, m *harness.Manifest, snap harness.Snapshot) (bool, error) {
	scope := r.scope(snap, m)
	var names []string
	for _, h := range m.Starts {
		call := scope.Call(fmt.Sprintf("start/%s/%s", r.f.Turn.ID, h.Name), "")
		if err := r.callback(ctx, call, h.Name, func() error { return h.Run(ctx, call) }); err != nil {
			return r.broken(ctx, err, "start callback")
		}
		names = append(names, h.Name)
	}
	r.wrote(r.f.Turn.ID, n, scope)
	for _, c := range scope.Citations() {
		r.add(record.Cited{Turn: r.f.Turn.ID, Step: n, Source: c.Source, Digest: digest([]byte(c.Text)), Text: c.Text})
	}
	r.add(record.Began{Turn: r.f.Turn.ID, Hooks: names})
	r.dirty = true
	defer r.keep(m.Sandbox)()
	if err := r.saveFiles(ctx, m.Sandbox); err != nil {
		return false, err
	}
	return false, r.commit(ctx)
}

// beforeModel runs the callbacks before a model call, unless the answer is one
// that broke off: they have run. It says whether the turn is settled.
func (r *run) beforeModel(ctx context.Context, n int, m *harness.Manifest, snap harness.Snapshot) (bool, error) {
	if r.f.Turn.Partial.Step == n {
		return false, nil
	}
	scope := r.scope(snap, m)
	for _, h := range m.Asks {
		call := scope.Call(fmt.Sprintf("ask/%s/%d/%s", r.f.Turn.ID, n, h.Name), "")
		if err := r.callback(ctx, call, h.Name, func() error { return h.Run(ctx, call) }); err != nil {
			return r.broken(ctx, err, "response callback")
		}
	}
	r.wrote(r.f.Turn.ID, n, scope)
	return false, nil
}

// afterModel runs the callbacks of a model's answer. If one fails, the calls of
// the answer are not run.
func (r *run) afterModel(ctx context.Context, n int, m *harness.Manifest, snap harness.Snapshot, resp harness.Response) (bool, error) {
	scope := r.scope(snap, m)
	for _, h := range m.Answers {
		call := scope.Call(fmt.Sprintf("answer/%s/%d/%s", r.f.Turn.ID, n, h.Name), "")
		if err := r.callback(ctx, call, h.Name, func() error { return h.Run(ctx, call, resp) }); err != nil {
			for _, p := range slices.Clone(r.f.Turn.Calls) {
				r.did(p, n, record.Refused, "The turn was ended. Nothing was run.", 0)
			}
			return r.broken(ctx, err, "response callback")
		}
	}
	r.wrote(r.f.Turn.ID, n, scope)
	return false, nil
}

// finish runs the finish callbacks of an answer. One of them may send the model
// back to work; otherwise end settles the turn.
func (r *run) finish(ctx context.Context, n int, m *harness.Manifest, snap harness.Snapshot, answer string, end func() error) (bool, error) {
	scope := r.scope(snap, m)
	for _, h := range m.Finishes {
		if r.f.Turn.Sent >= maxSent {
			break
		}
		call := scope.Call(fmt.Sprintf("finish/%s/%d/%s", r.f.Turn.ID, n, h.Name), "")
		again, err := callback(ctx, r, call, h.Name, func() (string, error) { return h.Run(ctx, call, answer) })
		if err != nil {
			return r.broken(ctx, err, "finish callback")
		}
		if again != "" {
			r.wrote(r.f.Turn.ID, n, scope)
			r.add(record.Sent{Turn: r.f.Turn.ID, Step: n, Hook: h.Name, Text: again})
			return false, r.commit(ctx)
		}
	}
	r.wrote(r.f.Turn.ID, n, scope)
	if len(m.Finishes)+len(m.Asks)+len(m.Answers) > 0 {
		r.dirty = true
		defer r.keep(m.Sandbox)()
		if err := r.saveFiles(ctx, m.Sandbox); err != nil {
			return false, err
		}
	}
	return true, end()
}

// guarded is what the guards make of a call's arguments.
func (r *run) guarded(ctx context.Context, j *job, guards []harness.Guard) (json.RawMessage, error) {
	args := j.part.Args
	for _, g := range guards {
		next, err := callback(ctx, r, j.call, g.Name, func() (json.RawMessage, error) { return g.Run(ctx, j.call, args) })
		if next != nil {
			args, j.ran = next, next
		}
		if err != nil {
			return nil, err
		}
	}
	return args, nil
}

// callback runs one that only may fail.
func (r *run) callback(ctx context.Context, call *harness.Call, name string, f func() error) error {
	_, err := callback(ctx, r, call, name, func() (struct{}, error) { return struct{}{}, f() })
	return err
}

// callback runs what an agent's author hung in; a panic of it is an error.
func callback[T any](ctx context.Context, r *run, call *harness.Call, name string, f func() (T, error)) (v T, err error) {
	if ctx.Err() != nil {
		return v, context.Cause(ctx)
	}
	v, err = harness.Within(ctx, f)
	var p *harness.PanicError
	if errors.As(err, &p) {
		r.log.Error("callback panicked", "hook", name, "panic", panicText(p.Value), "stack", string(p.Stack))
		err = fmt.Errorf("%s crashed", name)
	}
	if err == nil {
		err = call.Err()
	}
	return v, err
}

// broken ends the turn after a callback that failed, unless we are stopping.
func (r *run) broken(ctx context.Context, err error, reason string) (bool, error) {
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	r.log.Error("callback failed", "turn", r.f.Turn.ID, "err", err)
	return true, r.settle(ctx, record.Broken, reason, lineBroken)
}

// wrote records what the calls of a scope decided: changes of state, data, texts
// for conversations. What calls decided that stay open is not: they decide again.
func (r *run) wrote(turn string, n int, scope *harness.Scope, jobs ...*job) {
	open := func(call string) bool {
		return slices.ContainsFunc(jobs, func(j *job) bool { return j.wait != nil && j.part.CallID == call })
	}
	for _, w := range scope.Writes() {
		if !open(w.Call) {
			r.add(record.Wrote{Turn: turn, Step: n, Call: w.Call, Name: w.Name, Value: w.Value, Version: w.Version})
		}
	}
	for _, p := range scope.Parts() {
		if !open(p.Call) {
			r.add(record.Data{Turn: turn, Step: n, Call: p.Call, Name: p.Name, Value: p.Value})
		}
	}
	// What goes out does so in the order of the calls, which ran side by side.
	at := func(call string) int {
		return slices.IndexFunc(jobs, func(j *job) bool { return j.part.CallID == call })
	}
	sent, posted := scope.Sent(), scope.Posted()
	slices.SortStableFunc(sent, func(a, b harness.Message) int { return at(a.Call) - at(b.Call) })
	slices.SortStableFunc(posted, func(a, b harness.Posted) int { return at(a.Call) - at(b.Call) })
	for _, s := range sent {
		if !open(s.Call) {
			r.dispatched(turn, n, s)
		}
	}
	for _, p := range posted {
		if !open(p.Call) {
			r.posted(turn, n, p)
		}
	}
}
