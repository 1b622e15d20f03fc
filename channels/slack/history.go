package slack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/slack-go/slack"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
)

// Bounds of a look for what was missed.
const (
	missedRooms = 500 // channels and direct messages
	missedPages = 5   // of one of them, or of one thread
	missedBatch = 50  // events handed on at once
)

var errMore = errors.New("more was said than is looked at")

// A talk is a channel or direct message that the bot is in.
type talk struct {
	ID   string `json:"id"`
	IM   bool   `json:"is_im"`
	MPIM bool   `json:"is_mpim"`
}

// Missed reads what was said since, in the rooms that the bot is in and in the
// threads that are followed or began since. A mention in an older thread that
// nobody follows is not found, nor is what was edited, deleted or pressed. What
// names the bot comes before the rest of what is said in channels.
func (c *Channel) Missed(ctx context.Context, since time.Time, followed []chat.Thread, take channels.Take) error {
	var failed error
	for _, team := range c.teams() {
		failed = errors.Join(failed, c.missed(ctx, team, since, followed, take))
	}
	return failed
}

// missed is Missed in one workspace.
func (c *Channel) missed(ctx context.Context, team string, since time.Time, followed []chat.Thread, take channels.Take) error {
	w, err := c.at(ctx, team)
	if err != nil {
		return err
	}
	if w.self().user == "" {
		if err := w.identify(ctx); err != nil {
			return err
		}
	}
	followed = slices.DeleteFunc(slices.Clone(followed), func(t chat.Thread) bool { return c.lookUp(t.Account) != w })
	if w.kept != nil && since.Before(w.kept.At) {
		since = w.kept.At // nobody spoke to the app before
	}
	h := &history{Channel: c, w: w, since: fmt.Sprintf("%d.%06d", since.Unix(), since.Nanosecond()/1000), seen: map[string]bool{}}
	rooms, failed := h.rooms(ctx)
	var near []talk // rooms with threads that are followed: they come first, as Slack may let us read for long
	for _, t := range followed {
		id := c.moves.now(t.Room)
		if id == "" || token(id, "UW") || slices.ContainsFunc(near, func(r talk) bool { return r.ID == id }) {
			continue
		}
		r := talk{ID: id, IM: direct(id, "")}
		if i := slices.IndexFunc(rooms, func(o talk) bool { return o.ID == id }); i >= 0 {
			r = rooms[i]
			rooms = slices.Delete(rooms, i, i+1)
		}
		near = append(near, r)
	}
	if most := max(0, missedRooms-len(near)); len(rooms) > most {
		rooms, failed = rooms[:most], errors.Join(failed, errMore)
	}
	for _, r := range near {
		failed = errors.Join(failed, h.read(ctx, r, ""))
	}
	for _, t := range followed {
		id := c.moves.now(t.Room)
		if i := slices.IndexFunc(near, func(r talk) bool { return r.ID == id }); i >= 0 && isMessage(rootOf(t)) {
			failed = errors.Join(failed, h.read(ctx, near[i], rootOf(t)))
		}
	}
	for _, r := range rooms {
		failed = errors.Join(failed, h.read(ctx, r, ""))
	}
	return errors.Join(failed, h.hand(ctx, take))
}

// history gathers what was said in one workspace.
type history struct {
	*Channel
	w      *installation
	since  string
	seen   map[string]bool // threads that were read
	events []chat.Event
}

// rooms lists where the bot is. Kinds that the app may not list are left out.
func (h *history) rooms(ctx context.Context) (out []talk, err error) {
	for _, kind := range []string{"public_channel", "private_channel", "mpim", "im"} {
		args := url.Values{"types": {kind}, "limit": {strconv.Itoa(pageLength)}, "exclude_archived": {"true"}}
		for range missedPages {
			var page struct {
				Channels []talk `json:"channels"`
				Next     struct {
					Cursor string `json:"next_cursor"`
				} `json:"response_metadata"`
			}
			if err := h.ask(ctx, "users.conversations", args, &page); err != nil {
				var code slack.SlackErrorResponse
				if errors.As(err, &code) && code.Err == "missing_scope" {
					break
				}
				return out, fmt.Errorf("rooms: %w", err)
			}
			for _, r := range page.Channels {
				r.IM, r.MPIM = kind == "im", kind == "mpim"
				out = append(out, r)
			}
			if page.Next.Cursor == "" {
				break
			}
			args.Set("cursor", page.Next.Cursor)
		}
	}
	return out, nil
}

// read gathers what was said in a room itself or, with a root, in a thread of it.
func (h *history) read(ctx context.Context, r talk, root string) error {
	method, args := "conversations.history", url.Values{"channel": {r.ID}, "oldest": {h.since}, "limit": {strconv.Itoa(pageLength)}}
	if root != "" {
		if h.seen[r.ID+"/"+root] {
			return nil
		}
		h.seen[r.ID+"/"+root] = true
		method = "conversations.replies"
		args.Set("ts", root)
	}
	var began []string // threads, since then
	for range missedPages {
		var page struct {
			Messages []struct {
				message
				Replies int `json:"reply_count"`
			} `json:"messages"`
			Next struct {
				Cursor string `json:"next_cursor"`
			} `json:"response_metadata"`
		}
		if err := h.ask(ctx, method, args, &page); err != nil {
			var code slack.SlackErrorResponse
			if errors.As(err, &code) && slices.Contains([]string{"channel_not_found", "not_in_channel", "thread_not_found", "missing_scope"}, code.Err) {
				return nil // the bot would not have heard it either
			}
			return fmt.Errorf("history of %s: %w", r.ID, err)
		}
		for _, m := range page.Messages {
			if m.TS > h.since && m.TS != root { // that is in the room's own history
				h.heard(r, m.message)
			}
			if root == "" && m.Replies > 0 {
				began = append(began, m.TS)
			}
		}
		if page.Next.Cursor == "" {
			var failed error
			for _, ts := range began {
				failed = errors.Join(failed, h.read(ctx, r, ts))
			}
			return failed
		}
		args.Set("cursor", page.Next.Cursor)
	}
	return fmt.Errorf("history of %s: %w", r.ID, errMore)
}

// heard keeps what a message would have been, had it been delivered.
func (h *history) heard(r talk, m message) {
	m.Type, m.Channel, m.Message, m.Previous = "message", r.ID, nil, nil
	switch {
	case r.IM:
		m.ChannelType = "im"
	case r.MPIM:
		m.ChannelType = "mpim"
	default:
		m.ChannelType = "channel"
	}
	if m.ThreadTS == m.TS {
		m.ThreadTS = "" // of a root with replies
	}
	self := h.w.self()
	e := envelope{AppID: "history", TeamID: self.team, EventID: act(self.team, r.ID, m.TS), Event: m}
	ev, reason := e.event(self)
	if reason != "" {
		return
	}
	if in, err := h.one(ev); err == nil {
		h.events = append(h.events, in.Events...)
	}
}

// hand hands on what was heard: what a route may well name first.
func (h *history) hand(ctx context.Context, take channels.Take) error {
	last := func(e chat.Event) int {
		if e.Topic == "message" {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(h.events, func(a, b chat.Event) int {
		return cmp.Or(last(a)-last(b), a.At.Compare(b.At), cmp.Compare(a.ID, b.ID))
	})
	for batch := range slices.Chunk(h.events, missedBatch) {
		if err := take(ctx, channels.Inbound{Events: batch}); err != nil {
			return err
		}
	}
	return nil
}

// ask makes a call, and waits as long as Slack wants it to.
func (h *history) ask(ctx context.Context, method string, args url.Values, out any) error {
	for {
		err := h.call(ctx, h.w, method, args, out)
		var limited *slack.RateLimitedError
		if !errors.As(err, &limited) {
			return err
		}
		t := time.NewTimer(max(limited.RetryAfter, time.Second))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return err
		}
	}
}
