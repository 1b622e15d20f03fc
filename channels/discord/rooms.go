package discord

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/bwmarrin/discordgo"

	"github.com/heddlehq/heddle/chat"
)

// A room is a channel or a thread of a guild.
type room struct {
	kind   discordgo.ChannelType
	guild  string
	parent string // of a thread
}

func (r room) thread() bool {
	return r.kind == discordgo.ChannelTypeGuildNewsThread || r.kind == discordgo.ChannelTypeGuildPublicThread || r.kind == discordgo.ChannelTypeGuildPrivateThread
}

// roomsMost are remembered at once, each in some hundred bytes.
const roomsMost = 200_000

// A channelInfo is a room as Discord tells it.
type channelInfo struct {
	ID     string                `json:"id"`
	Type   discordgo.ChannelType `json:"type"`
	Guild  string                `json:"guild_id"`
	Parent string                `json:"parent_id"` // of a channel, its category
	Last   string                `json:"last_message_id"`
}

// learn remembers rooms. Guild is theirs where they do not say it.
func (c *Channel) learn(guild string, infos ...channelInfo) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range infos {
		if i.Guild != "" {
			guild = i.Guild
		}
		if len(c.rooms) >= roomsMost {
			clear(c.rooms) // what is needed is asked for again
		}
		c.rooms[i.ID] = room{kind: i.Type, guild: guild, parent: i.Parent}
	}
}

func (c *Channel) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.rooms, id)
	delete(c.denied, id)
	delete(c.denied, marksOf(id))
}

func (c *Channel) known(id string) (room, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.rooms[id]
	return r, ok
}

// room tells what a channel is, asking Discord if it is not known.
func (c *Channel) room(ctx context.Context, id string) (room, error) {
	if r, ok := c.known(id); ok {
		return r, nil
	}
	var i channelInfo
	if err := c.call(ctx, http.MethodGet, "/channels/"+url.PathEscape(id), nil, &i); err != nil {
		return room{}, err
	}
	if i.ID != id {
		return room{}, errors.New("answer is about another channel")
	}
	c.learn(i.Guild, i)
	return room{kind: i.Type, guild: i.Guild, parent: i.Parent}, nil
}

// A place is where messages stand.
type place struct {
	account string // guild, or direct
	room    string // the channel; of a thread, that which it hangs in
	thread  string // "" outside of threads
}

// at is the thread of what has its root there.
func (p place) at(root string) chat.Thread {
	t := chat.Thread{Channel: Name, Account: p.account, Room: p.room, Root: root}
	switch {
	case p.account == direct: // one conversation
		t.Root = ""
	case p.thread != "":
		t.Root = p.thread
	}
	return t
}

// channel is that of the messages.
func (p place) channel() string {
	if p.thread != "" {
		return p.thread
	}
	return p.room
}

// where finds the place of a channel. Kind may be nil. Of a thread that Discord
// does not show us it returns ok false; an error is worth another try.
func (c *Channel) where(ctx context.Context, guild, channel string, kind *discordgo.ChannelType) (p place, ok bool, err error) {
	switch {
	case guild == "":
		return place{account: direct, room: channel}, true, nil
	case kind != nil && !(room{kind: *kind}).thread():
		return place{account: guild, room: channel}, true, nil
	}
	r, err := c.room(ctx, channel)
	if err != nil {
		if s := status(err); s == http.StatusForbidden || s == http.StatusNotFound {
			return place{}, false, nil
		}
		return place{}, false, classify(err)
	}
	if r.thread() && r.parent != "" {
		return place{account: guild, room: r.parent, thread: channel}, true, nil
	}
	return place{account: guild, room: channel}, true, nil
}
