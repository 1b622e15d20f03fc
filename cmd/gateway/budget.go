package main

import (
	"fmt"

	"github.com/heddlehq/heddle/config"
	"github.com/heddlehq/heddle/harness/turn"
)

// limits are what the section budgets sets.
func (f *fileSettings) limits(s *config.Settings) turn.Limits {
	b := f.budgets
	for _, v := range []struct {
		name  string
		value any
		wrong bool
	}{
		{"steps", b.Steps, b.Steps < 0},
		{"time", b.Time, b.Time < 0},
		{"tokens", b.Tokens, b.Tokens < 0},
		{"turn", b.Turn, b.Turn < 0},
		{"conversation", b.Conversation, b.Conversation < 0},
		{"day", b.Day, b.Day < 0},
	} {
		if v.wrong {
			s.Refuse("budgets."+v.name, fmt.Sprint(v.value), "more than nothing, or no such key")
		}
	}
	return turn.Limits{Steps: b.Steps, Time: b.Time, Tokens: b.Tokens, Turn: b.Turn, Total: b.Conversation, Day: b.Day}
}
