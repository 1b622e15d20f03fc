package anthropic

import (
	"regexp"
	"slices"

	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/wire"
)

type thinking struct {
	Type   string `json:"type"`
	Budget int    `json:"budget_tokens,omitempty"`
}

type output struct {
	Effort string `json:"effort"`
}

// budgeted are the models that are given a number of tokens to think with; all
// later ones are given an effort, and refuse a number.
var budgeted = regexp.MustCompile(`^claude-(3-|haiku-4-5|(opus|sonnet)-4(-[0-5])?(-20\d{6})?$)`)

// budgets are the tokens of a level. An API refuses less than minBudget.
var budgets = map[model.Thinking]int{model.ThinkLow: 2048, model.ThinkMedium: 8192, model.ThinkHigh: 16384}

const minBudget = 1024

// think asks for a level of thinking; off is what these models do unasked. A
// budget counts against max_tokens, so it takes at most half of a limit that was
// set, and is added to one that was not. It is left out in the middle of an
// answer that began without thinking, where it is refused.
func think(out *request, r model.Request, from string) {
	budget := budgets[r.Thinking]
	switch {
	case budget == 0:
	case !budgeted.MatchString(r.Model):
		out.Thinking, out.Output = &thinking{Type: "adaptive"}, &output{Effort: string(r.Thinking)}
	case began(wire.Talk(latest(r.Messages), from, r.Blind)):
	case r.MaxTokens <= 0:
		out.Thinking, out.MaxTokens = &thinking{"enabled", budget}, defaultMaxTokens+budget
	case r.MaxTokens/2 >= minBudget:
		out.Thinking = &thinking{"enabled", min(budget, r.MaxTokens/2)}
	}
}

// latest is the end of a conversation from where somebody spoke last after an
// answer that called nothing, or all of it.
func latest(in []model.Message) []model.Message {
	for i := len(in) - 1; i > 0; i-- {
		calls := func(p model.Part) bool { return p.Kind == model.Call }
		if in[i].Role == model.User && wire.Join(in[i].Parts) != "" &&
			in[i-1].Role == model.Assistant && wire.Join(in[i-1].Parts) != "" && !slices.ContainsFunc(in[i-1].Parts, calls) {
			return in[i:]
		}
	}
	return in
}

// began says whether an answer is under way, its latest calls just answered,
// that did not begin with thinking.
func began(talk []model.Message) bool {
	var first []model.PartKind // of what neighbours of one role make together
	for i, m := range talk {
		if said := m.Role == model.Assistant; i == 0 || said != (talk[i-1].Role == model.Assistant) {
			first = append(first, m.Parts[0].Kind)
		}
	}
	at := len(first)
	for at >= 2 && first[at-1] == model.Result {
		at -= 2
	}
	return at < len(first) && first[at] != model.Reasoning
}
