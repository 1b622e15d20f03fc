package turn

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// live works until nothing is ready; where the process dies another goes on.
func (w *world) live() {
	w.t.Helper()
	for {
		err := w.try()
		switch {
		case errors.Is(err, state.ErrNone):
			return
		case errors.Is(err, errDied):
			w.store.Expire()
			w.restart()
		case err != nil:
			w.t.Fatal(err)
		}
	}
}

// idle fails the test if anybody holds the conversation or is about to.
func (w *world) idle() {
	w.t.Helper()
	if l, err := w.store.Claim(context.Background(), "somebody", time.Minute); !errors.Is(err, state.ErrNone) {
		w.t.Errorf("the conversation is ready: %+v, %v", l, err)
	}
	if _, open := w.boxes.counts(); open != 0 {
		w.t.Errorf("%d sandboxes are open", open)
	}
}

// jobOnce calls the job, then says that it is done, whoever spoke meanwhile.
func jobOnce(ctx context.Context, r model.Request) (model.Response, error) {
	if slices.ContainsFunc(r.Messages, func(m model.Message) bool { return m.Role == model.Results }) {
		return scripted.Say("done")(ctx, r)
	}
	return call("job")(ctx, r)
}

func durable(name string, f func(ctx context.Context, c *harness.Call) (string, error)) harness.Tool {
	return act(name, f).Durable()
}

// A tool asks a maintainer before it deploys. Days go by and processes come and
// go; others who talk meanwhile do not wake it; what they said is told after
// the result.
func TestAskWaitsForPeople(t *testing.T) {
	t.Parallel()
	ran, deployed := 0, 0
	job := durable("job", func(ctx context.Context, c *harness.Call) (string, error) {
		ran++
		plan, err := harness.Step(ctx, c, "plan", func(context.Context) (string, error) { return fmt.Sprint("plan of run ", ran), nil })
		if err != nil {
			return "", err
		}
		r, err := harness.Ask(ctx, c, "approve", "May I deploy?", harness.AnsweredBy(chat.Maintainer))
		if err != nil {
			return "", err
		}
		deployed++
		return fmt.Sprintf("%s: %s says %s as %s at %s", plan, r.Author.ID, r.Text, r.Role, r.At.Format(time.DateOnly)), nil
	})
	w := worldOf(t, func(c *harness.Context) string { harness.UseSandbox(c, "memory"); return plain(job)(c) }, scripted.Play(jobOnce, 0))
	w.setRole("boss", chat.Maintainer)
	w.ask("U1", "go")
	if d := cmp.Diff([]string{"May I deploy?"}, w.posts()); d != "" {
		t.Fatalf("posts %s", d)
	}
	w.idle()
	w.pass(36 * time.Hour)
	w.restart()
	w.ask("U1", "any news?")
	w.admit("boss", "an edit", thread, true)
	e := chat.Event{ID: "edit", Thread: thread, Kind: chat.Edited, Ref: "1", Text: "go!", Author: chat.Author{ID: "boss"}}
	w.event(e, false)
	w.run()
	w.idle()
	if ran != 1 {
		t.Errorf("the tool ran %d times though nobody has answered", ran)
	}
	w.pass(36 * time.Hour)
	w.restart()
	w.ask("boss", "yes")
	if ran != 2 || deployed != 1 {
		t.Errorf("ran %d times, deployed %d times", ran, deployed)
	}
	if got := trace(w.records()); got != "heard rendered said memo asked heard heard heard heard memo did:done rendered said settled:answered" {
		t.Errorf("the log is %s", got)
	}
	if d := cmp.Diff([]string{"May I deploy?", "done"}, w.posts()); d != "" {
		t.Errorf("posts %s", d)
	}
	got := transcript(w.request(-1))
	if i, j := strings.Index(got, "[results] plan of run 1: boss says yes as maintainer at 2026-03-04"), strings.Index(got, "any news?"); i < 0 || j < i {
		t.Errorf("the model sees\n%s", got)
	}
	if strings.Index(got, "\nyes\n") < strings.Index(got, "any news?") {
		t.Errorf("the model does not see who answered:\n%s", got)
	}
}

// Approved, denied and expired, with the process dying at any commit: the
// question is posted once, and so is the effect.
func TestAskOverCrashes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		says string // "" for nobody
		want string
		acts int
	}{"approved": {"yes", "granted", 1}, "denied": {"no", "denied", 0}, "expired": {"", "expired", 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n, made := 1, true; made; n++ {
				for _, f := range []fate{before, after} {
					acts := map[string]bool{}
					job := durable("job", func(ctx context.Context, c *harness.Call) (string, error) {
						r, err := harness.Ask(ctx, c, "pay", "Pay?\n---\n100 dollars", harness.ExpiresAt(c.Now().Add(time.Hour), "expired"))
						switch {
						case err != nil:
							return "", err
						case r.Expired:
							return r.Text, nil
						case r.Text != "yes":
							return "denied", nil
						}
						acts[c.ID] = true
						return "granted", nil
					})
					w := worldOf(t, plain(job), scripted.Play(jobOnce, 0))
					m := &mortal{Log: w.store, dies: at(n, f)}
					w.log = m
					w.restart()
					w.say("U1", "go")
					w.live()
					w.idle()
					w.pass(59 * time.Minute)
					if c.says != "" {
						w.say("U1", c.says)
					}
					w.pass(2 * time.Minute) // an answer that came in time counts when it is read late
					w.live()
					dids := of[record.Did](w.records())
					if len(dids) != 1 || dids[0].Text != c.want || len(acts) != c.acts {
						t.Errorf("died at commit %d: results %+v, acted %v", n, dids, acts)
					}
					if d := cmp.Diff([]string{"Pay?", "100 dollars", "done"}, w.posts()); d != "" {
						t.Errorf("died at commit %d: posts %s", n, d)
					}
					made = m.count >= n
				}
			}
		})
	}
}

// A wait of three days, over a restart each: the first time given counts, and
// messages do not end it.
func TestSleep(t *testing.T) {
	t.Parallel()
	ran := 0
	job := durable("job", func(ctx context.Context, c *harness.Call) (string, error) {
		ran++
		if err := harness.Sleep(ctx, c, "cool down", c.Now().Add(72*time.Hour)); err != nil {
			return "", err
		}
		return "awake", nil
	})
	w := worldOf(t, plain(job), scripted.Play(jobOnce, 0))
	w.ask("U1", "go")
	for range 3 {
		w.idle()
		w.pass(24*time.Hour - time.Second)
		w.restart()
		w.ask("U1", "still there?")
	}
	if ran != 1 || len(w.posts()) != 0 {
		t.Errorf("ran %d times before its time, posts %q", ran, w.posts())
	}
	w.pass(3 * time.Second)
	w.run()
	if d := cmp.Diff([]string{"done"}, w.posts()); d != "" || ran != 2 {
		t.Errorf("ran %d times, posts %s", ran, d)
	}
}

// What a subagent asks is asked in the thread, one question at a time, and the
// answers go to who asked.
func TestSubagentsAsk(t *testing.T) {
	t.Parallel()
	asks := durable("asks", func(ctx context.Context, c *harness.Call) (string, error) {
		name, err := harness.Step(ctx, c, "name", func(context.Context) (string, error) { return c.ID, nil })
		if err != nil {
			return "", err
		}
		r, err := harness.Ask(ctx, c, "q", "Which color for "+name+"?")
		if err != nil {
			return "", err
		}
		return "color " + r.Text, nil
	})
	painter := func(c *harness.Context) string { harness.UseTool(c, asks); return "Paint." }
	agent := func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		harness.UseSubagent(c, harness.Subagent{Name: "painter", Doc: "Paints.", Agent: painter})
		return "Delegate."
	}
	w := worldOf(t, agent, scripted.Play(lastSays(map[string]scripted.Step{
		"please": scripted.Answer(scripted.ToolCall("task", `{"agent":"painter","prompt":"paint"}`), scripted.ToolCall("task", `{"agent":"painter","prompt":"paint"}`)),
		"paint":  call("asks"),
		"color":  scripted.Say("painted"),
	}), 0))
	w.wary.stable = false
	w.ask("U1", "please")
	for n, color := range []string{"red", "blue"} {
		if got := w.posts(); len(got) != n+1 || !strings.HasPrefix(got[n], "Which color for ") {
			t.Fatalf("posts %q", got)
		}
		w.idle()
		w.pass(time.Hour)
		w.restart()
		w.ask("U1", color)
	}
	if got := w.posts(); len(got) != 3 || got[2] != "the end" {
		t.Errorf("posts %q", got)
	}
	var colors []string
	for _, c := range of[record.Child](w.records()) {
		if d, ok := c.Body.(record.Did); ok {
			colors = append(colors, d.Text)
		}
	}
	if len(colors) != 2 || !strings.Contains(fmt.Sprint(colors), "color red") || !strings.Contains(fmt.Sprint(colors), "color blue") {
		t.Errorf("colors %q", colors)
	}
}

// A call that is not of a durable tool cannot wait, and a turn that ends for
// another reason leaves no call open.
func TestAskMisuse(t *testing.T) {
	t.Parallel()
	asking := func(ctx context.Context, c *harness.Call) (string, error) {
		r, err := harness.Ask(ctx, c, "q", "Why?")
		return r.Text, err
	}
	w := newWorld(t, plain(act("once", asking), durable("twice", func(ctx context.Context, c *harness.Call) (string, error) {
		_, _ = harness.Ask(ctx, c, "q", "Why?")
		return asking(ctx, c)
	}), durable("mute", func(ctx context.Context, c *harness.Call) (string, error) {
		_, err := harness.Ask(ctx, c, "q", " ")
		return "", err
	}), durable("never", func(ctx context.Context, c *harness.Call) (string, error) {
		return "", harness.Sleep(ctx, c, "q", time.Time{})
	})), call("once", "twice", "mute", "never"), scripted.Say("ok"))
	w.ask("U1", "go")
	var got []string
	for _, d := range of[record.Did](w.records()) {
		got = append(got, string(d.End)+" "+d.Text)
	}
	want := []string{
		"failed Error: the call waits; only that of a durable tool can", `failed Error: step "q": names are not empty and unique within a call`,
		`failed Error: question "q": it has no text`, "failed Error: sleep: the time is zero",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("results %s", d)
	}

	w = newWorld(t, plain(durable("asks", asking), act("crash", func(context.Context, *harness.Call) (string, error) { panic("oh") })),
		call("asks", "crash"), scripted.Say("ok"))
	w.ask("U1", "go")
	w.ask("U1", "again")
	if d := cmp.Diff([]string{lineBroken, "ok"}, w.posts()); d != "" {
		t.Errorf("posts %s", d)
	}
}

// A call that waits until a time that has passed is run again a second later, not
// at once and again and again.
func TestWaitForThePast(t *testing.T) {
	t.Parallel()
	ran := 0
	w := worldOf(t, plain(durable("job", func(_ context.Context, c *harness.Call) (string, error) {
		if ran++; ran < 3 {
			return "", &harness.Wait{Until: c.Now().Add(-time.Hour)}
		}
		return "done", nil
	})), scripted.Play(jobOnce, 0))
	w.ask("U1", "go")
	for n := 1; n <= 3; n++ {
		if ran != n {
			t.Errorf("it ran %d times, want %d", ran, n)
		}
		w.pass(leastWait)
		w.run()
	}
	if s := of[record.Settled](w.records()); len(s) != 1 || s[0].Outcome != record.Answered {
		t.Errorf("settled %+v", s)
	}
}
