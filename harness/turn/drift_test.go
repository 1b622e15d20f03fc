package turn

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/scripted"
	"github.com/heddlehq/heddle/state"
)

// elsewhere is an engine on another machine: another time, no store, nobody who
// could be asked for a role, and models and tools that must not be called.
func elsewhere(t *testing.T, w *world, agent harness.Agent) *Engine {
	t.Helper()
	o := w.opts
	if agent != nil {
		o.Agents = map[string]harness.Agent{"tested": agent}
	}
	o.Log = nil
	o.Clock = func() time.Time { return time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC) }
	o.Role = func(context.Context, chat.Thread, chat.Author) (chat.Role, error) {
		t.Error("a role was looked up")
		return chat.Outsider, nil
	}
	names, err := model.NewNames([]model.Provider{mute{t}}, map[string]string{"fast": "scripted/fast-1", "strong": "scripted/strong-1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := names.Fallbacks(map[string][]string{"fast": {"strong"}}); err != nil {
		t.Fatal(err)
	}
	o.Models = names
	return &Engine{Options: o}
}

type mute struct{ t *testing.T }

func (mute) Name() string { return "scripted" }

func (m mute) Stream(context.Context, model.Request, func(model.Delta)) (model.Response, error) {
	m.t.Error("a model was called")
	return model.Response{}, &model.Error{Fault: model.Invalid}
}

func (w *world) view() state.View {
	w.t.Helper()
	v, err := w.store.Load(context.Background(), state.ConversationID("tested", thread), 0)
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

func replayed(t *testing.T, e *Engine, v state.View) Replayed {
	t.Helper()
	got, err := e.Replay(context.Background(), v.Conversation, v.Records)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// Another machine makes the same requests of a log, whatever crashed meanwhile:
// every manifest, announcement and request is the recorded one.
func TestReplayMakesTheSameRequests(t *testing.T) {
	t.Parallel()
	for name, s := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(8) {
				rnd := rand.New(rand.NewPCG(151, seed))
				s.in(t, func(int) bool { return seed > 0 && rnd.IntN(10) == 0 }, func(t *testing.T, w *world, r *runs) {
					before := maps.Clone(r.by)
					v := w.view()
					got := replayed(t, elsewhere(t, w, nil), v)
					said, rendered := said(w.records()), len(of[record.Rendered](w.records()))
					if got.Drift != nil || got.Records != len(v.Records) || got.Requests != said || got.Renders < rendered || said == 0 && seed == 0 || got.Skipped != 0 {
						t.Errorf("seed %d: %d answers, %d manifests: %+v %+v", seed, said, rendered, got, got.Drift)
					}
					if d := cmp.Diff(before, r.by); d != "" {
						t.Errorf("something was run:\n%s", d)
					}
				})
			}
		})
	}
}

// said counts the answers of a log, those of its tasks as well.
func said(bodies []record.Body) int {
	n := len(of[record.Said](bodies))
	for _, c := range of[record.Child](bodies) {
		n += len(of[record.Said]([]record.Body{c.Body}))
	}
	return n
}

// What is recorded of a request is what the provider got.
func TestRequestsAreRecorded(t *testing.T) {
	t.Parallel()
	look := act("look", func(context.Context, *harness.Call) (string, error) { return "seen", nil })
	w := newWorld(t, plain(look), fault(model.Transient, 0), call("look"), scripted.Say("ok"))
	w.opts.Limits.Wait = time.Minute
	w.restart()
	w.ask("U1", "go")
	var want, got []string
	for _, q := range w.model.Requests()[1:] {
		want = append(want, new(summer).asked(q))
	}
	for _, s := range of[record.Said](w.records()) {
		got = append(got, s.Request)
	}
	if d := cmp.Diff(want, got); d != "" || len(got) != 2 || got[0] == got[1] {
		t.Errorf("(-sent +recorded):\n%s", d)
	}
}

// Code that has changed shows where it would have done something else first,
// and how.
func TestReplayShowsDrift(t *testing.T) {
	t.Parallel()
	helper := harness.Subagent{Name: "helper", Doc: "helps", Agent: plain()}
	seen := func(context.Context, *harness.Call) (string, error) { return "seen", nil }
	base := func(change func(c *harness.Context)) harness.Agent {
		return func(c *harness.Context) string {
			harness.UseModel(c, "fast")
			n := harness.UseState(c, "n", 0)
			harness.UseTool(c, act("count", func(_ context.Context, call *harness.Call) (string, error) { n.Set(call, 1); return "counted", nil }))
			harness.UseTool(c, act("look", seen))
			harness.UseSubagent(c, helper)
			if change != nil {
				change(c)
			}
			if n.Value > 0 {
				return "Help.\nYou have counted.\nBe brief."
			}
			return "Help.\nBe brief."
		}
	}
	w := newWorld(t, base(nil), call("count", "look"), scripted.Say("ok"))
	w.ask("U1", "go")
	v := w.view()
	if got := replayed(t, elsewhere(t, w, base(nil)), v); got.Drift != nil {
		t.Fatalf("the same code drifts: %+v", got.Drift)
	}
	second := func(f func(c *harness.Context)) harness.Agent { // from the second step on
		return base(func(c *harness.Context) {
			if harness.UseState(c, "n", 0).Value > 0 {
				f(c)
			}
		})
	}
	for name, tt := range map[string]struct {
		agent  harness.Agent
		record int64 // heard, rendered, said, did, did, wrote, told, rendered, said, settled
		what   string
		lines  string
	}{
		"instructions": {func(c *harness.Context) string {
			return strings.Replace(base(nil)(c), "Be brief.", "Be long.", 1)
		}, 2, "manifest", "instructions:\n- Be brief.\n+ Be long."},
		"a paragraph more, later": {second(func(c *harness.Context) { harness.UseInstruction(c, "More.\nAnd more.") }), 8, "manifest", "instructions:\n+ \n+ More.\n+ And more."},
		"model": {func(c *harness.Context) string {
			harness.UseModel(c, "strong")
			harness.UseTool(c, act("count", seen))
			harness.UseTool(c, act("look", seen))
			harness.UseSubagent(c, helper)
			return "Help.\nBe brief."
		}, 2, "manifest", "model:\n- fast\n+ strong"},
		"sandbox": {second(func(c *harness.Context) { harness.UseSandbox(c, "memory") }), 8, "manifest", "sandbox:\n+ memory\ntool read:\n+ read: Reads a text file, with line numbers left out, or looks at an image.\ntool write:"},
		"level":   {base(func(c *harness.Context) { harness.UseLevel(c, 1, "strong") }), 2, "manifest", "level:\n+ 1 (strong)"},
		"a tool more": {
			second(func(c *harness.Context) { harness.UseTool(c, act("dig", seen)) }), 8, "manifest",
			"tool dig:\n+ dig: Does it.",
		},
		"a tool less": {func(c *harness.Context) string {
			harness.UseModel(c, "fast")
			harness.UseTool(c, act("look", seen))
			harness.UseSubagent(c, helper)
			return "Help.\nBe brief."
		}, 2, "manifest", "tool count:\n- count: Does it."},
		"another doc": {func(c *harness.Context) string {
			harness.UseModel(c, "fast")
			n := harness.UseState(c, "n", 0)
			harness.UseTool(c, harness.NewTool("count", "Counts.", func(_ context.Context, call *harness.Call, _ struct{}) (string, error) {
				n.Set(call, 1)
				return "", nil
			}))
			harness.UseTool(c, act("look", seen))
			harness.UseSubagent(c, helper)
			return "Help.\nBe brief."
		}, 2, "manifest", "tool count:\n- count: Does it.\n+ count: Counts."},
		"a skill": {base(func(c *harness.Context) {
			harness.UseSkill(c, harness.Skill{Name: "review", Doc: "how we review"})
		}), 2, "manifest", "skill review:\n+ review: how we review"},
		"a subagent": {base(func(c *harness.Context) {
			harness.UseSubagent(c, harness.Subagent{Name: "two", Doc: "helps too", Agent: plain()})
		}), 2, "manifest", "subagent two:\n+ two: helps too"},
		"a panic":  {second(func(*harness.Context) { panic("no") }), 8, "manifest", `+ agent "tested": panicked while rendering`},
		"no agent": {nil, 2, "agent", "- \"tested\"\n+ there is none of that name"},
	} {
		e := elsewhere(t, w, tt.agent)
		if tt.agent == nil {
			e.Agents = nil
		}
		d := replayed(t, e, v).Drift
		if d == nil || d.Record != tt.record || d.What != tt.what || !strings.Contains(strings.Join(d.Lines, "\n"), tt.lines) {
			t.Errorf("%s: found %+v\nwant record %d, %s: %s", name, d, tt.record, tt.what, tt.lines)
		}
	}
}

// Drift that no manifest shows: another model under a name, other words in a
// message, a render that is not pure, an answer that kept no digest.
func TestReplayComparesRequests(t *testing.T) {
	t.Parallel()
	renders := 0
	impure := func(c *harness.Context) string { renders++; return plain()(c) + fmt.Sprint(renders) }
	w := newWorld(t, plain(), scripted.Say("one"), scripted.Say("two"))
	w.ask("U1", "first")
	w.ask("U1", "second")
	v := w.view()

	other := elsewhere(t, w, nil)
	var err error
	if other.Models, err = model.NewNames([]model.Provider{mute{t}}, map[string]string{"fast": "scripted/fast-2"}, nil); err != nil {
		t.Fatal(err)
	}
	d := replayed(t, other, v).Drift
	if d == nil || d.Record != 3 || d.What != "model" || d.Step != 1 || strings.Join(d.Lines, "\n") != "- scripted/fast-1 was asked\n+ fast stands for scripted/fast-2" {
		t.Errorf("another model: %+v", d)
	}

	changed := w.view()
	changed.Records[4].Data = []byte(strings.Replace(string(changed.Records[4].Data), "second", "other", 1))
	d = replayed(t, elsewhere(t, w, nil), changed).Drift
	if d == nil || d.Record != 6 && d.Record != 7 || d.What != "request" || len(d.Lines) != 3 || d.Lines[0] != "messages:" || d.Lines[1] == d.Lines[2] {
		t.Errorf("other words: %+v", d)
	}

	w = newWorld(t, impure, scripted.Say("one"), scripted.Say("two"))
	w.ask("U1", "first")
	w.ask("U1", "second")
	if d = replayed(t, elsewhere(t, w, nil), w.view()).Drift; d == nil || d.Record != 2 || d.What != "manifest" {
		t.Errorf("a render that counts: %+v", d)
	}

	old := w.view()
	renders = 2 // before the first turn
	for i, r := range old.Records {
		b, err := record.Decode(r)
		if err != nil {
			t.Fatal(err)
		}
		if s, ok := b.(record.Said); ok {
			s.Request = ""
			if old.Records[i], err = record.Encode(s); err != nil {
				t.Fatal(err)
			}
			old.Records[i].Seq = r.Seq
		}
	}
	if got := replayed(t, elsewhere(t, w, nil), old); got.Drift != nil || got.Skipped != 2 || got.Requests != 0 {
		t.Errorf("an old log: %+v %+v", got, got.Drift)
	}
}

// A step of a task is walked as one of the conversation's.
func TestReplayWalksTasks(t *testing.T) {
	t.Parallel()
	deep := func(text string) harness.Subagent {
		return harness.Subagent{Name: "deep", Doc: "digs", Model: "strong", Agent: func(*harness.Context) string { return text }}
	}
	agent := func(text string) harness.Agent {
		return func(c *harness.Context) string {
			harness.UseModel(c, "fast")
			harness.UseSubagent(c, harness.Subagent{Name: "helper", Doc: "helps", Agent: func(c *harness.Context) string {
				harness.UseSubagent(c, deep(text))
				return "You help."
			}})
			return "Help."
		}
	}
	w := worldOf(t, agent("You dig."), scripted.Play(func(ctx context.Context, r model.Request) (model.Response, error) {
		to := map[string]string{"Help.": "helper", "You help.": "deep"}[strings.Split(r.System, "\n")[0]]
		if to != "" && len(r.Messages) == 1 {
			return scripted.Call(harness.TaskTool, fmt.Sprintf(`{"agent":%q,"prompt":"please"}`, to))(ctx, r)
		}
		return scripted.Say("done")(ctx, r)
	}, 0))
	w.wary.stable = false
	w.ask("U1", "go")
	v := w.view()
	if got := replayed(t, elsewhere(t, w, agent("You dig.")), v); got.Drift != nil || got.Requests != 5 {
		t.Fatalf("%+v, %+v: %s", got, got.Drift, trace(w.records()))
	}
	d := replayed(t, elsewhere(t, w, agent("You bury.")), v).Drift
	if d == nil || strings.Count(d.Task, "/") != 1 || strings.Join(d.Lines, "\n") != "instructions:\n- You dig.\n+ You bury." {
		t.Errorf("found %+v", d)
	}
	d = replayed(t, elsewhere(t, w, func(c *harness.Context) string { return plain()(c) }), v).Drift
	if d == nil || d.Task != "" || d.What != "manifest" || !strings.Contains(strings.Join(d.Lines, "\n"), "subagent helper:\n- helper: helps") {
		t.Errorf("found %+v", d)
	}
}

// What a fork has of another conversation is walked as it was written there.
func TestReplayOfAFork(t *testing.T) {
	t.Parallel()
	agent := func(c *harness.Context) string { return plain()(c) + " In " + c.Thread().Key() + "." }
	w := newWorld(t, agent, scripted.Say("one"), scripted.Say("two"), scripted.Say("three"))
	w.ask("U1", "first")
	w.ask("U1", "second")
	to, from := thread, w.view()
	to.Root = "2"
	own, err := record.Encode(record.Forked{From: from.Conversation.ID, Seq: 4})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Fork(context.Background(), from.Conversation.ID, 4, "tested", to, own); err != nil {
		t.Fatal(err)
	}
	w.wary.stable = false
	w.admit("U1", "another second", to, false)
	w.run()
	v, err := w.store.Load(context.Background(), state.ConversationID("tested", to), 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := replayed(t, elsewhere(t, w, nil), v); got.Drift != nil || got.Requests != 2 {
		t.Errorf("%+v %+v: %s", got, got.Drift, trace(w.recordsOf(to)))
	}
	if a, err := record.Verify(v.Records); err != nil || a.Checked != 2 {
		t.Errorf("the chain of the fork: %+v, %v", a, err)
	}
}

// New code comes while a turn waits: what was recorded keeps its meaning, and
// what cannot is migrated by a step that the log names. The old code's log
// shows no drift where the new form leads to the same manifest.
func TestDeployDuringATurn(t *testing.T) {
	t.Parallel()
	type cart struct{ Items int }
	shop := func(use func(c *harness.Context) (int, func(*harness.Call))) harness.Agent {
		return func(c *harness.Context) string {
			n, add := use(c)
			harness.UseTool(c, act("add", func(_ context.Context, call *harness.Call) (string, error) { add(call); return "added", nil }))
			return plain()(c) + fmt.Sprintf(" Items: %d.", n)
		}
	}
	v1 := shop(func(c *harness.Context) (int, func(*harness.Call)) {
		n := harness.UseState(c, "cart", 0)
		return n.Value, func(call *harness.Call) { n.Update(call, func(v int) int { return v + 1 }) }
	})
	v2 := shop(func(c *harness.Context) (int, func(*harness.Call)) {
		n := harness.UseState(c, "cart", cart{}, harness.Migrate(2, func(old json.RawMessage, _ int) (v cart, err error) {
			return v, json.Unmarshal(old, &v.Items)
		}))
		return n.Value.Items, func(call *harness.Call) { n.Update(call, func(v cart) cart { v.Items++; return v }) }
	})
	w := newWorld(t, v1, call("add"), call("add"), scripted.Say("two"))
	w.opts.Version = "v1"
	w.restart()
	w.say("U1", "two of them")
	soft, stop := context.WithCancel(context.Background())
	stop() // at the first step boundary
	l, err := w.store.Claim(context.Background(), "old", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.engine.Run(context.Background(), soft, l); err != nil {
		t.Fatal(err)
	}
	w.opts.Agents, w.opts.Version = map[string]harness.Agent{"tested": v2}, "v2"
	w.restart()
	w.run()

	var wrote []string
	for _, b := range of[record.Wrote](w.records()) {
		wrote = append(wrote, fmt.Sprintf("%s in version %d", b.Value, max(b.Version, 1)))
	}
	if d := cmp.Diff([]string{"1 in version 1", `{"Items":2} in version 2`}, wrote); d != "" {
		t.Errorf("wrote (-want +got):\n%s", d)
	}
	var versions []string
	for _, b := range of[record.Rendered](w.records()) {
		versions = append(versions, b.Version)
	}
	if d := cmp.Diff([]string{"v1", "v2", ""}, versions); d != "" {
		t.Errorf("versions (-want +got):\n%s", d)
	}
	v := w.view()
	if got := replayed(t, elsewhere(t, w, v2), v); got.Drift != nil || got.Requests != 3 {
		t.Errorf("new code on the log: %+v %+v", got, got.Drift)
	}
	if d := replayed(t, elsewhere(t, w, v1), v).Drift; d == nil || d.What != "manifest" || !strings.Contains(d.Lines[0], "version") {
		t.Errorf("old code on what new code wrote: %+v", d)
	}
}

// What a guard makes of the arguments of a task is what a replay follows.
func TestReplayFollowsGuards(t *testing.T) {
	t.Parallel()
	agent := func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		for _, name := range []string{"careful", "hasty"} {
			harness.UseSubagent(c, harness.Subagent{Name: name, Doc: "helps", Agent: func(*harness.Context) string { return "I am " + name + "." }})
		}
		harness.UseToolCall(c, "guard", func(_ context.Context, _ *harness.Call, args json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(strings.ReplaceAll(string(args), "hasty", "careful")), nil
		})
		return "Help."
	}
	w := newWorld(t, agent, scripted.Answer(taskFor("hasty", "do it")), scripted.Say("done"), scripted.Say("all done"))
	w.wary.stable = false
	w.ask("U1", "go")
	if got := w.request(1).System; got != "I am careful." {
		t.Fatalf("the task was done by %q", got)
	}
	if got := replayed(t, elsewhere(t, w, nil), w.view()); got.Drift != nil || got.Requests != 3 {
		t.Errorf("%+v %+v", got, got.Drift)
	}
}
