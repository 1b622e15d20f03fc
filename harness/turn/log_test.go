package turn

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/scripted"
)

// A simple question takes few records.
func TestSimpleAnswerTakesFewRecords(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain(), scripted.Say("4"))
	w.ask("U1", "2+2?")
	if got := trace(w.records()); got != "heard rendered said settled:answered" {
		t.Errorf("the log is %s", got)
	}
}

// The raw answer, what was read from it and the model's version are kept, and
// the next request is made of them.
func TestAnswerIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain(act("look", func(context.Context, *harness.Call) (string, error) { return "seen", nil })),
		func(context.Context, model.Request) (model.Response, error) {
			return model.Response{
				Parts: []model.Part{{Kind: model.Reasoning, Text: "hm", Opaque: json.RawMessage(`{"sig": "<x>"}`)}, scripted.ToolCall("look", `{}`)},
				Model: "fast-1-20260301", ID: "resp_7", Raw: json.RawMessage(`{"id": "resp_7"}`), Usage: model.Usage{In: 1_000_000, Out: 100_000},
			}, nil
		}, scripted.Say("done"))
	w.ask("U1", "go")
	said := of[record.Said](w.records())[0]
	if said.Asked != "scripted/fast-1" || said.Answered != "fast-1-20260301" || said.ID != "resp_7" || string(said.Raw) != `{"id":"resp_7"}` || said.Stop != model.StopTools || said.Cost != 2 {
		t.Errorf("kept %+v", said)
	}
	if len(said.Parts) != 2 || said.Parts[1].Name != "look" || len(w.model.Requests()) != 2 {
		t.Errorf("%d requests, kept parts %+v", len(w.model.Requests()), said.Parts)
	}
	if settled := of[record.Settled](w.records())[0]; settled.Cost < 2 || settled.Usage.In < 1_000_000 || settled.Steps != 2 || settled.Attempt != 1 || settled.Posts != 1 {
		t.Errorf("settled %+v", settled)
	}
}

// Each call keeps the version of the prompt, the digest of its arguments and of its result.
func TestCallsKeepDigests(t *testing.T) {
	t.Parallel()
	type in struct {
		A string `json:"a,omitempty"`
	}
	look := harness.NewTool("look", "", func(_ context.Context, _ *harness.Call, a in) (string, error) { return "seen " + a.A, nil })
	w := newWorld(t, plain(look), scripted.Answer(
		scripted.ToolCall("look", `{"a":"x"}`), scripted.ToolCall("look", `{"a":"x"}`), scripted.ToolCall("look", `{"a":"y"}`), scripted.ToolCall("look", `oops`)), scripted.Say("ok"))
	w.ask("U1", "go")
	said, did := of[record.Said](w.records()), of[record.Did](w.records())
	if said[0].Prompt != digest([]byte(w.request(0).System)) || said[0].Prompt != said[1].Prompt {
		t.Errorf("prompt %q, then %q", said[0].Prompt, said[1].Prompt)
	}
	if len(did) != 4 || did[0].Args != digest([]byte(`{"a":"x"}`)) || did[0].Args != did[1].Args || did[0].Digest != did[1].Digest ||
		did[0].Args == did[2].Args || did[0].Digest == did[2].Digest || did[3].Args != digest([]byte("oops")) {
		t.Errorf("kept %+v", did)
	}
}
