package turn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
)

// Bounds on looking for the outcome of one call. Ten looks take some 18 minutes.
const (
	maxProbes    = 10
	maxProbeWait = 5 * time.Minute
	maxRepeats   = 2 // of what was not done
)

// What the model and people are told when nobody can find out.
const textUnclear = "Nobody knows whether this happened, and people were asked to look. Do not repeat it before they say so."

func lineUnclear(tool string) string {
	return fmt.Sprintf("I cannot find out whether `%s` did what it should, so I stopped. Please look before anybody repeats it.", tool)
}

// unclear is why a task ends whose call nobody knows the outcome of.
type unclear struct{ tool string }

func (e *unclear) Error() string { return "the outcome of " + e.tool + " is unknown" }

// run makes the call until its outcome is known, or somebody else has to find
// out. again says that an earlier attempt may have made it.
func (r *run) make(ctx context.Context, n int, j *job, args json.RawMessage, again bool) {
	doubt := again && j.tool.HasProbe() && (!j.tool.Resumes(false) || r.probes(j) > 0)
	for repeats := 0; ; repeats++ {
		if !doubt {
			j.text, j.err = j.tool.Run(ctx, j.call, args)
			doubt = j.tool.HasProbe() && errors.Is(j.err, harness.ErrUnknown)
		}
		if !doubt || ctx.Err() != nil {
			return
		}
		if r.look(ctx, n, j, args) != harness.FoundNothing {
			return
		}
		if repeats == maxRepeats && j.err != nil {
			j.end, j.text, j.probed = record.Failed, "Error: it was not done: "+j.err.Error(), true
			return
		}
		doubt = false
	}
}

// look probes the call once and says what was found; all but FoundNothing end it
// or make it wait.
func (r *run) look(ctx context.Context, n int, j *job, args json.RawMessage) harness.Found {
	p, err := j.tool.Look(ctx, j.call, args)
	if ctx.Err() != nil {
		return harness.FoundRunning
	}
	if err != nil {
		r.log.Warn("probe failed", "turn", r.f.Turn.ID, "tool", j.part.Name, "err", err)
		p.Found = "failed"
	}
	try := r.probes(j) + 1
	if err := r.note(ctx, record.Probed{
		Turn: r.f.Turn.ID, Step: n, Call: j.part.CallID, Tool: j.part.Name, Try: try, Found: string(p.Found),
	}); err != nil {
		return harness.FoundRunning // the run is given up
	}
	switch {
	case p.Found == harness.FoundNothing:
	case p.Found == harness.FoundDone:
		j.end, j.text, j.probed = record.Done, p.Result, true
	case p.Found == harness.FoundUnclear, try >= maxProbes:
		j.end, j.text, j.probed, j.unclear = record.NeedsHuman, textUnclear, true, j.part.Name
		r.log.Error("outcome of a call is unclear", "turn", r.f.Turn.ID, "tool", j.part.Name)
	default:
		until := r.Clock().Add(min(2*time.Second<<try, maxProbeWait))
		j.wait = &harness.Wait{Until: until, Question: &harness.Question{Name: fmt.Sprint("probe ", try), Until: until}}
	}
	return p.Found
}

// askHuman settles a turn with a call that only people can look after. A task
// leaves asking them to its giver.
func (r *run) askHuman(ctx context.Context) error {
	text := lineUnclear(r.f.Turn.Unclear)
	if r.task != nil {
		text = r.f.Turn.Unclear
	}
	return r.settle(ctx, record.NeedsHuman, "outcome of a call unclear", text)
}

// probes is how often the call was looked for.
func (r *run) probes(j *job) int {
	r.memo.Lock()
	defer r.memo.Unlock()
	return r.f.Turn.Probes[j.part.CallID]
}

// note commits an entry while calls run.
func (r *run) note(ctx context.Context, b record.Body) error {
	r.memo.Lock()
	defer r.memo.Unlock()
	return r.noteHeld(ctx, b)
}

// noteHeld is note for who holds memo. If it fails, so does the next commit: the
// call must not end as failed.
func (r *run) noteHeld(ctx context.Context, b record.Body) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r.add(b)
	err := r.commitHeld(ctx)
	if err != nil {
		r.err = errors.Join(r.err, err)
	}
	return err
}
