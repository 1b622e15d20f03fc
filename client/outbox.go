package client

import (
	"context"
	"net/url"
	"strconv"
	"time"
)

// A Post is one that is not sent.
type Post struct {
	Conversation string    `json:"conversation"`
	Key          string    `json:"key"`
	Thread       Thread    `json:"thread"`
	State        string    `json:"state"` // "pending", "sending", "unknown" or "dead"
	Reason       string    `json:"reason"`
	Attempts     int       `json:"attempts"`
	QueuedAt     time.Time `json:"queued_at"`
	SettledAt    time.Time `json:"settled_at"`
	Text         string    `json:"text"`
}

// Outbox lists the posts that are not sent, the last queued first, at most limit.
func (c *Client) Outbox(ctx context.Context, limit int) ([]Post, error) {
	var out struct {
		Posts []Post `json:"posts"`
	}
	err := c.do(ctx, "GET", "/outbox", url.Values{"limit": {strconv.Itoa(limit)}}, nil, &out)
	return out.Posts, err
}

// Retry queues a dead post again. It fails with no_such_post if there is none.
func (c *Client) Retry(ctx context.Context, conversation, key string) error {
	return c.do(ctx, "POST", "/outbox/"+segment(conversation)+"/retry", nil, map[string]string{"key": key}, &struct{}{})
}

// Drop gives a post up that is pending or unknown. It fails with no_such_post if
// there is none.
func (c *Client) Drop(ctx context.Context, conversation, key string) error {
	return c.do(ctx, "POST", "/outbox/"+segment(conversation)+"/drop", nil, map[string]string{"key": key}, &struct{}{})
}
