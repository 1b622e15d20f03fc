package slack

import (
	"context"
	"fmt"
	"time"

	"github.com/slack-go/slack"

	"github.com/heddlehq/heddle/chat"
)

// roomAge is how long it is believed who may read a room; roomsMost are
// remembered at once.
const (
	roomAge   = time.Minute
	roomsMost = 10_000
)

type room struct {
	open bool
	at   time.Time
}

// Open says whether every full member of the workspace may read the thread's
// room: whether it is a public channel. It needs the scope channels:read; what
// Slack does not show is an error.
func (c *Channel) Open(ctx context.Context, t chat.Thread) (bool, error) {
	c.mu.Lock()
	r, ok := c.rooms[roomKey(t)]
	c.mu.Unlock()
	if ok && c.now().Sub(r.at) < roomAge {
		return r.open, nil
	}
	r.at = c.now()
	id := c.moves.now(t.Room)
	w, err := c.at(ctx, t.Account)
	if err != nil {
		return false, fmt.Errorf("kind of room %s: %w", t.Room, err)
	}
	info, err := w.api.GetConversationInfoContext(ctx, &slack.GetConversationInfoInput{ChannelID: id})
	if err != nil {
		return false, fmt.Errorf("kind of room %s: %w", t.Room, classify(err))
	}
	r.open = info.ID == id && info.IsChannel && !info.IsPrivate && !info.IsGroup && !info.IsIM && !info.IsMpIM
	c.mu.Lock()
	if len(c.rooms) >= roomsMost {
		clear(c.rooms)
	}
	c.rooms[roomKey(t)] = r
	c.mu.Unlock()
	return r.open, nil
}
