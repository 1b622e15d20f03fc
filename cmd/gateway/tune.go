package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/heddlehq/heddle/config"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/enhance"
	"github.com/heddlehq/heddle/model"
)

// compactionSettings are a harness.Compaction.
type compactionSettings struct {
	Off     bool   `yaml:"off" doc:"Not before the provider refuses a request as too long."`
	Reserve int    `yaml:"reserve" doc:"Tokens of the window that stay free, at most half of it; if not set, the model's longest answer, at most 20000 and at most a third of a small window."`
	Keep    int    `yaml:"keep" doc:"Tokens of the newest messages that stay as they are; 8000 if not set."`
	Model   string `yaml:"model" doc:"Who writes the summary, by a name from models or provider/model; the level's own model if not set."`
}

// thinkingLevels are those that settings may name; none is the model's own choice.
var thinkingLevels = []model.Thinking{"", model.ThinkOff, model.ThinkLow, model.ThinkMedium, model.ThinkHigh}

// tune says how the models of the rungs are used.
func tune(s *config.Settings, path string, a agentSettings, names *model.Names, rungs []enhance.Rung) {
	c := a.Compaction
	if c.Reserve < 0 || c.Keep < 0 {
		s.Refuse(path+".compaction", fmt.Sprintf("reserve %d and keep %d", c.Reserve, c.Keep), "tokens, or nothing for the usual")
	}
	if c.Model != "" && names != nil {
		if _, err := names.Resolve(c.Model); err != nil {
			s.Refuse(path+".compaction.model", err.Error(), "a name from models, or provider/model")
		}
	}
	think := func(at string, level model.Thinking) {
		if !slices.Contains(thinkingLevels, level) {
			s.Refuse(at+".thinking", fmt.Sprintf("%q", level), "off, low, medium or high")
		}
	}
	think(path, a.Thinking)
	for i := range rungs {
		level := a.Thinking
		if i < len(a.Ladder) && a.Ladder[i].Thinking != "" {
			level = a.Ladder[i].Thinking
			think(fmt.Sprintf("%s.ladder[%d]", path, i), level)
		}
		rungs[i].Options = []harness.ModelOption{harness.Thinking(level), harness.Compact(harness.Compaction(c))}
	}
}

// over puts what is set in the place of what is known.
func (g figures) over(known model.Spec) model.Spec {
	known.Window, known.MaxOut = cmp.Or(g.Window, known.Window), cmp.Or(g.MaxOut, known.MaxOut)
	set(&known.In, g.In)
	set(&known.Out, g.Out)
	set(&known.CacheRead, g.CacheRead)
	set(&known.CacheWrite, g.CacheWrite)
	set(&known.Thinking, g.Thinking)
	set(&known.Images, g.Images)
	return known
}

func set[T any](v, to *T) {
	if to != nil {
		*v = *to
	}
}

// checkFigures refuses figures that no model can have, or that no name leads to.
func checkFigures(s *config.Settings, all map[string]figures) {
	for full, g := range all {
		at := "figures." + full
		if provider, id, _ := strings.Cut(full, "/"); provider == "" || id == "" {
			s.Refuse(at, "a name without a provider", "provider/model, such as openai/gpt-5-mini")
		}
		is := g.over(model.Spec{})
		if min(is.Window, is.MaxOut) < 0 || min(is.In, is.Out, is.CacheRead, is.CacheWrite) < 0 {
			s.Refuse(at, "less than nothing", "tokens, and US dollars per million of them")
		}
		for level := range strings.FieldsSeq(is.Thinking) {
			if !slices.Contains(thinkingLevels, model.Thinking(level)) {
				s.Refuse(at+".thinking", fmt.Sprintf("%q", level), "some of off low medium high")
			}
		}
	}
}
