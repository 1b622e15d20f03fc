package slack

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
)

// lifecycle are events that lead to nothing, and that Slack sends because an app
// is in channels or has what the manifest asks for.
var lifecycle = map[string]string{
	"app_home_opened": "opened the app", "assistant_thread_context_changed": "looks elsewhere",
	"member_joined_channel": "joined a channel", "member_left_channel": "left a channel", "channel_rename": "renamed a channel", "group_rename": "renamed a channel",
	"channel_archive": "archived a channel", "file_shared": "file of a message", "app_context_changed": "looks elsewhere",
}

// other reads an event that is no message.
func (c *Channel) other(e *envelope, self identity) (channels.Inbound, error) {
	m := &e.Event
	switch m.Type {
	case "reaction_added", "reaction_removed":
		return c.reacted(e, self)
	case "assistant_thread_started":
		c.titles.began(m.Assistant.Channel + "/" + m.Assistant.ThreadTS)
		return ignored(e.EventID, "began an assistant thread"), nil
	case "agent_session_stopped":
		return c.stopped(e)
	case "channel_id_changed":
		if m.OldChannel == "" || m.NewChannel == "" {
			return ignored(e.EventID, "change without channels"), nil
		}
		in := ignored(e.EventID, "channel has another id")
		in.Then = func(ctx context.Context) error { return c.moved(ctx, m.OldChannel, m.NewChannel) }
		return in, nil
	case "app_uninstalled", "tokens_revoked":
		in := ignored(e.EventID, "the workspace has removed the app or its token")
		if c.clientID != "" && (m.Type == "app_uninstalled" || m.Tokens.Bot != nil) {
			in.Then = func(ctx context.Context) error {
				return c.removed(ctx, e.account(), time.Unix(e.EventTime, 0), m.Tokens.Bot)
			}
		}
		return in, nil
	}
	if reason := lifecycle[m.Type]; reason != "" {
		return ignored(e.EventID, reason), nil
	}
	return ignored(e.EventID, "unknown type"), nil
}

// reacted is a reaction to one of our own messages. Slack does not say in which
// thread the message stands: what is known is known since it was posted.
func (c *Channel) reacted(e *envelope, self identity) (channels.Inbound, error) {
	m := &e.Event
	switch {
	case m.ItemUser == "" || m.ItemUser != self.user || m.Item.Channel == "" || m.Item.TS == "":
		return ignored(e.EventID, "reaction to somebody else"), nil
	case m.User == "" || m.User == self.user:
		return ignored(e.EventID, "own reaction"), nil
	}
	about := message{ThreadTS: c.posted.root(m.Item.Channel, m.Item.TS), User: m.User}
	e.Event.Channel = m.Item.Channel
	if direct(m.Item.Channel, "") {
		e.Event.ChannelType = "im"
	}
	ev := e.base(&about, m.Item.TS, m.User)
	ev.Kind, ev.Topic, ev.Text, ev.At = chat.Reacted, "reaction", ":"+m.Reaction+":", stamp(m.EventTS)
	ev.Facts["reaction"] = m.Reaction
	if m.Type == "reaction_removed" {
		ev.Facts["removed"] = "true"
		ev.Text = "(took back " + ev.Text + ")"
	}
	return c.one(ev)
}

// stopped is the stop button of Slack's agent view: as if its user said so.
func (c *Channel) stopped(e *envelope) (channels.Inbound, error) {
	m := &e.Event
	if m.Channel == "" || m.User == "" {
		return ignored(e.EventID, "stop without a thread"), nil
	}
	if direct(m.Channel, "") {
		m.ChannelType = "im"
	}
	ev := e.base(&message{ThreadTS: m.ThreadTS, User: m.User}, m.EventTS, m.User)
	ev.Kind, ev.Topic, ev.Text, ev.At = chat.Message, "thread", "stop", stamp(m.EventTS)
	if m.ChannelType == "im" {
		ev.Topic = "dm"
	}
	return c.one(ev)
}

// moves are the channels that Slack has given other ids: keys of threads keep the
// first one, Slack is asked with the last.
type moves struct {
	table atomic.Pointer[map[string]string] // by every later id: the first
	last  atomic.Pointer[map[string]string] // by the first: the last
}

func (m *moves) set(first map[string]string, last map[string]string) {
	m.table.Store(&first)
	m.last.Store(&last)
}

// now is the id that Slack knows a room by.
func (m *moves) now(room string) string {
	if p := m.last.Load(); p != nil && (*p)[room] != "" {
		return (*p)[room]
	}
	return room
}

// origin is the id that keys of threads have for a room.
func (c *Channel) origin(room string) string {
	if p := c.moves.table.Load(); p != nil && (*p)[room] != "" {
		return (*p)[room]
	}
	return room
}

// movesName is what the moves are kept as.
const movesName = "moves"

type keptMoves struct {
	First map[string]string `json:"first"`
	Last  map[string]string `json:"last"`
}

// moved remembers that a channel has another id.
func (c *Channel) moved(ctx context.Context, before, after string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := keptMoves{First: map[string]string{}, Last: map[string]string{}}
	if p := c.moves.table.Load(); p != nil {
		maps.Copy(k.First, *p)
		maps.Copy(k.Last, *c.moves.last.Load())
	}
	first := before
	if k.First[before] != "" {
		first = k.First[before]
	}
	if first == after {
		return nil
	}
	k.First[after], k.Last[first] = first, after
	if c.values != nil {
		data, err := json.Marshal(k)
		if err != nil {
			return err // unreachable: it holds texts only
		}
		if err := c.values.Save(ctx, movesName, data); err != nil {
			return fmt.Errorf("keep the new id of a channel: %w", err)
		}
	}
	c.moves.set(k.First, k.Last)
	return nil
}

// recall reads what was kept.
func (c *Channel) recall(ctx context.Context) error {
	if c.values == nil {
		return nil
	}
	if err := c.recallInstallations(ctx); err != nil {
		return err
	}
	data, err := c.values.Load(ctx, movesName)
	if err != nil || data == nil {
		return err
	}
	var k keptMoves
	if err := json.Unmarshal(data, &k); err != nil {
		return fmt.Errorf("new ids of channels: %w", err)
	}
	c.moves.set(k.First, k.Last)
	return nil
}

// Remember keeps the ids of channels and the installations over restarts.
func (c *Channel) Remember(values, secrets channels.Memory) { c.values, c.secrets = values, secrets }
