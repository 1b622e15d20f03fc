package turn

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/scripted"
)

// story is a text that takes ten seconds at the pace of a test.
var story = func() string {
	var b strings.Builder
	for i := range 100 {
		fmt.Fprintf(&b, "word%d ", i)
	}
	return b.String() + "end"
}()

const pace = 100 * time.Millisecond

// teller tells the story and goes on with it where it was cut off.
func teller(ctx context.Context, r model.Request) (model.Response, error) {
	told := 0
	for _, m := range r.Messages {
		if m.Role == model.Assistant {
			told += len(m.Parts[0].Text)
		}
	}
	return scripted.Say(story[told:])(ctx, r)
}

// paced is a world on the clock of a bubble whose model needs time for each word.
func paced(t *testing.T, agent harness.Agent, step scripted.Step) *world {
	t.Helper()
	w := worldOf(t, agent, scripted.Play(step, pace))
	w.opts.Clock = time.Now
	w.restart()
	return w
}

// A process dies at each commit of a long answer: what was recorded of it is
// closed, the model goes on from there, and people see the whole once.
func TestPartialAnswerGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		torn := 0
		crashes(t, func(when string, m *mortal) {
			asked := 0
			w := paced(t, func(c *harness.Context) string {
				n := harness.UseState(c, "n", 0)
				harness.UseResponseStart(c, "count", func(_ context.Context, call *harness.Call) error {
					n.Update(call, func(v int) int { return v + 1 })
					return nil
				})
				return plain()(c)
			}, teller)
			m.Log = w.store
			w.log = m
			w.restart()
			w.say("U1", "tell me")
			w.live()
			if d := cmp.Diff([]string{story}, w.posts()); d != "" {
				t.Errorf("%s: posts %s", when, d)
			}
			said := ""
			for _, b := range w.records() {
				switch b := b.(type) {
				case record.Torn:
					torn++
					said += b.Text
				case record.Said:
					said += textOf(b.Parts)
				case record.Wrote:
					asked++
				}
			}
			if said != story || asked != 1 {
				t.Errorf("%s: the log holds %q; the callback's effect %d times", when, said, asked)
			}
			if n := len(of[record.Chunk](w.records())); n < 3 {
				t.Errorf("%s: %d chunks", when, n)
			}
		})
		if torn < 3 {
			t.Errorf("%d answers were torn", torn)
		}
	})
}

// A stream that breaks off after more than two seconds is gone on with; one that
// breaks off sooner is asked for again. What it called is not run.
func TestTornStream(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		words int // before it breaks off
		want  string
	}{
		"early": {10, "heard rendered retried said settled:answered"},
		"late":  {50, "heard rendered chunk chunk torn retried chunk chunk said settled:answered"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				broken, ran := false, false
				w := paced(t, plain(act("look", func(context.Context, *harness.Call) (string, error) { ran = true; return "", nil })),
					func(ctx context.Context, r model.Request) (model.Response, error) {
						if broken {
							return teller(ctx, r)
						}
						broken = true
						begin := strings.Join(strings.SplitAfter(story, " ")[:c.words], "")
						resp, err := scripted.Answer(model.Part{Kind: model.Text, Text: begin}, scripted.ToolCall("look", "{}"))(ctx, r)
						if err == nil {
							err = &model.Error{Fault: model.Truncated}
						}
						return resp, err
					})
				w.ask("U1", "tell me")
				got := trace(w.records())
				for strings.Contains(got, "chunk chunk chunk") {
					got = strings.ReplaceAll(got, "chunk chunk chunk", "chunk chunk")
				}
				if name == "early" {
					got = strings.ReplaceAll(got, "chunk ", "") // of the whole one
				}
				if d := cmp.Diff(c.want, got); d != "" || ran {
					t.Errorf("ran: %t, the log %s", ran, d)
				}
				if d := cmp.Diff([]string{story}, w.posts()); d != "" {
					t.Errorf("posts %s", d)
				}
				again := strings.Contains(transcript(w.request(-1)), "[assistant] word0 ")
				if told := slices.ContainsFunc(notices(w.request(-1)), func(s string) bool { return strings.HasPrefix(s, "Your answer was cut off here") }); told != (name == "late") || again != told {
					t.Errorf("the model is told:\n%s", transcript(w.request(-1)))
				}
				w.ask("U1", "and then?")
			})
		})
	}
}

// When no model can finish a long answer, people get what there is of it.
func TestTornForGood(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := paced(t, plain(), func(ctx context.Context, r model.Request) (model.Response, error) {
			if r.Messages[len(r.Messages)-1].Role == model.User && len(r.Messages) > 1 {
				return scripted.Fault(model.Denied, 0)(ctx, r)
			}
			resp, _ := scripted.Say(story)(ctx, r)
			return resp, &model.Error{Fault: model.Stalled}
		})
		w.ask("U1", "tell me")
		if d := cmp.Diff([]string{story + "\n\n" + lineSettings}, w.posts()); d != "" {
			t.Errorf("posts %s", d)
		}
	})
}

// An answer that comes within two seconds leaves no chunk.
func TestFastAnswerLeavesNoChunk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := paced(t, plain(), scripted.Say(strings.Repeat("word ", 20)))
		w.ask("U1", "hi")
		if got := trace(w.records()); got != "heard rendered said settled:answered" {
			t.Errorf("the log is %s", got)
		}
	})
}

// A subagent's long answer goes on as well.
func TestPartialAnswerOfATask(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := paced(t, func(c *harness.Context) string {
			harness.UseModel(c, "fast")
			harness.UseSubagent(c, harness.Subagent{Name: "teller", Doc: "Tells.", Agent: func(*harness.Context) string { return "Tell." }})
			return "Delegate."
		}, func(ctx context.Context, r model.Request) (model.Response, error) {
			switch {
			case r.System == "Tell.":
				return teller(ctx, r)
			case r.Messages[len(r.Messages)-1].Role == model.Results:
				return scripted.Say("told")(ctx, r)
			}
			return scripted.Call("task", `{"agent":"teller","prompt":"a story"}`)(ctx, r)
		})
		w.wary.stable = false // two logs
		m := &mortal{Log: w.store, dies: at(4, after)}
		w.log = m
		w.restart()
		w.say("U1", "tell me")
		w.live()
		if d := cmp.Diff([]string{"told"}, w.posts()); d != "" {
			t.Errorf("posts %s", d)
		}
		if dids := of[record.Did](w.records()); len(dids) != 1 || dids[0].Text != story {
			t.Errorf("results %+v", dids)
		}
		if !slices.ContainsFunc(of[record.Child](w.records()), func(c record.Child) bool { _, ok := c.Body.(record.Torn); return ok }) {
			t.Error("no answer was torn")
		}
	})
}

// A turn that ends in the middle of a long answer keeps what there is of it: the
// model knows that it said so, and one that ran out of time says it.
func TestTurnEndsInTheAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limit time.Duration
		stop  bool
		line  string
	}{"late": {5 * time.Second, false, lineTime + linePart}, "stopped": {time.Hour, true, lineStopped}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := paced(t, plain(), teller)
				w.opts.Limits.Time = c.limit
				w.restart()
				if c.stop {
					time.AfterFunc(5*time.Second, func() { w.say("U1", "stop") })
				}
				w.ask("U1", "tell me")
				got := w.posts()
				if len(got) != 1 || !strings.HasPrefix(got[0], c.line) {
					t.Fatalf("posts %q", got)
				}
				told := ""
				for _, c := range of[record.Chunk](w.records()) {
					told += c.Text
				}
				if !strings.HasPrefix(story, told) || told == "" || !c.stop && got[0] != c.line+told {
					t.Errorf("posts %q; the log holds %q", got, told)
				}
				w.opts.Limits.Time = time.Hour
				w.restart()
				w.ask("U1", "go on")
				if d := cmp.Diff(strings.TrimPrefix(story, told), w.posts()[1]); d != "" {
					t.Errorf("posts %s", d)
				}
			})
		})
	}
}
