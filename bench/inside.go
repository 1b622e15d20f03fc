//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	engine "github.com/heddlehq/heddle/harness/turn"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/scripted"
	"github.com/heddlehq/heddle/state"
	"github.com/heddlehq/heddle/state/mem"
)

// An insideReport says what the harness itself takes, in milliseconds: the least
// of several times.
type insideReport struct {
	Render float64 `json:"render_ms"` // of an agent of twenty tools
	Step   float64 `json:"step_ms"`   // one of twenty of a turn: the model and the tool take no time, the store is in memory
	Cold   float64 `json:"cold_ms"`   // to fold insideRecords records
	Warm   float64 `json:"warm_ms"`   // to go on where this process has the fold
}

const (
	insideTools   = 20
	insideSteps   = 20
	insideRecords = 10_000
)

// measureInside measures in this process.
func measureInside(ctx context.Context) (insideReport, error) {
	var rep insideReport
	agent := lookout(insideTools)
	snap := harness.Snapshot{State: map[string]json.RawMessage{"n": json.RawMessage("3")}}
	var err error
	const renders = 200
	rep.Render = timed(100, func() {
		for range renders {
			if _, rerr := harness.Render(agent, snap); rerr != nil {
				err = rerr
			}
		}
	}) / renders
	if err != nil {
		return rep, err
	}
	if rep.Step, err = measureStep(ctx, agent); err != nil {
		return rep, err
	}
	records, err := longLog(insideRecords)
	if err != nil {
		return rep, err
	}
	rep.Cold = timed(20, func() {
		f := &record.Fold{}
		err = f.Add(records)
	})
	if err != nil {
		return rep, err
	}
	// One fold is gone on with; each time ten records more are there.
	const more = 10
	f := &record.Fold{}
	if err := f.Add(records[:insideRecords-100*more]); err != nil {
		return rep, err
	}
	at := len(records) - 100*more
	rep.Warm = timed(100, func() {
		if aerr := f.Add(records[at : at+more]); aerr != nil {
			err = aerr
		}
		at += more
	})
	return rep, err
}

// timed is the least of so many times, in milliseconds: what else the machine
// does can only add to it.
func timed(n int, f func()) float64 {
	least := math.Inf(1)
	for range n {
		began := time.Now()
		f()
		least = min(least, float64(time.Since(began))/1e6)
	}
	return least
}

// lookout is an agent of so many tools.
func lookout(tools int) harness.Agent {
	return func(c *harness.Context) string {
		harness.UseModel(c, "scripted/m")
		for i := range tools {
			harness.UseTool(c, harness.NewTool(fmt.Sprintf("look_%d", i), "Looks at something and says what there is.", func(context.Context, *harness.Call, struct {
				ID    string `json:"id" jsonschema:"what is meant"`
				Limit int    `json:"limit,omitempty" jsonschema:"most lines"`
			},
			) (string, error) {
				return "seen", nil
			}))
		}
		return fmt.Sprint("Help. Asked ", harness.UseState(c, "n", 0).Value, " times.")
	}
}

// measureStep runs turns of many steps, each a call of a tool.
func measureStep(ctx context.Context, agent harness.Agent) (float64, error) {
	p := scripted.Play(func(ctx context.Context, r model.Request) (model.Response, error) {
		if len(r.Messages) < 2*insideSteps {
			return scripted.Call("look_0", `{"id":"x"}`)(ctx, r)
		}
		return scripted.Say("ok")(ctx, r)
	}, 0)
	models, err := model.NewNames([]model.Provider{p}, nil, map[string]model.Spec{"scripted/m": {Window: 1_000_000, MaxOut: 1000}})
	if err != nil {
		return 0, err
	}
	store := mem.Open(time.Now)
	e, err := engine.New(engine.Options{
		Log: store, Agents: map[string]harness.Agent{"look": agent}, Models: models, Clock: time.Now, Logger: slog.New(slog.DiscardHandler),
		Role:    func(context.Context, chat.Thread, chat.Author) (chat.Role, error) { return chat.Member, nil },
		Compose: func(_ chat.Thread, text string, _ chat.Role) ([]string, bool) { return []string{text}, false },
	})
	if err != nil {
		return 0, err
	}
	n := 0
	took := timed(50, func() {
		n++
		event := chat.Event{ID: fmt.Sprint(n), Thread: chat.Thread{Channel: "bench", Account: "a", Room: fmt.Sprint(n)}, Kind: chat.Message, Text: "look", Author: chat.Author{ID: "U1"}}
		if _, aerr := store.Admit(ctx, []state.Admit{{Event: event, Agent: "look"}}); aerr != nil {
			err = aerr
			return
		}
		lease, cerr := store.Claim(ctx, "bench", time.Hour)
		if cerr != nil {
			err = cerr
			return
		}
		if rerr := e.Run(ctx, ctx, lease); rerr != nil {
			err = rerr
		}
	})
	return took / insideSteps, err
}

// longLog is the log of a conversation of turns with a call each.
func longLog(records int) ([]state.Record, error) {
	m, err := harness.Render(lookout(insideTools), harness.Snapshot{})
	if err != nil {
		return nil, err
	}
	v := m.View()
	digest := v.Digest()
	var out []state.Record
	for turn := 0; len(out) < records; turn++ {
		id, call := fmt.Sprint("t", turn), fmt.Sprint("call_", turn)
		first := record.Rendered{Turn: id, Step: 1, Digest: digest}
		if turn == 0 {
			first.View = &v
		}
		for _, b := range []record.Body{
			record.Heard{Turn: id, Event: chat.Event{ID: id, Kind: chat.Message, Text: strings.Repeat("word ", 40), Author: chat.Author{ID: "U1"}}, Role: chat.Member},
			first,
			record.Said{Turn: id, Step: 1, Stop: model.StopTools, Parts: []model.Part{{Kind: model.Call, CallID: call, Name: "look_0", Args: json.RawMessage(`{"id":"x"}`)}}},
			record.Did{Turn: id, Step: 1, CallID: call, Tool: "look_0", End: record.Done, Text: strings.Repeat("line ", 40)},
			record.Rendered{Turn: id, Step: 2, Digest: digest},
			record.Said{Turn: id, Step: 2, Stop: model.StopEnd, Parts: []model.Part{{Kind: model.Text, Text: strings.Repeat("answer ", 40)}}},
			record.Settled{Turn: id, Outcome: record.Answered, Steps: 2, Posts: 1},
		} {
			r, err := record.Encode(b)
			if err != nil {
				return nil, err
			}
			r.Seq = int64(len(out) + 1)
			out = append(out, r)
		}
	}
	return slices.Clip(out[:records]), nil
}

// insideTable says what was to be reached and what was.
func insideTable(r insideReport) string {
	var b strings.Builder
	b.WriteString("| figure | wanted | reached | |\n| --- | --: | --: | --- |\n")
	for _, t := range []struct {
		name          string
		want, reached float64
		unit          string
	}{
		{"render of an agent with 20 tools", 50, 1000 * r.Render, "µs"},
		{"a step of 20 tools, without the model's and the tool's time", 2, r.Step, "ms"},
		{"10 000 records folded by a process that has none", 100, r.Cold, "ms"},
		{"the next 10 by a process that has the others", 1, r.Warm, "ms"},
	} {
		fmt.Fprintf(&b, "| %s | at most %v %s | %v %s | %s |\n", t.name, t.want, t.unit, round(t.reached), t.unit, map[bool]string{true: "met", false: "**missed**"}[t.reached <= t.want])
	}
	return b.String()
}
