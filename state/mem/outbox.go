package mem

import (
	"context"
	"slices"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

type post struct {
	state.PostView
	conversation state.ID
	due          time.Time // when it can be claimed: of a claimed one the end of the claim
	claimed      bool
	doubtAt      time.Time
	firstAt      time.Time
	claimedAt    time.Time
}

// A queue is what posts are made in the order of: a thread or, of those that are
// to open one, a place and who is to open it.
type queue struct {
	thread chat.Thread
	opens  state.ID
}

func (p *post) queue() queue {
	if p.Post.Open {
		return queue{p.Post.Thread, p.conversation}
	}
	return queue{thread: p.Post.Thread}
}

func (s *Store) queue(c *conversation, p chat.Post, now time.Time) {
	if slices.ContainsFunc(c.posts, func(q *post) bool { return q.Post.Key == p.Key }) {
		return
	}
	q := &post{PostView: state.PostView{Post: p, State: state.Due, QueuedAt: now}, conversation: c.ID, due: now}
	c.posts = append(c.posts, q)
	s.open = append(s.open, q)
}

// heads lists the oldest unsettled post of each queue, longest due first.
func (s *Store) heads() []*post {
	var heads []*post
	seen := map[queue]bool{}
	for _, p := range s.open {
		if q := p.queue(); !seen[q] {
			seen[q] = true
			heads = append(heads, p)
		}
	}
	slices.SortStableFunc(heads, func(a, b *post) int { return a.due.Compare(b.due) })
	return heads
}

// ClaimPosts leases posts that are due.
func (s *Store) ClaimPosts(ctx context.Context, _ string, n int, ttl time.Duration) ([]state.Effect, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	var out []state.Effect
	now := s.now()
	for _, p := range s.heads() {
		if len(out) >= n || p.due.After(now) {
			break
		}
		if p.claimed {
			p.doubtAt = p.claimedAt
		}
		p.claimed = true
		p.Attempts++
		if p.firstAt.IsZero() {
			p.firstAt = now
		}
		out = append(out, state.Effect{
			Post: s.byID[p.conversation].placed(p.Post), Conversation: p.conversation, Attempt: p.Attempts, Epoch: int64(p.Attempts),
			DoubtAt: p.doubtAt, FirstAt: p.firstAt, QueuedAt: p.QueuedAt,
		})
		p.claimedAt = now
		p.due = micro(now.Add(ttl))
	}
	s.announce()
	return out, nil
}

// placed is a post with the thread that is open for it.
func (c *conversation) placed(p chat.Post) chat.Post {
	for _, o := range c.opened {
		if p.Open && o.place == p.Thread {
			p.Thread, p.Open = o.thread, false
		}
	}
	return p
}

// WaitDue waits until ClaimPosts may find something.
func (s *Store) WaitDue(ctx context.Context) error {
	return s.wait(ctx, func() time.Time {
		if heads := s.heads(); len(heads) > 0 {
			return heads[0].due
		}
		return time.Time{}
	})
}

// SettlePost records what became of a claimed post.
func (s *Store) SettlePost(ctx context.Context, e state.Effect, o state.Outcome) error {
	if err := o.Validate(); err != nil {
		return err
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	i := slices.IndexFunc(s.open, func(p *post) bool {
		return p.conversation == e.Conversation && p.Post.Key == e.Post.Key
	})
	if i < 0 || !s.open[i].claimed || int64(s.open[i].Attempts) != e.Epoch {
		return state.ErrLeaseLost
	}
	p, now := s.open[i], s.now()
	p.claimed, p.State, p.Ref, p.Reason = false, o.State, "", o.Reason
	switch o.State {
	case state.Due:
		p.due, p.doubtAt = later(now, micro(o.Due)), micro(o.DoubtAt)
	case state.Sent:
		p.Ref, p.Reason, p.SettledAt = o.Ref, "", now
		s.own(s.byID[e.Conversation], o.Opened, p.Post.Thread)
	case state.Dead:
		s.kill(p, o.Reason, now)
	case state.Pending, state.Sending, state.Unknown: // no outcomes
	}
	s.open = slices.DeleteFunc(s.open, func(p *post) bool { return p.State != state.Due })
	s.announce()
	return nil
}

// kill makes a post dead, and the parts after it.
func (s *Store) kill(p *post, reason string, now time.Time) {
	p.State, p.Ref, p.Reason, p.SettledAt = state.Dead, "", reason, now
	for _, q := range s.open {
		if q.State == state.Due && q.follows(p) {
			s.kill(q, state.Holed, now)
		}
	}
}

// follows says whether a post is the part after another one.
func (p *post) follows(o *post) bool {
	return p.conversation == o.conversation && p.queue() == o.queue() && p.Post.After == o.Post.Key
}

// own adds a thread to a conversation, unless it has an owner.
func (s *Store) own(c *conversation, t, place chat.Thread) {
	if t != (chat.Thread{}) && s.byThread[t] == nil {
		c.opened = append(c.opened, opened{t, place})
		s.byThread[t] = c
	}
}

// RetryPost queues a dead post again.
func (s *Store) RetryPost(ctx context.Context, id state.ID, key string) error {
	return s.revise(ctx, id, key, func(c *conversation, p *post, _ time.Time) bool {
		if p.State != state.Dead {
			return false
		}
		s.revive(c, p)
		return true
	})
}

func (s *Store) revive(c *conversation, p *post) {
	p.PostView = state.PostView{Post: p.Post, State: state.Due, QueuedAt: p.QueuedAt, Attempts: p.Attempts}
	p.due, p.doubtAt, p.firstAt = p.QueuedAt, p.claimedAt, time.Time{}
	c.posts = append(slices.DeleteFunc(c.posts, func(q *post) bool { return q == p }), p)
	s.open = append(s.open, p)
	for _, q := range slices.Clone(c.posts) {
		if q.State == state.Dead && q.Reason == state.Holed && q.follows(p) {
			s.revive(c, q)
		}
	}
}

// DropPost makes a post dead that nobody is sending.
func (s *Store) DropPost(ctx context.Context, id state.ID, key string) error {
	return s.revise(ctx, id, key, func(_ *conversation, p *post, now time.Time) bool {
		if st := p.view(now).State; st != state.Pending && st != state.Unknown {
			return false
		}
		p.claimed = false
		s.kill(p, state.Dropped, now)
		s.open = slices.DeleteFunc(s.open, func(p *post) bool { return p.State != state.Due })
		return true
	})
}

func (s *Store) revise(ctx context.Context, id state.ID, key string, f func(*conversation, *post, time.Time) bool) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if c := s.byID[id]; c != nil {
		i := slices.IndexFunc(c.posts, func(p *post) bool { return p.Post.Key == key })
		if i >= 0 && f(c, c.posts[i], s.now()) {
			s.announce()
			return nil
		}
	}
	return state.ErrNotFound
}

// view is what people see of a post.
func (p *post) view(now time.Time) state.PostView {
	v := p.PostView
	switch {
	case v.State != state.Due:
	case p.claimed && p.due.After(now):
		v.State = state.Sending
	case p.claimed || !p.doubtAt.IsZero():
		v.State = state.Unknown
	default:
		v.State = state.Pending
	}
	return v
}
