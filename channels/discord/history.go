package discord

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
)

const (
	missedPages  = 5     // of a hundred messages, of one channel
	missedRooms  = 500   // looked at
	missedEvents = 5_000 // handed on
)

// Missed reads what was written since in the followed threads, and in the channels
// and threads that are visible and say that something was. Direct messages that
// are not followed cannot be found: Discord does not list them for bots. While
// the Gateway is being connected to it waits for that, so that nothing can fall
// between the two.
func (c *Channel) Missed(ctx context.Context, since time.Time, followed []chat.Thread, take channels.Take) error {
	if !c.identity().known {
		if err := c.Identify(ctx); err != nil {
			return err
		}
	}
	if err := c.connected(ctx); err != nil {
		return err
	}
	from := after(since.Add(-skew))
	rooms := map[string]string{} // guild by channel, "" for direct messages
	for _, t := range followed {
		in := t.Room
		if snowflake(t.Root) { // a thread, or a message in a channel, which is active then
			in = t.Root
		}
		if rooms[in] = t.Account; t.Account == direct {
			rooms[in] = ""
		}
	}
	failed := c.active(ctx, from, rooms)
	var events []chat.Event
	n := 0
	for room, guild := range rooms {
		if n++; n > missedRooms || len(events) >= missedEvents {
			failed = errors.Join(failed, errMore)
			break
		}
		err := c.history(ctx, c.patient, room, from, missedPages, func(m *message) bool {
			m.Guild = guild
			events = append(events, c.happened(ctx, m)...)
			return len(events) < missedEvents
		})
		if s := status(err); err != nil && s != http.StatusForbidden && s != http.StatusNotFound {
			failed = errors.Join(failed, fmt.Errorf("history of %s: %w", room, err))
		}
	}
	slices.SortStableFunc(events, func(a, b chat.Event) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID)) })
	for batch := range slices.Chunk(events, mostAtOnce) {
		if err := take(ctx, channels.Inbound{Events: batch}); err != nil {
			return err
		}
	}
	return failed
}

// happened is what the Gateway would have told of a message: that it was written,
// and that it was changed. What it cannot tell now is left out.
func (c *Channel) happened(ctx context.Context, m *message) []chat.Event {
	in, err := c.read(ctx, m, (*message).said)
	if err == nil && m.Edited != "" {
		change, _ := c.read(ctx, m, (*message).edited) // the place is known by now
		in.Events = append(in.Events, change.Events...)
	}
	return in.Events
}

// active adds the channels and threads in which something was written since.
func (c *Channel) active(ctx context.Context, from string, rooms map[string]string) error {
	guilds, err := c.joined(ctx)
	if err != nil {
		return err
	}
	var failed error
	for _, g := range guilds {
		var infos []channelInfo
		if err := c.patient(ctx, http.MethodGet, "/guilds/"+url.PathEscape(g)+"/channels", nil, &infos); err != nil {
			failed = errors.Join(failed, classify(err))
			continue
		}
		c.learn(g, infos...)
		var live struct {
			Threads []channelInfo `json:"threads"`
		}
		if err := c.patient(ctx, http.MethodGet, "/guilds/"+url.PathEscape(g)+"/threads/active", nil, &live); err != nil {
			failed = errors.Join(failed, classify(err))
		}
		c.learn(g, live.Threads...)
		for _, i := range append(infos, live.Threads...) {
			if snowflake(i.Last) && later(i.Last, from) {
				rooms[i.ID] = g
			}
		}
	}
	return failed
}

// later compares ids.
func later(a, b string) bool { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) > 0 }

const (
	patience  = 3                // times
	waitsMost = 10 * time.Second // each time
)

// patient is call, and waits where it is asked to for a little.
func (c *Channel) patient(ctx context.Context, method, path string, in, out any) error {
	for n := 1; ; n++ {
		err := c.call(ctx, method, path, in, out)
		var limited *limitedError
		if !errors.As(err, &limited) || n == patience || limited.after > waitsMost {
			return err
		}
		if err := wait(ctx, limited.after); err != nil {
			return err
		}
	}
}
