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

func (s *Store) queue(c *conversation, p chat.Post, now time.Time) {
	if slices.ContainsFunc(c.posts, func(q *post) bool { return q.Post.Key == p.Key }) {
		return
	}
	q := &post{PostView: state.PostView{Post: p, State: state.Due, QueuedAt: now}, conversation: c.ID, due: now}
	c.posts = append(c.posts, q)
	s.open = append(s.open, q)
}

// heads lists the oldest unsettled post of each thread, longest due first.
func (s *Store) heads() []*post {
	var heads []*post
	seen := map[chat.Thread]bool{}
	for _, p := range s.open {
		if !seen[p.Post.Thread] {
			seen[p.Post.Thread] = true
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
			Post: p.Post, Conversation: p.conversation, Attempt: p.Attempts, Epoch: int64(p.Attempts),
			DoubtAt: p.doubtAt, FirstAt: p.firstAt, QueuedAt: p.QueuedAt,
		})
		p.claimedAt = now
		p.due = micro(now.Add(ttl))
	}
	s.announce()
	return out, nil
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
	case state.Dead:
		p.SettledAt = now
	}
	if o.State != state.Due {
		s.open = slices.Delete(s.open, i, i+1)
	}
	s.announce()
	return nil
}
