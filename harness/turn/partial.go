package turn

import (
	"context"
	"strings"
	"time"

	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
)

// chunkEvery is how long an answer is streamed until what there is of it is
// recorded, again and again. Most answers take less and leave no trace of it.
const chunkEvery = 2 * time.Second

// A partial is the text of an answer while it is streamed.
type partial struct {
	r     *run
	step  int
	rest  strings.Builder // not recorded yet
	since time.Time       // of the first text, or of the last record
	stop  context.CancelCauseFunc
	err   error // of recording
}

// on takes in a piece, and records what has come if that is due.
func (p *partial) on(ctx context.Context, d model.Delta) {
	if d.Text == "" || p.err != nil {
		return
	}
	p.rest.WriteString(d.Text)
	now := p.r.Clock()
	if p.since.IsZero() {
		p.since = now
	}
	if now.Sub(p.since) < chunkEvery || strings.TrimSpace(p.rest.String()) == "" {
		return
	}
	p.r.add(record.Chunk{Turn: p.r.f.Turn.ID, Step: p.step, Text: p.rest.String()})
	p.rest.Reset()
	p.since = now
	if p.err = p.r.commit(ctx); p.err != nil {
		p.stop(p.err) // nobody would take the answer
	}
}

// stream asks the model, and records an answer that takes long as it comes. What
// was recorded of one that breaks off is closed.
func (r *run) stream(ctx context.Context, n int, c model.Choice, req model.Request) (model.Response, error) {
	sctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	p := &partial{r: r, step: n, stop: stop}
	resp, err := c.Provider.Stream(sctx, req, func(d model.Delta) { p.on(ctx, d) })
	if err == nil {
		tame(&resp)
		r.rename(n, &resp)
		if !distinct(req, resp) {
			err = &model.Error{Provider: c.Provider.Name(), Model: c.Model, Fault: model.Garbled, Code: "duplicate call id"}
		}
	}
	switch {
	case p.err != nil:
		return resp, p.err
	case err != nil && ctx.Err() == nil:
		r.tear(p.rest.String())
	}
	return resp, err
}

// tear closes what was recorded of an answer that broke off; rest is what came
// after that.
func (r *run) tear(rest string) {
	if t := r.f.Turn; t != nil && t.Partial.Text != "" && t.Partial.Step == t.Step+1 {
		r.add(record.Torn{Turn: t.ID, Step: t.Partial.Step, Text: t.Partial.Text + rest})
	}
}

// torn is the text of the step's answers that broke off.
func (r *run) torn(step int) string {
	if p := r.f.Turn.Partial; p.Step == step {
		return p.Torn
	}
	return ""
}

// whole is the text of an answer that was recorded, with what was torn off it.
func (r *run) whole(resp model.Response) string {
	return r.torn(r.f.Turn.Step) + textOf(resp.Parts)
}
