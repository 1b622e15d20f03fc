package turn

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model/scripted"
)

// A skill binds the rest of the turn it was read in, also in another process,
// and not the next turn.
func TestSkillBindsTurn(t *testing.T) {
	t.Parallel()
	ran := 0
	agent := func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		harness.UseSkill(c, harness.Skill{Name: "careful", Doc: "x", Body: "Only look.", AllowedTools: []string{"look"}})
		harness.UseTool(c, act("look", func(context.Context, *harness.Call) (string, error) { return "seen", nil }))
		harness.UseTool(c, act("push", func(context.Context, *harness.Call) (string, error) { ran++; return "pushed", nil }))
		return "Help."
	}
	w := newWorld(t, agent, scripted.Call("skill", `{"name":"careful"}`), call("push", "look"), scripted.Say("no"), call("push"), scripted.Say("yes"))
	w.ask("U1", "go")
	if ran != 0 {
		t.Fatal("a tool ran that the skill does not allow")
	}
	var ends []string
	for _, d := range of[record.Did](w.records()) {
		ends = append(ends, d.Tool+" "+string(d.End))
	}
	if got, want := strings.Join(ends, ", "), "skill done, push failed, look done"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := w.request(1).Tools; len(got) != len(w.request(0).Tools) {
		t.Error("the list of tools has changed")
	}
	w.restart()
	w.ask("U1", "now push")
	if ran != 1 {
		t.Errorf("push ran %d times in the next turn", ran)
	}
}

// A skill binds the tasks that are given after it was read and theirs, also
// after a crash, beside what the subagents' own skills allow.
func TestSkillBindsTasks(t *testing.T) {
	t.Parallel()
	r := &runs{by: map[string]int{}}
	careful := func(allowed ...string) harness.Skill {
		return harness.Skill{Name: "careful", Doc: "x", Body: "Only look.", AllowedTools: allowed}
	}
	inner := func(c *harness.Context) string {
		harness.UseSkill(c, careful("look", "push"))
		harness.UseTool(c, counted(r, "look"))
		harness.UseTool(c, counted(r, "push"))
		harness.UseTool(c, counted(r, "poke"))
		return "Work."
	}
	outer := func(c *harness.Context) string {
		harness.UseSubagent(c, harness.Subagent{Name: "worker", Doc: "works", Agent: inner})
		return "Lead."
	}
	agent := func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		harness.UseSkill(c, careful("look", "poke", "task"))
		harness.UseSubagent(c, harness.Subagent{Name: "helper", Doc: "helps", Agent: outer})
		return "Help."
	}
	w := newWorld(t, agent, scripted.Call("skill", `{"name":"careful"}`), scripted.Answer(taskFor("helper", "x")), scripted.Answer(taskFor("worker", "x")),
		scripted.Call("skill", `{"name":"careful"}`), call("look", "push", "poke"), scripted.Say("1"), scripted.Say("2"), scripted.Say("3"))
	w.wary.stable = false
	w.log = &mortal{Log: w.store, dies: at(6, after)} // within the inner task
	w.restart()
	w.say("U1", "go")
	if err := w.try(); !errors.Is(err, errDied) {
		t.Fatalf("it was not cut off: %v", err)
	}
	w.store.Expire()
	w.log = w.store
	w.restart()
	w.run()
	if got := len(r.by); got != 1 {
		t.Errorf("%d tools ran, want one: %v", got, r.by)
	}
	if d := cmp.Diff([]string{
		"done Only look.",
		"done look done",
		`failed Error: nothing was run: skill "careful", read in this turn, allows only these tools: look, poke, task`,
		`failed Error: nothing was run: skill "careful", read in this turn, allows only these tools: look, push`,
	}, deepest(w)); d != "" {
		t.Errorf("the calls (-want +got):\n%s", d)
	}
}

// A skill that is another one under the same line is announced.
func TestSkillThatChanges(t *testing.T) {
	t.Parallel()
	digest := "sha256:1"
	agent := func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		harness.UseSkill(c, harness.Skill{Name: "careful", Doc: "x", Body: "Only look.", Digest: digest})
		return "Help."
	}
	w := newWorld(t, agent, scripted.Say("1"), scripted.Say("2"), scripted.Say("3"))
	w.ask("U1", "go")
	w.ask("U1", "again")
	digest = "sha256:2"
	w.ask("U1", "and again")
	told := of[record.Told](w.records())
	if len(told) != 1 || told[0].Text != "Skills changed: careful." {
		t.Errorf("told %+v", told)
	}
}
