package dispatch

import (
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
	next  time.Time     // earliest time of the next post
	every time.Duration // spacing
	calm  time.Time     // free again
}

func newPacer(clock func() time.Time) *pacer {
	return &pacer{clock: clock, rooms: map[chat.Thread]*room{}}
}

// wait returns how long a post to the thread has to wait and takes the place
// in the row if that is not long.
func (p *pacer) wait(t chat.Thread) time.Duration {
	t.Root = ""
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.rooms[t]
	if r == nil {
		return 0
	}
	now := p.clock()
	if now.After(r.calm) {
		delete(p.rooms, t)
		return 0
	}
	wait := max(r.next.Sub(now), 0)
	if wait <= shortWait {
		r.next = now.Add(wait + r.every)
	}
	return wait
}

// limited notes that the provider refused a post to the thread's room and
// returns when to try again.
func (p *pacer) limited(t chat.Thread, after time.Duration, l channels.Limits) time.Duration {
	t.Root = ""
	wait := max(after, l.RoomEvery, 100*time.Millisecond)
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock()
	r := p.rooms[t]
	if r == nil {
		r = &room{}
		p.rooms[t] = r
	}
	r.every, r.calm = l.RoomEvery, now.Add(calm)
	if next := now.Add(wait); next.After(r.next) {
		r.next = next
	}
	// Those already refused come back in a row, not all at once.
	wait = r.next.Sub(now)
	r.next = r.next.Add(r.every)
	return wait
}
