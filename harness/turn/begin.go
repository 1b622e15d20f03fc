package turn

import (
	"errors"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
)

// Fits says what is wrong with the data that an event brings, or nil, so that
// its sender can be told before it is stored. The data of the first event of a
// conversation is what the agent begins with.
func (e *Engine) Fits(agent string, event chat.Event, first bool) error {
	s := harness.Snapshot{Agent: agent, Thread: event.Thread, Event: event, Trust: chat.Admin, Now: e.Clock()}
	if first {
		s.Initial = event.Data
	}
	// Other mistakes are the agent's: its turn reports them.
	if _, err := harness.Render(e.Agents[agent], s); errors.Is(err, harness.ErrInitial) {
		return err
	}
	return nil
}
