package slack

import (
	"context"
	"strings"
	"sync"

	"github.com/slack-go/slack"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
)

// Opened is where people answer to a post that was made as ref: in its thread,
// but in a direct message, which is one conversation. What was asked by a command
// is answered in the room, and the answer opens the thread.
func (c *Channel) Opened(p chat.Post, ref string) chat.Thread {
	t := p.Thread
	c.mu.Lock()
	if room := c.direct[roomKey(t)]; room != "" {
		t.Room = room
	}
	c.mu.Unlock()
	t.Room = c.origin(t.Room)
	if rootOf(t) == "" && isMessage(ref) && !strings.HasPrefix(t.Room, "D") {
		t.Root = ref
	}
	return t
}

// asked begins the root of a thread that a command began: no message is its
// root, and no two commands share a conversation.
const asked = "command-"

// rootOf is the message that a thread hangs on, "" if none.
func rootOf(t chat.Thread) string {
	if strings.HasPrefix(t.Root, asked) {
		return ""
	}
	return t.Root
}

// isMessage tells an id of a message: a time in microseconds.
func isMessage(ref string) bool {
	sec, frac, ok := strings.Cut(ref, ".")
	_, whole := channels.Seconds(sec)
	_, part := channels.Seconds(frac)
	return ok && whole && part
}

// roomKey is what a room or person is remembered by: workspaces may share them,
// and do not see the same.
func roomKey(t chat.Thread) string { return t.Account + "/" + t.Room }

// place is a thread as the Web API knows it: the direct message with a person
// for the person, and no root that is no message; with the workspace that it is in.
func (c *Channel) place(ctx context.Context, t chat.Thread) (chat.Thread, *installation, error) {
	w, err := c.at(ctx, t.Account)
	if err != nil {
		return t, nil, err
	}
	t.Root, t.Room = rootOf(t), c.moves.now(t.Room)
	if !token(t.Room, "UW") {
		return t, w, nil
	}
	c.mu.Lock()
	room := c.direct[roomKey(t)]
	c.mu.Unlock()
	if room == "" {
		im, _, _, err := w.api.OpenConversationContext(ctx, &slack.OpenConversationParameters{Users: []string{t.Room}})
		if err != nil {
			se := classify(err)
			if se.Verdict == channels.Unknown {
				se.Verdict = channels.NotMade // of the post: that was not begun
			}
			return t, nil, se
		}
		room = im.ID
		c.mu.Lock()
		if len(c.direct) >= roomsMost {
			clear(c.direct)
		}
		c.direct[roomKey(t)] = room
		c.mu.Unlock()
	}
	t.Room = room
	return t, w, nil
}

// posted knows in which threads our latest posts stand: Slack does not say it of
// a message that somebody reacts to.
type posted struct {
	mu    sync.Mutex
	roots map[string]string // by room and message; guarded by mu
}

// note notes a post that stands in a thread.
func (p *posted) note(room, ref, root string) {
	if root == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.roots) >= roomsMost {
		clear(p.roots)
	}
	p.roots[room+"/"+ref] = root
}

// root is the root of the thread in which a message stands, "" if it is not known.
func (p *posted) root(room, ref string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.roots[room+"/"+ref]
}
