package dispatch

import (
	"context"
	"encoding/json"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

// Handles are kept in a space of their channel by thread and event, beside the
// log and for as long as they last.

func handleSpace(channel string) string { return "handle/" + channel }

// kept is a handle, and whose event it came with: several people may press the
// buttons of one message, and the last one's handle is kept.
type kept struct {
	chat.Handle
	Author string `json:"author,omitempty"`
}

func handleKey(t chat.Thread, ref string) string { return t.Key() + " " + ref }

// sweepEvery is how often handles that have ended are looked for.
const sweepEvery = 15 * time.Minute

// keepHandles stores the handles of events, before the events: a repeat stores
// the same again.
func (g *Gateway) keepHandles(ctx context.Context, in []state.Admit) error {
	by := map[string][]state.Value{}
	for _, a := range in {
		e := a.Event
		if e.Handle.Secret == "" || a.Ignored != "" {
			continue
		}
		data, err := json.Marshal(kept{e.Handle, e.Author.ID})
		if err != nil {
			return err
		}
		space := handleSpace(e.Thread.Channel)
		by[space] = append(by[space], state.Value{Key: handleKey(e.Thread, e.Ref), Data: data})
	}
	for space, vs := range by {
		if err := g.Store.PutValues(ctx, space, vs...); err != nil {
			return err
		}
	}
	return nil
}

// handleOf returns the handle of an event, zero if there is none or it has ended.
// What cannot be read is none: it is answered without.
func handleOf(ctx context.Context, values state.Values, now time.Time, t chat.Thread, ref string) kept {
	var h kept
	data, err := values.Value(ctx, handleSpace(t.Channel), handleKey(t, ref))
	if err != nil || data == nil || json.Unmarshal(data, &h) != nil || !now.Before(h.Until) {
		return kept{}
	}
	return h
}

// sweepHandles deletes the handles of a channel that have ended, until ctx ends.
func (g *Gateway) sweepHandles(ctx context.Context, channel string) {
	for {
		if err := g.sweep(ctx, handleSpace(channel)); err != nil && ctx.Err() == nil {
			g.Logger.Warn("ended handles not deleted", "channel", channel, "err", err)
		}
		if !sleep(ctx, sweepEvery) {
			return
		}
	}
}

func (g *Gateway) sweep(ctx context.Context, space string) error {
	return eachValue(ctx, g.Store, space, func(v state.Value) error {
		var h chat.Handle
		if json.Unmarshal(v.Data, &h) == nil && g.Clock().Before(h.Until) {
			return nil
		}
		return g.Store.PutValues(ctx, space, state.Value{Key: v.Key})
	})
}
