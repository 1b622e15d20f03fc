package harness_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/model"
)

// declared renders an agent and names what it declares.
func declared(a harness.Agent, s harness.Snapshot) string {
	m, err := harness.Render(a, s)
	if err != nil {
		return err.Error()
	}
	tools := names(m)
	if tools == "" {
		tools = "none"
	}
	return fmt.Sprintf("%s, tools: %s", m.Model, tools)
}

// A hard question gets a strong model that thinks.
func ExampleUseModel() {
	agent := func(c *harness.Context) string {
		if strings.HasPrefix(c.Event().Text, "why") {
			harness.UseModel(c, "strong", harness.Thinking(model.ThinkHigh), harness.Compact(harness.Compaction{Keep: 20_000}))
		} else {
			harness.UseModel(c, "fast")
		}
		return "Help."
	}
	for _, text := range []string{"hello", "why is it slow?"} {
		m, _ := harness.Render(agent, harness.Snapshot{Event: chat.Event{Text: text}})
		fmt.Println(m.Model, m.Thinking, m.Compaction.Keep)
	}
	// Output:
	// fast  0
	// strong high 20000
}

// Only who may change things gets files and a shell.
func ExampleUseSandbox() {
	agent := func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		if c.Trust() >= chat.Maintainer {
			harness.UseSandbox(c, "virtual")
		}
		return "Help."
	}
	fmt.Println(declared(agent, harness.Snapshot{Trust: chat.Member}))
	fmt.Println(declared(agent, harness.Snapshot{Trust: chat.Maintainer}))
	// Output:
	// fast, tools: none
	// fast, tools: read write edit bash grep glob
}

// A tool is a function; the schema of its arguments comes from the struct.
func ExampleUseTool() {
	type city struct {
		Name string `json:"name" jsonschema:"the city, in English"`
	}
	weather := harness.NewTool("weather", "Tells the weather.", func(_ context.Context, _ *harness.Call, in city) (string, error) {
		return "rain in " + in.Name, nil
	})
	agent := func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		harness.UseTool(c, weather)
		return "Help."
	}
	m, _ := harness.Render(agent, harness.Snapshot{})
	tool, _ := m.Tool("weather")
	scope := harness.NewScope(harness.Snapshot{}, nil)
	fmt.Println(tool.Run(context.Background(), scope.Call("call_1", "weather"), json.RawMessage(`{"name":"Bath"}`)))
	_, err := tool.Run(context.Background(), scope.Call("call_2", "weather"), json.RawMessage(`{}`))
	fmt.Println(err)
	// Output:
	// rain in Bath <nil>
	// the arguments do not fit: validating root: required: missing properties: ["name"]
}

// A skill costs a line until the model reads it.
func ExampleUseSkill() {
	agent := func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		if c.Thread().Channel == "github" {
			harness.UseSkill(c, harness.Skill{Name: "review", Doc: "how we review a change", Body: "Read it twice. ..."})
		}
		return "You help on issues and changes."
	}
	m, _ := harness.Render(agent, harness.Snapshot{Thread: chat.Thread{Channel: "github"}})
	fmt.Println(m.System())
	// Output:
	// You help on issues and changes.
	//
	// Skills (read one with the skill tool before you use it):
	// - review: how we review a change
}

// Work that needs no talk is given away; only the answer comes back.
func ExampleUseSubagent() {
	reader := func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		return "Read what you are given and answer in one sentence."
	}
	agent := func(c *harness.Context) string {
		harness.UseModel(c, "strong")
		harness.UseSubagent(c, harness.Subagent{Name: "reader", Doc: "reads long texts", Agent: reader, Untrusted: true})
		return "Help."
	}
	fmt.Println(declared(agent, harness.Snapshot{}))
	// Output: strong, tools: task
}

// A paragraph for the step at hand, from a hook of one's own.
func ExampleUseInstruction() {
	useManners := func(c *harness.Context) {
		if c.Thread().Channel == "github" {
			harness.UseInstruction(c, "Your answers are public.")
		}
	}
	agent := func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		useManners(c)
		return "You triage issues."
	}
	m, _ := harness.Render(agent, harness.Snapshot{Thread: chat.Thread{Channel: "github"}})
	fmt.Printf("%q\n", m.System())
	// Output: "You triage issues.\n\nYour answers are public."
}

// Where a conversation stands on a ladder is shown beside each step.
func ExampleUseLevel() {
	agent := func(c *harness.Context) string {
		level := harness.UseState(c, "level", 0).Value
		harness.UseModel(c, []string{"fast", "strong"}[level])
		harness.UseLevel(c, level, []string{"quick answers", "thorough answers"}[level])
		return "Help."
	}
	m, _ := harness.Render(agent, harness.Snapshot{State: map[string]json.RawMessage{"level": json.RawMessage("1")}})
	fmt.Println(m.Model, m.View().Level.Name)
	// Output: strong thorough answers
}

// A conversation about payments tells the one where people are.
func ExampleUseDispatch() {
	team := chat.Thread{Channel: "slack", Account: "T01", Room: "C02"}
	agent := func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		d := harness.UseDispatch(c)
		harness.UseTool(c, harness.NewTool("tell_team", "Tells the team.", func(_ context.Context, call *harness.Call, in struct {
			Text string `json:"text"`
		},
		) (string, error) {
			return "told", d.Send(call, team, in.Text)
		}))
		return "Look at failed payments."
	}
	s := harness.Snapshot{Trust: chat.Outsider}
	m, _ := harness.Render(agent, s)
	tell, _ := m.Tool("tell_team")
	scope := harness.NewScope(s, nil)
	_, _ = tell.Run(context.Background(), scope.Call("call_1", "tell_team"), json.RawMessage(`{"text":"Invoice 7 failed."}`))
	for _, sent := range scope.Sent() {
		fmt.Printf("%s: %s (trusted as %s)\n", sent.To, sent.Text, sent.Trust)
	}
	// Output: slack/T01/C02/: Invoice 7 failed. (trusted as outsider)
}

// A report is posted as a file.
func ExampleUseAttach() {
	agent := func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		files := harness.UseAttach(c)
		harness.UseTool(c, harness.NewTool("report", "Posts the report.", func(_ context.Context, call *harness.Call, _ struct{}) (string, error) {
			return "posted", files.Post(call, "The report:", chat.Attachment{Name: "report.csv", MediaType: "text/csv", Data: []byte("paid,7\n")})
		}))
		return "Report on payments."
	}
	s := harness.Snapshot{Files: true}
	m, _ := harness.Render(agent, s)
	report, _ := m.Tool("report")
	scope := harness.NewScope(s, nil)
	_, _ = report.Run(context.Background(), scope.Call("call_1", "report"), json.RawMessage(`{}`))
	for _, p := range scope.Posted() {
		fmt.Printf("%s %s: %q\n", p.Text, p.Files[0].Name, p.Files[0].Data)
	}
	// Output: The report: report.csv: "paid,7\n"
}

// The answer has to be a verdict, not a text about one.
func ExampleUseResult() {
	type verdict struct {
		Spam bool   `json:"spam"`
		Why  string `json:"why"`
	}
	agent := func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		harness.UseResult[verdict](c)
		return "Say whether the issue is spam."
	}
	m, _ := harness.Render(agent, harness.Snapshot{})
	finish, _ := m.Tool(harness.FinishTool)
	scope := harness.NewScope(harness.Snapshot{}, nil)
	_, err := finish.Run(context.Background(), scope.Call("call_1", finish.Name), json.RawMessage(`{"spam":"yes"}`))
	fmt.Println(err)
	_, _ = finish.Run(context.Background(), scope.Call("call_2", finish.Name), json.RawMessage(`{"spam":true,"why":"a link farm"}`))
	fmt.Println(string(scope.Result().Value))
	// Output:
	// the arguments do not fit: validating root: validating /properties/spam: type: yes has type "string", want "boolean"
	// {"spam":true,"why":"a link farm"}
}
