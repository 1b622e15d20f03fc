package main

import (
	"slices"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/channels/discord"
	"github.com/heddlehq/heddle/channels/github"
	"github.com/heddlehq/heddle/channels/slack"
	"github.com/heddlehq/heddle/channels/stripe"
	"github.com/heddlehq/heddle/channels/webhook"
	"github.com/heddlehq/heddle/config"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/mcp"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/anthropic"
	"github.com/heddlehq/heddle/model/gemini"
	"github.com/heddlehq/heddle/model/openai"
	"github.com/heddlehq/heddle/sandbox"
	"github.com/heddlehq/heddle/sandbox/virtual"
)

// This file registers every implementation: a line each.

// channelSetups make the channels that the settings enable.
var channelSetups = []func(*config.Settings, *fileSettings) channels.Channel{
	func(s *config.Settings, f *fileSettings) channels.Channel {
		return some[channels.Channel](slack.Setup(s, f.slackAccess()))
	},
	func(s *config.Settings, f *fileSettings) channels.Channel {
		return some[channels.Channel](discord.Setup(s, f.discordAccess()))
	},
	func(s *config.Settings, f *fileSettings) channels.Channel {
		return some[channels.Channel](github.Setup(s, f.githubAccess()))
	},
	func(s *config.Settings, _ *fileSettings) channels.Channel {
		return some[channels.Channel](github.SetupInstaller(s))
	},
	func(s *config.Settings, f *fileSettings) channels.Channel {
		return some[channels.Channel](stripe.Setup(s, f.stripe))
	},
	func(s *config.Settings, f *fileSettings) channels.Channel {
		return some[channels.Channel](webhook.Setup(s, f.webhooks))
	},
}

// topics are what routes may name, beside the sources of webhooks.
var topics = slices.Concat(slack.Topics, discord.Topics, github.Topics, stripe.Topics)

// providerSetups make the model providers that the settings enable.
var providerSetups = []func(*config.Settings) []model.Provider{
	func(s *config.Settings) []model.Provider { return each[model.Provider](openai.Setup(s)) },
	func(s *config.Settings) []model.Provider { return each[model.Provider](one(anthropic.Setup(s))) },
	func(s *config.Settings) []model.Provider { return each[model.Provider](one(gemini.Setup(s))) },
}

// sandboxSetups make the sandbox providers.
var sandboxSetups = []func() sandbox.Provider{
	func() sandbox.Provider { return virtual.New(virtual.Options{}) },
}

// toolSets are tools that settings name with agents.NAME.tools.
var toolSets = map[string]toolSet{
	"stripe.read":  {"Stripe with STRIPE_API_KEY", stripeRead},
	"stripe.write": {"approvals, which this version does not have: nothing may change money without a person's yes", notYet},
}

// goAgents are agents written in Go: settings name them with agents.NAME.code.
var goAgents = map[string]harness.Agent{}

// storedFiles read what a kind of sandbox stores, for people.
var storedFiles = map[string]func(snapshot []byte) (map[string][]byte, error){"virtual": virtual.Stored}

// stores are the kinds of store, by the part of HEDDLE_STATE before the first colon.
var stores = map[string]storeKind{"mem": memStore, "sqlite": sqliteStore}

// vars are the settings of everything that is registered, in the order of the documentation.
var vars = []config.Group{
	{Title: "Gateway", Vars: gatewayVars},
	{Title: "Slack", Vars: slack.Vars},
	{Title: "Discord", Vars: discord.Vars},
	{Title: "GitHub", Doc: "[github.md](github.md) is the guide.", Vars: github.Vars},
	{Title: "Stripe", Doc: "[stripe.md](stripe.md) is the guide.", Vars: stripe.Vars, Section: stripe.Name, Type: stripe.Settings{}},
	{Title: "Webhooks", Doc: "Sources of signed JSON, by a name of your own. [webhooks.md](webhooks.md) is the guide.", Section: webhook.Section, Type: map[string]webhook.Settings{}},
	{Title: "OpenAI and compatible servers", Vars: openai.Vars},
	{Title: "Anthropic", Vars: anthropic.Vars},
	{Title: "Gemini", Vars: gemini.Vars},
	{Title: "Models", Doc: "Names of your own for models.", Section: "models", Type: map[string]string{}},
	{Title: "Fallbacks", Doc: "Who answers, in order, when the model of a name cannot.", Section: "fallbacks", Type: map[string][]string{}},
	{Title: "Figures", Doc: "What is known about a model, by provider/model; replaces the embedded figures.", Section: "figures", Type: map[string]figures{}},
	{Title: "Agents", Doc: "Who answers. Without this section there is one agent, assistant, with a ladder of fast and strong.", Section: "agents", Type: map[string]agentSettings{}},
	{Title: "Skills", Doc: "Texts that agents read when they need them. [skills.md](skills.md) is the guide.", Section: "skills", Type: skillSettings{}},
	{Title: "MCP", Doc: "Servers whose tools agents may call, by a name of your own. [mcp.md](mcp.md) is the guide.", Section: "mcp", Type: map[string]mcp.Settings{}},
	{Title: "Memory", Doc: "What agents with memory find again. [memory.md](memory.md) is the guide.", Section: "memory", Type: memorySettings{}},
	{Title: "Routes", Doc: "Which agent answers what; the first match wins. What matches nothing is recorded as ignored.", Section: "routes", Type: []routeSettings{}},
	{Title: "Rooms", Doc: "What is answered where, by room (slack/T01/C02), account (slack/T01) or channel (slack); the closest counts.", Section: "rooms", Type: map[string]roomSettings{}},
	{Title: "Threads", Doc: "How conversations are led in every channel.", Section: "threads", Type: threadSettings{}},
	{Title: "Budgets", Doc: "What a turn and a conversation may take, subagents included. Who reaches a limit is told so in the thread.", Section: "budgets", Type: budgetSettings{}},
	{Title: "Access", Doc: "Who holds which role. Unless members are named, every full member of the Slack workspace is a member, and on GitHub whoever may write to the repository; guests, foreign people and bots are outsiders. In Discord nobody is a member unless named.", Section: "access", Type: accessSettings{}},
}

// some makes a nil pointer a nil interface.
func some[I any, P interface {
	comparable
}](p P) (out I) {
	var zero P
	if p != zero {
		out = any(p).(I)
	}
	return out
}

func one[P comparable](p P) []P {
	var zero P
	if p == zero {
		return nil
	}
	return []P{p}
}

func each[I, P any](ps []P) []I {
	var out []I
	for _, p := range ps {
		out = append(out, any(p).(I))
	}
	return out
}
