package turn

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
)

// What people read when there is no answer.
const (
	lineBusy     = "My model is not answering right now. Please try again in a few minutes."
	lineLong     = "This conversation has become too long for my model. Please start a new thread."
	lineSettings = "I cannot answer because something in my settings is wrong. Whoever runs me finds the reason in the log."
	lineBroken   = "Something went wrong on my side, so I cannot answer this. It has been logged."
	lineEmpty    = "My model gave an empty answer. Please try again or say it differently."
	lineDeclined = "My model declined to answer this."
	lineRole     = "I cannot look up who you are right now, so I do not answer. Please try again in a minute."
	lineRejected = "I stopped because my model kept calling tools in ways that cannot work. Please try again or say it differently."
	lineResult   = "My model did not put its answer into the form that was asked for, so there is none."
	lineStopped  = "Stopped."
	lineRefused  = "I answer people here from the role %s on, and you are %s. Whoever runs me can change that."
	lineLeft     = "I no longer follow this thread. Mention me when you want me back."
	lineDropped  = "I am still busy with an earlier message. What came meanwhile was not taken: please say it again when I have answered."
	lineCut      = "\n\n(cut: the answer reached the model's length limit)"
)

// step is one render, one model call and its tools. It says whether the turn is settled.
func (r *run) step(ctx context.Context) (settled bool, err error) {
	n := r.f.Turn.Step + 1
	r.progress(r.f.Turn.Event, "")
	if r.f.Turn.Unclear != "" { // a call was open when it was found
		return true, r.askHuman(ctx)
	}
	switch reason, line, err := r.spent(ctx, n); {
	case err != nil:
		return false, err
	case reason != "" && r.f.Turn.Result == nil:
		return true, r.settle(ctx, record.Broken, reason, line)
	}
	agent := r.agent()
	if agent == nil {
		r.log.Error("agent not usable", "err", "no agent "+r.conv.Agent)
		return true, r.settle(ctx, record.Broken, record.NotRendered, lineSettings)
	}
	if err := r.fetch(ctx); err != nil {
		return false, err
	}
	snap := r.snapshot(ctx)
	m, err := harness.Render(agent, snap)
	if err != nil {
		r.logRender(err)
		return true, r.settle(ctx, record.Broken, record.NotRendered, lineBroken)
	}
	chain, err := r.Models.Chain(m.Model)
	if err != nil {
		r.log.Error("model not usable", "err", err)
		return true, r.settle(ctx, record.Broken, "model", lineSettings)
	}
	if m.Sandbox != "" && r.Sandboxes[m.Sandbox] == nil {
		r.log.Error("sandbox not usable", "err", "no sandbox kind "+m.Sandbox)
		return true, r.settle(ctx, record.Broken, "sandbox", lineSettings)
	}
	if len(m.Starts) > 0 && !r.f.Turn.Began {
		return r.start(ctx, n, &m, snap)
	}
	r.manifest = &m
	if r.f.Turn.Result != nil { // a call was open when it was given
		return r.conclude(ctx, n, &m, snap)
	}
	r.rendered(n, snap, &m)
	if done, err := r.beforeModel(ctx, n, &m, snap); done || err != nil {
		return done, err
	}
	resp, choice, took, err := r.reach(ctx, n, &m, chain)
	if err != nil {
		return r.failed(ctx, err)
	}
	calls := r.said(n, choice, resp, took)
	if ctx.Err() != nil { // what was said is kept, but nothing comes of it
		for _, p := range calls {
			r.did(p, n, record.Refused, lineNotBegun, 0)
		}
		return false, context.Cause(ctx)
	}
	if done, err := r.afterModel(ctx, n, &m, snap, r.asResponse(choice, resp)); done || err != nil {
		return done, err
	}
	switch {
	case len(calls) == 0 && m.Result && resp.Stop != model.StopRefused:
		return r.plain(ctx, n)
	case len(calls) == 0:
		return r.finish(ctx, n, &m, snap, r.whole(resp), func() error { return r.answer(ctx, resp) })
	}
	if err := r.commit(ctx); err != nil {
		return false, err
	}
	return r.worked(ctx, n, &m, snap, calls, false)
}

func (r *run) snapshot(ctx context.Context) harness.Snapshot {
	if r.task != nil {
		return r.taskSnapshot(ctx)
	}
	s := r.snapshotOf(ctx, r.f.Turn.ID, r.f.Turn.Event)
	s.Want, s.Hops = r.f.Turn.Want, r.f.Turn.Hops
	return s
}

// snapshotOf is what a render sees of a turn that may be over.
func (r *run) snapshotOf(ctx context.Context, turn string, e chat.Event) harness.Snapshot {
	return harness.Snapshot{
		Agent: r.conv.Agent, Conversation: string(r.conv.ID), Turn: turn, Thread: r.conv.Thread, Event: e,
		Trust: r.trust(ctx), State: r.f.State, Versions: r.f.Versions, Initial: r.f.Initial, Files: r.takesFiles(e), Now: r.Clock().UTC().Truncate(time.Microsecond),
	}
}

func (r *run) logRender(err error) {
	var re *harness.RenderError
	if errors.As(err, &re) && re.Panic != nil {
		r.log.Error("agent panicked", "err", err, "panic", panicText(re.Panic), "stack", re.Detail)
		return
	}
	r.log.Error("agent failed to render", "err", err)
}

// rendered records the manifest and, if it differs from what the model knows, tells it.
func (r *run) rendered(n int, snap harness.Snapshot, m *harness.Manifest) {
	rec, text := r.rendering(n, snap, m)
	if text != "" {
		r.add(record.Told{Turn: rec.Turn, Step: n, Text: text})
	}
	r.add(rec)
}

// rendering is the record of a manifest and what the model is told before it.
func (r *run) rendering(n int, snap harness.Snapshot, m *harness.Manifest) (rec record.Rendered, text string) {
	v := m.View()
	rec = record.Rendered{Turn: r.f.Turn.ID, Step: n, Trust: snap.Trust, Now: snap.Now, Digest: v.Digest()}
	if r.Version != r.f.Version {
		rec.Version = r.Version
	}
	for _, name := range m.Loaded {
		if !slices.Contains(r.f.Order, name) {
			rec.Loads = append(rec.Loads, name)
		}
	}
	if rec.Digest != r.f.Digest {
		rec.View = &v
		text = announce(r.f, v)
	}
	return rec, text
}

// request puts together what the model gets.
func (r *run) request(m *harness.Manifest, c model.Choice) model.Request {
	return c.Spec.Fit(model.Request{
		Model: c.Model, System: m.System(), Tools: r.f.Offered(), Messages: inView(slices.Clip(r.f.Messages)),
		MaxTokens: c.Spec.MaxOut, Thinking: m.Thinking, CacheKey: r.name(), Written: r.written,
	})
}

// reach asks the models of the chain until one answers.
func (r *run) reach(ctx context.Context, n int, m *harness.Manifest, chain []model.Choice) (resp model.Response, c model.Choice, took time.Duration, err error) {
	for i := range chain {
		c = chain[i]
		resp, took, err = r.askInRoom(ctx, n, m, c)
		var me *model.Error
		if err == nil || i == len(chain)-1 || !errors.As(err, &me) || !me.Fault.Elsewhere() {
			break
		}
		next := chain[i+1].Full()
		r.log.Warn("another model is asked", "turn", r.f.Turn.ID, "step", n, "err", me, "next", next)
		r.add(record.Retried{Turn: r.f.Turn.ID, Step: n, Fault: me.Fault, Status: me.Status, Code: me.Code, Next: next, Asked: c.Full()})
	}
	return resp, c, took, err
}

// askInRoom makes room for the request, if need be, and asks; a request that the
// provider refuses as too long is asked once more after a compaction.
func (r *run) askInRoom(ctx context.Context, n int, m *harness.Manifest, c model.Choice) (model.Response, time.Duration, error) {
	if err := r.makeRoom(ctx, n, m, c); err != nil {
		return model.Response{}, 0, err
	}
	request := func() model.Request { return r.request(m, c) }
	resp, took, err := r.ask(ctx, n, c, request)
	var me *model.Error
	if !errors.As(err, &me) || me.Fault != model.Overflow {
		if err != nil {
			return r.withoutImages(ctx, n, c, request, err)
		}
		return resp, took, nil
	}
	_, keep := room(m, c.Spec)
	switch done, cerr := r.tryCompact(ctx, n, "overflow", m, c, min(keep, r.tokens(m)/2)); {
	case cerr != nil:
		return resp, took, cerr
	case !done:
		return resp, took, err
	}
	return r.ask(ctx, n, c, request)
}

// ask calls the model, again where that may help, and records why.
func (r *run) ask(ctx context.Context, n int, c model.Choice, request func() model.Request) (model.Response, time.Duration, error) {
	garbled := 0
	for try := 1; ; try++ {
		began := r.Clock()
		resp, err := r.once(ctx, n, c, request())
		if err == nil && garbled == 0 && empty(resp) && r.torn(n) == "" {
			err = &model.Error{Provider: c.Provider.Name(), Model: c.Model, Fault: model.Garbled, Code: "empty answer"}
		}
		if err == nil {
			return resp, r.Clock().Sub(began), nil
		}
		if ctx.Err() != nil {
			return resp, 0, context.Cause(ctx)
		}
		var me *model.Error
		if !errors.As(err, &me) {
			return resp, 0, fmt.Errorf("model %s: %w", c.Full(), err)
		}
		wait := max(backoff(try), me.RetryAfter)
		if me.Fault == model.Garbled {
			garbled++
		}
		if !me.Fault.Retry() || garbled > 1 || try >= r.Limits.Tries || wait > r.Limits.Wait {
			return resp, 0, me
		}
		r.log.Warn("model call failed", "turn", r.f.Turn.ID, "step", n, "err", me, "wait", wait)
		r.add(record.Retried{
			Turn: r.f.Turn.ID, Step: n, Try: try, Fault: me.Fault, Status: me.Status, Code: me.Code, Wait: wait,
			Asked: c.Full(), Took: r.Clock().Sub(began), Usage: resp.Usage, Cost: c.Spec.Cost(resp.Usage),
		})
		if err := sleep(ctx, wait); err != nil {
			return resp, 0, err
		}
	}
}

// once makes one call for a step.
func (r *run) once(ctx context.Context, n int, c model.Choice, req model.Request) (model.Response, error) {
	r.sent = req
	var failed error
	req.Image = func(ref string) (data []byte, err error) {
		data, failed = r.image(ctx, ref)
		return data, failed
	}
	return r.unlessDown(c, func() (model.Response, error) {
		resp, err := r.stream(ctx, n, c, req)
		if failed != nil {
			err = failed // and not the model's
		}
		return resp, err
	})
}

// unlessDown makes one call, unless the provider is known to be down.
func (r *run) unlessDown(c model.Choice, call func() (model.Response, error)) (model.Response, error) {
	b := r.breaker(c.Provider.Name())
	if wait, ok := b.Allow(); !ok {
		return model.Response{}, &model.Error{Provider: c.Provider.Name(), Model: c.Model, Fault: model.Transient, Code: "circuit_open", RetryAfter: wait}
	}
	resp, err := call()
	b.Done(err)
	return resp, err
}

// empty says whether an answer holds nothing for anybody.
func empty(resp model.Response) bool {
	return (resp.Stop == model.StopEnd || resp.Stop == model.StopTools) && !slices.ContainsFunc(resp.Parts, func(p model.Part) bool {
		return p.Kind == model.Call || p.Kind == model.Text && strings.TrimSpace(p.Text) != ""
	})
}

// backoff is exponential from half a second to half a minute, with jitter over its upper half.
func backoff(try int) time.Duration {
	d := min(500*time.Millisecond<<min(try-1, 10), 30*time.Second)
	return d/2 + rand.N(d/2+1)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// failed ends the turn after a model call that will not succeed.
func (r *run) failed(ctx context.Context, err error) (bool, error) {
	var me *model.Error
	if !errors.As(err, &me) {
		return false, err
	}
	r.log.Error("model call failed for good", "turn", r.f.Turn.ID, "err", me)
	line := lineBusy
	switch me.Fault {
	case model.Overflow:
		line = lineLong
	case model.Denied, model.Missing, model.Invalid:
		line = lineSettings
	case model.Transient, model.Limited, model.Truncated, model.Stalled, model.Garbled, model.Canceled:
	}
	if torn := r.torn(r.f.Turn.Step + 1); torn != "" {
		line = torn + "\n\n" + line
	}
	return true, r.settle(ctx, record.Broken, record.NoModel+string(me.Fault), line)
}

// said records the answer and returns its calls.
func (r *run) said(n int, c model.Choice, resp model.Response, took time.Duration) []model.Part {
	r.add(record.Said{
		Turn: r.f.Turn.ID, Step: n, Parts: resp.Parts, Stop: resp.Stop, Asked: c.Full(), Answered: resp.Model, ID: resp.ID,
		Prompt: digest([]byte(r.sent.System)), Request: r.sums.asked(r.sent), Usage: resp.Usage, Cost: c.Spec.Cost(resp.Usage), Took: took, Raw: resp.Raw,
	})
	var calls []model.Part
	for _, p := range resp.Parts {
		if p.Kind == model.Call {
			calls = append(calls, p)
		}
	}
	return calls
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:12])
}
