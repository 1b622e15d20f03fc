package turn

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/scripted"
)

// A scenario is a conversation whose model looks only at the request, so that
// it says the same to whoever asks again. What it does outside goes through
// runs, where the process may die.
type scenario struct {
	agent func(*runs) harness.Agent
	model func(*runs) scripted.Step
	says  []string
	setup func(*world, *runs)
	more  func(*world) bool                            // has something happen when nothing is ready, if it says so
	check func(t testing.TB, w *world, f *record.Fold) // holds at every end
}

var scenarios = map[string]scenario{
	"plain answer": {agent: with(), model: says(nil, "hello"), says: []string{"hi", "hi again"}},
	"two tools side by side": {
		agent: with("look", "act"), says: []string{"please"},
		model: says(map[string]scripted.Step{"please": call("look", "look"), "look done": call("act", "act"), "Interrupted": call("act")}, "the end"),
	},
	"serial tools": {agent: func(r *runs) harness.Agent {
		return plain(counted(r, "first").Serial(), counted(r, "second").Serial())
	}, model: says(map[string]scripted.Step{"please": call("first", "second", "first")}, "the end"), says: []string{"please", "please"}},
	"durable tool with steps": {agent: func(r *runs) harness.Agent {
		return plain(batch(r), counted(r, "look"))
	}, model: says(map[string]scripted.Step{"please": call("batch", "look")}, "the end"), says: []string{"please", "please"}},
	"climb with sandbox": {agent: func(r *runs) harness.Agent {
		return func(c *harness.Context) string { harness.UseTool(c, counted(r, "look")); return ladder(c) }
	}, model: says(map[string]scripted.Step{
		"please":  climb("x"),
		"level 1": scripted.Answer(scripted.ToolCall("write", `{"path":"a","content":"1"}`), scripted.ToolCall("look", `{}`)),
	}, "the end"), says: []string{"please", "thanks"}},
	"skill": {agent: func(r *runs) harness.Agent {
		return func(c *harness.Context) string {
			harness.UseSkill(c, harness.Skill{Name: "careful", Doc: "x", Body: "Only look.", AllowedTools: []string{"look"}})
			return plain(counted(r, "look"), counted(r, "act"))(c)
		}
	}, model: says(map[string]scripted.Step{"please": scripted.Call("skill", `{"name":"careful"}`), "Only look.": call("look", "act")}, "the end"), says: []string{"please", "thanks"}},
	"start and finish callbacks": {
		agent: hooked, model: says(nil, "hello"), says: []string{"please", "thanks"},
		check: func(t testing.TB, _ *world, f *record.Fold) {
			if got := fmt.Sprintf("%s %s", f.State["starts"], f.State["ends"]); got != fmt.Sprintf("%d %d", f.Turns, f.Turns) {
				t.Errorf("starts and ends are %s after %d turns", got, f.Turns)
			}
		},
	},
	"sent back": {
		agent: sentBack, model: says(map[string]scripted.Step{"please": scripted.Say("short"), "Say more.": scripted.Say("longer")}, "the end"), says: []string{"please", "please"},
		check: func(t testing.TB, w *world, f *record.Fold) {
			if n := len(of[record.Sent](w.records())); n != f.Turns {
				t.Errorf("sent back %d times in %d turns", n, f.Turns)
			}
		},
	},
	"retried provider": {agent: with("look"), model: func(r *runs) scripted.Step {
		step := says(map[string]scripted.Step{"please": call("look")}, "the end")(r)
		return func(ctx context.Context, q model.Request) (model.Response, error) {
			if r.once(fmt.Sprint("fault ", len(q.Messages))) {
				return fault(model.Transient, 0)(ctx, q)
			}
			return step(ctx, q)
		}
	}, says: []string{"please", "thanks"}},
	"fallback": {agent: with("look"), model: func(r *runs) scripted.Step {
		step := says(map[string]scripted.Step{"please": call("look")}, "the end")(r)
		return func(ctx context.Context, q model.Request) (model.Response, error) {
			if q.Model == "fast-1" {
				return fault(model.Denied, 0)(ctx, q)
			}
			return step(ctx, q)
		}
	}, setup: func(w *world, _ *runs) {
		if err := w.opts.Models.Fallbacks(map[string][]string{"fast": {"strong"}}); err != nil {
			w.t.Fatal(err)
		}
	}, says: []string{"please", "thanks"}},
	"compaction": {agent: with("look"), model: func(r *runs) scripted.Step {
		step := says(map[string]scripted.Step{"please": call("look")}, "the end")(r)
		return func(ctx context.Context, q model.Request) (model.Response, error) {
			if q.System == summarise {
				return scripted.Say(goodSummary)(ctx, q)
			}
			return step(ctx, q)
		}
	}, setup: func(w *world, _ *runs) { w.window(2_000) }, says: []string{long(800), "please " + long(700), "please " + long(900)}, check: func(t testing.TB, w *world, f *record.Fold) {
		if f.Turns == 3 && len(of[record.Folded](w.records())) == 0 {
			t.Error("nothing was summarised")
		}
	}},
	"joined messages": {agent: func(r *runs) harness.Agent {
		return plain(act("look", func(_ context.Context, c *harness.Call) (string, error) {
			if r.once("me too") {
				r.world.say("U2", "me too")
			}
			return "look done", r.work(c.Key())
		}))
	}, model: says(map[string]scripted.Step{"please": call("look"), "me too": scripted.Say("both")}, "the end"), says: []string{"please"}},
	"question and payment": {
		agent: func(r *runs) harness.Agent { return plain(pay(r)) },
		model: says(map[string]scripted.Step{"please": call("pay")}, "the end"), says: []string{"please", "yes, do"},
	},
	"probed call": {
		agent: func(r *runs) harness.Agent { return plain(probed(r)) },
		model: says(map[string]scripted.Step{"please": call("act", "act")}, "the end"), says: []string{"please", "please"},
		check: func(t testing.TB, w *world, _ *record.Fold) {
			parked := map[string]bool{}
			for _, s := range of[record.Settled](w.records()) {
				parked[s.Turn] = s.Outcome == record.Parked
			}
			for _, d := range of[record.Did](w.records()) {
				if d.End != record.Done && !parked[d.Turn] {
					t.Errorf("a call that can be probed ended as %s", d.End)
				}
			}
		},
	},
	"callbacks of everything": {
		agent: everywhere, model: says(map[string]scripted.Step{"please": call("look")}, "the end"), says: []string{"please", "thanks"},
		check: func(t testing.TB, w *world, f *record.Fold) {
			answers := len(of[record.Said](w.records()))
			if got, want := fmt.Sprintf("%s %s", f.State["answers"], f.State["settled"]), fmt.Sprintf("%d %d", answers, f.Turns); got != want {
				t.Errorf("answers and ends counted: %s, want %s", got, want)
			}
		},
	},
	"wanted result": {agent: func(r *runs) harness.Agent {
		return func(c *harness.Context) string {
			harness.UseResult[struct {
				N int `json:"n"`
			}](c)
			return plain(counted(r, "look"))(c)
		}
	}, model: says(map[string]scripted.Step{
		"please": call("look"), "look done": scripted.Say("42"), "Interrupted": scripted.Say("42"),
		"Call the tool finish": scripted.Call("finish", `{"n":42}`),
	}, "the end"), says: []string{"please"}},
	"state":              {agent: tally, model: says(map[string]scripted.Step{"please": call("count", "count")}, "the end"), says: []string{"please", "please"}, check: counts("n")},
	"tasks side by side": taskScenario,
	"images": {
		agent: func(r *runs) harness.Agent {
			return plain(act("look", func(_ context.Context, c *harness.Call) (string, error) {
				if err := c.Show(dot(r.world.t, 2, 2)); err != nil {
					return "", err
				}
				return "look done", r.work(c.Key())
			}), counted(r, "act"))
		},
		model: says(map[string]scripted.Step{"please": call("look", "act")}, "the end"), says: []string{"please", "thanks"},
		setup: func(w *world, r *runs) {
			w.seeing(1_000_000)
			w.opts.Fetch = func(_ context.Context, f Wanted) (chat.Attachment, error) {
				return chat.Attachment{Data: dot(w.t, 1, 1)}, r.work("fetch " + f.File.ID)
			}
			w.event(chat.Event{
				ID: "E0", Thread: thread, Kind: chat.Message, Author: chat.Author{ID: "U1"}, Text: "look at this", Files: []chat.File{{ID: "F1", Name: "one.png"}},
			}, true)
		},
		check: func(t testing.TB, w *world, f *record.Fold) {
			for _, p := range of[record.Did](w.records()) {
				if shown := len(p.Images) == 1; shown != (p.Tool == "look" && p.End == record.Done) {
					t.Errorf("%s, %s, has %d images", p.Tool, p.End, len(p.Images))
				}
			}
		},
	},
	"attached files": {
		agent: with("look"), model: says(map[string]scripted.Step{"please": call("look")}, "the end"), says: []string{"please", "thanks"},
		setup: func(w *world, r *runs) {
			w.opts.Fetch = func(_ context.Context, f Wanted) (chat.Attachment, error) {
				return chat.Attachment{Data: []byte("all of " + f.File.ID)}, r.work("fetch " + f.File.ID)
			}
			w.event(chat.Event{
				ID: "E0", Thread: thread, Kind: chat.Message, Author: chat.Author{ID: "U1"}, Text: "please look at these",
				Files: []chat.File{{ID: "F1", Name: "one"}, {ID: "F2", Name: "two"}},
			}, true)
		},
		check: func(t testing.TB, w *world, f *record.Fold) {
			got := of[record.Fetched](w.records())
			if len(of[record.Said](w.records())) > 0 && (len(got) != 1 || len(got[0].Files) != 2 || got[0].Files[1].Text != "all of F2") {
				t.Errorf("fetched: %+v", got)
			}
		},
	},
	"files": {agent: func(r *runs) harness.Agent {
		return func(c *harness.Context) string { harness.UseSandbox(c, "memory"); return plain(counted(r, "look"))(c) }
	}, model: says(map[string]scripted.Step{
		"please":       scripted.Call("write", `{"path":"a","content":"1"}`),
		"Interrupted":  scripted.Call("write", `{"path":"a","content":"1"}`),
		"bytes to a":   scripted.Answer(scripted.ToolCall("edit", `{"path":"a","old_text":"1","new_text":"2"}`), scripted.ToolCall("look", `{}`)),
		"bytes over a": scripted.Answer(scripted.ToolCall("edit", `{"path":"a","old_text":"1","new_text":"2"}`), scripted.ToolCall("look", `{}`)),
	}, "the end"), says: []string{"please", "thanks"}},
}

var taskScenario = scenario{agent: func(r *runs) harness.Agent {
	child := func(c *harness.Context) string {
		harness.UseTool(c, counted(r, "look"))
		useCount(c, r)
		return "Child."
	}
	return giver(harness.Subagent{Agent: child}, counted(r, "look"))
}, model: func(*runs) scripted.Step {
	return bySystem(map[string]scripted.Step{
		"Child.": lastSays(map[string]scripted.Step{"first": call("look", "count"), "second": call("count"), "Interrupted": call("count")}),
		"Help.": lastSays(map[string]scripted.Step{
			"please": scripted.Answer(taskFor("helper", "first"), scripted.ToolCall("look", "{}"), taskFor("helper", "second")),
		}),
	})
}, says: []string{"please", "thanks"}}

// with is an agent with counted tools of these names.
func with(names ...string) func(*runs) harness.Agent {
	return func(r *runs) harness.Agent {
		var tools []harness.Tool
		for _, n := range names {
			tools = append(tools, counted(r, n))
		}
		return plain(tools...)
	}
}

// says answers by what the last message holds, otherwise with a text.
func says(answers map[string]scripted.Step, otherwise string) func(*runs) scripted.Step {
	return func(*runs) scripted.Step {
		return func(ctx context.Context, r model.Request) (model.Response, error) {
			if step := answerTo(answers, r); step != nil {
				return step(ctx, r)
			}
			return scripted.Say(otherwise)(ctx, r)
		}
	}
}

// lastSays answers by what the last message holds.
func lastSays(answers map[string]scripted.Step) scripted.Step { return says(answers, "the end")(nil) }

func answerTo(answers map[string]scripted.Step, r model.Request) scripted.Step {
	parts := r.Messages[len(r.Messages)-1].Parts
	text := parts[len(parts)-1].Text
	for _, has := range slices.Sorted(maps.Keys(answers)) {
		if strings.Contains(text, has) {
			return answers[has]
		}
	}
	return nil
}

func counted(r *runs, name string) harness.Tool {
	return act(name, func(_ context.Context, c *harness.Call) (string, error) { return name + " done", r.work(c.Key()) })
}

// batch works on six files, one step each.
func batch(r *runs) harness.Tool {
	return harness.NewTool("batch", "Works.", func(ctx context.Context, c *harness.Call, _ struct{}) (string, error) {
		for i := range 6 {
			name := fmt.Sprint("file ", i+1)
			if _, err := harness.Step(ctx, c, name, func(context.Context) (int, error) { return i, r.work(c.Key() + "/" + name) }); err != nil {
				return "", err
			}
		}
		return "six files", nil
	}).Durable()
}

// pay asks the thread and then the bank, which makes one charge for a key
// however often it is asked.
func pay(r *runs) harness.Tool {
	return harness.NewTool("pay", "Pays.", func(ctx context.Context, c *harness.Call, _ struct{}) (string, error) {
		a, err := harness.Ask(ctx, c, "sure", "Pay 100 dollars?")
		if err != nil {
			return "", err
		}
		if !strings.HasPrefix(a.Text, "yes") {
			return "not paid", nil
		}
		_, err = harness.Step(ctx, c, "charge", func(context.Context) (bool, error) { return true, r.work(c.Key() + "/charge") })
		return "paid", err
	}).Durable()
}

// probed is done at most once for a key, and can say whether it was.
func probed(r *runs) harness.Tool {
	return counted(r, "act").Probe(func(_ context.Context, c *harness.Call, _ json.RawMessage) (harness.Probed, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.by[c.Key()] > 0 {
			return harness.Probed{Found: harness.FoundDone, Result: "act done"}, nil
		}
		return harness.Probed{Found: harness.FoundNothing}, nil
	})
}

// everywhere counts answers and ends, and may die in each callback.
func everywhere(r *runs) harness.Agent {
	return func(c *harness.Context) string {
		answers, ends := harness.UseState(c, "answers", 0), harness.UseState(c, "settled", 0)
		more := func(v int) int { return v + 1 }
		harness.UseResponseStart(c, "start", func(context.Context, *harness.Call) error { return r.life.point() })
		harness.UseResponseFinish(c, "finish", func(_ context.Context, call *harness.Call, _ harness.Response) error {
			answers.Update(call, more)
			return r.life.point()
		})
		harness.UseToolCall(c, "guard", func(_ context.Context, _ *harness.Call, args json.RawMessage) (json.RawMessage, error) {
			return args, r.life.point()
		})
		harness.UseSettled(c, "settled", func(_ context.Context, call *harness.Call, _ harness.Settled) error {
			ends.Update(call, more)
			return r.life.point()
		})
		return plain(counted(r, "look"))(c)
	}
}

func useCount(c *harness.Context, r *runs) {
	n := harness.UseState(c, "n", 0)
	harness.UseTool(c, act("count", func(_ context.Context, call *harness.Call) (string, error) {
		n.Update(call, func(v int) int { return v + 1 })
		return "counted", r.work(call.Key())
	}))
}

func tally(r *runs) harness.Agent {
	return func(c *harness.Context) string {
		useCount(c, r)
		return plain()(c) + fmt.Sprint(harness.UseState(c, "n", 0).Value)
	}
}

// counts holds a state to the calls of the tool count that are done.
func counts(name string) func(testing.TB, *world, *record.Fold) {
	return func(t testing.TB, w *world, f *record.Fold) {
		done := 0
		for _, d := range of[record.Did](w.records()) {
			if d.Tool == "count" && d.End == record.Done {
				done++
			}
		}
		if got := string(f.State[name]); got != fmt.Sprint(done) && done > 0 {
			t.Errorf("the state is %s after %d calls", got, done)
		}
	}
}

func hooked(r *runs) harness.Agent {
	return func(c *harness.Context) string {
		starts, ends := harness.UseState(c, "starts", 0), harness.UseState(c, "ends", 0)
		harness.UseTurnStart(c, "start", func(_ context.Context, call *harness.Call) error {
			starts.Update(call, func(v int) int { return v + 1 })
			return r.life.point()
		})
		harness.UseTurnFinish(c, "end", func(_ context.Context, call *harness.Call, _ string) (string, error) {
			ends.Update(call, func(v int) int { return v + 1 })
			return "", r.life.point()
		})
		return plain()(c) + fmt.Sprint(starts.Value)
	}
}

func sentBack(r *runs) harness.Agent {
	return func(c *harness.Context) string {
		harness.UseTurnFinish(c, "longer", func(_ context.Context, _ *harness.Call, answer string) (string, error) {
			if answer == "short" {
				return "Say more.", r.life.point()
			}
			return "", r.life.point()
		})
		return plain()(c)
	}
}
