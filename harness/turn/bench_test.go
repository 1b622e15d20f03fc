package turn

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/scripted"
)

func benchWorld(b *testing.B, agent harness.Agent, step scripted.Step) *world {
	w := worldOf(b, agent, scripted.Play(step, 0))
	w.opts.Logger = slog.New(slog.DiscardHandler)
	w.restart()
	return w
}

// BenchmarkTurn is a whole simple turn: admit, claim, render, ask, commit.
func BenchmarkTurn(b *testing.B) {
	w := benchWorld(b, plain(), scripted.Say("ok"))
	n := 0
	for b.Loop() {
		n++
		w.admit("U1", "hi", chat.Thread{Channel: "slack", Account: "T1", Room: "C1", Root: fmt.Sprint(n)}, false)
		w.wary.last = nil
		if err := w.try(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSteps is a turn of twenty steps with twenty tools: what one step
// costs beside the model and the tool is a twentieth.
func BenchmarkSteps(b *testing.B) {
	tools := []harness.Tool{act("look", func(context.Context, *harness.Call) (string, error) { return "seen", nil })}
	for i := range 19 {
		tools = append(tools, act(fmt.Sprint("tool_", i), nil))
	}
	n := 0
	w := benchWorld(b, plain(tools...), func(ctx context.Context, r model.Request) (model.Response, error) {
		if len(r.Messages) < 2*20 {
			return call("look")(ctx, r)
		}
		return scripted.Say("ok")(ctx, r)
	})
	for b.Loop() {
		n++
		w.admit("U1", "hi", chat.Thread{Channel: "slack", Account: "T1", Room: "C1", Root: fmt.Sprint(n)}, false)
		w.wary.last = nil
		if err := w.try(); err != nil {
			b.Fatal(err)
		}
	}
}
