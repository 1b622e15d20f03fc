package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/heddlehq/heddle/config"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/openai"
	"github.com/heddlehq/heddle/model/scripted"
)

// demoModel picks a real model if there is one, else the script.
func demoModel(ctx context.Context, s *config.Settings) (p model.Provider, names map[string]string, note string) {
	for _, setup := range providerSetups {
		before := s.Refused()
		ps := setup(s)
		if s.Refused() > before {
			continue // a placeholder is no key
		}
		for _, p := range ps {
			if usual := usualModels[p.Name()]; usual != nil {
				fast, strong := p.Name()+"/"+usual["fast"], p.Name()+"/"+usual["strong"]
				return p, map[string]string{"fast": fast, "strong": strong}, fmt.Sprintf("a real one answers: %s, then %s.", fast, strong)
			}
		}
	}
	host := s.Get(config.Var{Name: "OLLAMA_HOST"}) // "" is this machine
	if id := ollamaModel(ctx, host); id != "" {
		full := "ollama/" + id
		return openai.Ollama(host), map[string]string{"fast": full, "strong": full}, "a real one answers: " + full + " at " + openai.OllamaURL(host) + "."
	}
	return scripted.Play(play, 20*time.Millisecond), map[string]string{"fast": "scripted/fast", "strong": "scripted/strong"},
		"none: a script plays its part, as there is no usable key and no Ollama at " + openai.OllamaURL(host) + ". All else is real, the shell too."
}

// ollamaModel asks the Ollama that a host names for its first model, "" if there is none.
func ollamaModel(ctx context.Context, host string) string {
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(openai.OllamaURL(host), "/v1")+"/api/tags", nil)
	if err != nil {
		return ""
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	var list struct {
		Models []struct{ Name string }
	}
	if json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(&list) != nil || len(list.Models) == 0 {
		return ""
	}
	return list.Models[0].Name
}

// What the script calls. The calls are really made: the numbers in its answer
// come out of the shell.
const (
	playEnhance = `{"reason":"counting is safer with a shell than by heart"}`
	playBash    = `{"command":"printf 'monday 41\\ntuesday 38\\nwednesday 97\\nthursday 40\\nfriday 44\\n' > deploys.txt\nawk '{ sum += $2; if ($2 > max) { max = $2; day = $1 } }\n     END { printf \"%s took %d minutes, %d more than the average of %d\\n\", day, max, max - sum/NR, sum/NR }' deploys.txt"}`
)

// play is the script. Like a model it looks at what was said and done since a
// person spoke, and at the tools that are offered.
func play(ctx context.Context, r model.Request) (model.Response, error) {
	asked, counted := latest(r.Messages)
	offered := func(name string) bool {
		return slices.ContainsFunc(r.Tools, func(t model.Tool) bool { return t.Name == name })
	}
	step := scripted.Say("I am only a script, which can tell the slowest deploy: with a key I would answer. You said: " + asked)
	switch {
	case !strings.Contains(asked, "slowest"):
	case counted != "":
		step = scripted.Say("**Counted, not guessed:** " + counted)
	case offered("bash"):
		step = scripted.Call("bash", playBash)
	case offered("enhance"):
		step = scripted.Call("enhance", playEnhance)
	}
	return step(ctx, r)
}

// latest is what a person said last, and the output of the shell since.
func latest(talk []model.Message) (asked, output string) {
	for _, m := range slices.Backward(talk) {
		for _, p := range slices.Backward(m.Parts) {
			if text, ok := strings.CutPrefix(p.Text, "<heard"); ok && m.Role == model.User {
				_, text, _ = strings.Cut(text, ">\n")
				return strings.TrimSuffix(text, "\n</heard>"), output
			}
			if p.Kind == model.Result && p.Name == "bash" && output == "" {
				output, _, _ = strings.Cut(p.Text, "\n[exit code ")
			}
		}
	}
	return "", output
}

// asking is a provider that says on the stage whom the gateway asks, before the answer.
type asking struct {
	model.Provider
	demo *demo
}

// Stream implements model.Provider.
func (a asking) Stream(ctx context.Context, r model.Request, on func(model.Delta)) (model.Response, error) {
	a.demo.say("  | asking %s/%s ...", a.Name(), r.Model)
	return a.Provider.Stream(ctx, r, on)
}
