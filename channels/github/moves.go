package github

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
)

// An issue or discussion that is transferred has another repository and number
// from then on. Its conversation goes on under the key with which it began.

const (
	movesName = "moves"
	movesMost = 10_000 // kept; of more, none is kept besides
)

// moves say where rooms went: a room is "5/issue:7". Never changed, but replaced.
type moves struct {
	First map[string]string `json:"first"` // what a room was called at first, by its name now
	Last  map[string]string `json:"last"`  // and the other way round
}

func roomName(t chat.Thread) string { return t.Account + "/" + t.Room }

func renamed(t chat.Thread, names map[string]string) chat.Thread {
	if name, ok := names[roomName(t)]; ok {
		t.Account, t.Room, _ = strings.Cut(name, "/")
	}
	return t
}

// first is the thread under the key with which it began.
func (c *Channel) first(t chat.Thread) chat.Thread { return renamed(t, c.moves.Load().First) }

// last is the thread where it is now.
func (c *Channel) last(t chat.Thread) chat.Thread { return renamed(t, c.moves.Load().Last) }

// move remembers that a thread is elsewhere from now on.
func (c *Channel) move(ctx context.Context, from, to chat.Thread) error {
	c.moving.Lock()
	defer c.moving.Unlock()
	old := c.moves.Load()
	first, now := roomName(c.first(from)), roomName(to)
	if first == now || old.First[now] == first || len(old.First) >= movesMost {
		return nil
	}
	m := moves{First: map[string]string{}, Last: map[string]string{}}
	maps.Copy(m.First, old.First)
	maps.Copy(m.Last, old.Last)
	m.First[now], m.Last[first] = first, now
	if c.memory != nil {
		data, err := json.Marshal(m)
		if err != nil {
			return err // unreachable: it holds texts only
		}
		if err := c.memory.Save(ctx, movesName, data); err != nil {
			return fmt.Errorf("keep where an issue went: %w", err)
		}
	}
	c.moves.Store(&m)
	return nil
}

// recall reads what was kept.
func (c *Channel) recall(ctx context.Context) error {
	if c.memory == nil {
		return nil
	}
	data, err := c.memory.Load(ctx, movesName)
	if err != nil || data == nil {
		return err
	}
	m := moves{First: map[string]string{}, Last: map[string]string{}}
	if err := json.Unmarshal(data, &m); err != nil {
		return fmt.Errorf("where issues went: %w", err)
	}
	c.moves.Store(&m)
	return nil
}

// transferred notes that an issue or discussion goes elsewhere, or came from there.
func (c *Channel) transferred(d *delivery, in *channels.Inbound) {
	if d.moved != nil {
		from, to := d.moved[0], d.moved[1]
		in.Then = func(ctx context.Context) error { return c.move(ctx, from, to) }
	}
}
