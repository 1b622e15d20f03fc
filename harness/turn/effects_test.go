package turn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model/scripted"
)

// crashes plays a conversation with the process dying at each of its commits,
// before and after it is made; play gets a world that is to be lived in.
func crashes(t *testing.T, play func(when string, m *mortal)) {
	t.Helper()
	for n, made := 1, true; made; n++ {
		for _, f := range []fate{before, after} {
			m := &mortal{dies: at(n, f)}
			play(fmt.Sprintf("died at commit %d, made: %t", n, f == after), m)
			made = m.count >= n
		}
	}
}

// mortalWorld is a world whose process dies as m says.
func mortalWorld(t *testing.T, m *mortal, tool harness.Tool) *world {
	t.Helper()
	w := worldOf(t, plain(tool), scripted.Play(jobOnce, 0))
	m.Log = w.store
	w.log = m
	w.restart()
	return w
}

// A payment carries the key of its call, and the bank knows keys: over all
// crash points there is one charge, though it may be asked for twice.
func TestOneCharge(t *testing.T) {
	t.Parallel()
	twice := false
	crashes(t, func(when string, m *mortal) {
		charges, asked := map[string]int{}, 0
		w := mortalWorld(t, m, durable("job", func(ctx context.Context, c *harness.Call) (string, error) {
			return harness.Step(ctx, c, "charge", func(context.Context) (string, error) {
				asked++
				charges[c.Key()] = 100
				return "charged 100", nil
			})
		}))
		w.say("U1", "pay")
		w.live()
		twice = twice || asked > 1
		if len(charges) != 1 {
			t.Errorf("%s: charges %v", when, charges)
		}
		if d := cmp.Diff([]string{"done"}, w.posts()); d != "" {
			t.Errorf("%s: posts %s", when, d)
		}
	})
	if !twice {
		t.Error("no crash made the bank be asked twice")
	}
}

// To decide and to do are two steps: whenever something is done, the log holds
// the plan for it and a yes of somebody who may say so, over all crash points.
func TestPlanComesFirst(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"yes", "no"} {
		crashes(t, func(when string, m *mortal) {
			done := 0
			var w *world
			w = mortalWorld(t, m, durable("job", func(ctx context.Context, c *harness.Call) (string, error) {
				plan, err := harness.Step(ctx, c, "plan", func(context.Context) (string, error) { return "drop table users", nil })
				if err != nil {
					return "", err
				}
				r, err := harness.Ask(ctx, c, "decision", "Do it? "+plan, harness.AnsweredBy(chat.Maintainer))
				if err != nil || r.Text != "yes" {
					return "not done", err
				}
				return harness.Step(ctx, c, "do", func(context.Context) (string, error) {
					done++
					var held []string
					for _, m := range of[record.Memo](w.records()) {
						held = append(held, m.Name)
					}
					if !slices.Equal(held, []string{"plan", "decision"}) {
						t.Errorf("%s: done while the log holds %v", when, held)
					}
					return plan, nil
				})
			}))
			w.setRole("boss", chat.Maintainer)
			w.say("U1", "clean up")
			w.live()
			w.say("U1", "yes") // is not asked
			w.live()
			if done != 0 {
				t.Errorf("%s: done without a decision", when)
			}
			w.say("boss", answer)
			w.live()
			if (done > 0) != (answer == "yes") {
				t.Errorf("%s: %s, done %d times", when, answer, done)
			}
			if d := cmp.Diff([]string{"Do it? drop table users", "done"}, w.posts()); d != "" {
				t.Errorf("%s: posts %s", when, d)
			}
		})
	}
}

// A service refuses: the tool asks the thread for access, rests, and calls again
// once somebody has granted it.
func TestDeniedAsksForAccess(t *testing.T) {
	t.Parallel()
	errDenied := errors.New("403")
	granted, asked := false, 0
	fetch := func() (string, error) {
		if asked++; !granted {
			return "", errDenied
		}
		return "the file", nil
	}
	w := worldOf(t, plain(durable("job", func(ctx context.Context, c *harness.Call) (string, error) {
		for n := 1; ; n++ {
			text, err := fetch()
			if !errors.Is(err, errDenied) {
				return text, err
			}
			_, err = harness.Ask(ctx, c, fmt.Sprint("access ", n), "I may not read the file. Please share it with me and say so here.")
			if err != nil {
				return "", err
			}
		}
	})), scripted.Play(jobOnce, 0))
	w.ask("U1", "summarise the file")
	w.idle()
	if got := w.posts(); len(got) != 1 || !strings.HasPrefix(got[0], "I may not read the file.") {
		t.Fatalf("posts %q", got)
	}
	w.restart()
	w.ask("U1", "done, I think") // it is not
	w.idle()
	granted = true
	w.ask("U2", "now it is shared")
	if d := cmp.Diff("the file", of[record.Did](w.records())[0].Text); d != "" {
		t.Errorf("result %s", d)
	}
	if got := w.posts(); len(got) != 3 || got[2] != "done" {
		t.Errorf("posts %q", got)
	}
}

// A batch of ten files dies at the sixth: the first five stay done.
func TestBatchGoesOn(t *testing.T) {
	t.Parallel()
	files := map[int]int{}
	w := mortalWorld(t, &mortal{dies: at(7, before)}, durable("job", func(ctx context.Context, c *harness.Call) (string, error) {
		for i := range 10 {
			if _, err := harness.Step(ctx, c, fmt.Sprint("file ", i), func(context.Context) (bool, error) { files[i]++; return true, nil }); err != nil {
				return "", err
			}
		}
		return "imported", nil
	}))
	w.say("U1", "import")
	w.live()
	for i := range 10 {
		want := 1
		if i == 5 {
			want = 2 // its memo was lost with the process
		}
		if files[i] != want {
			t.Errorf("file %d was imported %d times, want %d", i, files[i], want)
		}
	}
	if d := cmp.Diff([]string{"done"}, w.posts()); d != "" {
		t.Errorf("posts %s", d)
	}
}
