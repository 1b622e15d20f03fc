package github

import (
	"github.com/heddlehq/heddle/channels/text"
	"github.com/heddlehq/heddle/chat"
)

// Compose renders Markdown as GitHub's, in texts that fit a comment together
// with its marker.
func (c *Channel) Compose(markdown string, trust chat.Role) []string {
	return text.GFM.For(trust).Compose(markdown)
}
