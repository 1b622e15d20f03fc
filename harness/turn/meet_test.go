package turn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/scripted"
	"github.com/heddlehq/heddle/state"
)

// Features that meet: each has its own tests, these are of two or more at once.

// asker asks and answers with the reply.
func asker(name string) harness.Tool {
	return act(name, func(ctx context.Context, c *harness.Call) (string, error) {
		r, err := harness.Ask(ctx, c, "q", "Why?")
		return r.Text, err
	})
}

func ends(bodies []record.Body) []string {
	var out []string
	for _, d := range of[record.Did](bodies) {
		out = append(out, d.Tool+" "+string(d.End))
	}
	return out
}

// The time of a turn ends while one call waits for people and another works:
// both end with the turn, and the next request is whole.
func TestDeadlineWhileACallWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		defer close(free)
		w := newWorld(t, plain(asker("ask").Durable(), act("job", hang(true, free)).Timeout(24*time.Hour)), call("ask", "job"), scripted.Say("next"))
		w.wary.stable = false
		w.opts.Limits = Limits{Time: 10 * time.Minute}
		w.restart()
		w.say("U1", "go")
		w.during(func() {})
		w.ask("U1", "next")
		if got := trace(w.records()); got != "heard rendered said did:unknown did:unknown settled:failed heard rendered said settled:answered" {
			t.Errorf("the log is %s", got)
		}
	})
}

// A call that waits again and again is held to the time of its turn.
func TestDeadlineOfPolling(t *testing.T) {
	t.Parallel()
	var w *world
	n := 0
	w = newWorld(t, plain(durable("poll", func(context.Context, *harness.Call) (string, error) {
		n++
		w.pass(10 * time.Minute)
		return "", &harness.Wait{Until: w.clock().Add(time.Minute)}
	})), call("poll"))
	w.say("U1", "go")
	for range 30 {
		w.run()
		w.pass(time.Minute)
	}
	s := of[record.Settled](w.records())
	if n > 8 || len(s) != 1 || s[0].Reason != "too much time" {
		t.Errorf("polled %d times for ten minutes each, settled %+v", n, s)
	}
}

// Two tools that may ask do so in one step: the second asks when the first was
// answered, whoever works then.
func TestTwoToolsAsk(t *testing.T) {
	t.Parallel()
	lived := false
	defer func() {
		if !lived {
			t.Error("the two were never both answered")
		}
	}()
	crashes(t, func(when string, m *mortal) {
		w := worldOf(t, plain(asker("job").Asks()), scripted.Play(lastSays(map[string]scripted.Step{"go": call("job", "job")}), 0))
		m.Log = w.store
		w.log = m
		w.restart()
		for _, text := range []string{"go", "one", "two"} {
			w.say("U1", text)
			w.live()
			w.restart()
		}
		dids := of[record.Did](w.records())
		if len(dids) != 2 || w.present().Turn != nil {
			t.Fatalf("%s: the log is %s", when, trace(w.records()))
		}
		lived = lived || dids[0].Text == "one" && dids[1].Text == "two"
	})
}

// A message stops the turn while open calls are run again: it is obeyed then,
// and is no message for the turn after it.
func TestStopDuringRepair(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		defer close(free)
		w := newWorld(t, plain(act("job", hang(true, free)).Durable()), call("job"))
		w.log = &mortal{Log: w.store, dies: at(1, after)}
		w.restart()
		w.say("U1", "go")
		if err := w.try(); !errors.Is(err, errDied) {
			t.Fatal(err)
		}
		w.store.Expire()
		w.log = w.store
		w.restart()
		if took := w.during(func() { w.say("U1", "stop") }); took > 2*time.Second {
			t.Errorf("it took %v", took)
		}
		if got := trace(w.records()); got != "heard rendered said did:unknown controlled settled:aborted" {
			t.Errorf("the log is %s", got)
		}
	})
}

// Stopped in the middle of a summary, a turn ends as stopped, and shut down it
// goes on elsewhere: it has not failed.
func TestStopDuringCompaction(t *testing.T) {
	t.Parallel()
	for _, why := range []string{"threshold", "overflow"} {
		for _, how := range []string{"stop", "shutdown"} {
			t.Run(why+", "+how, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					hangs, hung, overflows := false, false, false
					w := worldOf(t, func(c *harness.Context) string {
						harness.UseModel(c, "fast", harness.Compact(harness.Compaction{Keep: 50, Off: why == "overflow"}))
						harness.UseCompaction(c, "slow", func(ctx context.Context, _ *harness.Call, _ harness.Summarised) (string, error) {
							if !hangs {
								return "", nil
							}
							hung = true
							<-ctx.Done()
							return "", fmt.Errorf("not now: %w", ctx.Err())
						})
						return "Help."
					}, scripted.Play(func(ctx context.Context, r model.Request) (model.Response, error) {
						switch {
						case r.System == summarise:
							return scripted.Say(goodSummary)(ctx, r)
						case overflows && hangs:
							return scripted.Fault(model.Overflow, 0)(ctx, r)
						}
						return scripted.Say(strings.Repeat("word ", 60))(ctx, r)
					}, 0))
					w.window(700)
					for range 5 {
						w.ask("U1", strings.Repeat("word ", 60))
					}
					hangs, overflows = true, why == "overflow"
					ctx, shut := context.WithCancelCause(context.Background())
					done := make(chan error, 1)
					posts := 0
					for !hung {
						posts = len(w.posts())
						w.say("U1", strings.Repeat("word ", 60))
						l, err := w.store.Claim(ctx, "test", time.Minute)
						if err != nil {
							t.Fatal(err)
						}
						go func() { done <- w.engine.Run(ctx, context.Background(), l) }()
						synctest.Wait()
						if !hung && <-done != nil {
							t.Fatal("it failed before it had to be summarised")
						}
					}
					want := "Stopped."
					if how == "stop" {
						w.say("U1", "stop")
					} else {
						shut(errors.New("shutting down"))
						want = strings.Repeat("word ", 60)
					}
					if err := <-done; (err == nil) != (how == "stop") {
						t.Errorf("it ended with %v", err)
					}
					shut(nil)
					hangs = false
					w.run()
					if got := w.posts()[posts:]; len(got) != 1 || got[0] != want {
						t.Errorf("posts %q", got)
					}
				})
			})
		}
	}
}

// Words of nobody known that a subagent's tool has heard bound its giver, who
// gets to read them.
func TestTaskHearsNobodyKnown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, giver(harness.Subagent{Agent: plain(act("recall", func(_ context.Context, c *harness.Call) (string, error) {
		c.Hear(harness.Voice{Role: chat.Outsider})
		return "recalled", nil
	}))}), scripted.Answer(taskFor("helper", "recall it")), call("recall"), scripted.Say("I recall"), scripted.Say("end"))
	w.wary.stable = false
	w.ask("U1", "go")
	rs := of[record.Rendered](w.records())
	if got := []chat.Role{rs[0].Trust, rs[len(rs)-1].Trust}; got[0] != chat.Member || got[1] != chat.Outsider {
		t.Errorf("trust before and after the task: %v", got)
	}
}

// A tool that was left behind runs no step any more: neither one that is
// recorded nor a new one, also not when another turn is open.
func TestLeftBehindToolRunsNoStep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		free, ran, slow := make(chan struct{}), 0, false
		var left sync.WaitGroup
		w := worldOf(t, plain(act("job", func(ctx context.Context, c *harness.Call) (string, error) {
			if slow {
				left.Add(1)
				defer left.Done()
				<-free
			}
			for _, name := range []string{"pay", "mail"} {
				_, err := harness.Step(context.WithoutCancel(ctx), c, name, func(context.Context) (int, error) { ran++; return 1, nil })
				if err != nil || !slow {
					return "", err
				}
			}
			return "", nil
		}).Durable()), scripted.Play(lastSays(map[string]scripted.Step{
			"go": call("job"),
			"and now?": func(ctx context.Context, r model.Request) (model.Response, error) {
				close(free)
				left.Wait()
				return scripted.Say("that")(ctx, r)
			},
		}), 0))
		w.wary.stable = false
		w.log = &mortal{Log: w.store, dies: at(3, before)}
		w.restart()
		w.say("U1", "go")
		if err := w.try(); !errors.Is(err, errDied) {
			t.Fatal(err)
		}
		w.store.Expire()
		w.log = w.store
		w.restart()
		slow = true
		w.during(func() { w.say("U1", "stop") })
		w.ask("U1", "and now?")
		if ran != 1 {
			t.Errorf("steps ran %d times", ran)
		}
	})
}

// When a call's outcome is unclear people are asked, also if the call beside it
// waited and cannot go on.
func TestUnclearBesideAWaitingCall(t *testing.T) {
	t.Parallel()
	s := &shop{orders: map[string]int{}, drops: 1, forgets: true}
	gone := false
	w := newWorld(t, func(c *harness.Context) string {
		if !gone {
			harness.UseTool(c, asker("ask").Durable())
		}
		return plain(s.tool())(c)
	}, call("order", "ask"))
	w.ask("U1", "go")
	gone = true
	w.restart()
	w.ask("U1", "because")
	if got := of[record.Settled](w.records()); len(got) != 1 || got[0].Outcome != record.NeedsHuman {
		t.Errorf("settled %+v", got)
	}
}

// What has to follow a call that waits does not go before it: a durable one runs
// after it, any other is called again.
func TestSerialCallsWait(t *testing.T) {
	t.Parallel()
	for _, lasting := range []bool{true, false} {
		var order []string
		noted := func(t harness.Tool) harness.Tool { return t.SerialWith("g") }
		second := act("second", func(context.Context, *harness.Call) (string, error) {
			order = append(order, "second")
			return "", nil
		})
		if lasting {
			second = second.Durable()
		}
		w := newWorld(t, plain(noted(durable("first", func(ctx context.Context, c *harness.Call) (string, error) {
			_, err := harness.Ask(ctx, c, "q", "Why?", harness.AnsweredBy(chat.Maintainer))
			if err == nil {
				order = append(order, "first")
			}
			return "", err
		})), noted(second)), call("first", "second"), scripted.Say("done"))
		w.setRole("boss", chat.Maintainer)
		w.ask("U1", "go")
		w.ask("U1", "hurry up")
		w.restart()
		w.ask("boss", "because")
		want := []string{"first done", "second done"}
		ran := []string{"first", "second"}
		if !lasting {
			want, ran = []string{"second refused", "first done"}, ran[:1]
		}
		if d := cmp.Diff(want, ends(w.records())) + cmp.Diff(ran, order); d != "" {
			t.Errorf("durable: %v, ends and order (-want +got):\n%s", lasting, d)
		}
	}
}

// A message that steers ends a call that may be interrupted, also while it only waits.
func TestSteerWhileACallWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain(durable("nap", func(ctx context.Context, c *harness.Call) (string, error) {
		return "awake", harness.Sleep(ctx, c, "nap", c.Now().Add(72*time.Hour))
	}).Interruptible()), call("nap"), scripted.Say("that instead"))
	w.opts.Busy = func(chat.Event) chat.Policy { return chat.Steer }
	w.restart()
	w.ask("U1", "go")
	w.idle()
	w.ask("U1", "do that instead")
	if got := trace(w.records()); got != "heard rendered said asked heard did:canceled rendered said settled:answered" {
		t.Errorf("the log is %s", got)
	}
}

// After a summary in the middle of a turn no call gets the id of one before it,
// also from a provider that gives none: what happens outside is known by it, and
// so is what a task asks.
func TestCallIDsAfterCompaction(t *testing.T) {
	t.Parallel()
	s := &shop{orders: map[string]int{}}
	n := 0
	w := worldOf(t, func(c *harness.Context) string {
		harness.UseModel(c, "fast", harness.Compact(harness.Compaction{Reserve: 1000, Keep: 300}))
		harness.UseTool(c, act("order", func(_ context.Context, c *harness.Call) (string, error) {
			_, err := s.order(c.Key())
			return strings.Repeat("seen ", 600), err
		}))
		harness.UseSubagent(c, harness.Subagent{Name: "helper", Doc: "x", Agent: func(c *harness.Context) string {
			harness.UseTool(c, asker("asks").Durable())
			return "Child."
		}})
		return "Help."
	}, scripted.Play(func(ctx context.Context, r model.Request) (model.Response, error) {
		switch {
		case r.System == summarise:
			return scripted.Say(goodSummary)(ctx, r)
		case strings.HasPrefix(r.System, "Child.") && len(r.Messages) > 1:
			return scripted.Say(strings.Repeat("color ", 500))(ctx, r)
		case strings.HasPrefix(r.System, "Child."):
			return call("asks")(ctx, r)
		}
		if n++; n > 6 {
			return scripted.Say("done")(ctx, r)
		}
		return scripted.Answer(taskFor("helper", "ask"), scripted.ToolCall("order", "{}"))(ctx, r)
	}, 0))
	w.window(3000)
	w.ask("U1", "go")
	for i := range 6 {
		if got := w.posts(); len(got) != i+1 || got[i] != "Why?" {
			t.Fatalf("after %d answers the posts are %q", i, got)
		}
		w.restart()
		w.ask("U1", "red")
	}
	if len(s.orders) != 6 || len(of[record.Folded](w.records())) == 0 {
		t.Errorf("orders %v; the log is %s", s.orders, trace(w.records()))
	}
	w.checkFold("at the end", w.present())
}

// A value that is nested too deep to be read back fails the call that stores it,
// in a task as well.
func TestDeepValuesAreRefused(t *testing.T) {
	t.Parallel()
	for _, depth := range []int{harness.MaxNesting, harness.MaxNesting + 1, 9_998, 9_999, 10_000} {
		deep := json.RawMessage(strings.Repeat("[", depth) + strings.Repeat("]", depth))
		agent := func(c *harness.Context) string {
			d, s := harness.UseData[json.RawMessage](c, "x"), harness.UseState(c, "x", json.RawMessage("1"))
			harness.UseTool(c, act("data", func(_ context.Context, c *harness.Call) (string, error) { d.Write(c, deep); return "", nil }))
			harness.UseTool(c, act("state", func(_ context.Context, c *harness.Call) (string, error) { s.Set(c, deep); return "", nil }))
			harness.UseTool(c, act("step", func(ctx context.Context, c *harness.Call) (string, error) {
				_, err := harness.Step(ctx, c, "x", func(context.Context) (json.RawMessage, error) { return deep, nil })
				return "", err
			}))
			return "Child."
		}
		w := newWorld(t, func(c *harness.Context) string { agent(c); return giver(harness.Subagent{Agent: agent})(c) },
			call("data", "state", "step"), scripted.Answer(taskFor("helper", "x")), call("data", "state", "step"), scripted.Say("c"), scripted.Say("end"))
		w.wary.stable = false
		w.ask("U1", "go")
		all := w.records() // they can be read
		for _, c := range of[record.Child](all) {
			all = append(all, c.Body)
		}
		for _, d := range of[record.Did](all) {
			if want := depth > harness.MaxNesting && d.Tool != "task"; (d.End == record.Failed) != want {
				t.Errorf("%d deep: %s ended %s: %s", depth, d.Tool, d.End, d.Text)
			}
		}
	}
}

// Two tasks of a step edit one file of the sandbox that they share: no edit is
// lost, neither now nor after a restart.
func TestTasksEditOneFile(t *testing.T) {
	t.Parallel()
	child := func(c *harness.Context) string {
		harness.UseSandbox(c, "memory")
		harness.UseTurnFinish(c, "done", func(context.Context, *harness.Call, string) (string, error) { return "", nil })
		return "Child."
	}
	edit := func(old string) scripted.Step {
		return scripted.Call("edit", fmt.Sprintf(`{"path":"a","old_text":%q,"new_text":"%s done"}`, old+".", old))
	}
	w := worldOf(t, func(c *harness.Context) string {
		harness.UseSandbox(c, "memory")
		return giver(harness.Subagent{Agent: child})(c)
	}, scripted.Play(bySystem(map[string]scripted.Step{
		"Child.": lastSays(map[string]scripted.Step{"work on one": edit("one"), "work on two": edit("two"), "work on three": edit("three")}),
		"Help.": lastSays(map[string]scripted.Step{
			"go":      scripted.Call("write", `{"path":"a","content":"one. two. three."}`),
			"wrote":   scripted.Answer(taskFor("helper", "work on one"), taskFor("helper", "work on two"), taskFor("helper", "work on three")),
			"look":    scripted.Call("read", `{"path":"a"}`),
			"the end": scripted.Say("ok"),
		}),
	}), 0))
	w.wary.stable = false
	here := make(chan struct{})
	w.boxes.read = func() { // lets another one read the same
		select {
		case here <- struct{}{}:
		case <-here:
		case <-time.After(50 * time.Millisecond):
		}
	}
	w.ask("U1", "go")
	w.restart()
	w.ask("U1", "look")
	dids := of[record.Did](w.records())
	if got := dids[len(dids)-1].Text; strings.Count(got, "done") != 3 {
		t.Errorf("the file holds %s", got)
	}
}

// A finish callback that sends a text to another conversation runs twice in what
// the log counts as one step: both are sent.
func TestDispatchTwiceInAStep(t *testing.T) {
	t.Parallel()
	sent := 0
	open := true
	w := newWorld(t, func(c *harness.Context) string {
		d := harness.UseDispatch(c)
		harness.UseTurnFinish(c, "tell", func(_ context.Context, call *harness.Call, _ string) (string, error) {
			sent++
			if err := d.Send(call, chat.Thread{Channel: "slack", Account: "T1", Room: "C2", Root: "2"}, fmt.Sprint("text ", sent)); err != nil || sent == 2 {
				return "", err
			}
			return "Once more.", nil
		})
		if open {
			harness.UseTool(c, durable("ask", func(ctx context.Context, c *harness.Call) (string, error) {
				_, err := harness.Ask(ctx, c, "q", "Why?", harness.ExpiresAt(c.Now().Add(time.Hour), ""))
				return "", err
			}))
		}
		return plain()(c)
	}, scripted.Answer(scripted.ToolCall("ask", `{}`), scripted.ToolCall("finish", `{"id":"A-7"}`)), scripted.Call("finish", `{"id":"A-8"}`))
	w.wary.stable = false
	w.want("1", orderSchema)
	open = false // the step finds the result, not the repair
	w.restart()
	w.pass(2 * time.Hour)
	w.run()
	posts, err := w.store.Posts(context.Background(), state.ConversationID("tested", thread))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, p := range posts {
		if p.Post.Thread.Channel == chat.ToConversation {
			n++
		}
	}
	if want := len(of[record.Dispatched](w.records())); n != want || want == 0 {
		t.Errorf("%d texts were decided, %d are in the outbox; the log is %s", want, n, trace(w.records()))
	}
}

// An answer to what a subagent asks is no stop and replaces nothing, though
// another one is still at work and has not seen the question.
func TestAnswerWhileAnotherTaskWorks(t *testing.T) {
	t.Parallel()
	for _, policy := range []chat.Policy{chat.Join, chat.Replace, chat.Drop} {
		for _, text := range []string{"cancel", "red"} {
			t.Run(fmt.Sprint(policy, " ", text), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					free := make(chan struct{})
					w := worldOf(t, giver(harness.Subagent{Agent: func(c *harness.Context) string {
						harness.UseTool(c, asker("ask").Durable())
						harness.UseTool(c, act("job", hang(true, free)))
						return "Child."
					}}), scripted.Play(bySystem(map[string]scripted.Step{
						"Child.": lastSays(map[string]scripted.Step{"first": call("ask"), "second": call("job")}),
						"Help.":  lastSays(map[string]scripted.Step{"please": scripted.Answer(taskFor("helper", "first"), taskFor("helper", "second"))}),
					}), 0))
					w.wary.stable = false
					w.opts.Busy = func(chat.Event) chat.Policy { return policy }
					w.restart()
					w.say("U1", "please")
					w.during(func() {
						w.say("U1", text)
						time.Sleep(2 * time.Second)
						close(free)
					})
					if d := cmp.Diff([]string{"Why?", "the end"}, w.posts()); d != "" {
						t.Errorf("posts (-want +got):\n%s\n%s", d, trace(w.records()))
					}
					var got []string
					for _, c := range of[record.Child](w.records()) {
						if d, ok := c.Body.(record.Did); ok {
							got = append(got, d.Text)
						}
					}
					slices.Sort(got)
					want := []string{text, "late"}
					slices.Sort(want)
					if d := cmp.Diff(want, got); d != "" {
						t.Errorf("results (-want +got):\n%s", d)
					}
				})
			})
		}
	}
}

// One message answers a question: what comes with it is like any other.
func TestOneAnswerAQuestion(t *testing.T) {
	t.Parallel()
	w := worldOf(t, plain(asker("job").Durable()), scripted.Play(jobOnce, 0))
	w.opts.Busy = func(chat.Event) chat.Policy { return chat.Drop }
	w.restart()
	w.ask("U1", "go")
	w.say("U1", "yes")
	w.say("U1", "no")
	w.run()
	if got := trace(w.records()); got != "heard rendered said asked heard memo passed did:done rendered said settled:answered" {
		t.Errorf("the log is %s", got)
	}
}

// A callback of a settled turn that hangs ends, and the next turn begins.
func TestSettledCallbackHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *harness.Context) string {
			harness.UseSettled(c, "hang", func(ctx context.Context, _ *harness.Call, _ harness.Settled) error { <-ctx.Done(); return ctx.Err() })
			return plain()(c)
		}, scripted.Say("one"), scripted.Say("two"))
		w.ask("U1", "hi")
		w.ask("U1", "again")
		if got := trace(w.records()); got != "heard rendered said settled:answered notified heard rendered said settled:answered notified" {
			t.Errorf("the log is %s", got)
		}
	})
}

// Several calls that wait are all closed when the turn is stopped.
func TestStopWhileCallsWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain(asker("ask").Durable(), durable("wait", func(context.Context, *harness.Call) (string, error) { return "", &harness.Wait{} })),
		call("ask", "wait", "ask"), scripted.Say("next"))
	w.ask("U1", "go")
	w.ask("U1", "stop")
	w.ask("U1", "next")
	if got := trace(w.records()); got != "heard rendered said asked controlled did:unknown did:unknown did:unknown settled:aborted heard rendered said settled:answered" {
		t.Errorf("the log is %s", got)
	}
}
