package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/heddlehq/heddle/agents/assistant"
	"github.com/heddlehq/heddle/channels/discord"
	"github.com/heddlehq/heddle/channels/github"
	"github.com/heddlehq/heddle/channels/slack"
	"github.com/heddlehq/heddle/channels/stripe"
	"github.com/heddlehq/heddle/channels/webhook"
	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/config"
	"github.com/heddlehq/heddle/dispatch"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/enhance"
	"github.com/heddlehq/heddle/harness/skill"
	"github.com/heddlehq/heddle/mcp"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/sandbox"
)

// Variables of the gateway itself.
var (
	varListen   = config.Var{Name: "HEDDLE_LISTEN", Doc: "Address of the public listener.", Default: ":8080", Example: "127.0.0.1:8080"}
	varAdmin    = config.Var{Name: "HEDDLE_ADMIN_LISTEN", Doc: "Address of the admin listener, which serves the API.", Default: "127.0.0.1:8081"}
	varToken    = config.Var{Name: "HEDDLE_ADMIN_TOKEN", Doc: "The API's bearer token, at least 16 bytes; several separated by commas while changing it. Without one the API lets nobody in.", Secret: true, Example: "what openssl rand -hex 32 prints"}
	varState    = config.Var{Name: "HEDDLE_STATE", Doc: "The store: sqlite:PATH, or mem: for trials.", Default: "sqlite:heddle.db", Example: "sqlite:/data/heddle.db"}
	varLogLevel = config.Var{Name: "HEDDLE_LOG_LEVEL", Doc: "debug, info, warn or error.", Default: "info"}
)

var gatewayVars = []config.Var{varListen, varAdmin, varToken, varState, varLogLevel, varSecretKey, config.File}

// agentSettings is one entry of the section agents.
type agentSettings struct {
	Prompt string         `yaml:"prompt" doc:"The instructions: a text, or a file if it ends in .md or .txt (relative to the settings file)."`
	Model  string         `yaml:"model" doc:"The model of an agent without a ladder."`
	Code   string         `yaml:"code" doc:"An agent in Go, by its name in cmd/gateway/wire.go, in place of prompt, model and ladder."`
	Ladder []rungSettings `yaml:"ladder" doc:"The levels of enhance, the lowest first."`
	Skills []string       `yaml:"skills" doc:"Skills that it may read, on every level."`
	MCP    []string       `yaml:"mcp" doc:"Names from mcp: servers whose tools it has, on every level."`
	Tools  []string       `yaml:"tools" doc:"Sets of tools that it has, on every level: stripe.read. stripe.write needs approvals, which this version does not have."`
	// Thinking is that of levels without their own.
	Thinking   model.Thinking     `yaml:"thinking" doc:"How much its models think: off, low, medium or high; as the model does by itself if not set. What a model cannot do becomes what it can."`
	Compaction compactionSettings `yaml:"compaction" doc:"When older messages are replaced by a summary, and how."`
	Memory     bool               `yaml:"memory" doc:"It finds and saves notes, and its answers are remembered, within one account."`
	Attach     bool               `yaml:"attach" doc:"On levels with a sandbox it may post files of that in the thread."`
	// Subagents are other agents of the settings.
	Subagents []string `yaml:"subagents" doc:"Names from agents: whom it may give tasks, on every level."`
	Doc       string   `yaml:"doc" doc:"One line: what it is good at. Needed by an agent that others give tasks."`
}

type rungSettings struct {
	Name      string         `yaml:"name" doc:"What the level gives, in a few words."`
	Model     string         `yaml:"model" doc:"A name from models, or provider/model."`
	Thinking  model.Thinking `yaml:"thinking" doc:"How much the model of this level thinks; the agent's if not set."`
	Sandbox   string         `yaml:"sandbox" doc:"The kind of sandbox: virtual."`
	Who       chat.Role      `yaml:"who" doc:"Least role of everybody in the thread: outsider, member, maintainer or admin."`
	Skills    []string       `yaml:"skills" doc:"Skills that it may read from this level on."`
	MCP       []string       `yaml:"mcp" doc:"Names from mcp: servers whose tools it has from this level on."`
	Tools     []string       `yaml:"tools" doc:"Sets of tools that it has from this level on."`
	Subagents []string       `yaml:"subagents" doc:"Names from agents: whom it may give tasks from this level on."`
	For       time.Duration  `yaml:"for" doc:"How long a climb lasts; as long as the conversation if not set."`
	Approve   bool           `yaml:"approve" doc:"Reserved for approvals, which this version does not have: must be false."`
}

type routeSettings struct {
	On    []string `yaml:"on" doc:"Topics: slack.mention, slack.dm, slack.thread, slack.message, slack.*, the same of discord, slack.command, slack.action, slack.shortcut, slack.reaction, discord.post (the first message of a forum's thread), discord.command, discord.action, discord.reaction, github.mention and others (docs/github.md), github.*, stripe.TYPE with a type of event such as stripe.invoice.payment_failed, stripe.invoice.*, stripe.*, webhook.NAME, webhook.*."`
	Agent string   `yaml:"agent" doc:"Who answers."`
	// WhileBusy is for an event that comes while a turn is open.
	WhileBusy chat.Policy    `yaml:"while_busy" doc:"What becomes of a message that comes while a turn is open: join (the turn takes it at its next step, which is the default), queue (a turn of its own afterwards), steer (joins, and tools that may be interrupted are), replace (the turn is aborted) or drop (its author is told)."`
	PostTo    string         `yaml:"post_to" doc:"Where answers are posted, such as slack/T01/C02: in a thread that each conversation opens there. Who answers in that thread goes on with the conversation, if a route names its topic (slack.thread). In the thread of the event if not set."`
	Debounce  *time.Duration `yaml:"debounce" doc:"How long somebody may take to say more in a direct message or a thread before they are answered; 1.2s if not set, 0s to answer at once. Mentions, files, buttons and orders such as stop are answered at once anyway."`
}

// budgetSettings limit what a turn, a conversation and a day may take.
type budgetSettings struct {
	Steps        int           `yaml:"steps" doc:"Model calls of one turn; 50 if not set."`
	Time         time.Duration `yaml:"time" doc:"Work on one turn, waits for people not counted; 1h if not set."`
	Tokens       int           `yaml:"tokens" doc:"Tokens read and written for one turn; no limit if not set."`
	Turn         float64       `yaml:"turn" doc:"US dollars for one turn; no limit if not set."`
	Conversation float64       `yaml:"conversation" doc:"US dollars for one conversation; no limit if not set."`
	Day          float64       `yaml:"day" doc:"US dollars for all conversations of the store on one day, from midnight to midnight UTC; no limit if not set."`
}

type accessSettings struct {
	Slack   slackAccess   `yaml:"slack" doc:"Who is what in Slack."`
	Discord discordAccess `yaml:"discord" doc:"Who is what in Discord."`
	GitHub  githubAccess  `yaml:"github" doc:"Who is what on GitHub, by their permission on the repository, which is looked up."`
	Talk    chat.Role     `yaml:"talk" doc:"Least role that is answered at all."`
	Bots    []string      `yaml:"bots" doc:"Bots that are members, by channel and id, such as slack/B0123; all others are ignored. Three turns in a row that bots begin are answered in one conversation, until a person speaks there."`
}

type slackAccess struct {
	Members     []string `yaml:"members" doc:"all for every full member of the workspace, which is the default, or user ids and user groups."`
	Maintainers []string `yaml:"maintainers" doc:"User ids and user groups."`
	Admins      []string `yaml:"admins" doc:"User ids and user groups."`
}

type discordAccess struct {
	Members     []string `yaml:"members" doc:"Ids of roles of a guild and of people, or all for every member of the guild; nobody if not set, since a guild may be open to everybody."`
	Maintainers []string `yaml:"maintainers" doc:"Ids of roles and people."`
	Admins      []string `yaml:"admins" doc:"Ids of roles and people."`
}

// figures replace what is known about a model.
type figures struct {
	Window     int      `yaml:"window" doc:"Tokens of context."`
	MaxOut     int      `yaml:"max_out" doc:"Tokens of answer."`
	In         *float64 `yaml:"in" doc:"US dollars per million tokens read; 0 for a model that costs nothing."`
	Out        *float64 `yaml:"out" doc:"US dollars per million tokens written."`
	CacheRead  *float64 `yaml:"cache_read" doc:"US dollars per million tokens read from the provider's cache."`
	CacheWrite *float64 `yaml:"cache_write" doc:"US dollars per million tokens written to the provider's cache."`
	Thinking   *string  `yaml:"thinking" doc:"The levels it takes, of off low medium high, lowest first; an empty text for none."`
	Images     *bool    `yaml:"images" doc:"It can look at images."`
}

// fileSettings are the sections of the settings file.
type fileSettings struct {
	models   map[string]string
	after    map[string][]string
	figures  map[string]figures
	agents   map[string]agentSettings
	code     map[string]harness.Agent // agents in Go
	routes   []routeSettings
	access   accessSettings
	rooms    map[string]roomSettings
	threads  threadSettings
	budgets  budgetSettings
	skills   skillSettings
	mcp      map[string]mcp.Settings
	memory   memorySettings
	stripe   stripe.Settings
	webhooks map[string]webhook.Settings
}

// readFile decodes every section and fills in the defaults.
func readFile(s *config.Settings) fileSettings {
	f := fileSettings{code: goAgents, access: accessSettings{Talk: chat.Member, Slack: slackAccess{Members: []string{"all"}}, GitHub: githubAccess{Members: "write"}}}
	s.Section("models", &f.models)
	s.Section("fallbacks", &f.after)
	s.Section("figures", &f.figures)
	s.Section("agents", &f.agents)
	s.Section("routes", &f.routes)
	s.Section("access", &f.access)
	s.Section("rooms", &f.rooms)
	s.Section("threads", &f.threads)
	s.Section("budgets", &f.budgets)
	f.skills = skillSettings{Dir: "skills", Lock: skill.LockName}
	s.Section("skills", &f.skills)
	s.Section("mcp", &f.mcp)
	f.memory = memorySettings{Embedder: "ngram"}
	s.Section("memory", &f.memory)
	s.Section(stripe.Name, &f.stripe)
	s.Section(webhook.Section, &f.webhooks)
	return f
}

func (f *fileSettings) slackAccess() slack.Access {
	a := f.access.Slack
	return slack.Access{Members: a.Members, Maintainers: a.Maintainers, Admins: a.Admins}
}

func (f *fileSettings) discordAccess() discord.Access {
	a := f.access.Discord
	return discord.Access{Members: a.Members, Maintainers: a.Maintainers, Admins: a.Admins}
}

// names checks the model names and adds the usual ones for the providers there are.
func (f *fileSettings) names(s *config.Settings, providers []model.Provider) *model.Names {
	if f.models == nil {
		f.models = map[string]string{}
		for _, p := range providers {
			for name, id := range usualModels[p.Name()] {
				if f.models[name] == "" {
					f.models[name] = p.Name() + "/" + id
				}
			}
		}
	}
	checkFigures(s, f.figures)
	over := map[string]model.Spec{}
	for full, g := range f.figures {
		provider, id, _ := strings.Cut(full, "/")
		over[full] = g.over(model.Lookup(provider, id))
	}
	n, err := model.NewNames(providers, f.models, over)
	if err != nil {
		s.Refuse("models", err.Error(), "names of your own for provider/model, such as \"fast: openai/gpt-5-mini\"")
		return nil
	}
	if err := n.Fallbacks(f.after); err != nil {
		s.Refuse("fallbacks", err.Error(), "for a name the models that answer when it cannot, such as \"fast: [anthropic/claude-haiku-4-5]\"")
	}
	return n
}

// usualModels are the names of an installation that sets no models.
var usualModels = map[string]map[string]string{
	"openai":    {"fast": "gpt-5-mini", "strong": "gpt-5.1"},
	"anthropic": {"fast": "claude-haiku-4-5", "strong": "claude-opus-4-6"},
	"gemini":    {"fast": "gemini-2.5-flash", "strong": "gemini-2.5-pro"},
}

// usualAgent is the agent of an installation that sets none.
const usualAgent = "assistant"

// agentsOf makes the agents, one called assistant if none is set.
func (f *fileSettings) agentsOf(s *config.Settings, names *model.Names, sandboxes map[string]sandbox.Provider, o *offer) map[string]harness.Agent {
	if len(f.agents) == 0 {
		f.agents = map[string]agentSettings{usualAgent: {Ladder: []rungSettings{
			{Name: "quick answers", Model: "fast"},
			{Name: "a stronger model and a shell", Model: "strong", Sandbox: "virtual", Who: chat.Member},
		}}}
	}
	out := map[string]harness.Agent{}
	for name, a := range f.agents {
		path := "agents." + name
		if a.Code != "" {
			out[name] = f.written(s, path, a, o, out)
			continue
		}
		ao := assistant.Options{Prompt: prompt(s, path, a.Prompt)}
		switch {
		case a.Model != "" && len(a.Ladder) > 0:
			s.Refuse(path, "both model and ladder", "one of them")
		case a.Model != "":
			if names != nil {
				if _, err := names.Resolve(a.Model); err != nil {
					s.Refuse(path+".model", err.Error(), "a name from models, or provider/model")
				}
			}
			ao.Ladder = []enhance.Rung{{Name: a.Model, Model: a.Model}}
		case len(a.Ladder) == 0:
			s.Refuse(path, "neither model, ladder nor code", "model: NAME, or a ladder of levels, or the name of an agent in Go")
		}
		seen := map[string]bool{}
		for i, r := range a.Ladder {
			at := fmt.Sprintf("%s.ladder[%d]", path, i)
			if seen[r.Name] {
				s.Refuse(at+".name", fmt.Sprintf("%q again", r.Name), "a name of its own for each level")
			}
			seen[r.Name] = true
			if names != nil && r.Model != "" {
				if _, err := names.Resolve(r.Model); err != nil {
					s.Refuse(at+".model", err.Error(), "a name from models, or provider/model")
				}
			}
			if r.Sandbox != "" && sandboxes[r.Sandbox] == nil {
				s.Refuse(at+".sandbox", fmt.Sprintf("%q", r.Sandbox), "one of "+strings.Join(slices.Sorted(maps.Keys(sandboxes)), ", "))
			}
			if r.For < 0 {
				s.Refuse(at+".for", r.For.String(), "a time such as 1h, or nothing for as long as the conversation")
			}
			if r.Approve {
				s.Refuse(at+".approve", "true", "false: this version has no approvals yet, so the level would be open to everybody who may climb")
			}
			if r.Name == "" || r.Model == "" {
				s.Refuse(at, "a level without name or model", "both")
			}
			if i == 0 && r.Who != chat.Outsider {
				s.Refuse(at+".who", r.Who.String(), "no role on the first level; use access.talk to say who is answered")
			}
			ao.Ladder = append(ao.Ladder, enhance.Rung{Name: r.Name, Model: r.Model, Sandbox: r.Sandbox, Who: r.Who, For: r.For})
		}
		tune(s, path, a, names, ao.Ladder)
		o.to(s, path, a, ao.Ladder)
		f.team(s, path, a, ao.Ladder, out)
		out[name] = assistant.New(ao)
	}
	return out
}

// team gives the rungs of an agent the subagents that its settings name, as offer.to
// does with skills. all is filled while the agents are made.
func (f *fileSettings) team(s *config.Settings, path string, a agentSettings, rungs []enhance.Rung, all map[string]harness.Agent) {
	had := map[string]bool{}
	add := func(at string, names []string, r *enhance.Rung) {
		for i, name := range names {
			at := fmt.Sprintf("%s.subagents[%d]", at, i)
			to, ok := f.agents[name]
			switch {
			case !ok:
				s.Refuse(at, fmt.Sprintf("%q", name), "one of "+strings.Join(slices.Sorted(maps.Keys(f.agents)), ", "))
				continue
			case to.Doc == "" || strings.ContainsAny(to.Doc, "\r\n"):
				s.Refuse(at, fmt.Sprintf("%q", name), "an agent with a line in agents."+name+".doc that says what it is good at")
			case had[name]:
				s.Refuse(at, fmt.Sprintf("%q again", name), "each subagent once; the levels above have it as well")
			}
			had[name] = true
			r.Subagents = append(r.Subagents, harness.Subagent{Name: name, Doc: to.Doc, Agent: func(c *harness.Context) string { return all[name](c) }})
		}
	}
	if len(rungs) == 0 {
		return // refused already
	}
	add(path, a.Subagents, &rungs[0])
	for i, r := range a.Ladder {
		add(fmt.Sprintf("%s.ladder[%d]", path, i), r.Subagents, &rungs[i])
	}
}

// prompt reads the prompt file, if it is one.
func prompt(s *config.Settings, path, text string) string {
	if !strings.HasSuffix(text, ".md") && !strings.HasSuffix(text, ".txt") || strings.ContainsAny(text, "\n") {
		return text
	}
	name := text
	if !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(s.Path()), name)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		s.Refuse(path+".prompt", err.Error(), "a file that can be read")
	}
	return strings.TrimSpace(string(b))
}

// routesOf makes the routes; without any, the only agent answers mentions,
// direct messages and the threads it was mentioned in.
func (f *fileSettings) routesOf(s *config.Settings) []dispatch.Route {
	if len(f.routes) == 0 {
		names := slices.Sorted(maps.Keys(f.agents))
		if len(names) != 1 {
			s.Refuse("routes", "none", "routes, because there are several agents: "+strings.Join(names, ", "))
			return nil
		}
		return []dispatch.Route{{On: slices.Concat(slack.Usual, discord.Usual, github.Usual), Agent: names[0], Debounce: usualDebounce}}
	}
	topics := slices.Concat(topics, webhook.Topics(f.webhooks))
	var out []dispatch.Route
	for i, r := range f.routes {
		at := fmt.Sprintf("routes[%d]", i)
		if _, ok := f.agents[r.Agent]; !ok {
			s.Refuse(at+".agent", fmt.Sprintf("%q", r.Agent), "one of "+strings.Join(slices.Sorted(maps.Keys(f.agents)), ", "))
		}
		if len(r.On) == 0 {
			s.Refuse(at+".on", "nothing", "one or more of "+strings.Join(topics, ", "))
		}
		for _, on := range r.On {
			if !isTopic(topics, on) {
				s.Refuse(at+".on", fmt.Sprintf("%q", on), "one of "+strings.Join(topics, ", "))
			}
		}
		out = append(out, dispatch.Route{On: r.On, Agent: r.Agent, WhileBusy: r.WhileBusy, PostTo: f.place(s, at+".post_to", r.PostTo), Debounce: r.debounce(s, at)})
	}
	return out
}
