package turn

import (
	"errors"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
)

// Fits says what is wrong with what an event brings, or nil, so that its sender
// can be told before it is stored: the data of the first event of a conversation
// is what the agent begins with, and the wanted answer has a schema.
func (e *Engine) Fits(agent string, event chat.Event, first bool) error {
	s := harness.Snapshot{Agent: agent, Thread: event.Thread, Event: event, Want: event.Want, Trust: chat.Admin, Now: e.Clock()}
	if first {
		s.Initial = event.Data
	}
	// Other mistakes are the agent's: its turn reports them.
	_, err := harness.Render(e.Agents[agent], s)
	if errors.Is(err, harness.ErrInitial) || errors.Is(err, harness.ErrWant) {
		return err
	}
	return nil
}
