package main

import (
	"fmt"
	"text/tabwriter"
)

type hooksCmd struct{}

// hooks are what an agent in Go may call while it renders, in a line each. Their
// documentation has an example of each.
var hooks = []struct{ name, doc string }{
	{"harness.UseModel", "the model of the next call, how much it thinks, how a long conversation is summarised"},
	{"harness.UseSandbox", "files and a shell, with the tools read, write, edit, bash, grep and glob"},
	{"harness.UseTool", "a tool: a function with a schema from its arguments"},
	{"harness.UseSkill", "a skill: a line in the catalogue, a text when the model reads it"},
	{"harness.UseSubagent", "an agent that is given tasks and answers once"},
	{"harness.UseInstruction", "a paragraph of instructions"},
	{"harness.UseLevel", "where the conversation stands on a ladder, for people to see"},
	{"harness.UseState", "a named value that lives as long as the conversation, with versions"},
	{"harness.UseInitialData", "what a program passed along with the first event"},
	{"harness.UseData", "a named part for programs that read the conversation"},
	{"harness.UseDispatch", "texts to other conversations, or to this one"},
	{"harness.UseAttach", "files that are posted in the thread; with a sandbox, the tool attach"},
	{"harness.UseResult", "an answer in the form of a type, by finish or give_up"},
	{"harness.UseTurnStart", "a callback before the first model call of a turn"},
	{"harness.UseTurnFinish", "a callback when the model has answered; it may send it back to work"},
	{"harness.UseResponseStart", "a callback before each model call"},
	{"harness.UseResponseFinish", "a callback after each model call, before its tools"},
	{"harness.UseToolCall", "a callback before each tool call: see, change, deny"},
	{"harness.UseSettled", "a callback when the outcome of a turn is stored"},
	{"harness.UseCompaction", "a callback before old messages are summarised; what it returns is kept"},
	{"enhance.Use", "a ladder of models, sandboxes, tools and skills that the model climbs"},
	{"mcp.Use", "the tools, resources and prompts of an MCP server"},
	{"memory.Use", "notes and past turns, found by meaning and by words"},
}

// Run lists the hooks.
func (hooksCmd) Run(e env) error {
	w := tabwriter.NewWriter(e.stdout, 0, 4, 2, ' ', 0)
	for _, h := range hooks {
		fmt.Fprintf(w, "%s\t%s\n", h.name, h.doc)
	}
	return w.Flush()
}
