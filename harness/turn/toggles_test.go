package turn

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/heddlehq/heddle/fakes/llm"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/anthropic"
	"github.com/heddlehq/heddle/model/openai"
	"github.com/heddlehq/heddle/model/script"
)

// capable is an agent of which each bit of a state turns a capability: the
// model's provider, tools, tools of a server, a sandbox, skills, subagents, the
// instructions and the level.
func capable(c *harness.Context) string {
	type in struct {
		Bit int `json:"bit"`
	}
	bits := harness.UseState(c, "bits", 0)
	on := func(bit int) bool { return bits.Value&(1<<bit) != 0 }
	harness.UseModel(c, map[bool]string{false: "fast", true: "strong"}[on(0) || on(11)])
	if on(11) {
		return "Help." // without any tool
	}
	for i, name := range []string{"a", "b", "c"} {
		if on(1 + i) {
			harness.UseTool(c, harness.NewTool(name, strings.Repeat("It does much. ", 100), func(context.Context, *harness.Call, struct{}) (string, error) { return "did " + name, nil }))
		}
	}
	for i := range 40 {
		if on(4) || on(5) && i < 20 {
			harness.UseTool(c, harness.NewRawTool(fmt.Sprintf("mcp__s__t%d", i), fmt.Sprintf("Does number%d. %s", i, strings.Repeat("It is a server's. ", 20)),
				json.RawMessage(`{"type":"object"}`), func(context.Context, *harness.Call, json.RawMessage) (string, error) { return "did", nil }).Deferred())
		}
	}
	if on(6) {
		harness.UseSandbox(c, "memory")
	}
	if on(7) {
		harness.UseSkill(c, harness.Skill{Name: "s", Doc: "a skill", Body: "x"})
	}
	if on(8) {
		harness.UseSubagent(c, harness.Subagent{Name: "helper", Doc: "helps", Agent: plain(act("look", nil))})
	}
	if on(9) {
		harness.UseInstruction(c, "More.")
	}
	if on(10) {
		harness.UseLevel(c, 1, "high")
	}
	harness.UseTool(c, harness.NewTool("toggle", "", func(_ context.Context, call *harness.Call, a in) (string, error) {
		bits.Update(call, func(v int) int { return v ^ 1<<a.Bit })
		return fmt.Sprint("turned ", a.Bit), nil
	}))
	return strings.Repeat("Help. ", 1000)
}

// Two hundred changes of everything that can change, in a conversation of
// models of two providers: neither refuses a request, with a prompt cache or
// without, over restarts and compactions.
func TestTogglesOverBothWires(t *testing.T) {
	t.Parallel()
	for seed, caches := range []bool{false, true} {
		rnd := rand.New(rand.NewPCG(19, uint64(seed)))
		var text strings.Builder
		toggles := 0
		for turn := range 25 {
			fmt.Fprintf(&text, "when \"turn %d!\"\n", turn)
			for step := range 8 {
				toggles++
				switch step {
				case 2: // side by side with what may be there or not
					fmt.Fprintf(&text, "call: toggle {\"bit\":%d}\nand call: read {\"path\":\"f\"}\nand call: mcp__s__t3 {}\n", rnd.IntN(11))
				case 5:
					fmt.Fprintf(&text, "say: I turn it.\nand call: toggle {\"bit\":%d}\nand call: search_tools {\"query\":\"number%d\"}\n", rnd.IntN(11), rnd.IntN(40))
				default:
					fmt.Fprintf(&text, "think: hm\nand call: toggle {\"bit\":%d}\n", rnd.IntN(11))
				}
			}
			text.WriteString("say: done\n")
		}
		text.WriteString("when \"last\"\ncall: toggle {\"bit\":11}\nsay: done\nwhen \"\"\nsay: ## Goal a ## Progress b ## Decisions c ## Next steps d\n")
		s, err := script.Parse(text.String())
		if err != nil {
			t.Fatal(err)
		}
		server := llm.New(llm.Options{Script: script.NewPlayer(s), Caches: caches})
		h := httptest.NewServer(server)
		defer h.Close()
		w := newWorld(t, capable)
		names, err := model.NewNames([]model.Provider{openai.New(openai.Options{BaseURL: h.URL + "/v1"}), anthropic.New(anthropic.Options{BaseURL: h.URL})},
			map[string]string{"fast": "openai/gpt-4.1", "strong": "anthropic/claude-opus-4-6"},
			map[string]model.Spec{"openai/gpt-4.1": {Window: 20_000, MaxOut: 1000}, "anthropic/claude-opus-4-6": {Window: 20_000, MaxOut: 1000}})
		if err != nil {
			t.Fatal(err)
		}
		w.opts.Models = names
		w.restart()
		for turn := range 25 {
			if turn%4 == 3 {
				w.restart()
			}
			w.ask("U1", fmt.Sprintf("turn %d!", turn))
		}
		w.ask("U1", "last") // no tool is left
		w.ask("U1", "and now?")

		records := w.records()
		wires := map[string]int{}
		for i, q := range server.Requests() {
			if q.Refused != "" {
				t.Errorf("caches %t: request %d is refused by %s: %s\n%s", caches, i, q.Wire, q.Refused, q.Body)
			}
			wires[q.Wire]++
		}
		done := 0
		for _, d := range of[record.Did](records) {
			if d.Tool == "toggle" && d.End == record.Done {
				done++
			}
		}
		var outcomes []string
		for _, s := range of[record.Settled](records) {
			if s.Outcome != record.Answered {
				outcomes = append(outcomes, s.Reason)
			}
		}
		folded, cached := len(of[record.Folded](records)), slices.ContainsFunc(of[record.Said](records), func(s record.Said) bool { return s.Usage.Cached > 0 })
		if done < 200 || len(outcomes) > 0 || wires["openai"] < 50 || wires["anthropic"] < 50 || folded == 0 || cached != caches {
			t.Errorf("caches %t: %d of %d toggles, requests %v, %d compactions, read from a cache: %t; turns failed: %v", caches, done, toggles, wires, folded, cached, outcomes)
		}
	}
}
