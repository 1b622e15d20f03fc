package harness

import (
	"errors"
	"slices"
)

// A Citation is a text from elsewhere that the model is shown as data.
type Citation struct {
	Source string // what it is and where it comes from, in a few words
	Text   string
}

// Cite shows the model a text from elsewhere, such as what a server made,
// before its next answer. It is marked as data, with its source. Only in the
// start callbacks of a turn; a tool has its result for that.
func (c *Call) Cite(source, text string) {
	if c.Tool != "" {
		c.fail(errors.New("Cite is for start callbacks; a tool returns its text"))
		return
	}
	c.scope.mu.Lock()
	defer c.scope.mu.Unlock()
	c.scope.cited = append(c.scope.cited, Citation{source, text})
}

// Citations are what the calls of the scope cited, in order.
func (s *Scope) Citations() []Citation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.cited)
}
