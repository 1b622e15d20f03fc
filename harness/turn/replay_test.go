package turn

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/scripted"
)

// After a crash the next request holds the recorded answer byte for byte, and
// the model is not asked for it again; so do the requests of later turns.
func TestRecordedAnswerIsReplayed(t *testing.T) {
	t.Parallel()
	answer := []model.Part{
		{Kind: model.Reasoning, Text: "hm & <so>\u2028", Opaque: json.RawMessage(`{"sig":"a<b>&\u2028é","n":1.0}`), From: "scripted/fast-1"},
		{Kind: model.Text, Text: " I look.\t</heard> \U0001F9F6\n"},
		{Kind: model.Call, CallID: "call_7", Name: "look", Args: json.RawMessage(`{"b":1e3,"a":"\u003c<é"}`)},
	}
	type in struct {
		A string  `json:"a"`
		B float64 `json:"b"`
	}
	look := harness.NewTool("look", "Looks.", func(context.Context, *harness.Call, in) (string, error) { return "seen", nil })
	for name, dies := range map[string]func(int) fate{
		"never":                           never,
		"when the answer is recorded":     at(1, after),
		"before the results are recorded": at(2, before),
		"when the results are recorded":   at(2, after),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, plain(look), scripted.Answer(answer...), scripted.Say("done"), scripted.Say("again"))
			w.log = &mortal{Log: w.store, dies: dies}
			w.restart()
			w.say("U1", "go")
			if err := w.try(); err != nil {
				if !errors.Is(err, errDied) {
					t.Fatal(err)
				}
				w.store.Expire()
			}
			w.log = w.store
			w.restart()
			w.run()
			w.restart()
			w.ask("U1", "go on")
			if n := len(w.model.Requests()); n != 3 {
				t.Fatalf("the model was asked %d times, want 3: for the answer, after the results, in the next turn", n)
			}
			for i := 1; i < 3; i++ {
				if d := cmp.Diff(model.Message{Role: model.Assistant, Parts: answer}, w.request(i).Messages[1]); d != "" {
					t.Errorf("request %d (-want +got):\n%s", i, d)
				}
			}
			if d := cmp.Diff([]string{"done", "again"}, w.posts()); d != "" {
				t.Errorf("posts (-want +got):\n%s", d)
			}
		})
	}
}
