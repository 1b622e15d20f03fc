package turn

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model/scripted"
	"github.com/heddlehq/heddle/sandbox"
)

// A tool that the step did not declare is never run, whatever the model says.
func TestNotMountedIsNotRun(t *testing.T) {
	t.Parallel()
	ran := 0
	locked := act("deploy", func(context.Context, *harness.Call) (string, error) { ran++; return "deployed", nil })
	w := newWorld(t, func(c *harness.Context) string {
		if c.Event().Text == "allowed" {
			harness.UseTool(c, locked)
		}
		return plain(act("look", func(context.Context, *harness.Call) (string, error) { return "seen", nil }))(c)
	}, call("deploy", "look"), scripted.Say("no"), call("deploy"), scripted.Say("yes"), call("deploy"), scripted.Say("no"))
	w.ask("U1", "try")
	w.ask("U1", "allowed")
	w.ask("U1", "try again")
	var ends []string
	for _, d := range of[record.Did](w.records()) {
		ends = append(ends, d.Tool+" "+string(d.End))
	}
	if d := cmp.Diff([]string{"deploy refused", "look done", "deploy done", "deploy refused"}, ends); d != "" || ran != 1 {
		t.Errorf("it ran %d times; ends (-want +got):\n%s", ran, d)
	}
	if got := transcript(w.request(1)); !strings.Contains(got, `There is no tool "deploy" in this step. Nothing was run.`) {
		t.Errorf("the model is told:\n%s", got)
	}
	if !strings.Contains(w.logged.String(), "tool refused") {
		t.Error("operators are not told")
	}
}

// Arguments that do not fit reach no tool; the model is told what is wrong and
// may correct itself, once for each mistake.
func TestBadArgumentsAreRepaired(t *testing.T) {
	t.Parallel()
	type in struct {
		N int `json:"n"`
	}
	var ran []int
	double := harness.NewTool("double", "", func(_ context.Context, _ *harness.Call, a in) (int, error) {
		ran = append(ran, a.N)
		return 2 * a.N, nil
	})
	w := newWorld(t, plain(double), scripted.Call("double", `{"n":"four"}`), scripted.Call("double", `n=4`), scripted.Call("double", `{"n":4}`), scripted.Say("8"))
	w.ask("U1", "go")
	if len(ran) != 1 || ran[0] != 4 || len(w.model.Requests()) != 4 {
		t.Errorf("it ran with %v, in %d requests", ran, len(w.model.Requests()))
	}
	did := of[record.Did](w.records())
	for i, want := range []string{"the arguments do not fit", "The arguments are not a JSON object", "8"} {
		if !strings.Contains(did[i].Text, want) || (did[i].End == record.Refused) != (i < 2) {
			t.Errorf("call %d: %s, %q", i+1, did[i].End, did[i].Text)
		}
	}
	if d := cmp.Diff([]string{"8"}, w.posts()); d != "" {
		t.Errorf("posts (-want +got):\n%s", d)
	}
}

// The calls of one answer run side by side, serial ones one after the other,
// and the results come in the order of the calls.
func TestBatchRunsInParallel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := func(name string, d time.Duration) harness.Tool {
			return act(name, func(context.Context, *harness.Call) (string, error) { time.Sleep(d); return name, nil })
		}
		w := newWorld(t, plain(slow("a", 3*time.Second), slow("b", time.Second), slow("c", 2*time.Second), slow("s", time.Second).Serial()),
			call("a", "b", "c", "b"), scripted.Say("ok"), call("s", "a", "s", "s", "s"), scripted.Say("ok"))
		for _, want := range []time.Duration{3 * time.Second, 4 * time.Second} {
			began := time.Now()
			w.ask("U1", "go")
			if took := time.Since(began); took != want {
				t.Errorf("the batch took %v, want %v", took, want)
			}
		}
		var got []string
		for _, d := range of[record.Did](w.records()) {
			got = append(got, d.Text)
		}
		if d := cmp.Diff([]string{"a", "b", "c", "b", "s", "a", "s", "s", "s"}, got); d != "" {
			t.Errorf("results (-want +got):\n%s", d)
		}
	})
}

// A panic in a tool fails the turn where people see it; other calls of the
// batch keep their results and the process lives.
func TestToolPanicFailsTheTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain(
		act("boom", func(context.Context, *harness.Call) (string, error) {
			var none []int
			return fmt.Sprint(none[len(thread.Root)]), nil
		}),
		act("words", func(context.Context, *harness.Call) (string, error) { panic("what Ann wrote") }),
		act("look", func(context.Context, *harness.Call) (string, error) { return "seen", nil }),
	), call("boom", "look", "words"), scripted.Say("fine"))
	w.ask("U1", "go")
	w.ask("U1", "again")
	if got := trace(w.records()); got != "heard rendered said did:failed did:done did:failed settled:failed heard rendered said settled:answered" {
		t.Errorf("the log is %s", got)
	}
	if d := cmp.Diff([]string{lineBroken, "fine"}, w.posts()); d != "" {
		t.Errorf("posts (-want +got):\n%s", d)
	}
	got := w.logged.String()
	if !strings.Contains(got, "index out of range [1]") || !strings.Contains(got, "tools_test.go") || strings.Contains(got, "Ann") {
		t.Errorf("the log for operators is %s", got)
	}
}

// One endless result does not end the conversation.
func TestResultsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain(act("look", func(context.Context, *harness.Call) (string, error) { return strings.Repeat("é", 1<<20), nil })), call("look"), scripted.Say("ok"))
	w.ask("U1", "go")
	did := of[record.Did](w.records())[0]
	if len(did.Text) > maxResult+100 || !strings.HasSuffix(did.Text, "é\n[cut here: 131072 of 2097152 bytes; ask for less at once]") {
		t.Errorf("%d bytes that end in %q", len(did.Text), did.Text[len(did.Text)-80:])
	}
}

// Facts of a call are those of the step.
func TestCallKnowsItsStep(t *testing.T) {
	t.Parallel()
	var got string
	w := newWorld(t, plain(act("look", func(ctx context.Context, c *harness.Call) (string, error) {
		_, err := c.Sandbox(ctx)
		got = fmt.Sprint(c.Thread().Key(), " ", c.Event().ID, " ", c.Trust(), " ", c.Now().Format(time.Kitchen), " ", c.Tool, " ", err)
		return "", nil
	})), call("look"), scripted.Say("ok"))
	w.ask("U1", "go")
	if want := "slack/T1/C1/1 E1 member 12:00PM look this step has no sandbox"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A tool that was left behind when its time was over does no harm to later
// steps, and what it opens late is closed.
func TestLeftBehindTool(t *testing.T) {
	t.Parallel()
	late := make(chan struct{})
	var opened atomic.Value
	var left sync.WaitGroup
	left.Add(1)
	w := newWorld(t, func(c *harness.Context) string {
		harness.UseSandbox(c, "memory")
		n := harness.UseState(c, "n", 0)
		harness.UseTool(c, act("stuck", func(ctx context.Context, call *harness.Call) (string, error) {
			defer left.Done()
			<-late
			_, err := call.Sandbox(context.WithoutCancel(ctx))
			opened.Store(fmt.Sprint(err))
			n.Set(call, 99)
			return "", nil
		}).Timeout(time.Millisecond))
		return plain()(c)
	}, call("stuck"), scripted.Call("write", `{"path":"f","content":"x"}`), scripted.Say("ok"), scripted.Say("ok"))
	w.ask("U1", "go")
	close(late)
	left.Wait()
	w.ask("U1", "go")
	if got := trace(w.records()); got != "heard rendered said did:unknown rendered said did:done rendered said settled:answered heard rendered said settled:answered" {
		t.Errorf("the log is %s", got)
	}
	if _, open := w.boxes.counts(); open != 0 || opened.Load() != "<nil>" {
		t.Errorf("%d sandboxes are open; the late opening ended with %v", open, opened.Load())
	}
}

// A sandbox that died is opened anew from its stored files, and the model is told.
func TestDeadSandboxIsOpenedAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *harness.Context) string { harness.UseSandbox(c, "memory"); return plain()(c) },
		scripted.Call("bash", `{"command":"touch kept"}`),
		scripted.Answer(scripted.ToolCall("bash", `{"command":"touch lost"}`), scripted.ToolCall("bash", `{"command":"die"}`)),
		scripted.Call("glob", `{"pattern":"*"}`), scripted.Say("ok"))
	w.boxes.exec = nil
	w.ask("U1", "go")
	did := of[record.Did](w.records())
	if got := did[len(did)-1].Text; got != "kept\n" {
		t.Errorf("the files are %q", got)
	}
	told := of[record.Told](w.records())
	if len(told) != 1 || !strings.Contains(told[0].Text, "The memory sandbox failed") {
		t.Errorf("the model is told %+v", told)
	}
	if opened, open := w.boxes.counts(); opened != 2 || open != 0 {
		t.Errorf("opened %d times, %d are open", opened, open)
	}
}

// A sandbox that hangs when its files are saved does not hold the turn.
func TestHangingSandboxDoesNotHoldTheTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *harness.Context) string { harness.UseSandbox(c, "memory"); return plain()(c) },
			scripted.Call("bash", `{"command":"touch f"}`), scripted.Say("ok"))
		w.engine.Sandboxes["memory"] = hanging{w.boxes}
		began := time.Now()
		w.ask("U1", "go")
		if took := time.Since(began); took != time.Minute {
			t.Errorf("it took %v", took)
		}
		if d := cmp.Diff([]string{"ok"}, w.posts()); d != "" || len(of[record.Told](w.records())) != 1 {
			t.Errorf("posts (-want +got):\n%s", d)
		}
	})
}

type hanging struct{ *boxKind }

func (h hanging) Open(ctx context.Context, id string, snap []byte) (sandbox.Sandbox, error) {
	sb, err := h.boxKind.Open(ctx, id, snap)
	return hangingBox{sb}, err
}

type hangingBox struct{ sandbox.Sandbox }

func (hangingBox) Snapshot(ctx context.Context) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() }
