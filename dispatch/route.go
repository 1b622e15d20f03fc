package dispatch

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

// A Route says which agent answers which events. The first match wins.
type Route struct {
	On    []string // "slack.mention", "slack.thread", "slack.*"
	Agent string
	// WhileBusy says what becomes of an event that comes while a turn is open.
	WhileBusy chat.Policy
	// PostTo is where answers are posted, in a thread that the conversation opens
	// there; zero: in the thread of the event.
	PostTo chat.Thread
	// Debounce is how long somebody may take to say more in a direct message or a
	// thread before they are answered; zero: they are answered at once.
	Debounce time.Duration
}

func (r Route) matches(e chat.Event) bool {
	name := e.Thread.Channel + "." + e.Topic
	for _, on := range r.On {
		if prefix, ok := strings.CutSuffix(on, "*"); on == name || ok && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// Match returns the number of the route that an event takes, from 0, or -1.
func Match(routes []Route, e chat.Event) int {
	return slices.IndexFunc(routes, func(r Route) bool { return r.matches(e) })
}

// Where returns where an event is answered, and whether a thread is to be opened
// there. What was said in the room that answers are posted to is answered where
// it was said. The answer to a command opens a thread where the channel has them.
func Where(routes []Route) func(chat.Event) (chat.Thread, bool) {
	return func(e chat.Event) (chat.Thread, bool) {
		for _, r := range routes {
			if r.matches(e) {
				if r.PostTo == (chat.Thread{}) || roomOf(r.PostTo) == roomOf(e.Thread) {
					break
				}
				return r.PostTo, true
			}
		}
		return e.Thread, e.Kind == chat.Command
	}
}

// Busy returns what becomes of an event that comes while a turn is open.
func Busy(routes []Route) func(chat.Event) chat.Policy {
	return func(e chat.Event) chat.Policy {
		for _, r := range routes {
			if r.matches(e) {
				return r.WhileBusy
			}
		}
		return chat.Join
	}
}

// admit stores the events and counts what became of them. It says how many were new.
func (g *Gateway) admit(ctx context.Context, events []chat.Event) (fresh int, err error) {
	var in []state.Admit
	for _, e := range events {
		a := g.door(e)
		if err := a.Validate(); err != nil {
			// No retry would change it.
			g.tally.add(e.Thread.Channel, "refused: cannot be stored")
			g.Logger.Warn("event cannot be stored", "channel", e.Thread.Channel, "err", err)
			continue
		}
		in = append(in, a)
	}
	in = heardWith(in)
	if len(in) == 0 {
		return 0, nil
	}
	if err := g.keepHandles(ctx, in); err != nil {
		return 0, err
	}
	out, err := g.Store.Admit(ctx, in)
	if err != nil {
		return 0, err
	}
	for i, a := range out {
		e := in[i].Event
		switch {
		case a.Conflict:
			g.tally.add(e.Thread.Channel, "event id came again with other content")
		case a.Status == state.Ignored:
			g.tally.add(e.Thread.Channel, "ignored: "+a.Reason)
		case a.Status == state.Duplicate:
			g.tally.add(e.Thread.Channel, "duplicate")
		case a.Status == state.Admitted:
			fresh++
			g.Logger.Debug("event admitted", "channel", e.Thread.Channel, "event", e.ID, "thread", e.Thread.Key(), "conversation", string(a.Conversation))
		}
	}
	return fresh, nil
}
