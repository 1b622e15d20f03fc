package turn

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/scripted"
	"github.com/heddlehq/heddle/state"
)

// Every retry is in the log with its step, number, class, wait, version and
// result, and what it took and cost; inputs and outputs stand beside it.
func TestRetriesAreListed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := func(next scripted.Step) scripted.Step {
			return func(ctx context.Context, r model.Request) (model.Response, error) {
				if err := sleep(ctx, 2*time.Second); err != nil {
					return model.Response{}, err
				}
				return next(ctx, r)
			}
		}
		blank := func(context.Context, model.Request) (model.Response, error) {
			return model.Response{Parts: []model.Part{{Kind: model.Text, Text: " "}}, Stop: model.StopEnd, Usage: model.Usage{In: 1_000_000}}, nil
		}
		look := act("look", func(context.Context, *harness.Call) (string, error) { return "seen", nil })
		w := newWorld(t, plain(look),
			slow(fault(model.Limited, 7*time.Second)), fault(model.Transient, 0), call("look"), // step 1
			blank, scripted.Say("ok"), // step 2
			call("look"),                              // second turn; it dies in the tool
			fault(model.Denied, 0), scripted.Say("?")) // and fails
		w.opts.Version, w.opts.Clock = "v1.2.3", time.Now
		w.restart()
		w.ask("U1", "go")
		w.log = &mortal{Log: w.store, dies: at(2, before)}
		w.restart()
		w.say("U1", "again")
		if err := w.try(); err == nil {
			t.Fatal("it did not die")
		}
		w.store.Expire()
		w.log = w.store
		w.restart()
		w.run()

		got, err := record.Retries(w.view().Records)
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		var cost float64
		for _, r := range got {
			wait := r.Wait >= 7*time.Second
			lines = append(lines, fmt.Sprintf("step %d try %d: %s (%s%s), long wait %t, took %v, by %s, %s", r.Step, r.Try, r.Class, r.Fault, r.Tool, wait, r.Took, r.Version, r.Result))
			cost += r.Cost
		}
		want := []string{
			"step 1 try 1: rate limited (rate limited), long wait true, took 2s, by v1.2.3, failed again",
			"step 1 try 2: transient (transient), long wait false, took 0s, by v1.2.3, answered",
			"step 2 try 1: transient (garbled), long wait false, took 0s, by v1.2.3, answered",
			"step 1 try 0: outcome unknown (look), long wait false, took 0s, by v1.2.3, told to the model",
			"step 1 try 0: permission (denied), long wait false, took 0s, by v1.2.3, failed",
			"step 1 try 2: crash (), long wait false, took 0s, by v1.2.3, failed",
		}
		if d := cmp.Diff(want, lines); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		settled := of[record.Settled](w.records())
		if cost != 1 || settled[0].Cost < 1 || settled[0].Usage.In < 1_000_000 {
			t.Errorf("the retries cost %v, the turn %v", cost, settled[0].Cost)
		}
		for _, s := range of[record.Said](w.records()) {
			if s.Request == "" || len(s.Parts) == 0 {
				t.Errorf("an answer without input or output: %+v", s)
			}
		}
		for _, d := range of[record.Did](w.records()) {
			if d.Args == "" || d.Digest == "" || d.Text == "" {
				t.Errorf("a call without input or output: %+v", d)
			}
		}
	})
}

// The tries of a tool, its mistakes and the limit that ends a turn are in the log
// as they happened.
func TestTriesOfTools(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		w := newWorld(t, plain(
			act("shaky", func(context.Context, *harness.Call) (string, error) {
				time.Sleep(time.Second)
				if tries++; tries < 3 {
					return "", errors.New("not now")
				}
				return "done", nil
			}).Retry(5),
			act("boom", func(context.Context, *harness.Call) (string, error) { panic("no") }),
		), call("shaky", "none"), call("boom"), call("shaky"))
		w.ask("U1", "go")
		w.opts.Limits.Steps = 1
		w.restart()
		w.ask("U1", "again")
		got, err := record.Retries(w.view().Records)
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, r := range got {
			lines = append(lines, fmt.Sprintf("step %d try %d: %s %s%s, waited %v, took %v, %s", r.Step, r.Try, r.Class, r.Tool, r.Code, r.Wait, r.Took, r.Result))
		}
		want := []string{
			"step 1 try 1: transient shaky, waited 100ms, took 1s, failed again",
			"step 1 try 2: transient shaky, waited 200ms, took 1s, done",
			"step 1 try 0: not found none, waited 0s, took 0s, told to the model",
			"step 2 try 0: deterministic bug boom, waited 0s, took 0s, failed",
			"step 1 try 0: budget too many steps, waited 0s, took 0s, failed",
		}
		if d := cmp.Diff(want, lines); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	})
}

// An open retry says so, one of a task names it, and the classes are those of
// what to do.
func TestRetriesOfALog(t *testing.T) {
	t.Parallel()
	var records []state.Record
	for i, b := range []record.Body{
		record.Retried{Turn: "t", Step: 1, Fault: model.Missing, Asked: "a/b", Next: "c/d"},
		record.Folded{Turn: "t", Step: 1, Why: "threshold"},
		record.Folded{Turn: "t", Step: 1, Why: "overflow", Cost: 0.5, Took: time.Second},
		record.Child{Task: []string{"x", "y"}, Body: record.Retried{Turn: "t", Step: 1, Fault: model.Invalid}},
		record.Said{Turn: "t", Step: 1},
		record.Retried{Turn: "t", Step: 2, Fault: model.Overflow},
		record.Probed{Turn: "t", Step: 2, Call: "c", Tool: "pay", Try: 2, Found: "done"},
		record.Did{Turn: "t", Step: 2, CallID: "c", Tool: "pay", End: record.NeedsHuman},
		record.Did{Turn: "t", Step: 2, CallID: "d", Tool: "look", End: record.Done},
		record.Did{Turn: "t", Step: 2, CallID: "e", Tool: "wait", End: record.Canceled},
		record.Retried{Turn: "t", Step: 3, Tool: "fetch", Call: "f", Try: 1, Wait: 100, Took: 7},
		record.Retried{Turn: "t", Step: 3, Tool: "fetch", Call: "f", Try: 2, Wait: 200},
		record.Did{Turn: "t", Step: 3, CallID: "f", Tool: "fetch", End: record.Done},
		record.Did{Turn: "t", Step: 3, CallID: "g", Tool: "fetch", End: record.Refused, Rejected: record.BadArguments},
		record.Did{Turn: "t", Step: 3, CallID: "h", Tool: "gone", End: record.Refused, Rejected: record.UnknownTool},
		record.Did{Turn: "t", Step: 3, CallID: "i", Tool: "fetch", End: record.Refused},
		record.Did{Turn: "t", Step: 3, CallID: "j", Tool: "boom", End: record.Failed, Crashed: true},
		record.Settled{Turn: "t", Outcome: record.Broken, Attempt: 1, Steps: 3, Reason: record.TooManyTokens},
		record.Settled{Turn: "u", Outcome: record.Broken, Attempt: 1, Reason: record.NotRendered},
	} {
		r, err := record.Encode(b)
		if err != nil {
			t.Fatal(err)
		}
		r.Seq = int64(i + 1)
		records = append(records, r)
	}
	got, err := record.Retries(records)
	if err != nil {
		t.Fatal(err)
	}
	want := []record.Retry{
		{Record: 1, Turn: "t", Step: 1, Class: record.ClassMissing, Fault: model.Missing, Asked: "a/b", Next: "c/d", Result: "failed again"},
		{Record: 3, Turn: "t", Step: 1, Class: record.ClassOverflow, Took: time.Second, Cost: 0.5, Result: "answered"},
		{Record: 4, Turn: "t", Task: "x/y", Step: 1, Class: record.ClassArguments, Fault: model.Invalid, Result: "open"},
		{Record: 6, Turn: "t", Step: 2, Class: record.ClassOverflow, Fault: model.Overflow, Result: "failed"},
		{Record: 7, Turn: "t", Step: 2, Try: 2, Class: record.ClassUnknown, Tool: "pay", Call: "c", Result: "probed: done"},
		{Record: 8, Turn: "t", Step: 2, Class: record.ClassUnknown, Tool: "pay", Call: "c", Result: "left to people"},
		{Record: 11, Turn: "t", Step: 3, Try: 1, Class: record.ClassTransient, Tool: "fetch", Call: "f", Wait: 100, Took: 7, Result: "failed again"},
		{Record: 12, Turn: "t", Step: 3, Try: 2, Class: record.ClassTransient, Tool: "fetch", Call: "f", Wait: 200, Result: "done"},
		{Record: 14, Turn: "t", Step: 3, Class: record.ClassArguments, Tool: "fetch", Call: "g", Result: "told to the model"},
		{Record: 15, Turn: "t", Step: 3, Class: record.ClassMissing, Tool: "gone", Call: "h", Result: "told to the model"},
		{Record: 17, Turn: "t", Step: 3, Class: record.ClassBug, Tool: "boom", Call: "j", Result: "failed"},
		{Record: 18, Turn: "t", Step: 3, Class: record.ClassBudget, Code: record.TooManyTokens, Result: "failed"},
		{Record: 19, Turn: "u", Class: record.ClassBug, Code: record.NotRendered, Result: "failed"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
