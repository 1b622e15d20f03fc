package github

import "github.com/heddlehq/heddle/channels/text"

// Compose renders Markdown as GitHub's, in texts that fit a comment together
// with its marker.
func (c *Channel) Compose(markdown string) []string { return text.Slack.Compose(markdown) }
