package turn

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/scripted"
	"github.com/heddlehq/heddle/state"
)

// The model receives exactly what the function declared and returned.
func TestAgentIsAFunction(t *testing.T) {
	t.Parallel()
	look := act("look", nil)
	w := newWorld(t, func(c *harness.Context) string {
		harness.UseModel(c, "strong")
		harness.UseTool(c, look)
		harness.UseInstruction(c, "Be brief.")
		return "You help in " + c.Thread().Room + "."
	}, scripted.Say("Hello."))
	w.ask("U1", "hi")
	want := model.Request{
		Model: "strong-1", System: "You help in C1.\n\nBe brief.", MaxTokens: 4096, CacheKey: string(state.ConversationID("tested", thread)), Blind: true,
		Tools:    []model.Tool{{Name: "look", Doc: "Does it.", Schema: look.Schema}},
		Messages: []model.Message{{Role: model.User, Parts: []model.Part{{Kind: model.Text, Text: "<heard from=\"U1\" role=\"member\">\nhi\n</heard>"}}}},
	}
	if d := cmp.Diff(want, w.request(0)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"Hello."}, w.posts()); d != "" {
		t.Errorf("posts (-want +got):\n%s", d)
	}
}

// The function runs before every model call, in tool loops as well, and the log says so.
func TestRendersEqualRequests(t *testing.T) {
	t.Parallel()
	renders := 0
	w := newWorld(t, func(c *harness.Context) string {
		renders++
		harness.UseModel(c, "fast")
		harness.UseTool(c, act("look", func(context.Context, *harness.Call) (string, error) { return "seen", nil }))
		return "Help."
	}, call("look"), call("look", "look"), scripted.Say("done"), scripted.Say("again"))
	renders = 0 // those of the start
	w.ask("U1", "go")
	w.ask("U1", "more")
	requests, recorded := len(w.model.Requests()), len(of[record.Rendered](w.records()))
	if renders != 4 || requests != 4 || recorded != 4 {
		t.Errorf("%d renders, %d requests, %d records of a render, want 4 each", renders, requests, recorded)
	}
}

// A mistake in an agent stops the start and is named.
func TestStartNamesMistakes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain())
	for name, tt := range map[string]struct {
		agent harness.Agent
		want  string
	}{
		"no model":      {func(*harness.Context) string { return "" }, `agent "b": UseModel: no model declared; call harness.UseModel once`},
		"two models":    {func(c *harness.Context) string { harness.UseModel(c, "fast"); harness.UseModel(c, "strong"); return "" }, `agent "b": UseModel: called for "fast" and for "strong"; one render has one model`},
		"unknown model": {func(c *harness.Context) string { harness.UseModel(c, "best"); return "" }, `agent "b": UseModel: model "best": not one of the names in models (fast, strong) and not provider/model`},
		"unknown box":   {func(c *harness.Context) string { harness.UseModel(c, "fast"); harness.UseSandbox(c, "moon"); return "" }, `agent "b": UseSandbox: no kind "moon"; want one of memory`},
		"for admins": {func(c *harness.Context) string {
			if c.Trust() < chat.Admin {
				harness.UseModel(c, "fast")
			}
			return ""
		}, `agent "b": UseModel: no model declared; call harness.UseModel once`},
		"panics at once": {func(*harness.Context) string { panic("x") }, `agent "b": panicked while rendering: a value of type string at hooks_test.go`},
		"no such place": {
			func(c *harness.Context) string { return []string{}[len(c.Event().Text)] },
			`agent "b": panicked while rendering: runtime error: index out of range [0] with length 0 at hooks_test.go`,
		},
	} {
		o := w.opts
		o.Agents = map[string]harness.Agent{"a": plain(), "b": tt.agent}
		_, err := New(o)
		got := regexp.MustCompile(` at \S*/(\w+\.go):\d+$`).ReplaceAllString(fmt.Sprint(err), " at $1")
		if err == nil || got != tt.want {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
	o := w.opts
	bad := func(*harness.Context) string { return "" }
	o.Agents = map[string]harness.Agent{"z": bad, "m": bad, "a": bad}
	if _, err := New(o); err == nil || strings.Count(err.Error(), "\n") != 2 || !strings.HasPrefix(err.Error(), `agent "a"`) {
		t.Errorf("several agents: %v, want each, by name", err)
	}
}

// A tool, a skill and the file tools are in the requests of the steps that declare them.
func TestDeclaredIsOffered(t *testing.T) {
	t.Parallel()
	skill := harness.Skill{Name: "review", Doc: "how we review", Body: "Read twice."}
	w := newWorld(t, func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		switch c.Event().Text {
		case "tool":
			harness.UseTool(c, act("look", nil))
		case "skill":
			harness.UseSkill(c, skill)
		case "sandbox":
			harness.UseSandbox(c, "memory")
		}
		return "Help."
	}, scripted.Say("1"), scripted.Say("2"), scripted.Call("skill", `{"name":"review"}`), scripted.Say("3"), scripted.Say("4"), scripted.Say("5"))
	const catalogue = "\n\nSkills (read one with the skill tool before you use it):\n- review: how we review"
	for i, tt := range []struct{ text, tools, system string }{
		{"nothing", "", "Help."},
		{"tool", "look", "Help."},
		{"skill", "skill", "Help." + catalogue},
		{"", "skill", "Help." + catalogue}, // the step after the skill was read
		{"sandbox", "read write edit bash grep glob", "Help."},
		{"nothing", "", "Help."},
	} {
		if tt.text != "" {
			w.ask("U1", tt.text)
		}
		r := w.request(i)
		if offered(r) != tt.tools || r.System != tt.system {
			t.Errorf("%s: offered %q with %q", tt.text, offered(r), r.System)
		}
	}
	if before, after := transcript(w.request(2)), transcript(w.request(3)); strings.Contains(before, skill.Body) || !strings.Contains(after, skill.Body) {
		t.Errorf("the body is not there when it was read:\n%s\n%s", before, after)
	}
}

// A panic in an agent fails the turn where people see it; the next one works.
func TestAgentPanicFailsTheTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *harness.Context) string {
		if c.Event().Text == "boom" {
			var none []int
			_ = none[len(c.Event().Text)]
		}
		return plain()(c)
	}, scripted.Say("fine"))
	w.ask("U1", "boom")
	w.ask("U1", "calm")
	if got := trace(w.records()); got != "heard settled:failed heard rendered said settled:answered" {
		t.Errorf("the log is %s", got)
	}
	if d := cmp.Diff([]string{lineBroken, "fine"}, w.posts()); d != "" {
		t.Errorf("posts (-want +got):\n%s", d)
	}
	if got := w.logged.String(); !strings.Contains(got, "agent panicked") || !strings.Contains(got, "index out of range [4]") || !strings.Contains(got, "hooks_test.go") {
		t.Errorf("the log for operators is %s", got)
	}
}

// What the settings no longer hold is told to people in one line.
func TestWhatIsMissingFailsTheTurn(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		agent  func(c *harness.Context) string
		change func(w *world)
		logged string
	}{
		"agent": {plain(), func(w *world) { delete(w.engine.Agents, "tested") }, "no agent tested"},
		"model": {func(c *harness.Context) string { harness.UseModel(c, modelFor(c)); return "" }, func(*world) {}, `model \"gone\"`},
		"sandbox": {func(c *harness.Context) string {
			harness.UseModel(c, "fast")
			if c.Event().ID != "" {
				harness.UseSandbox(c, "gone")
			}
			return ""
		}, func(*world) {}, "no sandbox kind gone"},
	} {
		w := newWorld(t, tt.agent)
		tt.change(w)
		w.ask("U1", "hi")
		if got := trace(w.records()); got != "heard settled:failed" {
			t.Errorf("%s: the log is %s", name, got)
		}
		if got := fmt.Sprint(w.posts()); got != "["+lineSettings+"]" || !strings.Contains(w.logged.String(), tt.logged) {
			t.Errorf("%s: posts %s, log for operators %s", name, got, w.logged)
		}
	}
}

func modelFor(c *harness.Context) string {
	if c.Event().ID == "" {
		return "fast"
	}
	return "gone"
}
