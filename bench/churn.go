//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/fakes/llm"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	engine "github.com/heddlehq/heddle/harness/turn"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/anthropic"
	"github.com/heddlehq/heddle/model/openai"
	"github.com/heddlehq/heddle/model/script"
	"github.com/heddlehq/heddle/state"
	"github.com/heddlehq/heddle/state/mem"
)

// A churnReport is what a conversation costs whose tools change every so many turns.
type churnReport struct {
	Model string `json:"model"`
	Case  string `json:"case"`
	Every int    `json:"every"` // turns between two changes, 0 for none
	// With the engine's list of tools, and with the present ones sent in the
	// order of their declaration.
	Ours  spending `json:"ours"`
	Naive spending `json:"naive"`
}

type spending struct {
	Cost   float64 `json:"cost_usd"`
	Cached float64 `json:"cached"` // share of the tokens sent that were read from the cache
}

// What a conversation is made of.
const (
	churnTurns  = 40
	fixedTools  = 15  // always there
	spareTools  = 10  // of which half are there at first
	toolWords   = 110 // of a description
	systemWords = 1500
	heardWords  = 800
	saidWords   = 400
)

var churnEvery = [...]int{0, 1, 2, 5, 10, 20}

// churnCases are the ways in which tools change.
var churnCases = [...]struct {
	name   string
	change func(*churn)
}{
	{"one of ten is taken away or given back", (*churn).toggle},
	{"one gives way to a new one", (*churn).replace},
}

// A churn is the changing part of an agent's tools.
type churn struct {
	rnd  *rand.Rand
	have []string // spare tools that there are, "" for a gap, in the order of declaration
	all  []string
	made int
}

func newChurn() *churn {
	c := &churn{rnd: rand.New(rand.NewPCG(42, 42))}
	for i := range spareTools {
		c.all = append(c.all, c.name())
		c.have = append(c.have, c.all[i])
		if i%2 == 1 {
			c.have[i] = ""
		}
	}
	return c
}

func (c *churn) name() string {
	c.made++
	return fmt.Sprintf("spare_%d", c.made)
}

func (c *churn) toggle() {
	i := c.rnd.IntN(len(c.have))
	if c.have[i] != "" {
		c.have[i] = ""
	} else {
		c.have[i] = c.all[i]
	}
}

func (c *churn) replace() {
	for i := c.rnd.IntN(len(c.have)); ; i = (i + 1) % len(c.have) {
		if c.have[i] != "" {
			c.have[i] = c.name()
			return
		}
	}
}

// agent declares the spare tools before the fixed ones.
func (c *churn) agent(model string) harness.Agent {
	prompt := words("prompt", systemWords)
	doc := words("doc", toolWords)
	return func(h *harness.Context) string {
		harness.UseModel(h, model)
		use := func(name string) {
			harness.UseTool(h, harness.NewTool(name, name+": "+doc, func(context.Context, *harness.Call, struct {
				ID string `json:"id" jsonschema:"what is meant"`
			},
			) (string, error) {
				return "", nil
			}))
		}
		for _, name := range c.have {
			if name != "" {
				use(name)
			}
		}
		for i := range fixedTools {
			use(fmt.Sprintf("fixed_%d", i))
		}
		return prompt
	}
}

// words are so many, different ones for each seed.
func words(seed string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s%d ", seed[:1], i%100)
	}
	return b.String()
}

// naive is a provider that is sent the tools of the present manifest.
type naive struct {
	model.Provider
	agent harness.Agent
}

func (n naive) Stream(ctx context.Context, r model.Request, on func(model.Delta)) (model.Response, error) {
	m, err := harness.Render(n.agent, harness.Snapshot{})
	if err != nil {
		return model.Response{}, err
	}
	r.Tools = m.View().Tools
	return n.Provider.Stream(ctx, r, on)
}

// measureChurn runs every case for one model: "provider/model".
func measureChurn(ctx context.Context, name string) ([]churnReport, error) {
	var out []churnReport
	for _, kind := range churnCases {
		for _, every := range churnEvery {
			rep := churnReport{Model: name, Case: kind.name, Every: every}
			var err error
			if rep.Ours, err = converse(ctx, name, every, kind.change, false); err != nil {
				return nil, err
			}
			if rep.Naive, err = converse(ctx, name, every, kind.change, true); err != nil {
				return nil, err
			}
			out = append(out, rep)
		}
	}
	return out, nil
}

// converse runs a conversation with the engine, the codecs and the prices as
// they are; the provider is a stand-in with the real ones' rules of caching.
func converse(ctx context.Context, name string, every int, change func(*churn), asNaive bool) (spending, error) {
	said, err := script.Parse("when \"\"\nsay: " + words("said", saidWords))
	if err != nil {
		return spending{}, err
	}
	c := newChurn()
	agent := c.agent(name)
	client := &http.Client{Transport: local{llm.New(llm.Options{Script: script.NewPlayer(said), Caches: true})}}
	providers := []model.Provider{anthropic.New(anthropic.Options{Client: client}), openai.New(openai.Options{Client: client})}
	if asNaive {
		for i := range providers {
			providers[i] = naive{providers[i], agent}
		}
	}
	models, err := model.NewNames(providers, nil, nil)
	if err != nil {
		return spending{}, err
	}
	store := mem.Open(time.Now)
	e, err := engine.New(engine.Options{
		Log: store, Agents: map[string]harness.Agent{"churn": agent}, Models: models, Clock: time.Now, Logger: slog.New(slog.DiscardHandler),
		Role:    func(context.Context, chat.Thread, chat.Author) (chat.Role, error) { return chat.Member, nil },
		Compose: func(chat.Thread, string, chat.Role) ([]string, bool) { return nil, false },
	})
	if err != nil {
		return spending{}, err
	}
	thread := chat.Thread{Channel: "bench", Account: "a", Room: "r"}
	for n := range churnTurns {
		if every > 0 && n > 0 && n%every == 0 {
			change(c)
		}
		event := chat.Event{ID: fmt.Sprint(n), Thread: thread, Kind: chat.Message, Text: fmt.Sprint(n, " ", words("heard", heardWords)), Author: chat.Author{ID: "U1"}}
		if _, err := store.Admit(ctx, []state.Admit{{Event: event, Agent: "churn"}}); err != nil {
			return spending{}, err
		}
		lease, err := store.Claim(ctx, "bench", time.Hour)
		if err != nil {
			return spending{}, err
		}
		if err := e.Run(ctx, ctx, lease); err != nil {
			return spending{}, err
		}
	}
	return spent(ctx, store, thread)
}

// spent adds up what the log says.
func spent(ctx context.Context, store *mem.Store, thread chat.Thread) (spending, error) {
	v, err := store.Load(ctx, state.ConversationID("churn", thread), 0)
	if err != nil {
		return spending{}, err
	}
	f := &record.Fold{}
	if err := f.Add(v.Records); err != nil {
		return spending{}, err
	}
	if f.Turns != churnTurns || f.Cost == 0 {
		return spending{}, fmt.Errorf("%d of %d turns were answered, for %v dollars", f.Turns, churnTurns, f.Cost)
	}
	return spending{Cost: round(f.Cost), Cached: float64(f.Usage.Cached) / float64(f.Usage.In)}, nil
}

// local answers requests with a handler, in this process.
type local struct{ h http.Handler }

func (l local) RoundTrip(r *http.Request) (*http.Response, error) {
	w := &answer{header: http.Header{}, status: http.StatusOK}
	l.h.ServeHTTP(w, r)
	return &http.Response{
		StatusCode: w.status, Header: w.header, Body: io.NopCloser(&w.body), Request: r, ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1,
	}, nil
}

// An answer is a whole response.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(status int)      { a.status = status }
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }
func (a *answer) Flush()                      {}

// churnTable writes the reports down.
func churnTable(reports []churnReport) string {
	var b strings.Builder
	b.WriteString("| model | change | every | cached, ours | cached, naive | cost, ours | cost, naive | naive / ours |\n| --- | --- | --: | --: | --: | --: | --: | --: |\n")
	model, kind := "", ""
	for _, r := range reports {
		cells := []string{r.Model, r.Case}
		if r.Model == model {
			cells[0] = ""
		}
		if r.Model == model && r.Case == kind {
			cells[1] = ""
		}
		model, kind = r.Model, r.Case
		every := fmt.Sprint(r.Every)
		if r.Every == 0 {
			every = "never"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %.0f %% | %.0f %% | $%.3f | $%.3f | %.2f |\n",
			cells[0], cells[1], every, 100*r.Ours.Cached, 100*r.Naive.Cached, r.Ours.Cost, r.Naive.Cost, r.Naive.Cost/r.Ours.Cost)
	}
	return b.String()
}
