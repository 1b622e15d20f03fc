package discord

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
)

// event reads what the Gateway tells. It fails only if Discord has to be asked
// and does not answer: all else is an event, or ignored.
func (c *Channel) event(ctx context.Context, kind string, data []byte) (channels.Inbound, error) {
	switch kind {
	case "MESSAGE_CREATE":
		return c.decode(ctx, data, (*message).said)
	case "MESSAGE_UPDATE":
		return c.decode(ctx, data, (*message).edited)
	case "MESSAGE_DELETE", "MESSAGE_DELETE_BULK":
		return c.onDelete(ctx, data)
	case "MESSAGE_REACTION_ADD":
		return c.onReaction(ctx, data)
	case "GUILD_CREATE":
		return c.onGuild(data), nil
	case "GUILD_DELETE":
		return c.onGuildGone(data), nil
	case "GUILD_ROLE_CREATE", "GUILD_ROLE_UPDATE":
		return c.onRole(data), nil
	case "CHANNEL_CREATE", "CHANNEL_UPDATE", "THREAD_CREATE", "THREAD_UPDATE":
		return c.onRoom(data), nil
	case "THREAD_LIST_SYNC":
		return c.onRooms(data), nil
	case "CHANNEL_DELETE", "THREAD_DELETE":
		return c.onRoomGone(data), nil
	}
	return ignored("", "unknown type"), nil
}

var malformed = ignored("", "malformed")

// A reading makes an event of a message, or says why there is none.
type reading func(m *message, p place, own identity, role string) (chat.Event, string)

func (c *Channel) decode(ctx context.Context, data []byte, as reading) (channels.Inbound, error) {
	var m *message
	if err := json.Unmarshal(data, &m); err != nil || m == nil {
		return malformed, nil
	}
	return c.read(ctx, m, as)
}

func (c *Channel) read(ctx context.Context, m *message, as reading) (channels.Inbound, error) {
	if !snowflake(m.ID) || !snowflake(m.Channel) || m.Guild != "" && !snowflake(m.Guild) {
		return malformed, nil
	}
	own := c.identity()
	if reason := m.foreign(own); reason != "" {
		if reason == "own message" {
			c.heard(m)
		}
		return ignored(m.ID, reason), nil
	}
	p, ok, err := c.where(ctx, m.Guild, m.Channel, m.ChannelType)
	if err != nil {
		return channels.Inbound{}, fmt.Errorf("place of a message: %w", err)
	}
	if !ok {
		return ignored(m.ID, "place not visible"), nil
	}
	role, err := c.role(ctx, m.Guild, m.MentionRoles)
	if err != nil {
		return channels.Inbound{}, fmt.Errorf("own role: %w", err)
	}
	ev, reason := as(m, p, own, role)
	if reason != "" {
		return ignored(m.ID, reason), nil
	}
	if ev.Topic == "mention" && p.thread == "" {
		c.ask(ev.Thread.Root, ev.Text)
	}
	return inbound(ev), nil
}

func inbound(ev chat.Event) channels.Inbound {
	if ev.Thread.Validate() != nil {
		return malformed
	}
	return channels.Inbound{Events: []chat.Event{ev}}
}

func (c *Channel) onDelete(ctx context.Context, data []byte) (channels.Inbound, error) {
	var d struct {
		ID      string   `json:"id"`
		IDs     []string `json:"ids"`
		Channel string   `json:"channel_id"`
		Guild   string   `json:"guild_id"`
	}
	if err := json.Unmarshal(data, &d); err != nil || !snowflake(d.Channel) || d.Guild != "" && !snowflake(d.Guild) {
		return malformed, nil
	}
	if d.ID != "" {
		d.IDs = append(d.IDs, d.ID)
	}
	p, ok, err := c.where(ctx, d.Guild, d.Channel, nil)
	if err != nil {
		return channels.Inbound{}, fmt.Errorf("place of a deletion: %w", err)
	}
	if !ok {
		return ignored(d.ID, "place not visible"), nil
	}
	var in channels.Inbound
	for _, id := range d.IDs {
		if !snowflake(id) {
			return malformed, nil
		}
		in.Events = append(in.Events, deleted(p, id))
	}
	return in, nil
}

// onReaction is for reactions to what we said; others are none of our business.
func (c *Channel) onReaction(ctx context.Context, data []byte) (channels.Inbound, error) {
	var r struct {
		User    string `json:"user_id"`
		Message string `json:"message_id"`
		Author  string `json:"message_author_id"`
		Channel string `json:"channel_id"`
		Guild   string `json:"guild_id"`
		Member  struct {
			User user `json:"user"`
		} `json:"member"`
		Emoji struct {
			ID   string `json:"id"`
			Name string `json:"name"`
		} `json:"emoji"`
	}
	if err := json.Unmarshal(data, &r); err != nil || !snowflake(r.User) || !snowflake(r.Message) || !snowflake(r.Channel) || r.Guild != "" && !snowflake(r.Guild) {
		return malformed, nil
	}
	own := c.identity()
	switch {
	case r.User == own.user:
		return ignored("", "own reaction"), nil
	case r.Author != own.user || own.user == "":
		return ignored("", "reaction to others"), nil
	}
	p, ok, err := c.where(ctx, r.Guild, r.Channel, nil)
	if err != nil {
		return channels.Inbound{}, fmt.Errorf("place of a reaction: %w", err)
	}
	if !ok {
		return ignored("", "place not visible"), nil
	}
	r.Member.User.ID = r.User
	return inbound(chat.Event{
		ID:     r.Message + "/" + r.User + "/" + r.Emoji.ID + r.Emoji.Name,
		Thread: p.at(r.Message), Kind: chat.Reacted, Topic: "reaction", Ref: r.Message,
		Author: r.Member.User.author(p.account, false), Text: valid(r.Emoji.Name),
		Facts: map[string]string{"channel": r.Channel, "message": r.Message, "user": r.User},
	}), nil
}

type role struct {
	ID   string `json:"id"`
	Tags struct {
		Bot string `json:"bot_id"`
	} `json:"tags"`
}

// onGuild learns what there is in a guild that we are in.
func (c *Channel) onGuild(data []byte) channels.Inbound {
	var g struct {
		ID       string        `json:"id"`
		Channels []channelInfo `json:"channels"`
		Threads  []channelInfo `json:"threads"`
		Roles    []role        `json:"roles"`
	}
	if err := json.Unmarshal(data, &g); err != nil || !snowflake(g.ID) {
		return malformed
	}
	c.learn(g.ID, g.Channels...)
	c.learn(g.ID, g.Threads...)
	c.enter(g.ID, g.Roles)
	return channels.Inbound{}
}

func (c *Channel) onRole(data []byte) channels.Inbound {
	var r struct {
		Guild string `json:"guild_id"`
		Role  role   `json:"role"`
	}
	if err := json.Unmarshal(data, &r); err != nil || !snowflake(r.Guild) {
		return malformed
	}
	c.enter(r.Guild, []role{r.Role})
	return channels.Inbound{}
}

// enter remembers a guild and returns the role in it that Discord made for the bot.
func (c *Channel) enter(guild string, roles []role) string {
	own := c.identity()
	c.mu.Lock()
	defer c.mu.Unlock()
	mine := c.guilds[guild]
	for _, r := range roles {
		if r.Tags.Bot != "" && r.Tags.Bot == own.user {
			mine = r.ID
		}
	}
	c.guilds[guild] = mine
	return mine
}

// role is the bot's own role in a guild, if roles are mentioned there at all. A
// session that was resumed by a new process tells of no guilds, so it may have
// to be asked for.
func (c *Channel) role(ctx context.Context, guild string, mentioned []string) (string, error) {
	if guild == "" || len(mentioned) == 0 {
		return "", nil
	}
	c.mu.Lock()
	mine, known := c.guilds[guild]
	c.mu.Unlock()
	if known {
		return mine, nil
	}
	var roles []role
	err := c.call(ctx, http.MethodGet, "/guilds/"+guild+"/roles", nil, &roles)
	switch s := status(err); {
	case s == http.StatusForbidden || s == http.StatusNotFound: // then it is in none
	case err != nil:
		return "", classify(err)
	}
	return c.enter(guild, roles), nil
}

// onGuildGone forgets a guild that we were removed from. One that is not
// available is only out of order, and all stays.
func (c *Channel) onGuildGone(data []byte) channels.Inbound {
	var g struct {
		ID          string `json:"id"`
		Unavailable bool   `json:"unavailable"`
	}
	if err := json.Unmarshal(data, &g); err != nil || g.ID == "" {
		return malformed
	}
	if g.Unavailable {
		return ignored("", "guild out of order")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.guilds, g.ID)
	for id, r := range c.rooms {
		if r.guild == g.ID {
			delete(c.rooms, id)
		}
	}
	return ignored("", "removed from a guild")
}

func (c *Channel) onRoom(data []byte) channels.Inbound {
	var i channelInfo
	if err := json.Unmarshal(data, &i); err != nil || i.ID == "" {
		return malformed
	}
	c.forget(i.ID) // it may let us open threads now
	c.learn(i.Guild, i)
	return channels.Inbound{}
}

func (c *Channel) onRooms(data []byte) channels.Inbound {
	var s struct {
		Guild   string        `json:"guild_id"`
		Threads []channelInfo `json:"threads"`
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return malformed
	}
	c.learn(s.Guild, s.Threads...)
	return channels.Inbound{}
}

func (c *Channel) onRoomGone(data []byte) channels.Inbound {
	var i channelInfo
	if err := json.Unmarshal(data, &i); err != nil || i.ID == "" {
		return malformed
	}
	c.forget(i.ID)
	return ignored("", "place is gone")
}
