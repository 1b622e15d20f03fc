package turn

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/scripted"
)

// cached is an answer of a provider that read so many tokens from its cache.
func withCache(step scripted.Step, read, wrote int) scripted.Step {
	return func(ctx context.Context, r model.Request) (model.Response, error) {
		resp, err := step(ctx, r)
		resp.Usage.In, resp.Usage.Cached, resp.Usage.CacheWrite = resp.Usage.In+read+wrote, read, wrote
		return resp, err
	}
}

// A tool that is gone stays defined where leaving it out would cost the
// provider's cache. It is announced as gone, and a call of it runs nothing.
func TestGoneToolStaysDefined(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		read, wrote int
		want        string
	}{
		"no cache":          {0, 0, "other"},
		"read from a cache": {900, 0, "look other"},
		"written to it":     {0, 900, "look other"},
	} {
		ran := 0
		w := newWorld(t, func(c *harness.Context) string {
			harness.UseModel(c, "fast")
			if c.Event().Text != "without" {
				harness.UseTool(c, act("look", func(context.Context, *harness.Call) (string, error) { ran++; return "seen", nil }))
			}
			harness.UseTool(c, act("other", nil))
			return "Help."
		}, withCache(scripted.Say("hi"), tt.read, tt.wrote), withCache(call("look"), tt.read, 0), withCache(scripted.Say("gone"), tt.read, 0),
			withCache(call("look"), tt.read, 0), withCache(scripted.Say("back"), tt.read, 0))
		w.ask("U1", "with")
		w.ask("U1", "without")
		if got := offered(w.request(1)); got != tt.want || ran != 0 {
			t.Errorf("%s: the request offers %q, want %q; the tool ran %d times", name, got, tt.want, ran)
		}
		if d := cmp.Diff([]string{"Tools gone: look.\nTools you have now: other."}, notices(w.request(1))); d != "" {
			t.Errorf("%s: notices (-want +got):\n%s", name, d)
		}
		if did := of[record.Did](w.records()); len(did) != 1 || did[0].End != record.Refused {
			t.Errorf("%s: the call ended as %+v", name, did)
		}
		w.restart()
		w.ask("U1", "with again")
		if got := offered(w.request(-1)); len(strings.Fields(got)) != 2 || ran != 1 {
			t.Errorf("%s: when it is back the request offers %q; it ran %d times", name, got, ran)
		}
	}
}

// A definition that changed is sent in its new form, also of a tool that was gone.
func TestChangedDefinitionIsSent(t *testing.T) {
	t.Parallel()
	tool := func(field string) harness.Tool {
		schema := json.RawMessage(`{"type":"object","properties":{"` + field + `":{"type":"string"}}}`)
		return harness.NewRawTool("look", "Looks.", schema, func(context.Context, *harness.Call, json.RawMessage) (string, error) { return "", nil })
	}
	w := worldOf(t, func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		if f := c.Event().Text; f != "none" {
			harness.UseTool(c, tool(f))
		}
		return "Help."
	}, scripted.Play(withCache(scripted.Say("ok"), 900, 0), 0))
	for _, tt := range [][2]string{{"a", "a"}, {"b", "b"}, {"none", "b"}, {"c", "c"}} {
		w.ask("U1", tt[0])
		if got := w.request(-1).Tools; len(got) != 1 || !strings.Contains(string(got[0].Schema), `"`+tt[1]+`"`) {
			t.Errorf("%s: the request has %+v", tt[0], got)
		}
	}
}

// What is gone leaves the request with a compaction, with a change of the
// model, and when it is large.
func TestGoneToolsLeave(t *testing.T) {
	t.Parallel()
	big := harness.NewTool("big", strings.Repeat("It does much. ", 2000), func(context.Context, *harness.Call, struct{}) (string, error) { return "", nil })
	for name, tt := range map[string]struct {
		tool harness.Tool
		then string
		want string
	}{
		"nothing happens": {act("look", nil), "without", "look other"},
		"another model":   {act("look", nil), "without strong", "other"},
		"a large one":     {big, "without", "other"},
		"a later large":   {act("look", nil), "without, then large", "other"},
		"a compaction":    {act("look", nil), "without " + strings.Repeat("x", 300_000), "other"},
	} {
		w := worldOf(t, func(c *harness.Context) string {
			text := c.Event().Text
			harness.UseModel(c, map[bool]string{false: "fast", true: "strong"}[strings.Contains(text, "strong")], harness.Compact(harness.Compaction{Keep: 10}))
			if text == "with" {
				harness.UseTool(c, tt.tool)
			}
			if text == "with" && strings.Contains(tt.then, "large") {
				harness.UseTool(c, big)
			}
			harness.UseTool(c, act("other", nil))
			return "Help."
		}, scripted.Play(func(ctx context.Context, r model.Request) (model.Response, error) {
			if r.System == summarise {
				return scripted.Say("## Goal\na\n## Progress\nb\n## Decisions\nc\n## Next steps\nd")(ctx, r)
			}
			return withCache(scripted.Say("ok"), 900, 0)(ctx, r)
		}, 0))
		w.window(80_000)
		w.ask("U1", "with")
		w.ask("U1", tt.then)
		w.ask("U1", "on")
		if got := offered(w.request(-1)); got != tt.want {
			t.Errorf("%s: the request offers %q, want %q", name, got, tt.want)
		}
	}
}

// Of a thousand tools the request defines few: those of the agent, and what was
// found, from the next step on and for as long as the conversation.
func TestToolsOnDemand(t *testing.T) {
	t.Parallel()
	ran := ""
	var thousand []harness.Tool
	for i := range 1000 {
		schema := json.RawMessage(`{"type":"object","properties":{"id":{"type":"string","description":"Identifier of what is meant"},"limit":{"type":"integer"}},"required":["id"]}`)
		thousand = append(thousand, harness.NewRawTool(fmt.Sprintf("mcp__s%d__thing_%d", i/20, i), fmt.Sprintf("Does number%d with a thing of the service.", i), schema,
			func(_ context.Context, c *harness.Call, _ json.RawMessage) (string, error) {
				ran += c.Tool + " "
				return "done", nil
			}).Deferred())
	}
	less := false
	w := newWorld(t, func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		harness.UseSandbox(c, "memory")
		if less {
			for _, tool := range thousand[500:] {
				harness.UseTool(c, tool)
			}
			return "Help."
		}
		for _, tool := range thousand {
			harness.UseTool(c, tool)
		}
		return "Help."
	},
		scripted.Call("search_tools", `{"query":"number777","limit":1}`), scripted.Call("mcp__s38__thing_777", `{"id":"1"}`), scripted.Say("ok"),
		scripted.Call("search_tools", `{"query":"number42 of a service","limit":8}`), scripted.Call("mcp__s45__thing_900", `{"id":"1"}`), scripted.Call("mcp__s45__thing_900", `{}`), scripted.Say("ok"),
		scripted.Call("search_tools", `{"query":"number42","limit":1}`), scripted.Say("ok"))
	const core = "read write edit bash grep glob search_tools"
	w.ask("U1", "one")
	for i, want := range []string{core, core + " mcp__s38__thing_777", core + " mcp__s38__thing_777"} {
		if got := offered(w.request(i)); got != want {
			t.Errorf("request %d offers %q, want %q", i, got, want)
		}
		if n := harness.TokensOf(w.request(i).Tools); n >= 4000 {
			t.Errorf("the definitions of request %d take %d tokens", i, n)
		}
	}
	w.restart()
	w.ask("U1", "two") // what was not loaded but is mounted runs, if its arguments fit
	names := strings.Fields(offered(w.request(-1)))
	if len(names) != 7+1+8 || names[7] != "mcp__s38__thing_777" || !slices.Contains(names, "mcp__s2__thing_42") || harness.TokensOf(w.request(-1).Tools) >= 4000 {
		t.Errorf("the request offers %v", names)
	}
	if ran != "mcp__s38__thing_777 mcp__s45__thing_900 " {
		t.Errorf("there ran %s", ran)
	}
	less = true
	w.ask("U1", "three") // a tool that was found and is not mounted any more is not found again
	if got := offered(w.request(-1)); strings.Contains(got, "thing_42") || !strings.Contains(got, "thing_777") {
		t.Errorf("the request offers %q", got)
	}
	told := notices(w.request(-1))
	if len(told) != 1 || len(told[0]) > 4000 || !strings.Contains(told[0], "more that search_tools found") || !strings.Contains(told[0], "more that search_tools finds") {
		t.Errorf("the model is told %q", told)
	}
}
