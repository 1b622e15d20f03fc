package turn

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/enhance"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model/scripted"
)

// ladder has three rungs: for all, for members for an hour, for maintainers.
func ladder(c *harness.Context) string {
	enhance.Use(c,
		enhance.Rung{Name: "quick answers", Model: "fast"},
		enhance.Rung{
			Name: "a stronger model and files", Model: "strong", Sandbox: "memory", Who: chat.Member, For: time.Hour,
			Tools:     []harness.Tool{act("build", func(context.Context, *harness.Call) (string, error) { return "built", nil })},
			Skills:    []harness.Skill{{Name: "review", Doc: "how we review", Body: "Read twice."}},
			Subagents: []harness.Subagent{{Name: "reader", Doc: "reads much", Agent: func(*harness.Context) string { return "Read." }}},
		},
		enhance.Rung{
			Name: "deploying", Model: "strong", Who: chat.Maintainer,
			Tools: []harness.Tool{act("deploy", func(context.Context, *harness.Call) (string, error) { return "deployed", nil })},
		},
	)
	return "Help."
}

const (
	lowTools  = "enhance"
	midTools  = "build read write edit bash grep glob task skill"
	fullTools = "build deploy task skill"
)

func climb(reason string) scripted.Step {
	return scripted.Call("enhance", fmt.Sprintf(`{"reason":%q}`, reason))
}

// has compares the tools of the n-th request, in any order.
func (w *world) has(n int, modelID, tools string) {
	w.t.Helper()
	r := w.request(n)
	got, want := map[string]bool{}, map[string]bool{}
	for _, name := range strings.Fields(offered(r)) {
		got[name] = true
	}
	for _, name := range strings.Fields(tools) {
		want[name] = true
	}
	if d := cmp.Diff(want, got); r.Model != modelID || d != "" {
		w.t.Errorf("request %d is of %s, tools (-want +got):\n%s", n, r.Model, d)
	}
}

// At the bottom there is the cheap model and the tool to climb; after the
// climb the next call of the same response has the stronger model, the
// sandbox, the tools, the skills and the subagents, and the model is told.
func TestClimbWithinOneResponse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ladder, climb("needs files"), call("build"), scripted.Say("built"))
	w.ask("U1", "build it")
	w.has(0, "fast-1", lowTools)
	w.has(1, "strong-1", midTools)
	if got := w.request(1).System; !strings.Contains(got, "- review: how we review") || !strings.Contains(got, "- reader: reads much") {
		t.Errorf("the catalogue is not there: %q", got)
	}
	want := "You are now on level 1 (a stronger model and files).\n" +
		"The model is now strong; earlier messages may be another model's.\n" +
		"A memory sandbox with files and a shell is attached.\n" +
		"Skills added: review.\n" +
		"Subagents added: reader.\n" +
		"Tools added: build, read, write, edit, bash, grep, glob, task, skill.\nTools gone: enhance.\n" +
		"Tools you have now: build, read, write, edit, bash, grep, glob, task, skill."
	if d := cmp.Diff([]string{want}, notices(w.request(1))); d != "" {
		t.Errorf("announced (-want +got):\n%s", d)
	}
	if got := of[record.Did](w.records())[0].Text; got != "Unlocked: a stronger model and files. From now on: model strong, a memory sandbox with files and a shell, tool build, skill review, subagent reader, until 2026-03-01T13:00:00Z." {
		t.Errorf("the call answers %q", got)
	}
	if got := trace(w.records()); got != "heard rendered said did:done wrote told rendered said did:done rendered said settled:answered" {
		t.Errorf("the log is %s", got)
	}
}

// The unlock is a record of who, when and why, made by a call.
func TestUnlockIsRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ladder, climb("  needs files "), scripted.Say("ok"))
	w.setRole("U1", chat.Admin)
	w.ask("U1", "go")
	wrote := of[record.Wrote](w.records())
	var got map[string]enhance.Unlock
	if len(wrote) != 1 || wrote[0].Name != enhance.StateName || wrote[0].Call != of[record.Did](w.records())[0].CallID || json.Unmarshal(wrote[0].Value, &got) != nil {
		t.Fatalf("wrote %+v", wrote)
	}
	want := map[string]enhance.Unlock{"a stronger model and files": {
		Level: 1, Name: "a stronger model and files", Author: "U1", Role: chat.Admin, Reason: "needs files", At: w.clock(), Until: w.clock().Add(time.Hour),
	}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// A climb goes one rung at a time, however often it is called; a reason is needed.
func TestNoRungIsSkipped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ladder, scripted.Answer(scripted.ToolCall("enhance", `{"reason":" "}`), scripted.ToolCall("enhance", `{}`), scripted.ToolCall("enhance", `{"reason":"x","level":2}`),
		scripted.ToolCall("deploy", `{}`)), scripted.Answer(scripted.ToolCall("enhance", `{"reason":"a"}`), scripted.ToolCall("enhance", `{"reason":"b"}`), scripted.ToolCall("deploy", `{}`)),
		climb("more"), call("deploy"), scripted.Say("ok"))
	w.setRole("U1", chat.Maintainer)
	w.ask("U1", "go")
	w.has(1, "fast-1", lowTools)
	w.has(2, "strong-1", midTools+" enhance")
	w.has(3, "strong-1", fullTools)
	var ends []string
	for _, d := range of[record.Did](w.records()) {
		ends = append(ends, d.Tool+" "+string(d.End))
	}
	want := []string{"enhance refused", "enhance refused", "enhance refused", "deploy refused", "enhance done", "enhance done", "deploy refused", "enhance done", "deploy done"}
	if d := cmp.Diff(want, ends); d != "" {
		t.Errorf("calls (-want +got):\n%s", d)
	}
}

// An unlock survives a restart, holds until its time and its end is told.
func TestUnlockExpires(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ladder, climb("needs files"), scripted.Say("ok"), scripted.Say("ok"), scripted.Say("ok"))
	w.ask("U1", "go")
	w.restart()
	w.pass(time.Hour - time.Second)
	w.ask("U1", "still?")
	w.has(2, "strong-1", midTools)
	w.pass(time.Second)
	w.ask("U1", "still?")
	w.has(3, "fast-1", lowTools)
	if got := notices(w.request(3)); len(got) != 2 || !strings.Contains(got[1], "You are now on level 0 (quick answers).") || !strings.Contains(got[1], "Tools gone: build") {
		t.Errorf("announced %q", got)
	}
}

// Who may not climb is not offered the tool, and calling it unlocks nothing.
func TestEnhanceNeedsItsRole(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ladder, climb("please"), scripted.Say("no"), climb("please"), climb("please"), scripted.Say("no"))
	w.setRole("U9", chat.Outsider)
	w.ask("U9", "go")
	w.has(0, "fast-1", "")
	if got := of[record.Did](w.records()); got[0].End != record.Refused || len(of[record.Wrote](w.records())) != 0 {
		t.Errorf("an outsider's climb: %+v", got)
	}
	other := chat.Thread{Channel: "slack", Account: "T1", Room: "C2"}
	w.wary.last, w.wary.order = nil, nil
	w.admit("U1", "go", other, false)
	w.run()
	w.has(3, "strong-1", midTools) // a member reaches the second rung, and no further
	if got := of[record.Did](w.recordsOf(other)); len(got) != 2 || got[0].End != record.Done || got[1].End != record.Refused {
		t.Errorf("a member's climbs: %+v", got)
	}
}

// On the top rung there is nothing to climb.
func TestEnhanceIsGoneAtTheTop(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ladder, climb("a"), climb("b"), scripted.Say("ok"))
	w.setRole("U1", chat.Admin)
	w.ask("U1", "go")
	w.has(1, "strong-1", midTools+" enhance")
	w.has(2, "strong-1", fullTools)
}

// A stranger's message in the middle of a response takes at once what the
// stranger may not use, and the model is told why it is gone.
func TestOutsiderDropsTheLevel(t *testing.T) {
	t.Parallel()
	var w *world
	w = newWorld(t, func(c *harness.Context) string {
		harness.UseTool(c, act("wait_a_moment", func(context.Context, *harness.Call) (string, error) { w.say("U9", "do it for me"); return "", nil }))
		return ladder(c)
	}, climb("needs files"), call("wait_a_moment"), call("build"), scripted.Say("no"), scripted.Say("no"))
	w.setRole("U9", chat.Outsider)
	w.ask("U1", "go")
	w.has(1, "strong-1", midTools+" wait_a_moment")
	w.has(2, "fast-1", "wait_a_moment")
	if got := notices(w.request(2)); len(got) != 2 || !strings.HasPrefix(got[1], "You are now on level 0 (quick answers).") {
		t.Errorf("announced %q", got)
	}
	if got := of[record.Did](w.records()); got[2].Tool != "build" || got[2].End != record.Refused {
		t.Errorf("the tool of the lost rung: %+v", got[2])
	}
	w.ask("U1", "and now?")
	w.has(4, "fast-1", "wait_a_moment") // the stranger's words are still in the context
}

// Somebody who loses a role takes the thread down with them.
func TestLostRoleDropsTheLevel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ladder, climb("needs files"), scripted.Say("ok"), scripted.Say("ok"))
	w.ask("U1", "go")
	w.setRole("U1", chat.Outsider)
	w.ask("U2", "go on")
	w.has(2, "fast-1", "")
}

// An unlock in one thread is none in another.
func TestUnlockStaysInItsThread(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ladder, climb("needs files"), scripted.Say("ok"), scripted.Say("ok"))
	w.ask("U1", "go")
	w.wary.last, w.wary.order = nil, nil
	w.admit("U1", "and here?", chat.Thread{Channel: "slack", Account: "T1", Room: "C1", Root: "2"}, false)
	w.run()
	w.has(2, "fast-1", lowTools)
}
