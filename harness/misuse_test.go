package harness_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/heddlehq/heddle/harness"
)

// hook is a built-in hook, used right and in each wrong way that there is.
type hook struct {
	right func(*harness.Context)
	wrong []func(*harness.Context)
}

// callbackHook is one of those with a name and a function.
func callbackHook[F any](use func(*harness.Context, string, F), f F) hook {
	var none F
	return hook{func(c *harness.Context) { use(c, "a", f) }, []func(*harness.Context){
		func(c *harness.Context) { use(c, "", f) },
		func(c *harness.Context) { use(c, "a", none) },
		func(c *harness.Context) { use(c, "a", f); use(c, "a", f) },
	}}
}

type contextFunc = func(*harness.Context)

func useTool(t harness.Tool) contextFunc { return func(c *harness.Context) { harness.UseTool(c, t) } }

func raw(schema string) harness.Tool {
	return harness.NewRawTool("a", "", json.RawMessage(schema), func(context.Context, *harness.Call, json.RawMessage) (string, error) { return "", nil })
}

func useSkill(s harness.Skill) contextFunc {
	return func(c *harness.Context) { harness.UseSkill(c, s) }
}

func useSub(s harness.Subagent) contextFunc {
	return func(c *harness.Context) { harness.UseSubagent(c, s) }
}

func both(fs ...contextFunc) contextFunc {
	return func(c *harness.Context) {
		for _, f := range fs {
			f(c)
		}
	}
}

func useState[T any](name string, init T, options ...harness.StateOption[T]) contextFunc {
	return func(c *harness.Context) { harness.UseState(c, name, init, options...) }
}

func useData[T any](name string) contextFunc {
	return func(c *harness.Context) { harness.UseData[T](c, name) }
}

func level(c *harness.Context)      { harness.UseLevel(c, 1, "a") }
func virtual(c *harness.Context)    { harness.UseSandbox(c, "virtual") }
func none(c *harness.Context)       { harness.UseModel(c, "") }
func wantInt(c *harness.Context)    { harness.UseResult[int](c) }
func initialInt(c *harness.Context) { harness.UseInitialData[int](c) }

// hooks are all built-in hooks.
func hooks() map[string]hook {
	nothing := func(context.Context, *harness.Call) error { return nil }
	helper := harness.Subagent{Name: "helper", Doc: "helps", Agent: func(*harness.Context) string { return "" }}
	return map[string]hook{
		"UseModel": {func(c *harness.Context) {}, []contextFunc{
			none,
			func(c *harness.Context) { harness.UseModel(c, "fast") },
			func(c *harness.Context) { harness.UseModel(c, "strong") },
		}},
		"UseSandbox": {virtual, []contextFunc{both(virtual, virtual), both(virtual, useTool(echo("read"))), func(c *harness.Context) { harness.UseSandbox(c, "") }}},
		"UseTool": {useTool(echo("a")), []contextFunc{
			useTool(echo("")), useTool(echo("a b")), both(useTool(echo("a")), useTool(echo("a"))),
			useTool(harness.NewTool[int, string]("a", "", nil)), useTool(harness.NewTool[struct{ F func() }, string]("a", "", nil)),
			useTool(harness.NewRawTool("a", "", json.RawMessage(`{`), nil)), useTool(harness.NewRawTool("a", "", json.RawMessage(`{"type":1}`), nil)),
			useTool(harness.Tool{Name: "a", Doc: "x"}), useTool(harness.NewTool[struct{}, string]("a", "", nil)), useTool(harness.NewRawTool("a", "", json.RawMessage(`{"type":"object"}`), nil)),
			useTool(raw(`{"type":"string"}`)), useTool(raw(`{}`)), useTool(raw(`{"type":"objekt"}`)), useTool(raw(`{"type":"object","properties":{"a":{"items":{"type":"strin"}}}}`)),
			useTool(raw(`{"type":"object","properties":{"a":{"anyOf":[{"type":["string","nil"]}]}}}`)),
			useTool(echo("a").Timeout(0)), useTool(echo("a").Timeout(-1)), useTool(echo("a").Retry(-1)),
		}},
		"UseSkill": {useSkill(review), []contextFunc{
			useSkill(harness.Skill{Name: "a/b", Doc: "x"}), useSkill(harness.Skill{Name: "a"}), both(useSkill(review), useSkill(review)), both(useSkill(review), useTool(echo("skill"))),
		}},
		"UseSubagent": {useSub(helper), []contextFunc{
			useSub(harness.Subagent{}), useSub(harness.Subagent{Name: "a"}), useSub(harness.Subagent{Name: "a", Doc: "x"}), both(useSub(helper), useSub(helper)), both(useSub(helper), useTool(echo("task"))),
			useSub(harness.Subagent{Name: "a", Doc: "x", Agent: helper.Agent, Thinking: "huge"}),
		}},
		"UseInstruction": {func(c *harness.Context) { harness.UseInstruction(c, "x") }, nil},
		"UseLevel":       {level, []contextFunc{both(level, level)}},
		"UseState": {useState("n", 0), []contextFunc{
			useState("", 0), both(useState("n", 0), useState("n", "")), useState("visits", map[string]int{}),
			useState("n", 0, harness.Migrate(1, func(json.RawMessage, int) (int, error) { return 0, nil })), useState("n", 0, harness.Migrate[int](2, nil)),
			both(useState("n", 0), useState("n", 0, harness.Migrate(2, func(json.RawMessage, int) (int, error) { return 0, nil }))),
			useState("visits", 0, harness.Migrate(2, func(json.RawMessage, int) (int, error) { return 0, errors.New("no") })), useState("newer", 0),
			useState("n", 0, harness.Migrate(2, zero), harness.Migrate(3, zero)),
		}},
		"UseInitialData": {initialInt, []contextFunc{func(c *harness.Context) { harness.UseInitialData[string](c) }, func(c *harness.Context) { harness.UseInitialData[func()](c) }}},
		"UseData":        {useData[int]("n"), []contextFunc{useData[int](""), useData[int]("a b"), both(useData[int]("n"), useData[string]("n"))}},
		"UseDispatch":    {func(c *harness.Context) { harness.UseDispatch(c) }, nil},
		"UseAttach":      {func(c *harness.Context) { harness.UseAttach(c) }, nil},
		"UseResult": {wantInt, []contextFunc{
			both(wantInt, wantInt), func(c *harness.Context) { harness.UseResult[func()](c) }, both(wantInt, useTool(echo("finish"))), both(wantInt, useTool(echo("give_up"))),
		}},
		"UseTurnStart":     callbackHook(harness.UseTurnStart, nothing),
		"UseResponseStart": callbackHook(harness.UseResponseStart, nothing),
		"UseTurnFinish": callbackHook(harness.UseTurnFinish, func(context.Context, *harness.Call, string) (string, error) {
			return "", nil
		}),
		"UseToolCall": callbackHook(harness.UseToolCall, func(context.Context, *harness.Call, json.RawMessage) (json.RawMessage, error) {
			return nil, nil
		}),
		"UseResponseFinish": callbackHook(harness.UseResponseFinish, func(context.Context, *harness.Call, harness.Response) error {
			return nil
		}),
		"UseSettled": callbackHook(harness.UseSettled, func(context.Context, *harness.Call, harness.Settled) error { return nil }),
		"UseCompaction": callbackHook(harness.UseCompaction, func(context.Context, *harness.Call, harness.Summarised) (string, error) {
			return "", nil
		}),
	}
}

func zero(json.RawMessage, int) (int, error) { return 0, nil }

// used is an agent that does what f does, and all else right.
func used(f contextFunc) harness.Agent {
	return func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		f(c)
		return ""
	}
}

// Every misuse of every hook is one error that names the agent, the hook and
// what to do. No hook is left out.
func TestEveryMisuseNamesTheFix(t *testing.T) {
	t.Parallel()
	all := hooks()
	for _, line := range exported(t, ".") {
		name, _, _ := strings.Cut(strings.TrimPrefix(line, "func "), "(")
		name, _, _ = strings.Cut(name, "[")
		if _, ok := all[name]; strings.HasPrefix(line, "func Use") && !ok {
			t.Errorf("%s is not in the table", name)
		}
	}
	s := snapshot()
	s.State = map[string]json.RawMessage{"visits": json.RawMessage("3"), "newer": json.RawMessage("3")}
	s.Versions, s.Initial = map[string]int{"newer": 9}, json.RawMessage("7")
	for name, h := range all {
		if _, err := harness.Render(used(h.right), s); err != nil {
			t.Errorf("%s used right: %v", name, err)
		}
		for i, wrong := range h.wrong {
			_, err := harness.Render(used(wrong), s)
			var re *harness.RenderError
			if !errors.As(err, &re) || re.Panic != nil {
				t.Errorf("%s, wrong way %d: %v, want a RenderError", name, i, err)
				continue
			}
			if !slices.ContainsFunc(re.Errs, func(e error) bool { return strings.HasPrefix(e.Error(), name+": ") }) {
				t.Errorf("%s, wrong way %d: %v does not name the hook", name, i, err)
			}
			for _, e := range re.Errs {
				if !strings.HasPrefix(err.Error(), `agent "tested": `) || !strings.Contains(e.Error(), "; ") && !strings.Contains(e.Error(), "want ") {
					t.Errorf("%s, wrong way %d: %v says nothing of what to do", name, i, err)
				}
			}
		}
	}
}

// Options of a model that make no sense are misuses as well.
func TestModelOptions(t *testing.T) {
	t.Parallel()
	for _, o := range []harness.ModelOption{
		harness.Thinking("huge"), harness.Compact(harness.Compaction{Keep: -1}), harness.Compact(harness.Compaction{Reserve: -1}),
	} {
		_, err := harness.Render(func(c *harness.Context) string { harness.UseModel(c, "fast", o); return "" }, snapshot())
		if err == nil || !strings.Contains(err.Error(), `agent "tested": UseModel: `) || !strings.Contains(err.Error(), "; want ") {
			t.Errorf("%v does not name agent, hook and fix", err)
		}
	}
}

// A call in a scope without a sandbox is told so.
func TestScopeWithoutSandbox(t *testing.T) {
	t.Parallel()
	if _, err := harness.NewScope(snapshot(), nil).Call("c", "t").Sandbox(t.Context()); err == nil {
		t.Error("there is a sandbox")
	}
}

// A hook that is called when the render is over cannot do its work, so it says so.
func TestHookAfterRender(t *testing.T) {
	t.Parallel()
	var kept *harness.Context
	render(t, func(c *harness.Context) string { kept = c; harness.UseModel(c, "fast"); return "" }, snapshot())
	for name, h := range hooks() {
		use := h.right
		if name == "UseModel" {
			use = none
		}
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, "harness."+name+" called after the render ended") {
					t.Errorf("%s: panicked with %q", name, got)
				}
			}()
			use(kept)
		}()
	}
}

// The schema of a wanted answer comes from outside: one that cannot be checked in
// bounds is its sender's mistake.
func TestWantThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"items":`, 70) + "{}" + strings.Repeat("}", 70)
	wide := `{"$defs":{"a":{"anyOf":[` + strings.Repeat(`{"$ref":"#/$defs/b"},`, 60) + `{}]},"b":{"anyOf":[` + strings.Repeat("{},", 60) + `{}]}},"$ref":"#/$defs/a"}`
	for name, want := range map[string]string{
		"no JSON": `{`, "a list": `[]`, "itself": `{"$ref":"#"}`, "in a circle": `{"$ref":"#/$defs/a","$defs":{"a":{"items":{"$ref":"#/$defs/a"}}}}`,
		"elsewhere": `{"$ref":"https://example.com/x"}`, "missing": `{"$ref":"#/$defs/a"}`, "dynamic": `{"$dynamicRef":"#a"}`, "named": `{"$id":"https://example.com/x"}`,
		"deep": deep, "wide": wide, "long": `{"description":"` + strings.Repeat("x", 70_000) + `"}`, "no type": `{"type":1}`, "no pattern": `{"type":"string","pattern":"("}`,
		"no such type": `{"type":"strin"}`, "no such type within": `{"type":"object","properties":{"a":{"items":{"type":["string","nil"]}}}}`,
	} {
		s := snapshot()
		s.Want = json.RawMessage(want)
		if _, err := harness.Render(used(func(*harness.Context) {}), s); !errors.Is(err, harness.ErrWant) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, want := range []string{orders, `{}`, `{"$defs":{"a":{"type":"string"}},"$ref":"#/$defs/a"}`, `{"definitions":{"a":{"type":"string"}},"items":{"$ref":"#/definitions/a"}}`, `{"const":{"type":"strin"}}`} {
		s := snapshot()
		s.Want = json.RawMessage(want)
		if m, err := harness.Render(used(wantInt), s); err != nil || !m.Result {
			t.Errorf("%s: %v", want, err)
		}
	}
}

const orders = `{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}`
