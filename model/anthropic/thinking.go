package anthropic

import (
	"encoding/json"
	"regexp"

	"github.com/heddlehq/heddle/model"
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
func think(r *request, level model.Thinking) {
	budget := budgets[level]
	switch {
	case budget == 0:
	case !budgeted.MatchString(r.Model):
		r.Thinking, r.Output = &thinking{Type: "adaptive"}, &output{Effort: string(level)}
	case began(r.Messages):
	case r.MaxTokens <= 0:
		r.Thinking, r.MaxTokens = &thinking{"enabled", budget}, defaultMaxTokens+budget
	case r.MaxTokens/2 >= minBudget:
		r.Thinking = &thinking{"enabled", min(budget, r.MaxTokens/2)}
	}
}

// began says whether an answer is under way, its latest calls just answered,
// that did not begin with thinking.
func began(messages []message) bool {
	first := len(messages)
	for first >= 2 && answers(messages[first-1]) {
		first -= 2
	}
	if first == len(messages) {
		return false
	}
	_, opaque := messages[first].Content[0].(json.RawMessage)
	return !opaque
}

// answers says whether a message holds results, which come first.
func answers(m message) bool {
	b, ok := m.Content[0].(*block)
	return ok && b.Type == "tool_result"
}
