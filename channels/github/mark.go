package github

import (
	"context"

	"github.com/google/go-github/v62/github"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
)

const marksMost = 10_000 // remembered at once

// Mark shows progress by a reaction at the event: eyes, then a rocket or a
// confused face. It waits for its turn among the writes of the installation.
func (c *Channel) Mark(ctx context.Context, t chat.Thread, ref string, p channels.Progress) error {
	if ref == "" {
		return nil
	}
	c.mu.Lock()
	shown, known := c.marks[ref]
	c.mu.Unlock()
	if known && shown == p {
		return nil // it was asked to be renewed, and reactions stay
	}
	err := c.write(ctx, c.last(t), true, func(cl *github.Client, _ repo) error {
		// A reaction that is not there cannot be taken back, which is as well.
		return c.query(ctx, cl, reactionMutation(p), map[string]any{"id": ref}, nil, "lessEYES", "lessROCKET", "lessCONFUSED")
	})
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.marks) >= marksMost {
		clear(c.marks)
	}
	c.marks[ref] = p
	return nil
}
