package main

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddlehq/heddle/channels"
)

// hesitant is a channel that says who it is, or hangs.
type hesitant struct {
	hangs bool
	left  time.Duration // to answer in, when it was asked
}

func (*hesitant) Name() string { return "hesitant" }

func (a *hesitant) Identify(ctx context.Context) error {
	until, _ := ctx.Deadline()
	if a.left = time.Until(until); a.hangs {
		<-ctx.Done()
	}
	return ctx.Err()
}

// A provider that hangs at the start takes no time from the others.
func TestIdentifyAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow, other := &hesitant{hangs: true}, &hesitant{}
		if err := identify(t.Context(), []channels.Channel{slow, other}, slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
		if other.left <= 0 || other.left < slow.left {
			t.Errorf("the other had %v, and the slow one %v", other.left, slow.left)
		}
	})
}
