package harness

import (
	"slices"

	"github.com/heddlehq/heddle/chat"
)

// A Voice is an author and the weakest role that was seen of them.
type Voice struct {
	Author chat.Author `json:"author"`
	Role   chat.Role   `json:"role"`
	Thread chat.Thread `json:"thread,omitzero"` // where they are looked up; zero for the conversation's own
}

// Hear counts text of somebody that this call brings from elsewhere into the
// conversation: it is recorded with the call's result, and from then on
// [Context.Trust] is at most the role, and at most what the author is at the time.
// Only in a tool's call.
func (c *Call) Hear(v Voice) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.voices, v) {
		c.voices = append(c.voices, v)
	}
}

// Voices are those that Hear was told of.
func (c *Call) Voices() []Voice {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.voices)
}
