package turn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/scripted"
	"github.com/heddlehq/heddle/state"
)

// deadly is a log that kills the process instead of making some commits.
type deadly struct {
	state.Log
	kills func(kinds []string) bool
}

func (d *deadly) Commit(ctx context.Context, l state.Lease, b state.Batch) (state.Lease, error) {
	var kinds []string
	for _, r := range b.Records {
		kinds = append(kinds, r.Kind)
	}
	if d.kills(kinds) {
		return state.Lease{}, errDied
	}
	return d.Log.Commit(ctx, l, b)
}

// attempts runs until nothing is ready and says how many attempts died.
func (w *world) attempts() (died int) {
	w.t.Helper()
	for died < 100 {
		switch err := w.try(); {
		case errors.Is(err, state.ErrNone):
			return died
		case errors.Is(err, errDied):
			died++
			w.store.Expire()
			w.restart()
		case err != nil:
			w.t.Fatal(err)
		}
	}
	w.t.Fatal("it never ends")
	return died
}

// A turn that crashes at one place three times in a row is given up where people
// see it, and one that gets on each time at the tenth. What comes next is answered.
func TestPoisonIsParked(t *testing.T) {
	t.Parallel()
	has := slices.Contains[[]string, string]
	alive := 0 // memos of this process
	for name, c := range map[string]struct {
		kills func([]string) bool
		died  int
		trace string
	}{
		"before its first commit": {
			func(k []string) bool { return has(k, "said") },
			3, "heard settled:parked",
		},
		"in a tool": {
			func(k []string) bool { return has(k, "did") && !has(k, "settled") || has(k, "memo") },
			3, "heard rendered said did:unknown settled:parked",
		},
		"a bit further each time": {
			func(k []string) bool {
				if has(k, "memo") {
					alive++
				}
				if alive < 2 {
					return false
				}
				alive = 0
				return true
			},
			10, "heard rendered said" + strings.Repeat(" memo", 10) + " did:unknown settled:parked",
		},
	} {
		ran := 0
		w := worldOf(t, plain(act("job", func(ctx context.Context, c *harness.Call) (string, error) {
			ran++
			for i := range 20 {
				if _, err := harness.Step(ctx, c, fmt.Sprint(i), func(context.Context) (int, error) { return i, nil }); err != nil {
					return "", err
				}
			}
			return "done", nil
		}).Durable()), scripted.Play(lastSays(map[string]scripted.Step{"boom": call("job")}), 0))
		w.wary.stable = false
		kills := c.kills
		w.log = &deadly{Log: w.store, kills: func(k []string) bool { return kills(k) }}
		w.restart()
		w.say("U1", "boom")
		if died := w.attempts(); died != c.died || strings.HasPrefix(c.trace, "heard rendered") && ran != c.died {
			t.Errorf("%s: %d attempts died, the tool ran %d times, want %d", name, died, ran, c.died)
		}
		if d := cmp.Diff(c.trace, trace(w.records())); d != "" {
			t.Errorf("%s: the log (-want +got):\n%s", name, d)
		}
		kills = func([]string) bool { return false }
		w.ask("U2", "and me")
		if d := cmp.Diff([]string{lineBroken, "the end"}, w.posts()); d != "" {
			t.Errorf("%s: posts (-want +got):\n%s", name, d)
		}
	}
}

// A crash now and then, with work done in between, parks nothing.
func TestCrashesApartAreNoPoison(t *testing.T) {
	t.Parallel()
	n := 0
	w := worldOf(t, plain(act("look", func(context.Context, *harness.Call) (string, error) { return "seen", nil })), scripted.Play(
		func(ctx context.Context, r model.Request) (model.Response, error) {
			if len(r.Messages) > 6 {
				return scripted.Say("ok")(ctx, r)
			}
			return call("look")(ctx, r)
		}, 0))
	w.wary.stable = false
	w.log = &deadly{Log: w.store, kills: func(k []string) bool {
		if !slices.Contains(k, "did") {
			return false
		}
		n++
		return n == 1 || n == 3 // each time at another step
	}}
	w.restart()
	w.say("U1", "go")
	w.attempts()
	if s := of[record.Settled](w.records()); len(s) != 1 || s[0].Outcome != record.Answered {
		t.Errorf("settled %+v", s)
	}
}

// What came while a turn crashed has its own turn when that one is parked.
func TestMessagesOutliveAParkedTurn(t *testing.T) {
	t.Parallel()
	w := worldOf(t, plain(act("look", func(context.Context, *harness.Call) (string, error) { return "seen", nil }).Durable()), scripted.Play(lastSays(map[string]scripted.Step{"boom": call("look"), "and me": scripted.Say("fine")}), 0))
	w.wary.stable = false
	dies := true
	w.log = &deadly{Log: w.store, kills: func(k []string) bool { return dies && slices.Contains(k, "did") && !slices.Contains(k, "settled") }}
	w.restart()
	w.say("U1", "boom")
	for range 3 {
		if err := w.try(); !errors.Is(err, errDied) {
			t.Fatal(err)
		}
		w.store.Expire()
		w.restart()
		w.say("U2", "and me")
	}
	dies = false
	w.run()
	if d := cmp.Diff([]string{lineBroken, "fine"}, w.posts()); d != "" {
		t.Errorf("posts (-want +got):\n%s", d)
	}
}
