package dispatch

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

const (
	senders    = 64               // posts under way at once
	postLease  = time.Minute      // of a claimed post
	postTime   = 30 * time.Second // of one request
	postFor    = 2 * time.Hour    // how long a post that fails is tried, from its first attempt
	limitedFor = 24 * time.Hour   // and one that the provider only puts off
	maxBackoff = 10 * time.Minute
	flushTime  = 5 * time.Second // of posting after a stop
)

// postLoop claims due posts and sends them until soft ends. Then it goes on for
// as long as posts are due at once, each thread to its last, until hard ends.
func (g *Gateway) postLoop(hard, soft context.Context) {
	var sending sync.WaitGroup
	defer sending.Wait()
	slots := make(chan struct{}, senders) // filled by this goroutine only
	start := func() (int, error) {
		effects, err := g.Store.ClaimPosts(hard, g.Owner, cap(slots)-len(slots), postLease)
		for _, e := range effects {
			slots <- struct{}{}
			sending.Go(func() {
				defer func() { <-slots }()
				g.post(hard, e)
			})
		}
		return len(effects), err
	}
	for soft.Err() == nil {
		select { // until one is free
		case slots <- struct{}{}:
			<-slots
		case <-soft.Done():
		}
		n, err := start()
		if n == 0 && err == nil {
			err = g.Store.WaitDue(soft)
		}
		if err != nil && soft.Err() == nil {
			g.Logger.Warn("claim of posts failed", "err", err)
			sleep(soft, time.Second)
		}
	}
	for again := true; again; sending.Wait() {
		busy := len(slots) > 0 // the next post of a thread is due when the one before has ended
		n, _ := start()
		again = busy || n > 0
	}
}

// post brings one claimed post a step further and settles the claim.
func (g *Gateway) post(ctx context.Context, e state.Effect) {
	began := g.Clock()
	o := g.attempt(ctx, e)
	log := g.Logger.With("channel", e.Post.Thread.Channel, "thread", e.Post.Thread.Key(), "conversation", string(e.Conversation),
		"post", e.Post.Key, "attempt", e.Attempt)
	switch o.State {
	case state.Sent:
		log.Info("post sent", "ref", o.Ref, "took", g.Clock().Sub(began))
	case state.Dead:
		log.Error("post is dead", "reason", o.Reason)
	case state.Due:
		log.Warn("post put off", "reason", o.Reason, "wait", o.Due.Sub(g.Clock()))
	}
	// What happened outside must be recorded even while stopping.
	sctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := g.Store.SettlePost(sctx, e, o); err != nil {
		log.Warn("post not settled", "err", err)
	}
}

// attempt looks whether the post was made, if that is in doubt, and makes it if not.
func (g *Gateway) attempt(ctx context.Context, e state.Effect) state.Outcome {
	s := g.senders[e.Post.Thread.Channel]
	if s == nil {
		return state.Outcome{State: state.Dead, Reason: "no such channel"}
	}
	ctx, cancel := context.WithTimeout(ctx, postTime)
	defer cancel()
	if wait := g.pace.wait(e.Post.Thread); wait > 0 {
		return g.later(wait, "room is limited", e.DoubtAt)
	}
	if !e.DoubtAt.IsZero() {
		if o, done := g.look(ctx, s, e); done {
			return o
		}
	}
	if e.Post.ReplyTo != "" && s.Limits().Handles {
		e.Post.Handle = handleOf(ctx, g.Store, g.Clock(), e.Post.Thread, e.Post.ReplyTo).Handle
	}
	began := g.Clock()
	ref, err := guard(g.Logger, func() (string, error) { return s.Send(ctx, e.Post) })
	if err == nil {
		return sent(s, e.Post, ref)
	}
	if ref != "" {
		g.Logger.Error("post made, but not as asked", "post", e.Post.Key, "ref", ref, "err", err)
	}
	return g.verdict(s, e, err, began)
}

// sent is the outcome of a post that was made as ref. One that was to open a
// thread in a channel that knows no such thing has its conversation own the place.
func sent(s channels.Sender, p chat.Post, ref string) state.Outcome {
	o := state.Outcome{State: state.Sent, Ref: ref}
	opened := p.Thread
	if op, ok := s.(channels.Opener); ok {
		opened = op.Opened(p, ref)
	}
	if (p.Open || opened != p.Thread) && opened.Validate() == nil {
		o.Opened = opened
	}
	return o
}

// look asks the provider for a post whose earlier attempt may have been made.
// It says false if the post was not made and may be sent now.
func (g *Gateway) look(ctx context.Context, s channels.Sender, e state.Effect) (state.Outcome, bool) {
	f, ok := s.(channels.Finder)
	if !ok {
		return state.Outcome{State: state.Dead, Reason: "outcome unknown and the channel cannot look"}, true
	}
	since := e.FirstAt
	if e.DoubtAt.Before(since) { // of a post that was dead and is tried again
		since = e.DoubtAt
	}
	ref, err := guard(g.Logger, func() (string, error) { return f.Find(ctx, e.Post, since) })
	if err != nil {
		return g.verdict(s, e, err, time.Time{}), true
	}
	if ref != "" {
		return sent(s, e.Post, ref), true
	}
	if wait := e.DoubtAt.Add(s.Limits().SettleAfter).Sub(g.Clock()); wait > 0 {
		return g.later(wait, "outcome unknown", e.DoubtAt), true
	}
	return state.Outcome{}, false
}

// verdict turns a failed request into what becomes of the post: one to send it,
// begun at a time, or, with a zero time, one to look for it, which leaves in
// doubt what was in doubt.
func (g *Gateway) verdict(s channels.Sender, e state.Effect, err error, began time.Time) state.Outcome {
	var se *channels.SendError
	if !errors.As(err, &se) {
		se = &channels.SendError{Verdict: channels.Unknown, Reason: "unclassed error"}
	}
	looked, doubt := began.IsZero(), time.Time{}
	if looked {
		doubt = e.DoubtAt
	} else if se.Verdict == channels.Unknown {
		doubt = began
	}
	switch {
	case se.Verdict == channels.Limited && g.Clock().Sub(e.FirstAt) < limitedFor:
		wait := g.pace.limited(e.Post.Thread, se.RetryAfter, s.Limits())
		return g.later(wait, se.Reason, doubt)
	case se.Verdict == channels.Rejected && !looked:
		return state.Outcome{State: state.Dead, Reason: se.Reason}
	case g.Clock().Sub(e.FirstAt) >= postFor:
		return state.Outcome{State: state.Dead, Reason: "gave up: " + se.Reason}
	}
	since := g.Clock().Sub(e.FirstAt)
	if !looked && !doubt.IsZero() {
		since = 0 // a look costs nothing
	}
	return g.later(backoff(since), se.Reason, doubt)
}

func (g *Gateway) later(wait time.Duration, reason string, doubt time.Time) state.Outcome {
	return state.Outcome{State: state.Due, Reason: reason, Due: g.Clock().Add(wait), DoubtAt: doubt}
}

// backoff grows with the time since the first attempt, so that the time about
// doubles with each failure, whatever else put the post off; with jitter over
// its upper half.
func backoff(since time.Duration) time.Duration {
	d := min(max(since, 500*time.Millisecond), maxBackoff)
	return d/2 + rand.N(d/2+1)
}
