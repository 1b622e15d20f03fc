package turn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/sandbox"
)

// maxResult bounds what a tool may tell the model, in bytes. All results of a
// step together may take a quarter of the model's window, but each at least
// leastResult: one endless result would end the conversation.
const (
	maxResult   = 128 << 10
	leastResult = 2 << 10
)

// mostOf is the bound of each of so many results.
func (r *run) mostOf(m *harness.Manifest, calls int) int {
	window := math.MaxInt32
	if chain, err := r.Models.Chain(m.Model); err == nil {
		for _, c := range chain {
			window = min(window, c.Spec.Window)
		}
	}
	return min(maxResult, max(leastResult, int(float64(window)*bytesPerToken/4)/calls))
}

// job is one call of a step and its end.
type job struct {
	part model.Part
	tool harness.Tool
	call *harness.Call
	end  record.End
	text string
	took time.Duration
	err  error           // of the tool
	ran  json.RawMessage // arguments of a guard
	wait *harness.Wait   // why it stays open
	// rejected is the mistake of the model's for which nothing ran.
	rejected string
	probed   bool   // the end is what a probe has found
	unclear  string // the tool that people have to look after
}

// work runs the calls of a step side by side, atOnce of them at a time and those
// of one group one after the other, and records the results in the order of the
// calls. A call to what is not in the manifest runs nothing. again says that an
// earlier attempt may have run them. It says whether a tool panicked, and until
// when the calls wait that stay open, nil if there are none.
func (r *run) work(ctx context.Context, n int, m *harness.Manifest, snap harness.Snapshot, calls []model.Part, again bool) (panicked bool, wait *harness.Wait) {
	scope := r.scope(snap, m)
	kept := &memos{r: r, step: n}
	scope.Remember(kept)
	scope.Delegate(r.delegate(m, snap, kept))
	jobs := make([]*job, len(calls))
	most := r.mostOf(m, len(calls))
	var wg sync.WaitGroup
	var rows [][]*job // each runs one after the other
	groups := map[string]int{}
	for i, p := range calls {
		j := &job{part: p, call: scope.Call(p.CallID, p.Name)}
		jobs[i] = j
		t, ok := m.Tool(p.Name)
		j.tool = t
		if j.rejected = rejected(p, ok); j.rejected != "" {
			j.end, j.text = record.Refused, rejection(j, snap.Depth)
			r.log.Warn("tool refused", "turn", r.f.Turn.ID, "step", n, "tool", p.Name, "reason", j.rejected)
			continue
		}
		if p.Repeated {
			j.end, j.text = record.Refused, "This call had the id of an earlier one of the same answer, so it was not run. Call again if you meant it twice."
			continue
		}
		if at, ok := groups[t.Group()]; ok && t.Group() != "" {
			rows[at] = append(rows[at], j)
		} else {
			groups[t.Group()] = len(rows)
			rows = append(rows, []*job{j})
		}
		r.dirty = r.dirty || !t.IsQuiet()
	}
	slots := make(chan struct{}, atOnce)
	for _, row := range rows {
		wg.Go(func() {
			waits := false
			for _, j := range row {
				if waits {
					j.stayBehind()
					continue
				}
				slots <- struct{}{}
				r.do(ctx, n, j, m.Guards, again)
				<-slots
				waits = j.wait != nil
			}
		})
	}
	wg.Wait()
	kept.end()
	panicked = slices.ContainsFunc(jobs, func(j *job) bool { return isPanic(j.err) })
	for _, j := range jobs {
		for i, t := range j.call.Tries() {
			r.add(record.Retried{Turn: r.f.Turn.ID, Step: n, Try: i + 1, Tool: j.part.Name, Call: j.part.CallID, Wait: t.Wait, Took: t.Took})
		}
		if j.wait != nil && (panicked || ctx.Err() != nil) {
			continue // the turn ends
		}
		if j.wait != nil {
			wait = sooner(wait, r.asked(ctx, n, j))
			continue
		}
		if n := len(j.text); n > most {
			j.text = strings.ToValidUTF8(j.text[:most], "") + fmt.Sprintf("\n[cut here: %d of %d bytes; ask for less at once]", most, n)
		}
		r.dirty = r.dirty || errors.Is(j.err, sandbox.ErrBroken)
		r.ended(n, j)
	}
	r.wrote(r.f.Turn.ID, n, scope, jobs...)
	r.resulted(n, scope)
	return panicked, wait
}

// stayBehind is for a call that has to follow one that waits.
func (j *job) stayBehind() {
	if j.tool.Resumes(false) {
		j.wait = &harness.Wait{}
		return
	}
	j.end, j.text = record.Refused, lineBehind
}

// sooner is the wait that ends first, nil for none.
func sooner(a, b *harness.Wait) *harness.Wait {
	if b == nil {
		return a
	}
	if a == nil || a.Until.IsZero() || !b.Until.IsZero() && b.Until.Before(a.Until) {
		return b
	}
	return a
}

// What the model is told of a call that was stopped.
const (
	lineNotBegun = "Stopped before it began. Nothing was run."
	lineMiddle   = "Stopped in the middle: it is not known what of it happened. Check before you repeat it."
	lineCanceled = "Stopped in the middle."
	lineSteered  = " There is a new message for who gave you this task: come to an end with what you have."
	lineBehind   = "An earlier call that this one has to follow waits, so it was not run. Call again when you have the result of that one."
)

// do runs one call, if the guards let it. again says that an earlier attempt may
// have run it.
func (r *run) do(ctx context.Context, n int, j *job, guards []harness.Guard, again bool) {
	if j.tool.IsInterruptible() {
		ctx = r.gentle
	}
	switch {
	case ctx.Err() != nil && again:
		j.end, j.text = record.Unknown, lineMiddle
		return
	case ctx.Err() != nil:
		j.end, j.text = record.Refused, lineNotBegun+r.steering(ctx)
		return
	}
	began := r.Clock()
	args, err := r.guarded(ctx, j, guards)
	if err != nil && again {
		j.end, j.text = record.Unknown, "Denied: "+err.Error()+". It may have run before that."
		return
	}
	if err != nil {
		j.end, j.text = record.Refused, "Denied: "+err.Error()+". Nothing was run."
		return
	}
	r.make(ctx, n, j, args, again)
	j.took = r.Clock().Sub(began)
	var p *harness.PanicError
	var u *unclear
	switch {
	case j.end != "" || j.wait != nil:
	case errors.As(j.err, &p):
		j.end, j.text = record.Failed, "The tool crashed."
		r.log.Error("tool panicked", "tool", j.part.Name, "panic", panicText(p.Value), "stack", string(p.Stack))
	case j.tool.Resumes(true) && errors.As(j.err, &j.wait):
	case errors.Is(j.err, harness.ErrArgs):
		if j.ran == nil {
			j.rejected = record.BadArguments
		}
		j.end, j.text = record.Refused, "Error: "+j.err.Error()+". Nothing was run; correct the arguments."
	case errors.As(j.err, &u):
		j.end, j.text, j.unclear = record.NeedsHuman, textUnclear, u.tool
	case j.err != nil && ctx.Err() != nil && j.tool.IsInterruptible():
		j.end, j.text = record.Canceled, lineCanceled+r.steering(ctx)
	case ctx.Err() != nil && (j.err != nil || again && j.tool.HasProbe()):
		j.end, j.text = record.Unknown, lineMiddle
	case errors.Is(j.err, harness.ErrUnknown):
		j.end, j.text = record.Unknown, "Error: "+j.err.Error()
	case j.err != nil:
		j.end, j.text = record.Failed, "Error: "+j.err.Error()
	default:
		j.end = record.Done
	}
}

// steering is what a subagent is told of a call that a new message has ended: it
// does not get the message, and no call that may be interrupted runs for it now.
func (r *run) steering(ctx context.Context) string {
	if r.task != nil && errors.Is(context.Cause(ctx), errSteered) {
		return lineSteered
	}
	return ""
}

func isPanic(err error) bool {
	var p *harness.PanicError
	return errors.As(err, &p)
}

// panicText is what may be logged of a panic: the runtime's own words, but of
// any other value, which may hold what people wrote, the type only.
func panicText(v any) string {
	if err, ok := v.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("a value of type %T", v)
}

// panicPlace is where a panic began, from its stack: " at FILE:LINE", "" if that
// cannot be found.
func panicPlace(stack string) string {
	_, after, _ := strings.Cut(stack, "\npanic(")
	lines := strings.Split(after, "\n")
	for i := 2; i+1 < len(lines); i += 2 { // a function and its place, two lines each
		if !strings.HasPrefix(lines[i], "runtime.") {
			place, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " +")
			return " at " + place
		}
	}
	return ""
}

// did records the end of a call that nothing ran for.
func (r *run) did(p model.Part, n int, end record.End, text string, took time.Duration) {
	r.ended(n, &job{part: p, end: end, text: text, took: took})
}

// ended records the end of a call.
func (r *run) ended(n int, j *job) {
	if j.part.Name == harness.TaskTool {
		r.dropFiles(j.part.CallID)
	}
	d := record.Did{
		Turn: r.f.Turn.ID, Step: n, CallID: j.part.CallID, Tool: j.part.Name, Args: digestArgs(j.part), End: j.end,
		Text: j.text, Digest: digest([]byte(j.text)), Took: j.took, Ran: j.ran, Rejected: j.rejected,
		Probed: j.probed, Unclear: j.unclear, Crashed: isPanic(j.err),
	}
	if j.call != nil {
		d.Voices = j.call.Voices()
		if j.end == record.Done {
			d.Images = r.pictures(j.call.Images())
		}
	}
	r.add(d)
}
