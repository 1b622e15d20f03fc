package turn

import (
	"context"
	"strings"
	"testing"

	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/scripted"
)

// The results of a step take at most a quarter of the window, so that one of
// them cannot make the conversation too long for good.
func TestResultsFitTheWindow(t *testing.T) {
	t.Parallel()
	big := act("big", func(context.Context, *harness.Call) (string, error) { return strings.Repeat("x", 200_000), nil })
	w := newWorld(t, plain(big), scripted.Answer(scripted.ToolCall("big", "{}"), scripted.ToolCall("big", "{}")), scripted.Say("ok"))
	w.window(32_000)
	w.ask("U1", "go")
	total := 0
	for _, d := range of[record.Did](w.records()) {
		total += len(d.Text)
		if !strings.Contains(d.Text, "of 200000 bytes; ask for less at once") {
			t.Errorf("a result does not say that it is cut: %q", d.Text[len(d.Text)-80:])
		}
	}
	if most := 32_000 * 36 / 10 / 4; total > most+200 || total < most/2 {
		t.Errorf("the results take %d bytes, want about %d", total, most)
	}
}

// The level of thinking reaches the model, as far as the model can.
func TestThinking(t *testing.T) {
	t.Parallel()
	for levels, want := range map[string]model.Thinking{"off low medium high": model.ThinkHigh, "off low": model.ThinkLow, "": ""} {
		w := newWorld(t, func(c *harness.Context) string {
			harness.UseModel(c, "fast", harness.Thinking(model.ThinkHigh))
			return "Help."
		}, scripted.Say("ok"))
		names, err := model.NewNames([]model.Provider{w.wary}, map[string]string{"fast": "scripted/fast-1"},
			map[string]model.Spec{"scripted/fast-1": {Window: 100_000, MaxOut: 100, Thinking: levels}})
		if err != nil {
			t.Fatal(err)
		}
		w.opts.Models = names
		w.restart()
		w.ask("U1", "go")
		if got := w.request(0).Thinking; got != want {
			t.Errorf("levels %q: asked for %q, want %q", levels, got, want)
		}
	}
}
