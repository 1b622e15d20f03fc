// Package enhance is the ladder: a hook, written with the public harness API
// only, that lets the model climb to a stronger model and sandbox within one
// response, as far as the people in the thread are allowed.
package enhance

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
)

// A Rung is one level of a ladder. The first is where a conversation begins.
type Rung struct {
	Name      string // what it gives, in a few words: "a stronger model and a shell"; unique in the ladder
	Model     string
	Options   []harness.ModelOption // of the model, such as harness.Thinking
	Sandbox   string                // "" for none
	Tools     []harness.Tool
	Skills    []harness.Skill
	Subagents []harness.Subagent
	Use       []func(*harness.Context) // hooks that declare more, such as the tools of a server
	Who       chat.Role                // least role of everybody in the thread, at the climb and at each step
	For       time.Duration            // how long a climb lasts, 0 for as long as the conversation
}

// An Unlock is the record of a climb.
type Unlock struct {
	Level  int       `json:"level"`
	Name   string    `json:"name"`
	Author string    `json:"author"` // id of who was answered when the model climbed
	Role   chat.Role `json:"role"`   // of the weakest voice at that time
	Reason string    `json:"reason"` // the model's
	At     time.Time `json:"at"`
	Until  time.Time `json:"until,omitzero"`
}

// StateName is the name of the state that holds the last unlock of each rung,
// by the rung's name.
const StateName = "enhance"

// Use declares the model and the sandbox of the highest rung that is unlocked,
// and the tools, skills, subagents and hooks of it and the rungs below. While there
// is a next rung that everybody in the thread may use, it mounts the tool
// enhance. It returns the level, 0 for the first rung.
func Use(c *harness.Context, rungs ...Rung) int {
	for i, r := range rungs {
		if slices.ContainsFunc(rungs[:i], func(o Rung) bool { return o.Name == r.Name }) {
			harness.Misuse(c, "enhance.Use", fmt.Sprintf("two rungs are called %q", r.Name), "give each a name of its own: it is what a climb unlocks")
		}
	}
	unlocks := harness.UseState(c, StateName, map[string]Unlock{})
	level := allowed(rungs, unlocks.Value, c.Trust(), c.Now())
	for i, r := range rungs[:min(level+1, len(rungs))] {
		for _, t := range r.Tools {
			harness.UseTool(c, t)
		}
		for _, s := range r.Skills {
			harness.UseSkill(c, s)
		}
		for _, s := range r.Subagents {
			harness.UseSubagent(c, s)
		}
		for _, use := range r.Use {
			use(c)
		}
		if i == level {
			harness.UseModel(c, r.Model, r.Options...)
			harness.UseLevel(c, level, r.Name)
			if r.Sandbox != "" {
				harness.UseSandbox(c, r.Sandbox)
			}
		}
	}
	if next := level + 1; next < len(rungs) && c.Trust() >= rungs[next].Who {
		harness.UseTool(c, tool(unlocks, next, rungs[next]))
	}
	return level
}

// allowed is the highest level of which everybody in the thread may use every
// rung, each unlocked and not expired.
func allowed(rungs []Rung, unlocks map[string]Unlock, trust chat.Role, now time.Time) int {
	for i := 1; i < len(rungs); i++ {
		u, ok := unlocks[rungs[i].Name]
		if !ok || trust < rungs[i].Who || !u.Until.IsZero() && !now.Before(u.Until) {
			return i - 1
		}
	}
	return max(len(rungs)-1, 0)
}

type args struct {
	Reason string `json:"reason" jsonschema:"why the present level is not enough, in one sentence"`
}

func tool(unlocks harness.State[map[string]Unlock], level int, r Rung) harness.Tool {
	doc := fmt.Sprintf("Climbs to the next level: %s. Use it when the task needs it; it takes effect at once.", r.Name)
	return harness.NewTool("enhance", doc, func(_ context.Context, call *harness.Call, in args) (string, error) {
		reason := strings.TrimSpace(in.Reason)
		if reason == "" {
			return "", fmt.Errorf("%w: say in reason why the present level is not enough", harness.ErrArgs)
		}
		u := Unlock{Level: level, Name: r.Name, Author: call.Event().Author.ID, Role: call.Trust(), Reason: reason, At: call.Now()}
		if r.For > 0 {
			u.Until = u.At.Add(r.For)
		}
		unlocks.Update(call, func(all map[string]Unlock) map[string]Unlock {
			all = maps.Clone(all)
			all[r.Name] = u
			return all
		})
		return "Unlocked: " + describe(r, u), nil
	}).Serial().Quiet()
}

// describe says what is available from the next model call on.
func describe(r Rung, u Unlock) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s. From now on: model %s", r.Name, r.Model)
	if r.Sandbox != "" {
		fmt.Fprintf(&b, ", a %s sandbox with files and a shell", r.Sandbox)
	}
	for _, t := range r.Tools {
		b.WriteString(", tool " + t.Name)
	}
	for _, s := range r.Skills {
		b.WriteString(", skill " + s.Name)
	}
	for _, s := range r.Subagents {
		b.WriteString(", subagent " + s.Name)
	}
	if !u.Until.IsZero() {
		fmt.Fprintf(&b, ", until %s", u.Until.UTC().Format(time.RFC3339))
	}
	b.WriteString(".")
	return b.String()
}
