package turn

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model/scripted"
)

// A value written by older code is read in today's form, over restarts and at
// every crash; a deleted one is the initial one again; what newer code has
// written stays as it is when older code refuses it.
func TestStateMigratesInTheLog(t *testing.T) {
	t.Parallel()
	old := func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		s := harness.UseState(c, "n", 0)
		harness.UseTool(c, act("add", func(_ context.Context, call *harness.Call) (string, error) {
			s.Update(call, func(n int) int { return n + 1 })
			return "", nil
		}))
		return fmt.Sprint("n is ", s.Value)
	}
	next := func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		s := harness.UseState(c, "n", []int{-1}, harness.Migrate(2, func(raw json.RawMessage, _ int) ([]int, error) {
			var n int
			err := json.Unmarshal(raw, &n)
			return []int{n}, err
		}))
		harness.UseTool(c, act("add", func(_ context.Context, call *harness.Call) (string, error) {
			s.Update(call, func(n []int) []int { return append(n, len(n)) })
			return "", nil
		}))
		harness.UseTool(c, act("drop", func(_ context.Context, call *harness.Call) (string, error) {
			s.Delete(call)
			return "", nil
		}))
		return fmt.Sprint("n is ", s.Value)
	}
	died := true
	for n := 1; died; n++ {
		w := newWorld(t, old, call("add"), scripted.Say("1"), scripted.Say("2"))
		w.ask("U1", "go")
		w.opts.Agents["tested"] = next
		w.model = scripted.New(call("add"), call("add"), scripted.Say("3"), call("drop"), scripted.Say("4"), scripted.Say("5"), scripted.Say("6"))
		w.wary.Provider = w.model
		w.restart()
		w.say("U1", "go on")
		died = w.die(n, true)
		w.ask("U1", "forget")
		var got []string
		for _, r := range w.model.Requests() {
			got = append(got, r.System)
		}
		// A call that was cut off by the crash is not repeated, but its answer was
		// recorded: the values stay the same or miss that one write.
		if !died {
			want := []string{"n is [1]", "n is [1 1]", "n is [1 1 2]", "n is [1 1 2]", "n is [-1]"}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		}
		var versions []int
		for _, wr := range of[record.Wrote](w.records()) {
			versions = append(versions, wr.Version)
		}
		if versions[0] != 0 || versions[1] != 2 || of[record.Wrote](w.records())[len(versions)-1].Value != nil {
			t.Errorf("died at commit %d: versions %v", n, versions)
		}
		if died {
			continue
		}
		w.model = scripted.New(call("add"), scripted.Say("7"))
		w.wary.Provider = w.model
		w.restart()
		w.ask("U1", "again")
		before := len(of[record.Wrote](w.records()))
		w.opts.Agents["tested"] = old
		w.restart()
		w.ask("U1", "with older code")
		settled := of[record.Settled](w.records())
		if last := settled[len(settled)-1]; last.Outcome != record.Broken || len(of[record.Wrote](w.records())) != before {
			t.Errorf("older code ended the turn as %+v", last)
		}
		w.opts.Agents["tested"] = next
		w.model = scripted.New(scripted.Say("8"))
		w.wary.Provider = w.model
		w.restart()
		w.ask("U1", "with newer code again")
		if got := w.request(-1).System; got != "n is [-1 1]" {
			t.Errorf("after older code: %s", got)
		}
	}
}

// What a program passed along with the first event is there in every turn; a
// later event's data is not taken for it.
func TestInitialData(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		o, ok := harness.UseInitialData[struct {
			Order string `json:"order"`
		}](c)
		return fmt.Sprint(o.Order, " ", ok, " ", string(c.Event().Data))
	}, scripted.Say("1"), scripted.Say("2"), scripted.Say("3"))
	for i, data := range []string{`{"order":"A-7"}`, `{"order":"B-8"}`, ""} {
		e := chat.Event{ID: fmt.Sprint("P", i), Thread: thread, Kind: chat.Message, Author: chat.Author{ID: "U1"}, Text: "go"}
		if data != "" {
			e.Data = json.RawMessage(data)
		}
		w.event(e, false)
		w.run()
		w.restart()
		if want := "A-7 true " + data; w.request(i).System != want {
			t.Errorf("turn %d: %q, want %q", i, w.request(i).System, want)
		}
	}
}

// Values for programs are recorded with the call's result, once at whatever
// commit the process dies, and no model sees them.
func TestDataIsRecordedOnce(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		died := true
		for n := 1; died; n++ {
			w := worldOf(t, func(c *harness.Context) string {
				harness.UseModel(c, "fast")
				d := harness.UseData[map[string]int](c, "progress")
				harness.UseTool(c, act("job", func(ctx context.Context, call *harness.Call) (string, error) {
					for i := range 3 {
						if _, err := harness.Step(ctx, call, fmt.Sprint("s", i), func(context.Context) (int, error) { return i, nil }); err != nil {
							return "", err
						}
						d.Write(call, map[string]int{"secret": i})
					}
					return "ready", nil
				}).Durable())
				return "Help."
			}, scripted.Play(jobber, 0))
			w.say("U1", "go")
			died = w.die(n, after)
			var got []string
			for _, d := range of[record.Data](w.records()) {
				got = append(got, d.Name+string(d.Value))
			}
			if d := cmp.Diff([]string{`progress{"secret":0}`, `progress{"secret":1}`, `progress{"secret":2}`}, got); d != "" {
				t.Errorf("died at commit %d (after: %v) (-want +got):\n%s", n, after, d)
			}
			for i := range w.model.Requests() {
				if r := w.request(i); strings.Contains(transcript(r)+r.System, "secret") {
					t.Errorf("a model saw the data:\n%s", transcript(r))
				}
			}
		}
	}
}
