package discord

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/bwmarrin/discordgo"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
)

// The marks at what is being answered, was answered, and will not be.
const (
	markWorking  = "👀"
	markAnswered = "✅"
	markFailed   = "❌"
)

// markedMost are remembered at once.
const markedMost = 10_000

// Mark shows that the bot is typing, which lasts for ten seconds, and puts a
// reaction to the message. What began with a command shows it by itself. A
// channel that refuses marks is left alone for a while: Discord shuts out who is
// refused too often.
func (c *Channel) Mark(ctx context.Context, t chat.Thread, ref string, p channels.Progress) error {
	in, at := c.standing(t, ref)
	if c.isDenied(marksOf(at)) {
		return nil
	}
	err := c.mark(ctx, in, at, ref, p)
	if status(err) == http.StatusForbidden {
		c.deny(marksOf(at))
	}
	if err != nil {
		return classify(err)
	}
	return nil
}

func marksOf(channel string) string { return "marks in " + channel }

func (c *Channel) mark(ctx context.Context, in, at, ref string, p channels.Progress) error {
	if p == channels.Working {
		if err := c.call(ctx, http.MethodPost, "/channels/"+url.PathEscape(in)+"/typing", nil, nil); err != nil {
			return err
		}
	}
	if !snowflake(ref) {
		return nil
	}
	c.mu.Lock()
	marked := c.marked[ref]
	if len(c.marked) >= markedMost {
		clear(c.marked)
	}
	c.mu.Unlock()
	react := func(method, mark string) error {
		return c.call(ctx, method, "/channels/"+url.PathEscape(at)+"/messages/"+ref+"/reactions/"+url.PathEscape(mark)+"/@me", nil, nil)
	}
	var err error
	switch {
	case p == channels.Working && marked:
		return nil
	case p == channels.Working:
		err = react(http.MethodPut, markWorking)
	default:
		err = react(http.MethodDelete, markWorking)
		if end := map[channels.Progress]string{channels.Answered: markAnswered, channels.Failed: markFailed}[p]; err == nil && end != "" {
			err = react(http.MethodPut, end)
		}
	}
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.marked[ref] = true; p != channels.Working {
		delete(c.marked, ref)
	}
	return nil
}

// standing is where the answers of a thread are written, and where a message that
// belongs to it stands: what opened a thread stands outside of it, but in a forum.
func (c *Channel) standing(t chat.Thread, ref string) (in, at string) {
	if t.Root == "" || t.Root == t.Room || strings.HasPrefix(t.Root, commandRoot) {
		return t.Room, t.Room
	}
	parent, _ := c.known(t.Room)
	forum := parent.kind == discordgo.ChannelTypeGuildForum || parent.kind == discordgo.ChannelTypeGuildMedia
	if r, ok := c.known(t.Root); !forum && !(ok && r.thread()) {
		return t.Room, t.Room
	}
	if ref == t.Root && !forum {
		return t.Root, t.Room
	}
	return t.Root, t.Root
}
