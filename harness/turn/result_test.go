package turn

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/scripted"
)

const orderSchema = `{"type":"object","properties":{"id":{"type":"string"},"n":{"type":"integer"}},"required":["id"],"additionalProperties":false}`

// want says something whose answer must have a form, and runs.
func (w *world) want(text, schema string) {
	w.t.Helper()
	w.mu.Lock()
	w.said++
	e := chat.Event{ID: fmt.Sprint("E", w.said), Thread: thread, Kind: chat.Message, Text: text, Author: chat.Author{ID: "U1"}}
	w.mu.Unlock()
	if schema != "" {
		e.Want = json.RawMessage(schema)
	}
	w.event(e, false)
	w.run()
}

// The tools that give a result are there for the turn whose event wants one, and
// for no other.
func TestResultToolsAreThereForOneCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain(act("look", func(context.Context, *harness.Call) (string, error) { return "seen", nil })),
		scripted.Say("free"), call("look"), scripted.Call("finish", `{"id":"A-7","n":2}`), scripted.Say("free again"))
	w.want("1", "")
	w.want("2", orderSchema)
	w.want("3", "")
	var got []string
	for i := range w.model.Requests() {
		got = append(got, offered(w.request(i)))
	}
	if d := cmp.Diff([]string{"look", "look finish give_up", "look finish give_up", "look"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"free", "```json\n{\n  \"id\": \"A-7\",\n  \"n\": 2\n}\n```", "free again"}, w.posts()); d != "" {
		t.Errorf("posts (-want +got):\n%s", d)
	}
	s := of[record.Settled](w.records())
	if string(s[1].Value) != `{"id":"A-7","n":2}` || s[0].Value != nil || s[2].Value != nil || s[1].Outcome != record.Answered {
		t.Errorf("settled %+v", s)
	}
	if _, tool := w.engineTool("finish"); !strings.Contains(tool, `"required":["id"]`) {
		t.Errorf("the schema of finish is %s", tool)
	}
}

// engineTool finds a tool in the requests.
func (w *world) engineTool(name string) (model.Tool, string) {
	for i := range w.model.Requests() {
		for _, t := range w.request(i).Tools {
			if t.Name == name {
				return t, string(t.Schema)
			}
		}
	}
	return model.Tool{}, ""
}

// An answer in plain text is sent back twice; then the turn fails, and says why.
func TestPlainTextIsNoResult(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain(), scripted.Say("It is A-7."), scripted.Say("A-7!"), scripted.Say("I told you: A-7."), scripted.Say("free"))
	w.want("1", orderSchema)
	if got := trace(w.records()); got != "heard rendered said sent rendered said sent rendered said settled:failed" {
		t.Errorf("the log is %s", got)
	}
	if s := of[record.Settled](w.records())[0]; s.Reason != "no result" || s.Value != nil {
		t.Errorf("settled %+v", s)
	}
	if d := cmp.Diff([]string{lineResult}, w.posts()); d != "" {
		t.Errorf("posts (-want +got):\n%s", d)
	}
	if n := notices(w.request(2)); len(n) != 2 || n[0] != nudge || n[1] != nudge {
		t.Errorf("the model was told %q", n)
	}
	w.want("2", "")
	if got := w.posts()[1]; got != "free" {
		t.Errorf("the next turn answers %q", got)
	}
}

// A nudge helps: the second try is taken.
func TestNudgedModelFinishes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain(), scripted.Say("It is A-7."), scripted.Call("finish", `{"id":"A-7"}`))
	w.want("1", orderSchema)
	if s := of[record.Settled](w.records())[0]; string(s.Value) != `{"id":"A-7"}` {
		t.Errorf("settled %+v", s)
	}
}

// A result of the wrong form is an error that the model is told; its second try is taken.
func TestResultIsChecked(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ schema, wrong, right, value, post string }{
		"object":  {orderSchema, `{"id":7}`, `{"id":"A-7"}`, `{"id":"A-7"}`, "```json\n{\n  \"id\": \"A-7\"\n}\n```"},
		"more":    {orderSchema, `{"id":"A-7","x":1}`, `{"id":"A-7"}`, `{"id":"A-7"}`, "```json\n{\n  \"id\": \"A-7\"\n}\n```"},
		"text":    {`{"type":"string","maxLength":3}`, `{"result":"too long"}`, `{"result":"yes"}`, `"yes"`, "yes"},
		"number":  {`{"type":"integer"}`, `{}`, `{"result":42}`, `42`, "```json\n42\n```"},
		"list":    {`{"type":"array","items":{"$ref":"#/$defs/x"},"$defs":{"x":{"enum":["a","b"]}}}`, `{"result":["c"]}`, `{"result":["a"]}`, `["a"]`, "```json\n[\n  \"a\"\n]\n```"},
		"nothing": {`{"type":["null","string"]}`, `{"result":1}`, `{"result":null}`, `null`, "```json\nnull\n```"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, plain(), scripted.Call("finish", tt.wrong), scripted.Call("finish", tt.right))
			w.want("1", tt.schema)
			dids := of[record.Did](w.records())
			if len(dids) != 2 || dids[0].End != record.Refused || !strings.Contains(dids[0].Text, "the arguments do not fit") || dids[1].End != record.Done {
				t.Fatalf("results %+v", dids)
			}
			res, s := of[record.Resulted](w.records()), of[record.Settled](w.records())[0]
			if len(res) != 1 || string(res[0].Value) != tt.value || string(s.Value) != tt.value {
				t.Errorf("recorded %+v, settled %+v", res, s)
			}
			if d := cmp.Diff([]string{tt.post}, w.posts()); d != "" {
				t.Errorf("posts (-want +got):\n%s", d)
			}
		})
	}
}

// The first valid result of a step counts; what was called beside it is answered.
func TestFirstResultOfAStepCounts(t *testing.T) {
	t.Parallel()
	looked := 0
	w := newWorld(t, plain(act("look", func(context.Context, *harness.Call) (string, error) { looked++; return "seen", nil })),
		scripted.Answer(scripted.ToolCall("finish", `{}`), scripted.ToolCall("finish", `{"id":"1"}`), scripted.ToolCall("look", `{}`),
			scripted.ToolCall("finish", `{"id":"2"}`), scripted.ToolCall("give_up", `{"reason":"no"}`)), scripted.Say("free"))
	w.want("1", orderSchema)
	var ends []string
	for _, d := range of[record.Did](w.records()) {
		ends = append(ends, d.Tool+" "+string(d.End))
	}
	if d := cmp.Diff([]string{"finish refused", "finish done", "look done", "finish failed", "give_up failed"}, ends); d != "" || looked != 1 {
		t.Errorf("looked %d times, (-want +got):\n%s", looked, d)
	}
	if s := of[record.Settled](w.records())[0]; string(s.Value) != `{"id":"1"}` {
		t.Errorf("settled %+v", s)
	}
	w.want("2", "") // the request is whole
}

// A model that gives up ends the turn with its reason.
func TestGiveUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain(), scripted.Call("give_up", `{"reason":" "}`), scripted.Call("give_up", `{"reason":"There is no such order."}`))
	w.want("1", orderSchema)
	s := of[record.Settled](w.records())[0]
	if s.Outcome != record.Declined || s.Reason != "gave up" || s.Value != nil {
		t.Errorf("settled %+v", s)
	}
	if d := cmp.Diff([]string{"There is no such order."}, w.posts()); d != "" {
		t.Errorf("posts (-want +got):\n%s", d)
	}
	if res := of[record.Resulted](w.records()); len(res) != 1 || res[0].GaveUp != "There is no such order." || res[0].Value != nil {
		t.Errorf("recorded %+v", res)
	}
}

// An agent may want a form by itself, in the steps that say so; finish callbacks
// see the result and may send the model back; a subagent's giver gets the value.
func TestAgentWantsAResult(t *testing.T) {
	t.Parallel()
	type order struct {
		ID string `json:"id"`
	}
	var answers []string
	w := newWorld(t, func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		ready := harness.UseState(c, "ready", false)
		harness.UseTool(c, act("look", func(_ context.Context, call *harness.Call) (string, error) { ready.Set(call, true); return "", nil }))
		if ready.Value {
			harness.UseResult[order](c)
		}
		harness.UseTurnFinish(c, "check", func(_ context.Context, _ *harness.Call, answer string) (string, error) {
			answers = append(answers, answer)
			if strings.Contains(answer, "wrong") {
				return "There is no such order.", nil
			}
			return "", nil
		})
		return ""
	}, call("look"), scripted.Call("finish", `{"id":"wrong"}`), scripted.Call("finish", `{"id":"A-7"}`))
	w.ask("U1", "go")
	var got []string
	for i := range w.model.Requests() {
		got = append(got, offered(w.request(i)))
	}
	if d := cmp.Diff([]string{"look", "look finish give_up", "look finish give_up"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	s := of[record.Settled](w.records())[0]
	if string(s.Value) != `{"id":"A-7"}` || len(answers) != 2 || !strings.Contains(answers[0], "wrong") {
		t.Errorf("settled %+v after %q", s, answers)
	}
	if n := notices(w.request(-1)); !slices.Contains(n, "There is no such order.") {
		t.Errorf("the model was told %q", n)
	}

	sub := worldOf(t, func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		harness.UseSubagent(c, harness.Subagent{Name: "finder", Doc: "finds orders", Agent: func(c *harness.Context) string {
			harness.UseResult[order](c)
			return "Find it."
		}})
		return "Help."
	}, scripted.Play(func(ctx context.Context, r model.Request) (model.Response, error) {
		switch {
		case strings.HasPrefix(r.System, "Find it."):
			return scripted.Call("finish", `{"id":"A-7"}`)(ctx, r)
		case len(r.Messages) == 1:
			return scripted.Call("task", `{"agent":"finder","prompt":"find"}`)(ctx, r)
		}
		return scripted.Say("found")(ctx, r)
	}, 0))
	sub.wary.stable = false
	sub.ask("U1", "go")
	if dids := of[record.Did](sub.records()); len(dids) != 1 || dids[0].Text != `{"id":"A-7"}` {
		t.Errorf("the giver got %+v", dids)
	}
}

// Whatever commit the process dies at, there is one result and one post.
func TestResultOverCrashes(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		died := true
		for n := 1; died; n++ {
			w := worldOf(t, plain(), scripted.Play(scripted.Call("finish", `{"id":"A-7"}`), 0))
			w.event(chat.Event{ID: "E1", Thread: thread, Kind: chat.Message, Text: "go", Author: chat.Author{ID: "U1"}, Want: json.RawMessage(orderSchema)}, false)
			died = w.die(n, after)
			res, s := of[record.Resulted](w.records()), of[record.Settled](w.records())
			if len(res) != 1 || len(s) != 1 || string(s[0].Value) != `{"id":"A-7"}` || len(w.posts()) != 1 {
				t.Errorf("died at commit %d (after: %v): results %+v, settled %+v, posts %q", n, after, res, s, w.posts())
			}
		}
	}
}

// A result that was given beside a call that waits is kept until that has ended;
// what is said meanwhile makes the model think again.
func TestResultWaitsForOpenCalls(t *testing.T) {
	t.Parallel()
	for _, said := range []bool{false, true} {
		open := false
		var w *world
		job := act("job", func(_ context.Context, c *harness.Call) (string, error) {
			if !open {
				return "", &harness.Wait{Until: c.Now().Add(time.Minute)}
			}
			return "ready", nil
		}).Durable()
		w = newWorld(t, plain(job), scripted.Answer(scripted.ToolCall("job", `{}`), scripted.ToolCall("finish", `{"id":"A-7"}`)),
			scripted.Call("finish", `{"id":"B-8"}`))
		w.want("1", orderSchema)
		if got := trace(w.records()); got != "heard rendered said did:done resulted" {
			t.Fatalf("the log is %s", got)
		}
		open = true
		w.restart()
		want := `{"id":"A-7"}`
		if said {
			w.say("U1", "B-8, I meant")
			want = `{"id":"B-8"}`
		}
		w.pass(2 * time.Minute)
		w.run()
		if s := of[record.Settled](w.records()); len(s) != 1 || string(s[0].Value) != want || len(w.posts()) != 1 {
			t.Errorf("said: %v, settled %+v, posts %q", said, s, w.posts())
		}
	}
}
