package turn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
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

// runs counts how often each call was run.
type runs struct {
	mu sync.Mutex
	by map[string]int
}

func (r *runs) note(c *harness.Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.by[c.Key()]++
}

// A scenario is a conversation whose model looks only at the request, so that
// it says the same to whoever asks again.
type scenario struct {
	agent func(*runs) harness.Agent
	model scripted.Step
	says  []string
}

func counted(r *runs, name string) harness.Tool {
	return act(name, func(_ context.Context, c *harness.Call) (string, error) { r.note(c); return name + " done", nil })
}

// lastSays answers by the beginning of the last message.
func lastSays(answers map[string]scripted.Step) scripted.Step {
	return func(ctx context.Context, r model.Request) (model.Response, error) {
		parts := r.Messages[len(r.Messages)-1].Parts
		text := parts[len(parts)-1].Text
		for _, has := range slices.Sorted(maps.Keys(answers)) {
			if strings.Contains(text, has) {
				return answers[has](ctx, r)
			}
		}
		return scripted.Say("the end")(ctx, r)
	}
}

var scenarios = map[string]scenario{
	"plain answer": {func(*runs) harness.Agent { return plain() }, scripted.Say("hello"), []string{"hi", "hi again"}},
	"one tool": {
		func(r *runs) harness.Agent { return plain(counted(r, "look")) },
		lastSays(map[string]scripted.Step{"please": call("look")}),
		[]string{"please", "please"},
	},
	"two tools, twice": {
		func(r *runs) harness.Agent { return plain(counted(r, "look"), counted(r, "act")) },
		lastSays(map[string]scripted.Step{"please": call("look", "look"), "look done": call("act", "act"), "Interrupted": call("act")}),
		[]string{"please"},
	},
	"climb": {func(r *runs) harness.Agent {
		return func(c *harness.Context) string { harness.UseTool(c, counted(r, "look")); return ladder(c) }
	}, lastSays(map[string]scripted.Step{"please": climb("x"), "level 1": call("build", "look")}), []string{"please", "thanks"}},
	"state": {func(r *runs) harness.Agent {
		return func(c *harness.Context) string {
			harness.UseModel(c, "fast")
			n := harness.UseState(c, "n", 0)
			harness.UseTool(c, act("count", func(_ context.Context, call *harness.Call) (string, error) {
				r.note(call)
				n.Update(call, func(v int) int { return v + 1 })
				return "counted", nil
			}))
			return fmt.Sprint(n.Value)
		}
	}, lastSays(map[string]scripted.Step{"please": call("count", "count")}), []string{"please", "please"}},
	"tasks side by side": taskScenario,
	"files": {func(r *runs) harness.Agent {
		return func(c *harness.Context) string {
			harness.UseSandbox(c, "memory")
			harness.UseTool(c, counted(r, "look"))
			return plain()(c)
		}
	}, lastSays(map[string]scripted.Step{
		"please":       scripted.Call("write", `{"path":"a","content":"1"}`),
		"Interrupted":  scripted.Call("write", `{"path":"a","content":"1"}`),
		"bytes to a":   scripted.Answer(scripted.ToolCall("edit", `{"path":"a","old_text":"1","new_text":"2"}`), scripted.ToolCall("look", `{}`)),
		"bytes over a": scripted.Answer(scripted.ToolCall("edit", `{"path":"a","old_text":"1","new_text":"2"}`), scripted.ToolCall("look", `{}`)),
	}), []string{"please", "thanks"}},
}

var taskScenario = scenario{func(r *runs) harness.Agent {
	child := func(c *harness.Context) string {
		harness.UseTool(c, counted(r, "look"))
		n := harness.UseState(c, "n", 0)
		harness.UseTool(c, act("count", func(_ context.Context, call *harness.Call) (string, error) {
			r.note(call)
			n.Update(call, func(v int) int { return v + 1 })
			return "counted", nil
		}))
		return "Child."
	}
	return giver(harness.Subagent{Agent: child}, counted(r, "look"))
}, bySystem(map[string]scripted.Step{
	"Child.": lastSays(map[string]scripted.Step{"first": call("look", "count"), "second": call("count"), "Interrupted": call("count")}),
	"Help.": lastSays(map[string]scripted.Step{
		"please": scripted.Answer(taskFor("helper", "first"), scripted.ToolCall("look", "{}"), taskFor("helper", "second")),
	}),
}), []string{"please", "thanks"}}

// play runs a scenario in which the process dies now and then and another one
// goes on. It says how many commits there were.
func (s scenario) play(t *testing.T, dies func(int) fate) (*world, *runs, int) {
	t.Helper()
	r := &runs{by: map[string]int{}}
	w := worldOf(t, s.agent(r), scripted.Play(s.model, 0))
	w.wary.stable = false // what was not committed may come in another order
	m := &mortal{Log: w.store, dies: dies}
	w.log = m
	w.restart()
	for _, text := range s.says {
		w.say("U1", text)
		for {
			err := w.try()
			if errors.Is(err, state.ErrNone) {
				break
			}
			if errors.Is(err, errDied) {
				w.store.Expire()
				w.restart()
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return w, r, m.count
}

// The process dies at each commit of each scenario, before or after it is made:
// every turn settles once, answers once, and no recorded result is computed again.
func TestCrashAtEveryCommit(t *testing.T) {
	t.Parallel()
	for name, s := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calm, _, commits := s.play(t, never)
			for n := 1; n <= commits; n++ {
				for _, f := range []fate{before, after} {
					w, r, _ := s.play(t, at(n, f))
					when := fmt.Sprintf("died at commit %d of %d, made: %t", n, commits, f == after)
					checkLog(t, when, w, r)
					if d := cmp.Diff(len(calm.posts()), len(w.posts())); d != "" {
						t.Errorf("%s: posts (-want +got):\n%s", when, d)
					}
					if d := cmp.Diff(outcomes(calm), outcomes(w)); d != "" {
						t.Errorf("%s: outcomes (-want +got):\n%s", when, d)
					}
				}
			}
		})
	}
}

// The process dies again and again, at random: ten thousand conversations in
// which every turn settles once.
func TestRandomCrashes(t *testing.T) {
	t.Parallel()
	names := slices.Sorted(maps.Keys(scenarios))
	for seed := range 10_000 / thorough {
		r := rand.New(rand.NewPCG(102, uint64(seed)))
		name := names[seed%len(names)]
		w, ran, _ := scenarios[name].play(t, func(int) fate {
			if r.IntN(3) > 0 {
				return lives
			}
			return before + fate(r.IntN(2))
		})
		turns := checkLog(t, fmt.Sprintf("%s, seed %d", name, seed), w, ran)
		if n := len(w.posts()); turns != len(scenarios[name].says) || n != turns {
			t.Errorf("%s, seed %d: %d turns settled, %d posts", name, seed, turns, n)
		}
		if t.Failed() {
			return
		}
	}
}

func outcomes(w *world) []string {
	var out []string
	for _, s := range of[record.Settled](w.records()) {
		out = append(out, s.Turn+" "+string(s.Outcome))
	}
	return out
}

// checkLog holds a log to what is promised of every log. It counts the turns.
func checkLog(t *testing.T, when string, w *world, r *runs) int {
	t.Helper()
	settled, done, said, heard := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	check := func(task string, b record.Body) {
		switch b := b.(type) {
		case record.Heard:
			heard[b.Event.ID]++
		case record.Settled:
			if task == "" {
				settled[b.Turn]++
			}
		case record.Said:
			said[fmt.Sprint(b.Turn, b.Step)]++
			for _, p := range b.Parts {
				if p.Kind == model.Call {
					done[task+p.CallID] += 0
				}
			}
		case record.Did:
			done[task+b.CallID]++
			key := b.Turn + "/" + b.CallID
			if n := r.by[key]; n > 1 || n == 0 && b.End == record.Done && (b.Tool == "look" || b.Tool == "act" || b.Tool == "count") {
				t.Errorf("%s: %s (%s, %s) was run %d times", when, key, b.Tool, b.End, n)
			}
		}
	}
	given := map[string]record.End{} // how the calls ended that gave tasks
	for _, d := range of[record.Did](w.records()) {
		given[d.CallID] = d.End
	}
	for _, b := range w.records() {
		c, ok := b.(record.Child)
		switch {
		case !ok:
			check("", b)
		case given[c.Task[0]] != record.Unknown: // else it was given up with the turn
			check(strings.Join(c.Task, "/")+"/", c.Body)
		}
	}
	w.checkFold(when)
	for what, counts := range map[string]map[string]int{"events": heard, "turns": settled, "calls": done, "steps": said} {
		for id, n := range counts {
			if n != 1 {
				t.Errorf("%s: of %s, %s has %d ends", when, what, id, n)
			}
		}
	}
	keys := map[string]bool{}
	posts, err := w.store.Posts(context.Background(), state.ConversationID("tested", thread))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range posts {
		if keys[p.Post.Key] {
			t.Errorf("%s: the key %s is there twice", when, p.Post.Key)
		}
		keys[p.Post.Key] = true
	}
	return len(settled)
}

// checkFold compares the present in memory with the one that the log gives.
func (w *world) checkFold(when string) {
	w.t.Helper()
	id := state.ConversationID("tested", thread)
	c := w.engine.folds.take(id)
	if c == nil {
		return // the process died with the last commit
	}
	w.engine.folds.put(id, c)
	v, err := w.store.Load(context.Background(), id, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	var fresh record.Fold
	if err := fresh.Add(v.Records); err != nil {
		w.t.Fatal(err)
	}
	live, err := c.fold.Checkpoint("c")
	if err != nil {
		w.t.Fatal(err)
	}
	want, err := fresh.Checkpoint("c")
	if err != nil {
		w.t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(live)); d != "" {
		w.t.Errorf("%s: the present in memory is not the log's (-log +memory):\n%s", when, d)
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
	for n := range 9 {
		for _, f := range []fate{before, after} {
			m := &mailbox{}
			s := scenario{agent: func(*runs) harness.Agent { return agent(m) }, model: step, says: []string{"remind them", "remind them"}}
			w, _, _ := s.play(t, at(n, f))
			if m.sent != 1 || w.request(-1).System != "The mail is sent." {
				t.Errorf("died at commit %d, made: %t: sent %d times, then %q", n, f == after, m.sent, w.request(-1).System)
			}
		}
	}
}

// A turn that crashes too often is given up where people see it. What came
// meanwhile has its own turn.
func TestCrashLoopIsParked(t *testing.T) {
	t.Parallel()
	step := lastSays(map[string]scripted.Step{"boom": call("look"), "and me": scripted.Say("fine")})
	w := worldOf(t, plain(act("look", func(context.Context, *harness.Call) (string, error) { return "", nil })), scripted.Play(step, 0))
	m := &mortal{Log: w.store, dies: func(n int) fate { return min(fate(n-1), before) }} // all but the first
	w.log = m
	w.restart()
	w.say("U1", "boom")
	for range 10 {
		if err := w.try(); !errors.Is(err, errDied) {
			t.Fatal(err)
		}
		w.store.Expire()
		w.restart()
	}
	m.dies = never
	w.say("U2", "and me")
	w.run()
	if got := trace(w.records()); got != "heard rendered said did:unknown settled:parked heard rendered said settled:answered" {
		t.Errorf("the log is %s", got)
	}
	if d := cmp.Diff([]string{lineBroken, "fine"}, w.posts()); d != "" {
		t.Errorf("posts (-want +got):\n%s", d)
	}
}

// A turn that crashes before its first commit is parked as well.
func TestCrashLoopBeforeTheFirstCommit(t *testing.T) {
	t.Parallel()
	w := worldOf(t, plain(), scripted.Play(scripted.Say("never"), 0))
	m := &mortal{Log: w.store, dies: func(int) fate { return before }}
	w.log = m
	w.restart()
	w.say("U1", "boom")
	for range 10 {
		if err := w.try(); !errors.Is(err, errDied) {
			t.Fatal(err)
		}
		w.store.Expire()
	}
	m.dies = never
	w.run()
	if got := trace(w.records()); got != "heard settled:parked" || len(w.posts()) != 1 {
		t.Errorf("the log is %s, posts %v", got, w.posts())
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

// When its context ends a run stops, with the reason, and leaves nothing behind.
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
		w.store.Expire()
		w.run()
		if d := cmp.Diff([]string{"ok"}, w.posts()); d != "" {
			t.Errorf("%s: posts (-want +got):\n%s", name, d)
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
	w, _, commits := s.play(t, at(2, after))
	if got := outcomes(w); len(got) != 2 || commits < 5 {
		t.Errorf("outcomes %v in %d commits", got, commits)
	}
	var wrote []string
	for _, v := range of[record.Wrote](w.records()) {
		wrote = append(wrote, string(v.Value))
	}
	if !slices.Equal(wrote, []string{"1", "2", "3", "4"}) {
		t.Errorf("wrote %v", wrote)
	}
}
