package discord

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/heddlehq/heddle/chat"
)

// all stands for every member of a guild.
const all = "all"

// guildsMost are looked through for somebody who writes a direct message.
const guildsMost = 20

// Role decides by what Discord says of the person in the guild now; in direct
// messages by the guilds that the bot is in. The owner of a guild and its
// administrators hold no role by that.
func (c *Channel) Role(ctx context.Context, account string, a chat.Author) (chat.Role, error) {
	if a.ID == "" || a.Bot {
		return chat.Outsider, nil
	}
	if account != direct {
		return c.roleIn(ctx, account, a.ID)
	}
	best := c.access.role(a.ID, "", nil)
	guilds, err := c.joined(ctx)
	if err != nil {
		return chat.Outsider, fmt.Errorf("guilds: %w", err)
	}
	for _, g := range guilds[:min(len(guilds), guildsMost)] {
		if best == chat.Admin {
			break
		}
		r, err := c.roleIn(ctx, g, a.ID)
		if err != nil {
			return chat.Outsider, err
		}
		best = max(best, r)
	}
	return best, nil
}

// joinedFor is how long it is believed in which guilds the bot is.
const joinedFor = time.Minute

// joined are the guilds that the bot is in.
func (c *Channel) joined(ctx context.Context) ([]string, error) {
	c.mu.Lock()
	in, at := c.in, c.inAt
	c.mu.Unlock()
	if c.now().Sub(at) < joinedFor {
		return in, nil
	}
	at = c.now()
	var infos []struct {
		ID string `json:"id"`
	}
	if err := c.call(ctx, http.MethodGet, "/users/@me/guilds", nil, &infos); err != nil {
		return nil, classify(err)
	}
	in = nil
	for _, i := range infos {
		in = append(in, i.ID)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.in, c.inAt = in, at
	return in, nil
}

// roleIn is the role of a person in a guild, an outsider's if they are not in it.
func (c *Channel) roleIn(ctx context.Context, guild, id string) (chat.Role, error) {
	var m struct {
		User    user     `json:"user"`
		Roles   []string `json:"roles"`
		Pending bool     `json:"pending"` // has not agreed to the guild's rules yet
	}
	err := c.call(ctx, http.MethodGet, "/guilds/"+url.PathEscape(guild)+"/members/"+url.PathEscape(id), nil, &m)
	switch {
	case status(err) == http.StatusNotFound:
		return chat.Outsider, nil
	case err != nil:
		return chat.Outsider, fmt.Errorf("role of %s: %w", id, classify(err))
	case m.User.ID != "" && m.User.ID != id, m.User.Bot, m.Pending:
		return chat.Outsider, nil
	}
	return c.access.role(id, guild, m.Roles), nil
}

// role is the highest of a person with these roles of a guild, "" for none.
func (a Access) role(id, guild string, roles []string) chat.Role {
	holds := func(ids []string) bool {
		return slices.ContainsFunc(ids, func(want string) bool {
			return want == id || guild != "" && (want == all || want == guild || slices.Contains(roles, want))
		})
	}
	switch {
	case holds(a.Admins):
		return chat.Admin
	case holds(a.Maintainers):
		return chat.Maintainer
	case holds(a.Members):
		return chat.Member
	}
	return chat.Outsider
}
