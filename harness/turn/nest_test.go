package turn

import (
	"strings"
	"testing"

	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
)

// Every entry of a log says where it belongs: to a turn that was opened and not
// yet settled, to the step that is under way, to a call that its step's answer
// made; and an entry of a task to a call that is open, with turns of its own.
func TestRecordsNest(t *testing.T) {
	t.Parallel()
	for name, s := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := s.play(t, func(int) bool { return false })
			nest(t, "", w.records())
		})
	}
}

// nest checks one log and, inside it, those of its tasks.
func nest(t *testing.T, under string, bodies []record.Body) {
	t.Helper()
	turn, step := "", 0
	open := map[string]bool{}
	tasks := map[string][]record.Body{}
	in := func(kind, of string, n int) {
		if of != turn || n != 0 && n != step && n != step+1 {
			t.Errorf("%s%s: of turn %q step %d in turn %q after step %d", under, kind, of, n, turn, step)
		}
	}
	for _, b := range bodies {
		switch b := b.(type) {
		case record.Heard:
			if turn == "" {
				turn, step = b.Turn, 0
			}
			in("heard", b.Turn, 0)
			if under != "" && !strings.HasPrefix(b.Turn, strings.Split(under, " ")[0]) {
				t.Errorf("%sits turn %s does not name its giver's", under, b.Turn)
			}
		case record.Rendered:
			in("rendered", b.Turn, b.Step)
		case record.Told:
			in("told", b.Turn, b.Step)
		case record.Said:
			in("said", b.Turn, b.Step)
			step = b.Step
			for _, p := range b.Parts {
				if p.Kind == model.Call {
					open[p.CallID] = true
				}
			}
		case record.Did:
			in("did", b.Turn, b.Step)
			if !open[b.CallID] {
				t.Errorf("%sa result of %s, which is not open", under, b.CallID)
			}
			delete(open, b.CallID)
			nest(t, b.Turn+"/"+b.CallID+" ", tasks[b.CallID])
			delete(tasks, b.CallID)
		case record.Child:
			at := b.Task[0]
			if !open[at] {
				t.Errorf("%san entry of a task whose call %s is not open", under, at)
			}
			in := b.Body
			if len(b.Task) > 1 {
				in = record.Child{Task: b.Task[1:], Body: b.Body}
			}
			tasks[at] = append(tasks[at], in)
		case record.Settled:
			in("settled", b.Turn, 0)
			if len(open) > 0 {
				t.Errorf("%ssettled with %d calls open", under, len(open))
			}
			turn = ""
		}
	}
	if turn != "" || len(tasks) > 0 {
		t.Errorf("%sthe log ends inside turn %q, with %d tasks", under, turn, len(tasks))
	}
}
