package turn

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model/scripted"
)

// TestHear brings a stranger's text into a conversation by a tool: what the
// next steps may use is bounded by it, also in later turns and after a restart.
func TestHear(t *testing.T) {
	t.Parallel()
	brings := harness.NewTool("look", "Looks.", func(_ context.Context, call *harness.Call, _ struct{}) (string, error) {
		call.Hear(harness.Voice{Author: chat.Author{ID: "U9"}, Role: chat.Outsider})
		return "found", nil
	})
	agent := func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		harness.UseTool(c, brings)
		return ""
	}
	w := newWorld(t, agent, scripted.Call("look", `{}`), scripted.Say("one"), scripted.Say("two"))
	w.ask("U1", "look")
	w.restart()
	w.ask("U1", "and now?")
	var got []chat.Role
	for _, r := range of[record.Rendered](w.records()) {
		got = append(got, r.Trust)
	}
	if diff := cmp.Diff([]chat.Role{chat.Member, chat.Outsider, chat.Outsider}, got); diff != "" {
		t.Errorf("trust of the steps (-want +got):\n%s", diff)
	}
}
