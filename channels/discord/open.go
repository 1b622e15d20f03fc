package discord

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/bwmarrin/discordgo"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
)

const (
	deniedFor  = 10 * time.Minute // that a channel does not let us do something
	deniedMost = 10_000           // remembered at once
	askedMost  = 10_000
	titleRunes = 80 // of 100 that a thread's name may have
)

// open returns the channel that a post goes to, and what it answers there: the
// thread of its root, opened if need be, or the room with an answer to the root.
// Opening is harmless to repeat: a message has one thread, with the id of the message.
func (c *Channel) open(ctx context.Context, p chat.Post) (in string, answer *reference, failed *channels.SendError) {
	t := p.Thread
	if t.Root == "" || t.Root == t.Room || strings.HasPrefix(t.Root, commandRoot) {
		return t.Room, nil, nil
	}
	if r, ok := c.known(t.Root); ok && r.thread() {
		return t.Root, nil, nil
	}
	no := false
	answer = &reference{Message: t.Root, Must: &no}
	parent, err := c.room(ctx, t.Room)
	switch {
	case err != nil:
		return "", nil, before(err)
	case parent.kind == discordgo.ChannelTypeGuildForum || parent.kind == discordgo.ChannelTypeGuildMedia:
		return t.Root, nil, nil // its messages are all in threads
	case parent.kind != discordgo.ChannelTypeGuildText && parent.kind != discordgo.ChannelTypeGuildNews, c.isDenied(t.Room):
		return t.Room, answer, nil
	}
	err = c.call(ctx, http.MethodPost, "/channels/"+url.PathEscape(t.Room)+"/messages/"+url.PathEscape(t.Root)+"/threads",
		map[string]any{"name": c.title(p)}, nil)
	switch s := status(err); {
	case err == nil, code(err) == discordgo.ErrCodeThreadAlreadyCreatedForThisMessage:
		c.learn(t.Account, channelInfo{ID: t.Root, Type: discordgo.ChannelTypeGuildPublicThread, Parent: t.Room})
		return t.Root, nil, nil
	case s == http.StatusForbidden:
		c.deny(t.Room)
		return t.Room, answer, nil
	case s == http.StatusBadRequest || s == http.StatusNotFound: // the message is gone, or as many threads are open as there may be
		return t.Room, answer, nil
	}
	return "", nil, before(err)
}

// before is the verdict of a failure before anything was posted.
func before(err error) *channels.SendError {
	se := classify(err)
	if se.Verdict == channels.Unknown {
		se.Verdict = channels.NotMade
	}
	return se
}

func (c *Channel) deny(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.denied) >= deniedMost {
		clear(c.denied)
	}
	c.denied[what] = c.now().Add(deniedFor)
}

func (c *Channel) isDenied(what string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now().Before(c.denied[what])
}

// ask remembers what may open a thread, for the thread's name.
func (c *Channel) ask(id, text string) {
	name := line(text)
	if name == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.asked) >= askedMost {
		clear(c.asked)
	}
	c.asked[id] = name
}

// title names the thread of a post: by what was asked, or by how the answer begins.
func (c *Channel) title(p chat.Post) string {
	c.mu.Lock()
	name := c.asked[p.Thread.Root]
	delete(c.asked, p.Thread.Root)
	c.mu.Unlock()
	if name == "" {
		name = line(strings.TrimLeft(p.Text, "#>*_-` "))
	}
	if name == "" {
		return "Answer"
	}
	return name
}

// line is the first line of a text, at a word's end not much longer than a title.
func line(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	rs := []rune(strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsGraphic(r) {
			return -1
		}
		return r
	}, s))
	if len(rs) <= titleRunes {
		return strings.TrimSpace(string(rs))
	}
	s = string(rs[:titleRunes])
	if i := strings.LastIndexByte(s, ' '); i > titleRunes/2 {
		s = s[:i]
	}
	return strings.TrimSpace(s) + "…"
}

// Opened is where people answer to a post that was made as ref: in the thread
// that they, or the next post, open from it, and by replying to it.
func (c *Channel) Opened(p chat.Post, ref string) chat.Thread {
	t := p.Thread
	if t.Root == "" && t.Account != direct {
		t.Root = ref
	}
	return t
}
