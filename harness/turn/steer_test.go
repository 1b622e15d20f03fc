package turn

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/scripted"
)

// nested gives the task of hanging to a subagent of a subagent, which tries it
// once more after its result.
func nested(job harness.Tool) (harness.Agent, scripted.Step) {
	inner := func(c *harness.Context) string {
		harness.UseTool(c, job)
		return "Work."
	}
	outer := func(c *harness.Context) string {
		harness.UseSubagent(c, harness.Subagent{Name: "worker", Doc: "works", Agent: inner})
		return "Lead."
	}
	results := func(r model.Request) (n int) {
		for _, m := range r.Messages {
			if m.Role == model.Results {
				n++
			}
		}
		return n
	}
	hand := func(to, say string) scripted.Step {
		return func(ctx context.Context, r model.Request) (model.Response, error) {
			if results(r) > 0 {
				return scripted.Say(say)(ctx, r)
			}
			return scripted.Answer(taskFor(to, "hang"))(ctx, r)
		}
	}
	return giver(harness.Subagent{Agent: outer}), bySystem(map[string]scripted.Step{
		"Help.": hand("helper", "both"),
		"Lead.": hand("worker", "led"),
		"Work.": func(ctx context.Context, r model.Request) (model.Response, error) {
			if results(r) > 1 {
				return scripted.Say("worked")(ctx, r)
			}
			return call("job")(ctx, r)
		},
	})
}

// A new message that steers ends the calls of subagents that may be interrupted,
// too: these come to an end and the message joins.
func TestSteerEndsCallsOfTasks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		defer close(free)
		agent, model := nested(act("job", hang(true, free)).Interruptible())
		w := worldOf(t, agent, scripted.Play(model, 0))
		w.wary.stable = false
		w.opts.Busy = func(chat.Event) chat.Policy { return chat.Steer }
		w.restart()
		w.say("U1", "first")
		if took := w.during(func() { w.say("U1", "second") }); took > 2*time.Second {
			t.Errorf("it took %v", took)
		}
		if d := cmp.Diff([]string{"canceled " + lineCanceled + lineSteered, "refused " + lineNotBegun + lineSteered}, deepest(w)); d != "" {
			t.Errorf("the calls (-want +got):\n%s", d)
		}
		if text := transcript(w.request(-1)); !strings.Contains(text, "second") || !strings.Contains(text, "led") {
			t.Errorf("the last request is %s", text)
		}
		if d := cmp.Diff([]string{"both"}, w.posts()); d != "" {
			t.Errorf("posts (-want +got):\n%s", d)
		}
	})
}

// A message that steers ends a call of a task that waits.
func TestSteerEndsWaitingCallsOfTasks(t *testing.T) {
	t.Parallel()
	slept := false
	agent, model := nested(act("job", func(ctx context.Context, c *harness.Call) (string, error) {
		if slept {
			return "done", nil
		}
		slept = true
		return "", harness.Sleep(ctx, c, "night", time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC))
	}).Durable().Interruptible())
	w := worldOf(t, agent, scripted.Play(model, 0))
	w.wary.stable = false
	w.opts.Busy = func(chat.Event) chat.Policy { return chat.Steer }
	w.restart()
	w.ask("U1", "first")
	w.ask("U1", "second")
	if d := cmp.Diff([]string{"canceled " + lineCanceled + lineSteered, "done done"}, deepest(w)); d != "" {
		t.Errorf("the calls (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"both"}, w.posts()); d != "" {
		t.Errorf("posts (-want +got):\n%s", d)
	}
}

// deepest tells how the calls of the subagent's subagent have ended.
func deepest(w *world) (out []string) {
	for path, log := range children(w.records()) {
		if !strings.Contains(path, "/") {
			continue
		}
		for _, d := range of[record.Did](log) {
			out = append(out, string(d.End)+" "+d.Text)
		}
	}
	return out
}
