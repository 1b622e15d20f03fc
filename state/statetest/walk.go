package statetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
	"github.com/heddlehq/heddle/state/mem"
)

// walkSteps is the length of each random walk.
const walkSteps = 350

// testWalk lets a store and the reference store do the same, and wants the same
// answers. A failure shows the last steps; the seed is in the test's name.
func testWalk(t *testing.T, h Harness) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			k := newKit(t, h)
			w := &walk{kit: k, Rand: rand.New(rand.NewPCG(seed, 1)), h: h, ref: mem.Open(k.Now)}
			for range walkSteps {
				w.step()
			}
			w.both("everything", func(s state.Store) (any, error) { return (&kit{T: t, Store: s, ctx: k.ctx}).dump(), nil })
		})
	}
}

// A walk drives two stores.
type walk struct {
	*kit
	*rand.Rand
	h      Harness
	ref    *mem.Store
	trace  []string
	leases []state.Lease
	posts  []state.Effect
	fork   func(state.Store) (any, error) // the last one
	keys   int
}

// both does something with both stores and wants the same answer and the same
// kind of error. It says whether there was none.
func (w *walk) both(what string, do func(state.Store) (any, error)) (answer any, ok bool) {
	w.Helper()
	want, wantErr := do(w.ref)
	got, err := do(w.Store)
	w.trace = append(w.trace, fmt.Sprintf("%v %s: %v", w.Now().Sub(start), what, wantErr))
	if kind(err) != kind(wantErr) {
		w.Fatalf("got error %v, want %v, after\n%s", err, wantErr, w.last())
	}
	if d := cmp.Diff(want, got, equal...); d != "" {
		w.Fatalf("answers differ (-want +got):\n%s\nafter\n%s", d, w.last())
	}
	return want, err == nil
}

func (w *walk) last() string { return strings.Join(w.trace[max(0, len(w.trace)-30):], "\n") }

func kind(err error) error {
	for _, known := range []error{state.ErrNone, state.ErrLeaseLost, state.ErrNotFound, state.ErrExists} {
		if errors.Is(err, known) {
			return known
		}
	}
	return err
}

func (w *walk) step() {
	switch n := w.IntN(100); {
	case n < 21:
		w.admitSome()
	case n < 34:
		w.claimOne()
	case n < 53:
		w.commitOne()
	case n < 56:
		w.renewOne()
	case n < 62:
		w.claimSome()
	case n < 70:
		w.settleOne()
	case n < 71:
		w.reviseOne()
	case n < 76:
		w.forkOne()
	case n < 81:
		w.putSome()
	case n < 92:
		w.readOne()
	case n < 97:
		w.advance(w.spell())
	case n < 98:
		w.advance(state.DedupeFor / 2)
	default:
		w.Store = w.h.Reopen(w.T, w.Store)
		if w.h.Takeover {
			w.ref.Expire()
		}
		w.trace = append(w.trace, "reopened")
	}
	w.advance(time.Duration(w.IntN(3)) * time.Microsecond)
}

// spell is a duration: often the same, so that times coincide.
func (w *walk) spell() time.Duration {
	return []time.Duration{time.Microsecond, time.Second, time.Second, time.Minute, time.Hour, 1500 * time.Nanosecond}[w.IntN(6)]
}

// at is a time near now, or none.
func (w *walk) at() time.Time {
	switch w.IntN(4) {
	case 0:
		return w.Now().Add(w.spell())
	case 1:
		return w.Now().Add(-w.spell())
	}
	return time.Time{}
}

func (w *walk) admitSome() {
	in := make([]state.Admit, 1+w.IntN(3))
	for i := range in {
		a := ask(0, fmt.Sprint("e", w.IntN(60)))
		a.Event.Thread, a.Agent = w.thread(w.IntN(4)), w.agent()
		if w.IntN(2) == 0 {
			a.Event.Same = fmt.Sprint("s", w.IntN(30))
		}
		a.Quiet, a.Follow = w.IntN(5) == 0, w.IntN(4) == 0
		if w.IntN(8) == 0 {
			a.Ignored = "boring"
		}
		a.Event.Author.ID = fmt.Sprint("U", w.IntN(2))
		a.Since, a.Left = w.at(), w.IntN(2) == 0
		if w.IntN(3) == 0 {
			a.Hold = w.spell()
		}
		in[i] = a
	}
	w.both(fmt.Sprintf("admit %+v", in), func(s state.Store) (any, error) { return s.Admit(w.ctx, in) })
}

func (w *walk) agent() string { return []string{"assistant", "billing"}[w.IntN(2)] }

// thread is the n-th thread of one of two channels. Only those below 4 are
// admitted to before they have a fork.
func (w *walk) thread(n int) chat.Thread {
	t := thread(n)
	t.Channel = []string{"slack", "slack", "github"}[w.IntN(3)]
	return t
}

func (w *walk) claimOne() {
	ttl := w.spell()
	l, ok := w.both(fmt.Sprint("claim for ", ttl), func(s state.Store) (any, error) { return s.Claim(w.ctx, fmt.Sprint("w", len(w.leases)), ttl) })
	if ok {
		w.leases = append(w.leases, l.(state.Lease))
	}
}

// lease is one of the last leases, which may be lost.
func (w *walk) lease() (state.Lease, bool) {
	if len(w.leases) == 0 {
		return state.Lease{}, false
	}
	return w.leases[len(w.leases)-1-w.IntN(min(len(w.leases), 5))], true
}

func (w *walk) replace(l any, ok bool) {
	if ok {
		w.leases = append(w.leases, l.(state.Lease))
	}
}

func (w *walk) renewOne() {
	l, ok := w.lease()
	if !ok {
		return
	}
	ttl := w.spell()
	w.replace(w.both(fmt.Sprintf("renew %v for %v", l, ttl), func(s state.Store) (any, error) { return s.Renew(w.ctx, l, ttl) }))
}

func (w *walk) commitOne() {
	l, ok := w.lease()
	if !ok {
		return
	}
	b := state.Batch{Taken: int64(w.IntN(8)), Release: w.IntN(3) > 0, Leave: w.IntN(6) == 0}
	if w.IntN(4) == 0 {
		b.Taken = 1 << 40
	}
	if b.Release {
		b.Pause, b.Wake = w.at(), w.at()
	}
	for range w.IntN(4) {
		b.Records = append(b.Records, state.Record{Kind: "said", Data: fmt.Append(nil, w.IntN(1000))})
	}
	for range w.IntN(3) {
		w.keys++
		key := fmt.Sprint("p", w.keys-w.IntN(3))
		p := post(w.IntN(4), key)
		p.Open = w.IntN(3) == 0
		if w.IntN(2) == 0 {
			p.After = fmt.Sprint("p", w.keys-1)
		}
		b.Posts = append(b.Posts, p)
	}
	if w.IntN(3) == 0 {
		b.Blobs = append(b.Blobs, state.Blob{Name: "fold", Data: [][]byte{nil, {}, []byte("x")}[w.IntN(3)]})
	}
	if w.IntN(3) == 0 {
		b.Counts = []state.Count{{Space: spaces[w.IntN(2)], Key: fmt.Sprint("n", w.IntN(3)), Add: w.Int64N(100)}, {Space: spaces[0], Key: "n0", Add: 1}}
	}
	w.replace(w.both(fmt.Sprintf("commit %+v to %v", b, l), func(s state.Store) (any, error) { return s.Commit(w.ctx, l, b) }))
}

func (w *walk) claimSome() {
	n, ttl := w.IntN(4), w.spell()
	out, ok := w.both(fmt.Sprintf("claim %d posts for %v", n, ttl), func(s state.Store) (any, error) { return s.ClaimPosts(w.ctx, "w", n, ttl) })
	if ok {
		w.posts = append(w.posts, out.([]state.Effect)...)
	}
}

func (w *walk) settleOne() {
	if len(w.posts) == 0 {
		return
	}
	e := w.posts[len(w.posts)-1-w.IntN(min(len(w.posts), 5))]
	o := state.Outcome{
		State: []state.PostState{state.Sent, state.Sent, state.Due, state.Dead}[w.IntN(4)], Due: w.at(),
		Ref: fmt.Sprint(w.IntN(9)), Reason: fmt.Sprint("reason ", w.IntN(9)), DoubtAt: w.at(),
	}
	if w.IntN(2) == 0 {
		o.Opened = w.thread(w.IntN(20))
	}
	w.both(fmt.Sprintf("settle %s %+v", e.Post.Key, o), func(s state.Store) (any, error) { return nil, s.SettlePost(w.ctx, e, o) })
}

func (w *walk) reviseOne() {
	l, ok := w.lease()
	if !ok {
		return
	}
	id, key := l.Conversation.ID, fmt.Sprint("p", w.keys-w.IntN(8))
	if w.IntN(2) == 0 {
		w.both("retry "+key, func(s state.Store) (any, error) { return nil, s.RetryPost(w.ctx, id, key) })
	} else {
		w.both("drop "+key, func(s state.Store) (any, error) { return nil, s.DropPost(w.ctx, id, key) })
	}
}

func (w *walk) forkOne() {
	if w.IntN(3) == 0 && w.fork != nil {
		w.both("the last fork again", w.fork)
		return
	}
	from, agent, to, seq := state.ConversationID(w.agent(), w.thread(w.IntN(5))), w.agent(), w.thread(w.IntN(12)), int64(w.IntN(5))
	if l, ok := w.lease(); ok {
		from = l.Conversation.ID
	}
	own := make([]state.Record, w.IntN(3))
	for i := range own {
		own[i] = state.Record{Kind: "own", Data: fmt.Append(nil, w.IntN(100))}
	}
	do := func(s state.Store) (any, error) { return s.Fork(w.ctx, from, seq, agent, to, own...) }
	if _, ok := w.both(fmt.Sprintf("fork %s at %d to %s in %s with %d", from, seq, agent, to, len(own)), do); ok {
		w.fork = do
		in := []state.Admit{{Event: event(0, fmt.Sprint("f", w.IntN(1000))), Agent: agent}}
		in[0].Event.Thread = to
		w.both(fmt.Sprintf("admit %+v to the fork", in), func(s state.Store) (any, error) { return s.Admit(w.ctx, in) })
	}
}

func (w *walk) putSome() {
	space, vs := spaces[w.IntN(2)], make([]state.Value, w.IntN(4))
	for i := range vs {
		vs[i] = state.Value{Key: fmt.Sprint("k", w.IntN(12)), Data: [][]byte{nil, {}, fmt.Append(nil, w.IntN(100))}[w.IntN(3)]}
	}
	w.both(fmt.Sprintf("put %+v in %s", vs, space), func(s state.Store) (any, error) { return nil, s.PutValues(w.ctx, space, vs...) })
}

func (w *walk) readOne() {
	t := w.thread(w.IntN(5))
	id := state.ConversationID(w.agent(), t)
	event, after, before, limit := fmt.Sprint("e", w.IntN(60)), int64(w.IntN(10)), w.at(), w.IntN(5)
	space, key, same := spaces[w.IntN(2)], fmt.Sprint("k", w.IntN(12)), fmt.Sprint("s", w.IntN(30))
	read := []func(state.Store) (any, error){
		func(s state.Store) (any, error) { return s.Load(w.ctx, id, after) },
		func(s state.Store) (any, error) { return s.Records(w.ctx, id, after, limit) },
		func(s state.Store) (any, error) { return s.Blob(w.ctx, id, "fold") },
		func(s state.Store) (any, error) { return s.Posts(w.ctx, id) },
		func(s state.Store) (any, error) { return s.Find(w.ctx, t) },
		func(s state.Store) (any, error) { return s.Event(w.ctx, t.Channel, event) },
		func(s state.Store) (any, error) { return s.Acts(w.ctx, t.Channel, same) },
		func(s state.Store) (any, error) { return s.Unsent(w.ctx, limit) },
		func(s state.Store) (any, error) { return s.Conversations(w.ctx, before, limit) },
		func(s state.Store) (any, error) { return s.Value(w.ctx, space, key) },
		func(s state.Store) (any, error) { return s.ListValues(w.ctx, space, key, limit) },
	}[w.IntN(11)]
	w.both("read", read)
}
