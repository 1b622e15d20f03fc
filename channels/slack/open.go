package slack

import (
	"strings"

	"github.com/heddlehq/heddle/chat"
)

// Opened is where people answer to a post that was made as ref: in its thread,
// but in a direct message, which is one conversation.
func (c *Channel) Opened(p chat.Post, ref string) chat.Thread {
	t := p.Thread
	if t.Root == "" && !strings.HasPrefix(t.Room, "D") {
		t.Root = ref
	}
	return t
}
