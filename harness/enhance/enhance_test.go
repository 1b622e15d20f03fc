package enhance_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/enhance"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

var rungs = []enhance.Rung{
	{Name: "low", Model: "fast"},
	{Name: "mid", Model: "strong", Sandbox: "virtual", Who: chat.Member, Skills: []harness.Skill{{Name: "review", Doc: "how we review"}}},
	{Name: "high", Model: "strongest", Who: chat.Maintainer},
}

// The level of a step follows from the unlock, the time and the weakest voice.
func TestLevel(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		unlock string // JSON, "" for none
		trust  chat.Role
		level  int
		model  string
		next   string // the rung that enhance offers, "" if it is not there
	}{
		{"at first", "", chat.Member, 0, "fast", "mid"},
		{"for a stranger", "", chat.Outsider, 0, "fast", ""},
		{"climbed once", `{"mid":{}}`, chat.Maintainer, 1, "strong", "high"},
		{"climbed as far as members may", `{"mid":{}}`, chat.Member, 1, "strong", ""},
		{"at the top", `{"mid":{},"high":{}}`, chat.Admin, 2, "strongest", ""},
		{"a member came", `{"mid":{},"high":{}}`, chat.Member, 1, "strong", ""},
		{"a stranger came", `{"mid":{},"high":{}}`, chat.Outsider, 0, "fast", ""},
		{"a rung of another ladder", `{"once":{}}`, chat.Admin, 0, "fast", "mid"},
		{"none skipped", `{"high":{}}`, chat.Admin, 0, "fast", "mid"},
		{"a second left", `{"mid":{"until":"2026-03-01T12:00:01Z"}}`, chat.Member, 1, "strong", ""},
		{"over", `{"mid":{"until":"2026-03-01T12:00:00Z"}}`, chat.Member, 0, "fast", "mid"},
		{"the lower is over", `{"mid":{"until":"2026-03-01T12:00:00Z"},"high":{}}`, chat.Admin, 0, "fast", "mid"},
		{"the upper is over", `{"mid":{},"high":{"until":"2026-03-01T12:00:00Z"}}`, chat.Admin, 1, "strong", "high"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := harness.Snapshot{Trust: tt.trust, Now: noon}
			if tt.unlock != "" {
				s.State = map[string]json.RawMessage{enhance.StateName: json.RawMessage(tt.unlock)}
			}
			level := -1
			m, err := harness.Render(func(c *harness.Context) string { level = enhance.Use(c, rungs...); return "" }, s)
			if err != nil {
				t.Fatal(err)
			}
			if level != tt.level || m.Level.Number != tt.level || m.Level.Name != rungs[tt.level].Name || m.Model != tt.model || m.Sandbox != rungs[tt.level].Sandbox {
				t.Errorf("level %d, manifest %+v", level, m)
			}
			tool, ok := m.Tool("enhance")
			if ok != (tt.next != "") || ok && !strings.Contains(tool.Doc, tt.next) {
				t.Errorf("enhance is offered: %t, %q", ok, tool.Doc)
			}
			if wantSkill := tt.level > 0; (len(m.Skills) == 1) != wantSkill {
				t.Errorf("skills %v", m.Skills)
			}
		})
	}
}

// A reason is needed; nothing is written without one.
func TestReasonIsNeeded(t *testing.T) {
	t.Parallel()
	s := harness.Snapshot{Trust: chat.Member, Now: noon}
	m, err := harness.Render(func(c *harness.Context) string { enhance.Use(c, rungs...); return "" }, s)
	if err != nil {
		t.Fatal(err)
	}
	tool, _ := m.Tool("enhance")
	for _, args := range []string{`{}`, `{"reason":""}`, `{"reason":" \n"}`, `{"reason":"x","level":2}`} {
		scope := harness.NewScope(s, nil)
		if _, err := tool.Run(context.Background(), scope.Call("c1", "enhance"), json.RawMessage(args)); !errors.Is(err, harness.ErrArgs) || len(scope.Writes()) != 0 {
			t.Errorf("%s: %v, wrote %v", args, err, scope.Writes())
		}
	}
}

// Two rungs of one name would be unlocked by one climb.
func TestRungsOfOneName(t *testing.T) {
	t.Parallel()
	_, err := harness.Render(func(c *harness.Context) string {
		enhance.Use(c, rungs[0], rungs[1], enhance.Rung{Name: "mid", Model: "strongest"})
		return ""
	}, harness.Snapshot{Agent: "a"})
	if err == nil || !strings.HasPrefix(err.Error(), `agent "a": enhance.Use: two rungs are called "mid"; give each a name`) {
		t.Errorf("got %v", err)
	}
}

// A rung says how its model is used.
func TestModelOptions(t *testing.T) {
	t.Parallel()
	m, err := harness.Render(func(c *harness.Context) string {
		enhance.Use(c, enhance.Rung{Name: "low", Model: "fast", Options: []harness.ModelOption{harness.Thinking("low"), harness.Compact(harness.Compaction{Keep: 7})}})
		return ""
	}, harness.Snapshot{})
	if err != nil || m.Thinking != "low" || m.Compaction.Keep != 7 {
		t.Errorf("thinking %q, %+v, %v", m.Thinking, m.Compaction, err)
	}
}

func TestNoRungs(t *testing.T) {
	t.Parallel()
	_, err := harness.Render(func(c *harness.Context) string { enhance.Use(c); return "" }, harness.Snapshot{Agent: "a"})
	if err == nil || !strings.Contains(err.Error(), "no model declared") {
		t.Errorf("got %v", err)
	}
}
