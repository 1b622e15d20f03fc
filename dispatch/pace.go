package dispatch

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
)

// calm is how long a room must be without a refusal to be used freely again.
const calm = 5 * time.Minute

// A pacer keeps rooms below what their provider accepts. Providers take bursts
// from most rooms most of the time, so a room is used freely until it is
// refused; from then on posts are spaced as the channel's Limits say, until it
// has been calm for a while. A refusal of one room delays only that room.
type pacer struct {
	clock func() time.Time
	mu    sync.Mutex
	rooms map[chat.Thread]*room // by the thread without its root
}

type room struct {
	from  time.Time            // no post before, says the provider
	next  time.Time            // end of the row: the earliest time of a post that has no place in it
	row   map[string]time.Time // places of those that wait, by the root of their thread
	every time.Duration        // spacing
	calm  time.Time            // free again
}

func newPacer(clock func() time.Time) *pacer {
	return &pacer{clock: clock, rooms: map[chat.Thread]*room{}}
}

// wait returns how long a post to the thread has to wait, 0 if it is its turn.
// One that has to wait has a place in the row and finds it when it comes back.
func (p *pacer) wait(t chat.Thread) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, r := p.clock(), p.rooms[roomOf(t)]
	if r == nil || now.After(r.calm) {
		return 0
	}
	return r.wait(t.Root, now)
}

// longest is how long a provider may ask a room to pause: a slip of its would
// otherwise silence the room for good.
const longest = 15 * time.Minute

// limited notes that the provider refused a post to the thread's room and
// returns when to try again.
func (p *pacer) limited(t chat.Thread, after time.Duration, l channels.Limits) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock()
	maps.DeleteFunc(p.rooms, func(_ chat.Thread, r *room) bool { return now.After(r.calm) })
	r := p.rooms[roomOf(t)]
	if r == nil {
		r = &room{row: map[string]time.Time{}}
		p.rooms[roomOf(t)] = r
	}
	r.from = latest(r.from, now.Add(max(min(after, longest), l.RoomEvery, 100*time.Millisecond)))
	r.every, r.calm = l.RoomEvery, r.from.Add(calm)
	return r.wait(t.Root, now)
}

// wait keeps the place of a root in the row, or gives it one at the end if it
// has none or the provider has since asked for a longer pause.
func (r *room) wait(root string, now time.Time) time.Duration {
	at, ok := r.row[root]
	if !ok || at.Before(r.from) {
		at = latest(now, r.from, r.next)
		r.next = at.Add(r.every)
	}
	if !at.After(now) {
		delete(r.row, root)
		return 0
	}
	r.row[root] = at
	return at.Sub(now)
}

func roomOf(t chat.Thread) chat.Thread {
	t.Root = ""
	return t
}

func latest(ts ...time.Time) time.Time { return slices.MaxFunc(ts, time.Time.Compare) }
