package turn

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
)

// maxNudged is how often an answer in plain text is sent back in one turn.
const maxNudged = 2

// nudge is what the model is told then.
const nudge = "Your text was not taken as the answer and nobody reads it. Call the tool " + harness.FinishTool +
	" with the result, or " + harness.GiveUpTool + " if none can be had."

// plain sends an answer in plain text back, where a form was wanted, or ends the turn.
func (r *run) plain(ctx context.Context, n int) (bool, error) {
	if r.f.Turn.Nudged >= maxNudged {
		return true, r.settle(ctx, record.Broken, "no result", lineResult)
	}
	r.add(record.Sent{Turn: r.f.Turn.ID, Step: n, Text: nudge})
	return false, r.commit(ctx)
}

// resulted records what a call ended the turn with.
func (r *run) resulted(n int, scope *harness.Scope) {
	if res := scope.Result(); res != nil && r.f.Turn.Result == nil {
		r.add(record.Resulted{Turn: r.f.Turn.ID, Step: n, Value: res.Value, GaveUp: res.GaveUp})
	}
}

// conclude ends the turn with the recorded result, unless a finish callback
// sends the model back to work.
func (r *run) conclude(ctx context.Context, n int, m *harness.Manifest, snap harness.Snapshot) (bool, error) {
	res := r.f.Turn.Result
	if res.GaveUp != "" {
		return true, r.settle(ctx, record.Declined, "gave up", res.GaveUp)
	}
	text := readable(res.Value)
	if r.task != nil {
		text = string(res.Value) // for a model
	}
	return r.finish(ctx, n, m, snap, text, func() error { return r.settle(ctx, record.Answered, "", text) })
}

// readable is a value for people: a text as it is, anything else as JSON.
func readable(v json.RawMessage) string {
	var text string
	if json.Unmarshal(v, &text) == nil && text != "" {
		return text
	}
	var b bytes.Buffer
	if json.Indent(&b, v, "", "  ") != nil {
		return string(v) // unreachable: it has been through the log
	}
	return "```json\n" + b.String() + "\n```"
}

// asResponse is an answer as callbacks see it.
func (r *run) asResponse(c model.Choice, resp model.Response) harness.Response {
	out := harness.Response{Text: r.whole(resp), Model: c.Full(), Stop: resp.Stop, Usage: resp.Usage, Cost: c.Spec.Cost(resp.Usage)}
	for _, p := range resp.Parts {
		if p.Kind == model.Call {
			out.Calls = append(out.Calls, p.Name)
		}
	}
	return out
}
