package turn

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/scripted"
	"github.com/heddlehq/heddle/state"
)

// dear is an answer that takes 20000 tokens and costs 11 cents.
func dear(s scripted.Step) scripted.Step {
	return func(ctx context.Context, r model.Request) (model.Response, error) {
		resp, err := s(ctx, r)
		resp.Usage = model.Usage{In: 10_000, Out: 10_000}
		return resp, err
	}
}

// Each limit ends a turn where people see it, with its own reason and what there
// was so far. A task is held to what is left of the turn that gave it.
func TestLimits(t *testing.T) {
	t.Parallel()
	looks := dear(scripted.Answer(model.Part{Kind: model.Text, Text: "Let me look."}, scripted.ToolCall("look", "{}")))
	digs := dear(func(ctx context.Context, r model.Request) (model.Response, error) {
		if strings.Contains(r.Messages[0].Parts[0].Text, "dig") {
			return call("look")(ctx, r)
		}
		return scripted.Answer(model.Part{Kind: model.Text, Text: "Let me look."}, scripted.ToolCall("task", `{"agent":"digger","prompt":"dig"}`))(ctx, r)
	})
	for name, c := range map[string]struct {
		limits Limits
		reason string
		line   string
		calls  int
	}{
		"steps":        {Limits{Steps: 3, Time: 99 * time.Hour}, "too many steps", lineSteps, 3},
		"tokens":       {Limits{Tokens: 70_000}, "too many tokens", lineTokens, 4},
		"turn":         {Limits{Turn: 0.5}, "turn too expensive", lineCost, 5},
		"conversation": {Limits{Total: 0.5}, "conversation too expensive", lineTotal, 5},
		"day":          {Limits{Day: 0.5}, "day too expensive", lineDay, 5},
		"time":         {Limits{Time: 90 * time.Minute}, "too much time", lineTime, 9},
	} {
		for _, who := range []string{"itself", "a task"} {
			var w *world
			look := act("look", func(context.Context, *harness.Call) (string, error) {
				w.pass(10 * time.Minute)
				return "seen", nil
			})
			says := map[string]scripted.Step{"itself": looks, "a task": digs}[who]
			w = worldOf(t, func(ctx *harness.Context) string {
				harness.UseSubagent(ctx, harness.Subagent{Name: "digger", Doc: "digs", Agent: plain(look)})
				return plain(look)(ctx)
			}, scripted.Play(says, 0))
			w.wary.stable = false
			w.opts.Limits = c.limits
			w.restart()
			w.ask("U1", "go")
			calls := len(w.model.Requests())
			if who == "a task" && name != "steps" && calls > c.calls+1 || who == "itself" && calls != c.calls {
				t.Errorf("%s, %s: %d model calls, want %d", name, who, calls, c.calls)
			}
			s := of[record.Settled](w.records())
			if len(s) != 1 || s[0].Outcome != record.Broken || s[0].Reason != c.reason {
				t.Fatalf("%s, %s: settled %+v", name, who, s)
			}
			posts := w.posts()
			if len(posts) != 1 || !strings.HasPrefix(posts[0], c.line) || name != "conversation" && !strings.HasSuffix(posts[0], "so far:\n\nLet me look.") {
				t.Errorf("%s, %s: posts %q", name, who, posts)
			}
		}
	}
}

// Who has used up the conversation's budget is told so each time, and no model is asked.
func TestConversationBudgetStaysUsedUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain(), dear(scripted.Say("hello")))
	w.opts.Limits.Total = 0.1
	w.restart()
	w.ask("U1", "hi")
	w.restart()
	w.ask("U1", "again")
	if posts := w.posts(); len(posts) != 2 || posts[1] != lineTotal || len(w.model.Requests()) != 1 {
		t.Errorf("posts %q after %d calls", posts, len(w.model.Requests()))
	}
}

// The day's budget is one for all conversations, holds over a restart, and is
// there again after midnight UTC. What a worker spends that is cut off counts.
func TestDayBudget(t *testing.T) {
	t.Parallel()
	w := worldOf(t, plain(act("look", func(context.Context, *harness.Call) (string, error) { return "seen", nil })), scripted.Play(dear(scripted.Say("hello")), 0))
	w.wary.stable = false
	w.opts.Limits.Day = 0.3 // three answers
	w.restart()
	w.ask("U1", "hi")
	other := thread
	other.Root = "2"
	w.admit("U1", "hi", other, false)
	w.run()
	w.log = &mortal{Log: w.store, dies: at(1, after)}
	w.restart()
	w.say("U1", "and again")
	if err := w.try(); !errors.Is(err, errDied) {
		t.Fatalf("it was not cut off: %v", err)
	}
	w.store.Expire()
	w.log = w.store
	w.restart()
	w.run()
	w.admit("U1", "one more", other, false)
	w.run()
	s := of[record.Settled](w.recordsOf(other))
	if len(s) != 2 || s[0].Outcome != record.Answered || s[1].Reason != record.TooExpensiveDay {
		t.Errorf("settled %+v", s)
	}
	if n := len(w.model.Requests()); n != 3 {
		t.Errorf("the model was asked %d times, want 3", n)
	}
	if got := of[record.Retried](w.recordsOf(other)); len(got) != 0 {
		t.Errorf("retried %+v", got)
	}
	w.pass(12 * time.Hour) // midnight
	w.ask("U1", "good morning")
	if d := cmp.Diff([]string{"hello", "hello", "hello"}, w.posts()); d != "" {
		t.Errorf("posts (-want +got):\n%s", d)
	}
	data, err := w.store.Value(t.Context(), costSpace, "2026-03-01")
	if err != nil || string(data) != "330000000" {
		t.Errorf("counted %s, %v; want 33 cents", data, err)
	}
}

// As long as nobody knows what was spent today, no model is asked.
func TestDayBudgetUnknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain(), scripted.Say("hello"))
	w.opts.Limits.Day, w.opts.Values = 1, unread{w.store}
	w.restart()
	w.say("U1", "hi")
	if err := w.try(); !errors.Is(err, errUnread) || len(w.model.Requests()) != 0 {
		t.Errorf("%v after %d model calls", err, len(w.model.Requests()))
	}
}

var errUnread = errors.New("cannot be read")

// unread are values that cannot be read.
type unread struct{ state.Values }

func (unread) Value(context.Context, string, string) ([]byte, error) { return nil, errUnread }

// The deadline ends what hangs.
func TestDeadlineEndsWhatHangs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		step  scripted.Step
		trace string
	}{
		"tool": {call("job"), "heard rendered said did:unknown settled:failed"},
		"model": {func(ctx context.Context, _ model.Request) (model.Response, error) {
			<-ctx.Done()
			return model.Response{}, ctx.Err()
		}, "heard rendered settled:failed"},
		"wait": {fault(model.Limited, 20*time.Minute), "heard rendered retried settled:failed"},
	} {
		synctest.Test(t, func(t *testing.T) {
			free := make(chan struct{})
			defer close(free)
			w := newWorld(t, plain(act("job", hang(false, free)).Timeout(24*time.Hour)), c.step)
			w.opts.Limits = Limits{Time: 10 * time.Minute, Wait: time.Hour}
			w.restart()
			w.say("U1", "go")
			if took := w.during(func() {}); took < 10*time.Minute || took > 10*time.Minute+2*time.Second {
				t.Errorf("%s: it took %v", name, took)
			}
			if got := trace(w.records()); got != c.trace {
				t.Errorf("%s: the log is %s", name, got)
			}
			if s := of[record.Settled](w.records()); s[0].Reason != "too much time" {
				t.Errorf("%s: settled %+v", name, s)
			}
		})
	}
}

// Neither the time for which a call waits for people nor a pause is work.
func TestWaitingIsNoWork(t *testing.T) {
	t.Parallel()
	w := worldOf(t, plain(durable("job", func(ctx context.Context, c *harness.Call) (string, error) {
		r, err := harness.Ask(ctx, c, "ok", "May I?")
		return r.Text, err
	})), scripted.Play(jobOnce, 0))
	w.opts.Limits.Time = time.Hour
	w.restart()
	w.ask("U1", "go")
	w.pass(72 * time.Hour)
	w.restart()
	w.ask("U1", "yes")
	if s := of[record.Settled](w.records()); len(s) != 1 || s[0].Outcome != record.Answered {
		t.Errorf("settled %+v", s)
	}
}
