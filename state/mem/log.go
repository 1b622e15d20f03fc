package mem

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

type conversation struct {
	state.Conversation
	inbox   []entry
	arrived int64 // Seq of the last entry ever admitted
	loud    int64 // Seq of the last entry that was not Quiet
	taken   int64 // entries up to this Seq are gone
	records []state.Record
	blobs   map[string][]byte
	posts   []*post

	leased  bool
	owner   string
	epoch   int64
	attempt int
	readyAt time.Time // when it can be claimed: of a leased one the end of the lease; zero is never
	pause   time.Time // not ready before, while it is not leased
	left    bool      // its threads are not followed
	heldBy  string    // the author that readyAt waits for, "" for none
	heldAt  time.Time // since when
	opened  []opened  // threads that it owns besides its own
}

// opened is a thread that a post for a place has opened.
type opened struct{ thread, place chat.Thread }

type entry struct {
	state.Entry
	event []byte // JSON
}

type event struct {
	at     time.Time
	data   []byte // JSON
	status state.Status
	id     state.ID
	seq    int64 // of the inbox entry
	reason string
	act    string // that it told of
}

// Admit stores events.
func (s *Store) Admit(ctx context.Context, in []state.Admit) ([]state.Admission, error) {
	data := make([][]byte, len(in))
	for i, a := range in {
		if err := a.Validate(); err != nil {
			return nil, err
		}
		var err error
		if data[i], err = json.Marshal(a.Event); err != nil {
			return nil, fmt.Errorf("event %s: %w", a.Event.ID, err)
		}
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	out := make([]state.Admission, len(in))
	for i, a := range in {
		out[i] = s.admit(a, data[i])
	}
	s.announce()
	return out, nil
}

func (s *Store) admit(a state.Admit, data []byte) state.Admission {
	channel, now := a.Event.Thread.Channel, s.now()
	if e := s.known(s.events, channel, a.Event.ID); e != nil {
		return state.Admission{
			Status: state.Duplicate, Conversation: e.id, Seq: e.seq, Reason: e.reason,
			Conflict: !bytes.Equal(e.data, data),
		}
	}
	if e := s.known(s.same, channel, a.Event.Same); e != nil && a.Event.Same != "" {
		return state.Admission{Status: state.Duplicate, Conversation: e.id, Seq: e.seq}
	}
	e := &event{at: now, data: data, status: state.Admitted, reason: a.Ignored, act: a.Event.Same}
	s.events[[2]string{channel, a.Event.ID}] = e
	c := s.byThread[a.Event.Thread]
	if e.reason == "" && a.Follow && (c == nil || !a.Left && (c.left || c.UpdatedAt.Before(micro(a.Since)))) {
		e.reason = state.NotFollowed
	}
	if e.reason != "" {
		e.status = state.Ignored
		return state.Admission{Status: e.status, Reason: e.reason}
	}
	hold := a.Hold
	if c == nil {
		c, hold = s.create(a.Agent, a.Event.Thread, now), 0
	}
	c.arrived++
	e.id, e.seq = c.ID, c.arrived
	if a.Event.Same != "" {
		s.same[[2]string{channel, a.Event.Same}] = e
	}
	c.UpdatedAt = now
	c.inbox = append(c.inbox, entry{state.Entry{Seq: c.arrived, At: now, Quiet: a.Quiet}, data})
	if !a.Quiet {
		c.loud = c.arrived
		c.hold(a.Event.Author, hold, now)
	}
	c.left = c.left && (a.Follow || a.Quiet)
	return state.Admission{Status: e.status, Conversation: c.ID, Seq: e.seq}
}

// hold sets when the conversation is ready for what its author has said now.
func (c *conversation) hold(a chat.Author, hold time.Duration, now time.Time) {
	if c.leased || !c.readyAt.IsZero() && !c.readyAt.After(now) { // what is ready stays so
		return
	}
	ready, by, at := later(now, c.pause), "", time.Time{}
	if hold > 0 {
		by, at = a.Account+"/"+a.ID, now
		if c.heldBy == by {
			at = c.heldAt
		}
		ready = later(ready, micro(state.HeldUntil(now, at, hold)))
	}
	if c.readyAt.IsZero() || ready.Before(c.readyAt) || by != "" && c.heldBy == by {
		c.readyAt, c.heldBy, c.heldAt = ready, by, at
	}
}

func (s *Store) known(events map[[2]string]*event, channel, id string) *event {
	e := events[[2]string{channel, id}]
	if e == nil || s.now().Sub(e.at) >= state.DedupeFor {
		return nil
	}
	return e
}

func (s *Store) create(agent string, t chat.Thread, now time.Time) *conversation {
	c := &conversation{
		Conversation: state.Conversation{ID: state.ConversationID(agent, t), Agent: agent, Thread: t, CreatedAt: now},
		blobs:        map[string][]byte{},
	}
	s.all, s.byID[c.ID], s.byThread[t] = append(s.all, c), c, c
	return c
}

// Claim leases the conversation that has been ready longest.
func (s *Store) Claim(ctx context.Context, owner string, ttl time.Duration) (state.Lease, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return state.Lease{}, err
	}
	defer unlock()
	c := s.nextReady()
	if c == nil || c.readyAt.After(s.now()) {
		return state.Lease{}, state.ErrNone
	}
	c.leased, c.owner, c.heldBy, c.heldAt = true, owner, "", time.Time{}
	c.epoch++
	c.attempt++
	c.readyAt = micro(s.now().Add(ttl))
	s.announce()
	return c.lease(), nil
}

// nextReady finds the conversation that is ready first, nil if none will be.
func (s *Store) nextReady() *conversation {
	var first *conversation
	for _, c := range s.all {
		if !c.readyAt.IsZero() && (first == nil || c.readyAt.Before(first.readyAt)) {
			first = c
		}
	}
	return first
}

// WaitReady waits until Claim may find something.
func (s *Store) WaitReady(ctx context.Context) error {
	return s.wait(ctx, func() time.Time {
		if c := s.nextReady(); c != nil {
			return c.readyAt
		}
		return time.Time{}
	})
}

// Renew makes a lease last longer.
func (s *Store) Renew(ctx context.Context, l state.Lease, ttl time.Duration) (state.Lease, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return state.Lease{}, err
	}
	defer unlock()
	c, err := s.held(l)
	if err != nil {
		return state.Lease{}, err
	}
	c.readyAt = micro(s.now().Add(ttl))
	s.announce()
	return c.lease(), nil
}

func (s *Store) held(l state.Lease) (*conversation, error) {
	c := s.byID[l.Conversation.ID]
	if c == nil || !c.leased || c.epoch != l.Epoch {
		return nil, state.ErrLeaseLost
	}
	return c, nil
}

// Commit makes a batch true.
func (s *Store) Commit(ctx context.Context, l state.Lease, b state.Batch) (state.Lease, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return state.Lease{}, err
	}
	defer unlock()
	c, err := s.held(l)
	if err != nil {
		return state.Lease{}, err
	}
	counted, err := s.counted(b.Counts)
	if err != nil {
		return state.Lease{}, err
	}
	now := s.now()
	for i, v := range counted {
		s.put(b.Counts[i].Space, v)
	}
	c.add(b.Records, now)
	c.taken = max(c.taken, min(b.Taken, c.arrived))
	c.inbox = slices.DeleteFunc(c.inbox, func(e entry) bool { return e.Seq <= c.taken })
	for _, p := range b.Posts {
		s.queue(c, p, now)
	}
	for _, v := range b.Blobs {
		if v.Data == nil {
			delete(c.blobs, v.Name)
		} else {
			c.blobs[v.Name] = bytes.Clone(v.Data)
		}
	}
	c.UpdatedAt = now
	c.left = c.left || b.Leave && c.loud <= c.taken
	answer := c.lease()
	if b.Release {
		c.release(b, now)
		answer.Until = time.Time{}
	}
	s.announce()
	return answer, nil
}

func (c *conversation) add(records []state.Record, now time.Time) {
	for _, r := range records {
		c.Seq++
		c.records = append(c.records, state.Record{Seq: c.Seq, At: now, Kind: r.Kind, Data: bytes.Clone(r.Data)})
	}
}

func (c *conversation) release(b state.Batch, now time.Time) {
	c.leased, c.owner, c.attempt = false, "", 0
	c.pause = micro(b.Pause)
	switch {
	case c.loud > c.taken:
		c.readyAt = later(now, c.pause)
	case !b.Wake.IsZero():
		c.readyAt = later(later(now, c.pause), micro(b.Wake))
	default:
		c.readyAt = time.Time{}
	}
}

func (c *conversation) lease() state.Lease {
	return state.Lease{Conversation: c.view(), Owner: c.owner, Epoch: c.epoch, Attempt: c.attempt, Until: c.readyAt}
}

func (c *conversation) view() state.Conversation {
	v := c.Conversation
	v.Inbox = len(c.inbox)
	return v
}

// Load reads a conversation.
func (s *Store) Load(ctx context.Context, id state.ID, after int64) (state.View, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return state.View{}, err
	}
	defer unlock()
	c := s.byID[id]
	if c == nil {
		return state.View{}, state.ErrNotFound
	}
	v := state.View{Conversation: c.view(), Records: c.after(after, len(c.records))}
	for _, e := range c.inbox {
		if err := json.Unmarshal(e.event, &e.Event); err != nil {
			return state.View{}, fmt.Errorf("load %s: %w", id, err)
		}
		v.Inbox = append(v.Inbox, e.Entry)
	}
	return v, nil
}

// after reads records after a Seq.
func (c *conversation) after(seq int64, limit int) (out []state.Record) {
	rest := c.records[min(max(seq, 0), c.Seq):]
	for _, r := range rest[:min(max(limit, 0), len(rest))] {
		r.Data = bytes.Clone(r.Data)
		out = append(out, r)
	}
	return out
}

// Blob reads a named value.
func (s *Store) Blob(ctx context.Context, id state.ID, name string) ([]byte, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if c := s.byID[id]; c != nil {
		return bytes.Clone(c.blobs[name]), nil
	}
	return nil, nil
}
