package turn

import (
	"context"
	"testing"

	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model/scripted"
)

// A tool that asks goes on once it was answered, wherever the process died. What
// it did before a question that was not recorded is not repeated: its outcome is
// unknown.
func TestToolThatAsks(t *testing.T) {
	t.Parallel()
	ends := map[record.End]int{}
	for _, after := range []bool{false, true} {
		died := true
		for n := 1; died; n++ {
			sent, went := 0, 0
			job := act("job", func(ctx context.Context, c *harness.Call) (string, error) {
				if _, err := harness.Step(ctx, c, "send", func(context.Context) (bool, error) { sent++; return true, nil }); err != nil {
					return "", err
				}
				r, err := harness.Ask(ctx, c, "size", "Which size?")
				if err != nil {
					return "", err
				}
				went++
				return "ordered " + r.Text, nil
			}).Asks()
			w := worldOf(t, plain(job), scripted.Play(jobOnce, 0))
			w.say("U1", "go")
			died = w.die(n, after)
			w.ask("U1", "large")
			dids := of[record.Did](w.records())
			if len(dids) != 1 || sent > 1 || went > 1 {
				t.Errorf("died at commit %d (after: %v): sent %d times, went on %d times, %+v", n, after, sent, went, dids)
				continue
			}
			ends[dids[0].End]++
			if want := map[bool]record.End{true: record.Unknown, false: record.Done}[went == 0]; dids[0].End != want {
				t.Errorf("died at commit %d (after: %v): %s, want %s", n, after, dids[0].End, want)
			}
		}
	}
	if ends[record.Unknown] == 0 || ends[record.Done] == 0 {
		t.Errorf("the calls ended %v, want some of each", ends)
	}
}

// A tool that neither is durable nor asks cannot wait.
func TestToolThatMayNotAsk(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain(act("job", func(ctx context.Context, c *harness.Call) (string, error) {
		_, err := harness.Ask(ctx, c, "size", "Which size?")
		return "", err
	})), call("job"), scripted.Say("done"))
	w.ask("U1", "go")
	if d := of[record.Did](w.records()); len(d) != 1 || d[0].End != record.Failed || len(of[record.Asked](w.records())) != 0 {
		t.Errorf("%+v", d)
	}
}
