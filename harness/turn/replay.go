package turn

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/state"
)

// Replayed is how far today's code does what a log says.
type Replayed struct {
	Records  int    `json:"records"`  // that were walked
	Renders  int    `json:"renders"`  // whose manifest and announcement are the recorded ones
	Requests int    `json:"requests"` // that are those that were sent
	Skipped  int    `json:"skipped"`  // answers of an old version, which kept no digest of what it asked
	Drift    *Drift `json:"drift,omitempty"`
}

// A Drift is where today's code would do something else.
type Drift struct {
	Record int64    `json:"record"`
	Turn   string   `json:"turn"`
	Step   int      `json:"step"`
	Task   string   `json:"task,omitempty"` // the calls that lead to it
	What   string   `json:"what"`           // "agent", "manifest", "announcement", "model" or "request"
	Lines  []string `json:"lines"`          // how: "- " was recorded, "+ " is today's
}

// Replay walks a log from its beginning with today's agents, models and rules.
// Time, trust, state, answers and results come from the log: no model is asked,
// no tool, callback or guard is run, nobody's role is looked up. It stops at the
// first step whose manifest, announcement or request is another than the
// recorded one. When and how a conversation was summarised is taken from the
// log as well. It fails on a log that cannot be read.
func (e *Engine) Replay(ctx context.Context, c state.Conversation, records []state.Record) (Replayed, error) {
	recorded := &Engine{Options: e.Options}
	recorded.Logger = slog.New(slog.DiscardHandler)
	recorded.Role = func(context.Context, chat.Thread, chat.Author) (chat.Role, error) { return chat.Admin, nil }
	f := &record.Fold{}
	w := walk{steps: map[string]*walked{}, top: &run{Engine: recorded, f: f, boxes: &boxes{}, memo: &sync.Mutex{}, log: recorded.Logger}}
	if err := w.ahead(records); err != nil {
		return w.found, err
	}
	for i, r := range records {
		b, err := record.Decode(r)
		if err != nil {
			return w.found, err
		}
		w.place(c, r.Seq)
		d := w.look(ctx, b)
		if d != nil {
			d.Record, w.found.Drift = r.Seq, d
			return w.found, nil
		}
		if err := f.Add(records[i : i+1]); err != nil {
			return w.found, err
		}
		w.found.Records++
	}
	return w.found, nil
}

// ahead notes where a log left others, and what guards made of the arguments of
// tasks, which is recorded when they end.
func (w *walk) ahead(records []state.Record) error {
	w.ran = map[string]json.RawMessage{}
	for _, r := range records {
		b, err := record.Decode(r)
		if err != nil {
			return err
		}
		path := ""
		if c, ok := b.(record.Child); ok {
			path, b = strings.Join(c.Task, "/"), c.Body
		}
		switch b := b.(type) {
		case record.Forked:
			w.forks = append(w.forks, b)
		case record.Did:
			if b.Tool == harness.TaskTool && b.Ran != nil {
				w.ran[path+"/"+b.CallID] = b.Ran
			}
		}
	}
	return nil
}

// place makes the walk stand where a record was written: what a fork has of
// another conversation was written there, in the thread of its events.
func (w *walk) place(c state.Conversation, seq int64) {
	w.top.conv = c
	for _, f := range w.forks {
		if seq > f.Seq {
			continue
		}
		w.top.conv.ID = f.From
		if w.top.conv.Thread = f.Thread; f.Thread == (chat.Thread{}) && w.top.f.Turn != nil {
			w.top.conv.Thread = w.top.f.Turn.Event.Thread
		}
		return
	}
}

// A walk is a replay on its way.
type walk struct {
	top   *run
	forks []record.Forked
	ran   map[string]json.RawMessage // by the calls that lead to a task
	steps map[string]*walked         // by turn, or turn and task
	found Replayed
}

// walked is the step at which a turn or a task is.
type walked struct {
	snap harness.Snapshot
	m    harness.Manifest
	told string // the announcement that came before its manifest
}

// look compares the next record with what today's code makes of the fold.
func (w *walk) look(ctx context.Context, b record.Body) *Drift {
	r := w.top
	if c, ok := b.(record.Child); ok {
		b = c.Body
		for _, call := range c.Task {
			var d *Drift
			if r, d = w.below(r, call); d != nil {
				return d
			}
		}
	}
	if r.f.Turn == nil {
		return nil
	}
	at := w.at(r)
	switch b := b.(type) {
	case record.Told:
		if b.Step > r.f.Turn.Step { // not of its sandbox
			at.told = b.Text
		}
	case record.Rendered:
		return w.render(ctx, r, at, b)
	case record.Said:
		return w.ask(r, at, b)
	}
	return nil
}

func (w *walk) at(r *run) *walked {
	key := r.name() + " " + r.f.Turn.ID
	if w.steps[key] == nil {
		w.steps[key] = &walked{}
	}
	return w.steps[key]
}

// below is the run of the task that a call gave.
func (w *walk) below(r *run, call string) (*run, *Drift) {
	at := w.at(r)
	var args struct{ Agent string }
	for _, p := range r.f.Turn.Calls {
		if p.CallID == call {
			given := p.Args
			if ran, ok := w.ran[r.boxes.task+"/"+call]; ok {
				given = ran
			}
			_ = json.Unmarshal(given, &args) // the name is "" then
		}
	}
	to, ok := at.m.Subagent(args.Agent)
	if !ok {
		return nil, drift(r, "agent", fmt.Sprintf("- a task for the subagent %q", args.Agent), "+ there is none of that name")
	}
	return r.child(below(at.snap, &at.m, to), at.m.Sandbox, call, to, nil), nil
}

func (w *walk) render(ctx context.Context, r *run, at *walked, b record.Rendered) *Drift {
	told := at.told
	at.told = ""
	agent := r.agent()
	if agent == nil {
		return drift(r, "agent", fmt.Sprintf("- %q", r.conv.Agent), "+ there is none of that name")
	}
	at.snap = r.snapshot(ctx)
	at.snap.Trust, at.snap.Now = b.Trust, b.Now
	var err error
	if at.m, err = harness.Render(agent, at.snap); err != nil {
		return drift(r, "manifest", "+ "+err.Error())
	}
	was, now := r.f.View, at.m.View()
	if b.View != nil {
		was = *b.View
	}
	if was.Digest() != now.Digest() {
		return drift(r, "manifest", differ(was, now)...)
	}
	rec, text := r.rendering(b.Step, at.snap, &at.m)
	if text != told {
		return drift(r, "announcement", lines(told, text)...)
	}
	if !slices.Equal(rec.Loads, b.Loads) {
		return drift(r, "manifest", append([]string{"loaded tools:"}, lines(strings.Join(b.Loads, " "), strings.Join(rec.Loads, " "))...)...)
	}
	w.found.Renders++
	return nil
}

func (w *walk) ask(r *run, at *walked, b record.Said) *Drift {
	chain, err := r.Models.Chain(at.m.Model)
	i := slices.IndexFunc(chain, func(c model.Choice) bool { return c.Full() == b.Asked })
	if i < 0 {
		text := fmt.Sprintf("+ %s stands for", at.m.Model)
		for _, c := range chain {
			text += " " + c.Full()
		}
		if err != nil {
			text = "+ " + err.Error()
		}
		return drift(r, "model", "- "+b.Asked+" was asked", text)
	}
	if b.Request == "" {
		w.found.Skipped++
		return nil
	}
	was, now := strings.Split(b.Request, "-"), strings.Split(new(summer).asked(r.request(&at.m, chain[i])), "-")
	var out []string
	for k, what := range []string{"system text", "tools", "messages"} {
		if k >= len(was) || was[k] != now[k] {
			out = append(out, what+":", "- "+strings.Join(was[min(k, len(was)):min(k+1, len(was))], ""), "+ "+now[k])
		}
	}
	if out != nil {
		return drift(r, "request", out...)
	}
	w.found.Requests++
	return nil
}

func drift(r *run, what string, lines ...string) *Drift {
	d := &Drift{Turn: r.f.Turn.ID, Step: r.f.Turn.Step + 1, What: what, Lines: lines}
	if r.task != nil {
		d.Task = strings.Join(r.task.path(), "/")
	}
	return d
}

// differ says how two manifests differ.
func differ(was, now harness.View) []string {
	var out []string
	compare := func(what, was, now string) {
		if was != now {
			out = append(append(out, what+":"), lines(was, now)...)
		}
	}
	level := func(l *harness.Level) string {
		if l == nil {
			return ""
		}
		return fmt.Sprintf("%d (%s)", l.Number, l.Name)
	}
	compare("instructions", was.Instructions, now.Instructions)
	compare("model", was.Model, now.Model)
	compare("thinking", string(was.Thinking), string(now.Thinking))
	compare("sandbox", was.Sandbox, now.Sandbox)
	compare("level", level(was.Level), level(now.Level))
	named(compare, "tool", was.Tools, now.Tools, toolName, func(t model.Tool) string { return t.Doc + "\n" + string(t.Schema) })
	named(compare, "skill", was.Skills, now.Skills, skillName, func(s harness.Skill) string {
		return s.Doc + "\n" + s.Digest + "\n" + strings.Join(s.AllowedTools, " ")
	})
	named(compare, "subagent", was.Subagents, now.Subagents, delegateName, func(d harness.Delegate) string { return d.Doc })
	compare("tools on demand", strings.Join(was.Deferred, " "), strings.Join(now.Deferred, " "))
	return out
}

// named compares two lists by name.
func named[T any](compare func(what, was, now string), what string, was, now []T, name, text func(T) string) {
	texts := func(list []T) map[string]string {
		out := map[string]string{}
		for _, v := range list {
			out[name(v)] = name(v) + ": " + text(v)
		}
		return out
	}
	a, b := texts(was), texts(now)
	var names []string
	for _, v := range slices.Concat(was, now) {
		if !slices.Contains(names, name(v)) {
			names = append(names, name(v))
		}
	}
	for _, n := range names {
		was, now := a[n], b[n]
		if was == "" || now == "" { // its first line says what it is
			was, _, _ = strings.Cut(was, "\n")
			now, _, _ = strings.Cut(now, "\n")
		}
		compare(what+" "+n, was, now)
	}
}

// A difference shows at most so many lines of each side and bytes of a line.
const (
	mostLines = 8
	mostWide  = 240
)

// lines are those of two texts that differ, without what they begin and end with alike.
func lines(was, now string) []string {
	a, b := strings.Split(was, "\n"), strings.Split(now, "\n")
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	var out []string
	side := func(mark string, ls []string) {
		for i, l := range ls {
			switch {
			case l == "" && len(ls) == 1: // there is nothing on this side
			case i == mostLines:
				out = append(out, fmt.Sprintf("%s[and %d more lines]", mark, len(ls)-i))
				return
			case len(l) > mostWide:
				out = append(out, mark+strings.ToValidUTF8(l[:mostWide], "")+" [...]")
			default:
				out = append(out, mark+l)
			}
		}
	}
	side("- ", a)
	side("+ ", b)
	return out
}
