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

// together is how soon after each other two rooms of an account must be refused
// for the account to be what is limited.
const together = time.Minute

// A pacer keeps rooms below what their provider accepts. Providers take bursts
// from most rooms most of the time, so a room is used freely until it is
// refused; from then on posts are spaced as the channel's Limits say, until it
// has been calm for a while. A refusal of one room delays only that room; when
// two rooms of one account are refused, all its posts are spaced.
type pacer struct {
	clock func() time.Time
	mu    sync.Mutex
	rooms map[chat.Thread]*room // by the thread without its root, and accounts by it without its room
}

// A room, or an account.
type room struct {
	from  time.Time                 // no post before, says the provider
	next  time.Time                 // end of the row: the earliest time of a post that has no place in it
	row   map[chat.Thread]time.Time // places of the threads that wait
	every time.Duration             // spacing
	calm  time.Time                 // free again
	last  string                    // of an account: the room that was refused last
}

func newPacer(clock func() time.Time) *pacer {
	return &pacer{clock: clock, rooms: map[chat.Thread]*room{}}
}

// wait returns how long a post to the thread has to wait, 0 if it is its turn.
// One that has to wait has a place in the row and finds it when it comes back.
func (p *pacer) wait(t chat.Thread) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.turn(t, p.clock())
}

// turn gives the thread its place in the rows of its room and its account, or
// keeps the one it has, and takes both when the later one has come.
func (p *pacer) turn(t chat.Thread, now time.Time) time.Duration {
	at := now
	for _, key := range []chat.Thread{roomOf(t), accountOf(t)} {
		if r := p.rooms[key]; r != nil && !now.After(r.calm) {
			at = latest(at, r.place(t, now))
		}
	}
	if at.After(now) {
		return at.Sub(now)
	}
	for _, key := range []chat.Thread{roomOf(t), accountOf(t)} {
		if r := p.rooms[key]; r != nil {
			delete(r.row, t)
		}
	}
	return 0
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
	r := p.at(roomOf(t))
	r.from = latest(r.from, now.Add(max(min(after, longest), l.RoomEvery, 100*time.Millisecond)))
	r.every, r.calm = l.RoomEvery, r.from.Add(calm)
	a := p.at(accountOf(t))
	switch {
	case a.every > 0 || a.last != "" && a.last != t.Room && l.AccountEvery > 0:
		a.from = latest(a.from, now.Add(l.AccountEvery))
		a.every, a.calm = l.AccountEvery, a.from.Add(calm)
	default:
		a.calm = now.Add(together)
	}
	a.last = t.Room
	return p.turn(t, now)
}

func (p *pacer) at(key chat.Thread) *room {
	r := p.rooms[key]
	if r == nil {
		r = &room{row: map[chat.Thread]time.Time{}}
		p.rooms[key] = r
	}
	return r
}

// place keeps the place of a thread in the row, or gives it one at the end if it
// has none or the provider has since asked for a longer pause.
func (r *room) place(t chat.Thread, now time.Time) time.Time {
	at, ok := r.row[t]
	if !ok || at.Before(r.from) {
		at = latest(now, r.from, r.next)
		r.row[t], r.next = at, at.Add(r.every)
	}
	return at
}

func roomOf(t chat.Thread) chat.Thread {
	t.Root = ""
	return t
}

func accountOf(t chat.Thread) chat.Thread { return chat.Thread{Channel: t.Channel, Account: t.Account} }

func latest(ts ...time.Time) time.Time { return slices.MaxFunc(ts, time.Time.Compare) }
