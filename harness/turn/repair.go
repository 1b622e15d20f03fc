package turn

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
)

// repair answers the calls that a crash left open. A durable tool that is still
// declared runs again, its finished steps answered from the log; what a probe can
// look for is looked for. Of any other nobody knows whether it happened, so it is
// not repeated, and the model is told.
// Calls that wait for people or a time are left alone.
func (r *run) repair(ctx context.Context, parked bool) (done bool, err error) {
	if r.f.Turn == nil || len(r.f.Turn.Calls) == 0 {
		return false, nil
	}
	r.asking = r.hasQuestion()
	n, snap := r.f.Turn.Step, r.snapshot(ctx)
	var m harness.Manifest
	if agent := r.agent(); agent != nil && !parked {
		if m, err = harness.Render(agent, snap); err != nil {
			m = harness.Manifest{} // the next step reports it
		}
	}
	var again []model.Part
	behind := map[string]bool{} // groups in which a call waits
	for _, p := range slices.Clone(r.f.Turn.Calls) {
		t, ok := m.Tool(p.Name)
		switch {
		case !ok || !t.Resumes(r.begun(p.CallID)) && !t.HasProbe() || p.BadArgs != "":
			r.did(p, n, record.Unknown,
				"Interrupted: it is not known whether this call happened. Check before you repeat it.", 0)
		case r.root().steered && t.IsInterruptible():
			text := lineCanceled
			if r.task != nil {
				text += lineSteered
			}
			r.did(p, n, record.Canceled, text, 0)
		case r.f.IsWaiting(p.CallID) && (p.Name != harness.TaskTool || !r.root().steered): // else it looks itself
			behind[t.Group()] = t.Group() != ""
		case !behind[t.Group()]:
			again = append(again, p)
		}
	}
	if wait := r.waits(); len(again) == 0 && wait != nil {
		return true, r.suspend(ctx, wait.Until)
	}
	if len(again) == 0 || r.task == nil && r.over() {
		return false, nil
	}
	if r.task == nil {
		r.goOn()
	}
	// The memos of the calls are commits of their own.
	if err := r.commit(ctx); err != nil {
		return false, err
	}
	r.log.Info("open calls taken up", "turn", r.f.Turn.ID, "step", n, "calls", len(again))
	return r.worked(ctx, n, &m, snap, again, true)
}

// begun says whether an open call has asked something or finished a step.
func (r *run) begun(call string) bool {
	return r.f.IsWaiting(call) || slices.ContainsFunc(r.f.Turn.Memos, func(m record.Memo) bool { return m.Call == call })
}

// worked runs calls, which an earlier attempt may have run if again is set, and
// commits their results. It says whether the run is over:
// the turn is settled, or calls stay open that wait.
func (r *run) worked(ctx context.Context, n int, m *harness.Manifest, snap harness.Snapshot, calls []model.Part, again bool) (done bool, err error) {
	panicked, wait := r.work(ctx, n, m, snap, calls, again)
	stopped := context.Cause(ctx)
	if stopped != nil {
		if r.task != nil || !stopping(stopped) {
			return false, stopped
		}
		// What ended before the stop is true, and so are its files.
		var cancel func()
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), commitTime)
		defer cancel()
	}
	if wait = sooner(wait, r.waits()); wait == nil {
		r.guide(ctx, n, m.Sandbox)
	}
	defer r.keep(m.Sandbox)()
	if err := r.saveFiles(ctx, m.Sandbox); err != nil {
		return false, err
	}
	switch {
	case panicked && r.f.Turn.Unclear == "":
		return true, r.settle(ctx, record.Broken, "tool panicked", lineBroken)
	case panicked:
		return true, r.askHuman(ctx)
	case stopped != nil:
		return false, stopped
	case wait != nil:
		return true, r.suspend(ctx, wait.Until)
	case r.f.Turn.Unclear != "":
		return true, r.askHuman(ctx)
	case r.f.Turn.Result != nil:
		return r.conclude(ctx, n, m, snap)
	case r.f.Turn.Rejected > mostRejected:
		return true, r.settle(ctx, record.Broken, "calls rejected", lineRejected)
	}
	return false, r.commit(ctx)
}

// suspend commits and ends the run with calls open. It goes on at a time, zero
// for never, or when something is heard.
func (r *run) suspend(ctx context.Context, until time.Time) error {
	if r.task == nil {
		r.rest("waiting")
		return r.release(ctx, until)
	}
	if err := r.commit(ctx); err != nil {
		return err
	}
	return &harness.Wait{Until: until}
}

// memos are the finished steps of this turn's open calls, while these run.
type memos struct {
	r    *run
	step int
	over bool // a tool that was left behind finds and stores nothing any more
}

// end makes later Gets and Puts fail.
func (m *memos) end() {
	m.r.memo.Lock()
	defer m.r.memo.Unlock()
	m.over = true
}

var errOver = errors.New("the call is over")

func (m *memos) Get(call, name string) (json.RawMessage, bool, error) {
	m.r.memo.Lock()
	defer m.r.memo.Unlock()
	if m.over {
		return nil, false, errOver
	}
	for _, o := range m.r.f.Turn.Memos {
		if o.Call == call && o.Name == name {
			return o.Value, true, nil
		}
	}
	return nil, false, nil
}

func (m *memos) Put(ctx context.Context, call, name string, value json.RawMessage) error {
	m.r.memo.Lock()
	defer m.r.memo.Unlock()
	if m.over {
		return errOver
	}
	return m.r.noteHeld(ctx, record.Memo{Turn: m.r.f.Turn.ID, Step: m.step, Call: call, Name: name, Value: value})
}
