package turn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/scripted"
)

// tools are one of each kind.
func (s *storm) tools() []harness.Tool {
	once := func(name string) harness.Tool {
		return act(name, func(ctx context.Context, c *harness.Call) (string, error) {
			return name + " done " + long(300*s.n(2)), s.work(ctx, c.Key())
		})
	}
	steps := func(ctx context.Context, c *harness.Call, ask bool) (string, error) {
		for i := range 3 {
			name := fmt.Sprint("step ", i)
			if _, err := harness.Step(ctx, c, name, func(ctx context.Context) (int, error) { return i, s.work(ctx, c.Key()+"/"+name) }); err != nil {
				return "", err
			}
			if ask && i == 0 {
				var o []harness.AskOption
				if s.chance(0.5) {
					o = append(o, harness.ExpiresAt(c.Now().Add(time.Hour), "too late"))
				}
				if _, err := harness.Ask(ctx, c, "sure", "Sure, "+c.ID+"?", o...); err != nil {
					return "", err
				}
			}
		}
		return "steps done", nil
	}
	return []harness.Tool{
		once("look").Quiet(), once("search").Interruptible(), once("first").SerialWith("g"), once("second").SerialWith("g"),
		durable("batch", func(ctx context.Context, c *harness.Call) (string, error) { return steps(ctx, c, false) }),
		durable("pay", func(ctx context.Context, c *harness.Call) (string, error) { return steps(ctx, c, true) }).SerialWith("g"),
		act("form", func(ctx context.Context, c *harness.Call) (string, error) { return steps(ctx, c, true) }).Asks(),
		durable("nap", func(ctx context.Context, c *harness.Call) (string, error) {
			return "awake", harness.Sleep(ctx, c, "nap", c.Now().Add(10*time.Minute))
		}).Interruptible(),
		durable("poll", func(_ context.Context, c *harness.Call) (string, error) {
			if s.chance(0.5) {
				return "there", nil
			}
			return "", &harness.Wait{Until: c.Now().Add(time.Minute)}
		}),
		act("order", func(ctx context.Context, c *harness.Call) (string, error) {
			err := s.work(ctx, c.Key())
			if err == nil && s.chance(0.3) {
				err = harness.ErrUnknown
			}
			return "ordered", err
		}).Probe(func(_ context.Context, c *harness.Call, _ json.RawMessage) (harness.Probed, error) {
			switch {
			case s.chance(0.3):
				return harness.Probed{Found: harness.FoundRunning}, nil
			case s.chance(0.1):
				return harness.Probed{Found: harness.FoundUnclear}, nil
			case s.chance(0.1):
				return harness.Probed{}, errors.New("no answer")
			}
			s.runs.mu.Lock()
			defer s.runs.mu.Unlock()
			if s.runs.by[c.Key()] > 0 {
				return harness.Probed{Found: harness.FoundDone, Result: "ordered"}, nil
			}
			return harness.Probed{Found: harness.FoundNothing}, nil
		}),
	}
}

func (s *storm) agent(depth int) harness.Agent {
	return func(c *harness.Context) string {
		n, off := harness.UseState(c, "n", 0), harness.UseState(c, "off", false)
		progress := harness.UseData[int](c, "progress")
		d := harness.UseDispatch(c)
		more := func(v int) int { return v + 1 }
		if depth == 0 {
			harness.UseModel(c, "fast", harness.Compact(harness.Compaction{Reserve: 500, Keep: 500}))
		}
		harness.UseSandbox(c, "memory")
		for i, t := range s.tools() {
			if i%2 == 0 || !off.Value {
				harness.UseTool(c, t)
			}
		}
		harness.UseTool(c, act("toggle", func(_ context.Context, call *harness.Call) (string, error) {
			off.Update(call, func(v bool) bool { return !v })
			return "toggled", nil
		}))
		harness.UseTool(c, act("send", func(_ context.Context, call *harness.Call) (string, error) {
			return "sent", d.Send(call, chat.Thread{}, "a text for myself")
		}))
		if s.seed%3 == 0 { // so many that they are found on demand
			for i := range 40 {
				harness.UseTool(c, act(fmt.Sprint("spare", i), func(context.Context, *harness.Call) (string, error) { return long(20), nil }).Deferred())
			}
		}
		if depth < 2 {
			harness.UseSubagent(c, harness.Subagent{Name: "helper", Doc: "helps", Agent: s.agent(depth + 1), OwnFiles: depth == 1})
		}
		harness.UseTurnStart(c, "start", func(_ context.Context, call *harness.Call) error { n.Update(call, more); return s.runs.life.point() })
		harness.UseResponseStart(c, "ask", func(context.Context, *harness.Call) error { s.happen(0.02); return s.runs.life.point() })
		harness.UseResponseFinish(c, "answer", func(_ context.Context, call *harness.Call, _ harness.Response) error {
			progress.Write(call, n.Value)
			return s.runs.life.point()
		})
		harness.UseToolCall(c, "guard", func(context.Context, *harness.Call, json.RawMessage) (json.RawMessage, error) {
			if s.chance(0.02) {
				return nil, errors.New("not today")
			}
			return nil, s.runs.life.point()
		})
		harness.UseTurnFinish(c, "finish", func(_ context.Context, call *harness.Call, _ string) (string, error) {
			if s.chance(0.1) {
				return "Once more.", nil
			}
			if s.chance(0.1) {
				return "", d.Send(call, chat.Thread{}, "a text at the end")
			}
			return "", s.runs.life.point()
		})
		harness.UseCompaction(c, "keep", func(ctx context.Context, _ *harness.Call, _ harness.Summarised) (string, error) {
			s.pause(ctx)
			if ctx.Err() != nil {
				return "", ctx.Err()
			}
			return "kept", s.runs.life.point()
		})
		if depth > 0 {
			return fmt.Sprint("Child ", depth)
		}
		harness.UseSettled(c, "settled", func(ctx context.Context, call *harness.Call, e harness.Settled) error {
			s.happen(0.05)
			s.pause(ctx)
			n.Update(call, more)
			if s.chance(0.1) {
				_ = d.Send(call, chat.Thread{}, "a text after the end") // may be one too many
			}
			return s.runs.life.point()
		})
		return "Help."
	}
}

// answer is the model's, with what the provider counted.
func (s *storm) answer(ctx context.Context, r model.Request) (model.Response, error) {
	resp, err := s.model(ctx, r)
	if s.cached {
		resp.Usage = model.Usage{In: 100, Out: 10, Cached: 50}
	}
	return resp, err
}

// model does anything.
func (s *storm) model(ctx context.Context, r model.Request) (model.Response, error) {
	s.happen(0.05)
	s.pause(ctx)
	if r.System == summarise {
		if s.chance(0.1) {
			return scripted.Fault(model.Denied, 0)(ctx, r)
		}
		return scripted.Say(goodSummary)(ctx, r)
	}
	faults := []model.Fault{model.Transient, model.Overflow, model.Limited, model.Garbled, model.Denied, model.Stalled}
	if !s.is(nil) && s.chance(0.06) {
		resp, _ := scripted.Say("half a")(ctx, r)
		return resp, &model.Error{Fault: faults[s.n(len(faults))]}
	}
	if len(r.Tools) == 0 || s.is(nil) && s.chance(0.5) || s.chance(0.25) {
		if s.chance(0.1) { // takes its time, and may break off
			err := error(nil)
			if s.chance(0.4) {
				err = &model.Error{Fault: model.Stalled}
			}
			resp, _ := scripted.Say(story)(ctx, r)
			return resp, err
		}
		var parts []model.Part
		if offers(r, "finish") && s.chance(0.8) {
			parts = append(parts, scripted.ToolCall("finish", `{"id":"A-7"}`))
		}
		if len(parts) == 0 {
			return scripted.Say([]string{"an answer", long(100), " "}[s.n(3)])(ctx, r)
		}
		return scripted.Answer(parts...)(ctx, r)
	}
	var parts []model.Part
	if s.chance(0.2) {
		parts = append(parts, model.Part{Kind: model.Text, Text: "Let me see."})
	}
	for range 1 + s.n(3) {
		name, args := r.Tools[s.n(len(r.Tools))].Name, "{}"
		switch name {
		case "task":
			args = `{"agent":"helper","prompt":"do it"}`
		case "write":
			args = `{"path":"a","content":"1. 2."}`
		case "edit":
			args = `{"path":"a","old_text":"1.","new_text":"3. 1."}`
		case "finish":
			args = []string{`{"id":"A-7"}`, `{"id":7}`}[s.n(2)]
		case "give_up":
			args = `{"reason":"I cannot"}`
		case "bash":
			args = `{"command":"touch b"}`
		case "read":
			args = `{"path":"a"}`
		case "search_tools":
			args = fmt.Sprintf(`{"query":"spare%d does"}`, s.n(40))
		case "grep", "glob":
			args = `{"pattern":"a"}`
		}
		if s.chance(0.03) {
			name, args = "nothing", "{"
		}
		parts = append(parts, scripted.ToolCall(name, args))
	}
	return scripted.Answer(parts...)(ctx, r)
}

func offers(r model.Request, name string) bool {
	return slices.ContainsFunc(r.Tools, func(t model.Tool) bool { return t.Name == name })
}

// work is what a tool does outside.
func (s *storm) work(ctx context.Context, key string) error {
	s.happen(0.1)
	if err := s.runs.work(key); err != nil {
		return err
	}
	s.pause(ctx)
	s.happen(0.1)
	if s.chance(0.05) {
		return errors.New("it failed")
	}
	if s.chance(0.02) {
		panic("a bug")
	}
	return nil
}
