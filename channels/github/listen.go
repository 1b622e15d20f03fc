package github

import (
	"context"
	"errors"
	"time"

	"github.com/heddlehq/heddle/channels"
)

const sweepEvery = 5 * time.Minute

// Listen holds no connection: it asks every few minutes for the App's deliveries
// that have failed meanwhile, because GitHub does not try again by itself. A
// token has no such list. It fails while GitHub does not say who we are.
func (c *Channel) Listen(ctx context.Context, _ channels.Take) error {
	if c.identity().Slug == "" {
		if err := c.Identify(ctx); err != nil && c.identity().Slug == "" {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
	if c.appID == 0 {
		return nil
	}
	tick := time.NewTicker(c.sweep)
	defer tick.Stop()
	since := c.now()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		began := c.now()
		if err := c.redeliver(ctx, since); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			var se *channels.SendError
			if errors.As(err, &se) && se.Verdict == channels.Rejected {
				return err
			}
			continue // from the same time
		}
		since = began
	}
}
