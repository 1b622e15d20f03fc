package turn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
)

// job is one call of a step and its end.
type job struct {
	part     model.Part
	tool     harness.Tool
	call     *harness.Call
	end      record.End
	text     string
	took     time.Duration
	panicked any
}

// work runs the calls of a step side by side, serial tools one after the other,
// and records the results in the order of the calls. A call to what is not in
// the manifest runs nothing. It says whether a tool panicked.
func (r *run) work(ctx context.Context, n int, m *harness.Manifest, snap harness.Snapshot, calls []model.Part) (panicked bool) {
	scope := harness.NewScope(snap, r.opener(m.Sandbox))
	jobs := make([]*job, len(calls))
	var wg sync.WaitGroup
	var serial []*job
	for i, p := range calls {
		j := &job{part: p, call: scope.Call(p.CallID, p.Name)}
		jobs[i] = j
		t, ok := m.Tool(p.Name)
		switch {
		case !ok:
			j.end, j.text = record.Refused, fmt.Sprintf("There is no tool %q in this step. Nothing was run.", p.Name)
			r.log.Warn("tool refused", "turn", r.f.Turn.ID, "step", n, "tool", p.Name)
		case p.BadArgs != "":
			j.end, j.text = record.Refused, "The arguments are not a JSON object. Nothing was run; call again with valid JSON."
		case t.IsSerial():
			j.tool = t
			serial = append(serial, j)
		default:
			j.tool = t
			wg.Go(func() { r.do(ctx, j) })
		}
		r.dirty = r.dirty || (ok && !t.IsQuiet())
	}
	wg.Go(func() {
		for _, j := range serial {
			r.do(ctx, j)
		}
	})
	wg.Wait()
	for _, j := range jobs {
		panicked = panicked || j.panicked != nil
		r.did(j.part, n, j.end, j.text, j.took)
	}
	for _, w := range scope.Writes() {
		r.add(record.Wrote{Turn: r.f.Turn.ID, Step: n, Call: w.Call, Name: w.Name, Value: w.Value})
	}
	return panicked
}

// do runs one call; a panic ends the call, not the process.
func (r *run) do(ctx context.Context, j *job) {
	began := r.Clock()
	defer func() {
		j.took = r.Clock().Sub(began)
		if p := recover(); p != nil {
			j.end, j.text, j.panicked = record.Failed, "The tool crashed.", p
			r.log.Error("tool panicked", "tool", j.part.Name, "stack", slog.StringValue(string(debug.Stack())))
		}
	}()
	text, err := j.tool.Run(ctx, j.call, j.part.Args)
	switch {
	case errors.Is(err, harness.ErrArgs):
		j.end, j.text = record.Refused, "Error: "+err.Error()+". Nothing was run; correct the arguments."
	case err != nil:
		j.end, j.text = record.Failed, "Error: "+err.Error()
	default:
		j.end, j.text = record.Done, text
	}
}

// did records the end of a call.
func (r *run) did(p model.Part, n int, end record.End, text string, took time.Duration) {
	r.add(record.Did{Turn: r.f.Turn.ID, Step: n, CallID: p.CallID, Tool: p.Name, Args: digestArgs(p), End: end,
		Text: text, Digest: digest([]byte(text)), Took: took})
}
