package turn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
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

// giver offers one subagent called helper.
func giver(to harness.Subagent, tools ...harness.Tool) harness.Agent {
	to.Name, to.Doc = "helper", "helps"
	return func(c *harness.Context) string {
		for _, t := range tools {
			harness.UseTool(c, t)
		}
		harness.UseModel(c, "fast", harness.Thinking(model.ThinkLow))
		harness.UseSubagent(c, to)
		return "Help."
	}
}

func taskFor(agent, prompt string) model.Part {
	return scripted.ToolCall("task", fmt.Sprintf(`{"agent":%q,"prompt":%q}`, agent, prompt))
}

// bySystem answers as the agent whose instructions begin so.
func bySystem(agents map[string]scripted.Step) scripted.Step {
	return func(ctx context.Context, r model.Request) (model.Response, error) {
		for begin, step := range agents {
			if strings.HasPrefix(r.System, begin) {
				return step(ctx, r)
			}
		}
		return model.Response{}, errors.New("nobody has the instructions " + r.System)
	}
}

// children are the entries of tasks, by the calls that gave them.
func children(bodies []record.Body) map[string][]record.Body {
	out := map[string][]record.Body{}
	for _, c := range of[record.Child](bodies) {
		at := strings.Join(c.Task, "/")
		out[at] = append(out[at], c.Body)
	}
	return out
}

// A subagent works with its own manifest, sees the task and nothing else, and
// only its answer comes back; what it did stands in a log of its own.
func TestTask(t *testing.T) {
	t.Parallel()
	r := &runs{by: map[string]int{}}
	w := newWorld(t, giver(harness.Subagent{Agent: plain(counted(r, "look"))}),
		scripted.Answer(taskFor("helper", "find the number")), call("look"), scripted.Say("it is 42"), scripted.Say("42, says the helper"))
	w.wary.stable = false
	w.ask("U1", "a secret question")
	w.has(0, "fast-1", "task")
	if got := w.request(0).System; !strings.HasSuffix(got, "\n- helper: helps") {
		t.Errorf("the roster is not there: %q", got)
	}
	w.has(1, "fast-1", "look")
	if got := transcript(w.request(1)); !strings.Contains(got, "find the number") || strings.Contains(got, "secret") {
		t.Errorf("the subagent sees %s", got)
	}
	w.has(3, "fast-1", "task")
	if got := transcript(w.request(3)); !strings.Contains(got, "it is 42") || strings.Contains(got, "find the number\n") || strings.Count(got, "[results]") != 1 {
		t.Errorf("the giver sees %s", got)
	}
	if got := trace(w.records()); got != "heard rendered said child child child child child child child did:done rendered said settled:answered" {
		t.Errorf("the log is %s", got)
	}
	for id, log := range children(w.records()) {
		if got := trace(log); id != of[record.Did](w.records())[0].CallID || got != "heard rendered said did:done rendered said settled:answered" {
			t.Errorf("the log of %s is %s", id, got)
		}
	}
	if d := cmp.Diff([]string{"42, says the helper"}, w.posts()); d != "" {
		t.Errorf("posts (-want +got):\n%s", d)
	}
	var cost float64
	for _, b := range w.records() {
		if c, ok := b.(record.Child); ok {
			b = c.Body
		}
		if s, ok := b.(record.Said); ok {
			cost += s.Cost
		}
	}
	if got := of[record.Settled](w.records())[0].Cost; cost == 0 || fmt.Sprintf("%.9f", got) != fmt.Sprintf("%.9f", cost) {
		t.Errorf("the turn cost %v, its calls %v", got, cost)
	}
}

// A task for somebody who was not declared is a miss that names those who were.
func TestTaskForNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, giver(harness.Subagent{Agent: plain()}), scripted.Answer(taskFor("nobody", "x")), scripted.Answer(taskFor("helper", " ")), scripted.Say("ok"))
	w.ask("U1", "go")
	var got []string
	for _, d := range of[record.Did](w.records()) {
		got = append(got, string(d.End)+" "+d.Text)
	}
	want := []string{
		`failed Error: no subagent "nobody"; there are: helper`,
		"refused Error: the arguments do not fit: say in prompt what is to be done. Nothing was run; correct the arguments.",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if len(children(w.records())) != 0 {
		t.Error("a task was begun")
	}
}

// Tasks nest four deep: there the tool is not offered, and a call to it names the limit.
func TestTaskDepth(t *testing.T) {
	t.Parallel()
	var down harness.Agent
	down = func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		harness.UseSubagent(c, harness.Subagent{Name: "helper", Doc: "helps", Agent: down})
		return "Go down."
	}
	w := worldOf(t, down, scripted.Play(func(ctx context.Context, r model.Request) (model.Response, error) {
		if r.Messages[len(r.Messages)-1].Role == model.Results {
			return scripted.Say(r.Messages[len(r.Messages)-1].Parts[0].Text)(ctx, r)
		}
		return scripted.Answer(taskFor("helper", "go on"))(ctx, r)
	}, 0))
	w.wary.stable = false
	w.ask("U1", "go")
	if d := cmp.Diff([]string{"Error: " + harness.ErrDepth.Error() + ". Nothing was run."}, w.posts()); d != "" {
		t.Errorf("posts (-want +got):\n%s", d)
	}
	deepest := 0
	for _, c := range of[record.Child](w.records()) {
		deepest = max(deepest, len(c.Task))
	}
	for i, q := range w.model.Requests()[:5] {
		if want := map[bool]string{true: "task"}[i < 4]; offered(q) != want {
			t.Errorf("at depth %d there is %q", i, offered(q))
		}
	}
	if deepest != harness.MaxDepth {
		t.Errorf("the deepest task is at %d", deepest)
	}
}

// A subagent gets the giver's model and thinking unless it or its declaration
// names its own, and never more trust.
func TestTaskManifest(t *testing.T) {
	t.Parallel()
	silent := func(*harness.Context) string { return "Child." }
	for name, c := range map[string]struct {
		to    harness.Subagent
		model string
		think model.Thinking
		trust chat.Role
	}{
		"inherits":  {harness.Subagent{Agent: silent}, "fast", model.ThinkLow, chat.Maintainer},
		"given":     {harness.Subagent{Agent: silent, Model: "strong", Thinking: model.ThinkHigh}, "strong", model.ThinkHigh, chat.Maintainer},
		"thinks":    {harness.Subagent{Agent: silent, Thinking: model.ThinkHigh}, "fast", model.ThinkHigh, chat.Maintainer},
		"its own":   {harness.Subagent{Agent: func(c *harness.Context) string { harness.UseModel(c, "strong"); return "Child." }, Model: "fast"}, "strong", "", chat.Maintainer},
		"untrusted": {harness.Subagent{Agent: silent, Untrusted: true}, "fast", model.ThinkLow, chat.Outsider},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := worldOf(t, giver(c.to), scripted.Play(bySystem(map[string]scripted.Step{
				"Child.": scripted.Say("done"),
				"Help.": func(ctx context.Context, r model.Request) (model.Response, error) {
					if r.Messages[len(r.Messages)-1].Role == model.Results {
						return scripted.Say("ok")(ctx, r)
					}
					return scripted.Answer(taskFor("helper", "x"))(ctx, r)
				},
			}), 0))
			w.wary.stable = false
			w.setRole("U1", chat.Maintainer)
			w.ask("U1", "go")
			for _, log := range children(w.records()) {
				got := of[record.Rendered](log)[0]
				if got.View.Model != c.model || got.View.Thinking != c.think || got.Trust != c.trust {
					t.Errorf("model %s, thinking %q, trust %s", got.View.Model, got.View.Thinking, got.Trust)
				}
			}
			own := of[record.Rendered](w.records())
			if got := own[len(own)-1].Trust; got != c.trust {
				t.Errorf("the giver is trusted as %s once it has heard the answer", got)
			}
		})
	}
}

// Subagents share their giver's files, if both have the same sandbox, or have
// their own, which end with the task.
func TestTaskFiles(t *testing.T) {
	t.Parallel()
	child := func(c *harness.Context) string { harness.UseSandbox(c, "memory"); return "Child." }
	for name, own := range map[string]bool{"shared": false, "own": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inner := giver(harness.Subagent{Agent: child, OwnFiles: own})
			w := worldOf(t, func(c *harness.Context) string { harness.UseSandbox(c, "memory"); return inner(c) }, scripted.New(
				scripted.Call("write", `{"path":"a","content":"of the giver"}`),
				scripted.Answer(taskFor("helper", "x")),
				scripted.Call("read", `{"path":"a"}`),
				scripted.Call("write", `{"path":"b","content":"of the task"}`),
				scripted.Say("written"),
				scripted.Call("read", `{"path":"b"}`),
				scripted.Say("ok")))
			w.wary.stable = false
			w.ask("U1", "go")
			var reads []bool
			for _, b := range w.records() {
				if c, ok := b.(record.Child); ok {
					b = c.Body
				}
				if d, ok := b.(record.Did); ok && d.Tool == "read" {
					reads = append(reads, d.End == record.Done)
				}
			}
			if d := cmp.Diff([]bool{!own, !own}, reads); d != "" {
				t.Errorf("who reads the other's file (-want +got):\n%s", d)
			}
			if _, open := w.boxes.counts(); open != 0 {
				t.Errorf("%d sandboxes are open", open)
			}
			call := of[record.Did](w.records())[1].CallID
			left, err := w.store.Blob(context.Background(), state.ConversationID("tested", thread), "task/"+call+"/memory")
			if err != nil || left != nil {
				t.Errorf("files of the task are left: %q, %v", left, err)
			}
		})
	}
}

// When the process is to stop, a task stops at its next step; it goes on in
// another process where it stopped.
func TestTaskStopsAndGoesOn(t *testing.T) {
	t.Parallel()
	soft, stop := context.WithCancel(context.Background())
	r := &runs{by: map[string]int{}}
	look := harness.NewTool("look", "Looks.", func(_ context.Context, c *harness.Call, _ struct{}) (string, error) {
		r.note(c.Key())
		stop()
		return "seen", nil
	})
	w := newWorld(t, giver(harness.Subagent{Agent: plain(look)}),
		scripted.Answer(taskFor("helper", "x")), call("look"), scripted.Say("it is there"), scripted.Say("ok"))
	w.wary.stable = false
	w.say("U1", "go")
	l, err := w.store.Claim(context.Background(), "test", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.engine.Run(context.Background(), soft, l); err != nil {
		t.Fatal(err)
	}
	if got := trace(w.records()); got != "heard rendered said child child child child" {
		t.Errorf("stopped after %s", got)
	}
	w.restart()
	w.run()
	if d := cmp.Diff([]string{"ok"}, w.posts()); d != "" || len(r.by) != 1 {
		t.Errorf("posts (-want +got):\n%s; runs %v", d, r.by)
	}
	if got := of[record.Settled](w.records()); len(got) != 1 || got[0].Attempt != 1 {
		t.Errorf("settled %+v", got)
	}
}

// A task that fails, and one whose subagent is gone after a crash, is told as such.
func TestTaskThatFails(t *testing.T) {
	t.Parallel()
	t.Run("empty answer", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, giver(harness.Subagent{Agent: plain()}), scripted.Answer(taskFor("helper", "x")), scripted.Say(""), scripted.Say(""), scripted.Say("ok"))
		w.wary.stable = false
		w.ask("U1", "go")
		if got := of[record.Did](w.records())[0]; got.End != record.Failed || got.Text != "Error: the task was not done (empty answer): "+lineEmpty {
			t.Errorf("the giver is told %s %q", got.End, got.Text)
		}
	})
	t.Run("gone", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, giver(harness.Subagent{Agent: plain()}), scripted.Answer(taskFor("helper", "x")), scripted.Say("the child's"), scripted.Say("ok"))
		w.wary.stable = false
		w.log = &mortal{Log: w.store, dies: at(2, before)}
		w.restart()
		w.say("U1", "go")
		if err := w.try(); !errors.Is(err, errDied) {
			t.Fatal(err)
		}
		w.store.Expire()
		w.log = w.store
		w.opts.Agents = map[string]harness.Agent{"tested": plain()}
		w.restart()
		w.run()
		if got := of[record.Did](w.records())[0]; got.End != record.Unknown {
			t.Errorf("the giver is told %s %q", got.End, got.Text)
		}
	})
}

// Three tasks of one step are under way at the same time, each with tools that
// change state and the same file; every commit of one leaves the others' whole.
func TestTasksSideBySide(t *testing.T) {
	t.Parallel()
	var here sync.WaitGroup
	here.Add(3)
	meet := harness.NewTool("meet", "Waits for the others.", func(context.Context, *harness.Call, struct{}) (string, error) {
		here.Done()
		here.Wait()
		return "met", nil
	})
	child := func(c *harness.Context) string {
		harness.UseSandbox(c, "memory")
		harness.UseTool(c, meet)
		n := harness.UseState(c, "count", 0)
		harness.UseTool(c, act("count", func(_ context.Context, call *harness.Call) (string, error) {
			n.Update(call, func(n int) int { return n + 1 })
			return "counted", nil
		}))
		return "Child."
	}
	parent := giver(harness.Subagent{Agent: child})
	w := worldOf(t, func(c *harness.Context) string { harness.UseSandbox(c, "memory"); return parent(c) }, scripted.Play(bySystem(map[string]scripted.Step{
		"Child.": lastSays(map[string]scripted.Step{"begin": call("meet"), "met": call("count", "count"), "counted": scripted.Call("write", `{"path":"a","content":"b"}`), "rote": scripted.Say("child done")}),
		"Help.":  lastSays(map[string]scripted.Step{"go": scripted.Answer(taskFor("helper", "begin 1"), taskFor("helper", "begin 2"), taskFor("helper", "begin 3")), "child done": scripted.Say("all done")}),
	}), 0))
	w.wary.stable = false
	w.ask("U1", "go")
	logs := children(w.records())
	if len(logs) != 3 {
		t.Fatalf("%d tasks", len(logs))
	}
	for id, log := range logs {
		wrote := of[record.Wrote](log)
		if len(wrote) != 2 || string(wrote[1].Value) != "2" || len(of[record.Settled](log)) != 1 {
			t.Errorf("the log of %s is %s", id, trace(log))
		}
	}
	if d := cmp.Diff([]string{"all done"}, w.posts()); d != "" {
		t.Errorf("posts (-want +got):\n%s", d)
	}
}
