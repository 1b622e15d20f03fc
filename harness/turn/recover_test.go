package turn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/scripted"
	"github.com/heddlehq/heddle/state"
)

var errDied = errors.New("the process died")

// A fate of a commit: the process lives on, or dies before the commit is made,
// or after it, before anybody learns of it.
type fate int

const (
	lives fate = iota
	before
	after
)

// mortal is a log in whose commits, counted from 1, the process may die.
type mortal struct {
	state.Log
	mu    sync.Mutex
	dies  func(n int) fate
	count int
}

func (m *mortal) Commit(ctx context.Context, l state.Lease, b state.Batch) (state.Lease, error) {
	m.mu.Lock()
	m.count++
	f := m.dies(m.count)
	m.mu.Unlock()
	if f == before {
		return state.Lease{}, errDied
	}
	l, err := m.Log.Commit(ctx, l, b)
	if err == nil && f == after {
		return state.Lease{}, errDied
	}
	return l, err
}

// never and at are when a process dies.
func never(int) fate { return lives }

func at(n int, f fate) func(int) fate {
	return func(count int) fate {
		if count == n {
			return f
		}
		return lives
	}
}

// A call that a crash left open is not run again: the model is told that its
// outcome is unknown, and what came meanwhile follows after that.
func TestInterruptedToolIsUnknown(t *testing.T) {
	t.Parallel()
	r := &runs{by: map[string]int{}}
	w := newWorld(t, plain(counted(r, "pay"), counted(r, "look")), call("pay", "look"), scripted.Say("I will check"))
	w.log = &mortal{Log: w.store, dies: at(2, before)} // the commit of the results
	w.restart()
	w.say("U1", "pay it")
	if err := w.try(); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	w.store.Expire()
	w.say("U2", "is it paid?")
	w.restart()
	w.run()
	if got := trace(w.records()); got != "heard rendered said did:unknown did:unknown heard rendered said settled:answered" {
		t.Errorf("the log is %s", got)
	}
	last := w.request(-1).Messages
	results := last[len(last)-2]
	if len(results.Parts) != 2 || !results.Parts[0].Failed || !strings.HasPrefix(results.Parts[0].Text, "Interrupted: it is not known whether this call happened.") {
		t.Errorf("the model is told %+v", results)
	}
	if len(r.by) != 2 || of[record.Settled](w.records())[0].Attempt != 2 {
		t.Errorf("runs %v, settled %+v", r.by, of[record.Settled](w.records()))
	}
}

// State guards a one-time effect: over all crash points the mail is sent once.
// The agent offers to send only while it is not known to be sent, and to look
// when that is not known.
func TestStateGuardsAnEffect(t *testing.T) {
	t.Parallel()
	type mailbox struct {
		sync.Mutex
		sent int
	}
	agent := func(m *mailbox) harness.Agent {
		return func(c *harness.Context) string {
			harness.UseModel(c, "fast")
			sent := harness.UseState(c, "sent", false)
			if sent.Value {
				return "The mail is sent."
			}
			harness.UseTool(c, act("send_mail", func(_ context.Context, call *harness.Call) (string, error) {
				m.Lock()
				defer m.Unlock()
				m.sent++
				sent.Set(call, true)
				return "sent", nil
			}))
			harness.UseTool(c, act("check_mail", func(_ context.Context, call *harness.Call) (string, error) {
				m.Lock()
				defer m.Unlock()
				sent.Set(call, m.sent > 0)
				return fmt.Sprintf("mails sent: %d", m.sent), nil
			}))
			return "Send the mail."
		}
	}
	step := lastSays(map[string]scripted.Step{"remind": call("send_mail"), "Interrupted": call("check_mail"), "mails sent: 0": call("send_mail")})
	for n := range 20 { // with 0 it lives
		m := &mailbox{}
		s := scenario{
			agent: func(*runs) harness.Agent { return agent(m) }, model: func(*runs) scripted.Step { return step },
			says: []string{"remind them", "remind them"},
		}
		w, _ := s.play(t, func(at int) bool { return at == n })
		if m.sent != 1 || w.request(-1).System != "The mail is sent." {
			t.Errorf("died at point %d: sent %d times, then %q", n, m.sent, w.request(-1).System)
		}
	}
}

// A soft stop gives the lease back at the next step boundary; the turn goes on
// elsewhere, at once and as its first attempt.
func TestSoftStopReleasesAtTheStep(t *testing.T) {
	t.Parallel()
	soft, stop := context.WithCancel(context.Background())
	w := newWorld(t, plain(act("look", func(context.Context, *harness.Call) (string, error) { stop(); return "seen", nil })), call("look"), scripted.Say("ok"))
	w.say("U1", "go")
	l, err := w.store.Claim(context.Background(), "old", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.engine.Run(context.Background(), soft, l); err != nil {
		t.Fatal(err)
	}
	if got := trace(w.records()); got != "heard rendered said did:done" {
		t.Errorf("after the stop the log is %s", got)
	}
	w.restart()
	w.run()
	if got := trace(w.records()); got != "heard rendered said did:done rendered said settled:answered" {
		t.Errorf("the log is %s", got)
	}
	if s := of[record.Settled](w.records()); s[0].Attempt != 1 {
		t.Errorf("settled %+v", s)
	}
}

// Who has lost the lease writes nothing and closes the sandbox; the other goes on.
func TestLostLeaseWritesNothing(t *testing.T) {
	t.Parallel()
	var w *world
	var other state.Lease
	steal := func() {
		w.store.Expire()
		var err error
		if other, err = w.store.Claim(context.Background(), "other", time.Minute); err != nil {
			t.Error(err)
		}
	}
	w = newWorld(t, func(c *harness.Context) string {
		harness.UseSandbox(c, "memory")
		harness.UseTool(c, act("sleep", func(ctx context.Context, call *harness.Call) (string, error) {
			_, err := call.Sandbox(ctx)
			steal()
			return "slept", err
		}))
		return plain()(c)
	}, call("sleep"), scripted.Say("ok"))
	w.say("U1", "go")
	if err := w.try(); !errors.Is(err, state.ErrLeaseLost) {
		t.Fatalf("got %v", err)
	}
	if got := trace(w.records()); got != "heard rendered said" {
		t.Errorf("the log is %s", got)
	}
	if opened, open := w.boxes.counts(); opened != 1 || open != 0 {
		t.Errorf("opened %d sandboxes, %d are open", opened, open)
	}
	if err := w.engine.Run(context.Background(), context.Background(), other); err != nil {
		t.Fatal(err)
	}
	if got := trace(w.records()); got != "heard rendered said did:unknown rendered said settled:answered" {
		t.Errorf("the log is %s", got)
	}
}

// When its context ends a run stops, with the reason, leaves nothing behind and
// gives the lease back: another goes on at once.
func TestHardStop(t *testing.T) {
	t.Parallel()
	reason := errors.New("stopping")
	for name, during := range map[string]func(stop func()) (harness.Agent, scripted.Step){
		"tool": func(stop func()) (harness.Agent, scripted.Step) {
			return plain(act("look", func(ctx context.Context, _ *harness.Call) (string, error) { stop(); <-ctx.Done(); return "", ctx.Err() })), call("look")
		},
		"model": func(stop func()) (harness.Agent, scripted.Step) {
			return plain(), func(ctx context.Context, r model.Request) (model.Response, error) {
				stop()
				return scripted.Say("late")(ctx, r)
			}
		},
		"wait": func(stop func()) (harness.Agent, scripted.Step) {
			return plain(), func(ctx context.Context, r model.Request) (model.Response, error) {
				time.AfterFunc(time.Millisecond, stop)
				return fault(model.Limited, time.Minute)(ctx, r)
			}
		},
	} {
		ctx, cancel := context.WithCancelCause(context.Background())
		agent, step := during(func() { cancel(reason) })
		w := newWorld(t, agent, step, scripted.Say("ok"))
		w.say("U1", "go")
		l, err := w.store.Claim(context.Background(), "old", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.engine.Run(ctx, context.Background(), l); !errors.Is(err, reason) {
			t.Errorf("%s: %v", name, err)
		}
		w.run()
		if d := cmp.Diff([]string{"ok"}, w.posts()); d != "" {
			t.Errorf("%s: posts (-want +got):\n%s", name, d)
		}
		if s := of[record.Settled](w.records()); len(s) != 1 || s[0].Attempt != 1 {
			t.Errorf("%s: settled %+v, want its first attempt", name, s)
		}
	}
}

// Files and results are one commit: after a crash the sandbox has the files of
// the recorded results and no others.
func TestFilesAreStoredWithResults(t *testing.T) {
	t.Parallel()
	for _, f := range []fate{before, after} {
		w := newWorld(t, func(c *harness.Context) string { harness.UseSandbox(c, "memory"); return plain()(c) },
			scripted.Call("write", `{"path":"a","content":"1"}`), scripted.Call("write", `{"path":"b","content":"2"}`),
			scripted.Call("glob", `{"pattern":"*"}`), scripted.Say("ok"))
		w.log = &mortal{Log: w.store, dies: at(4, f)} // calls, results, calls, results
		w.restart()
		w.say("U1", "go")
		if err := w.try(); !errors.Is(err, errDied) {
			t.Fatal(err)
		}
		if _, open := w.boxes.counts(); open != 0 {
			t.Errorf("%d sandboxes are open after the crash", open)
		}
		w.store.Expire()
		w.restart()
		w.run()
		did := of[record.Did](w.records())
		want := map[fate]string{before: "a\n", after: "a\nb\n"}[f]
		if got := did[len(did)-1].Text; got != want || (did[1].End == record.Done) != (f == after) {
			t.Errorf("results made: %t: the files are %q, the write ended %s", f == after, got, did[1].End)
		}
	}
}

// Another engine on the same store goes on in the middle of a turn, from state,
// files and log alone.
func TestAnotherProcessGoesOn(t *testing.T) {
	t.Parallel()
	s := scenarios["state"]
	_, r := s.play(t, calm)
	for n := range r.life.n {
		w, _ := s.play(t, func(at int) bool { return at == n+1 })
		if unknown(w) > 0 {
			continue // a call that was cut off writes nothing
		}
		if got := endOf(w).outcomes; len(got) != 2 {
			t.Errorf("died at point %d: outcomes %v", n, got)
		}
		var wrote []string
		for _, v := range of[record.Wrote](w.records()) {
			wrote = append(wrote, string(v.Value))
		}
		if !slices.Equal(wrote, []string{"1", "2", "3", "4"}) {
			t.Errorf("died at point %d: wrote %v", n, wrote)
		}
	}
}
