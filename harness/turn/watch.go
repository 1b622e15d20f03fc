package turn

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/state"
)

// watchEvery is how often the inbox is looked at while a step runs. Together
// with the moment that a tool is given to notice, a turn ends within two
// seconds of being stopped.
const watchEvery = 500 * time.Millisecond

// Why work ends before its time. The next step boundary says what follows.
var (
	errStopped = errors.New("the turn was stopped")
	errTime    = errors.New("the turn has taken too long")
	errSteered = errors.New("a new message came")
)

// watched runs a part of the conversation's own turn and looks at the inbox
// meanwhile: for what ends the turn, what interrupts calls that may be, and an
// operator who wants no further step. Work that it stops is no error.
func (r *run) watched(ctx context.Context, f func(context.Context) (bool, error)) (done bool, err error) {
	work, end := context.WithCancelCause(ctx)
	defer end(nil)
	gentle, interrupt := context.WithCancelCause(work)
	defer interrupt(nil)
	r.gentle = gentle
	if left := r.Limits.Time - r.f.Work.Spent(r.Clock()); left > 0 {
		defer time.AfterFunc(left, func() { end(errTime) }).Stop()
	}
	at, seq := r.present(), r.f.Seq
	var watching sync.WaitGroup
	watching.Go(func() {
		for sleep(work, watchEvery) == nil {
			v, err := r.Log.Load(work, r.conv.ID, seq)
			if err != nil {
				continue // the next look may do
			}
			seq = v.Conversation.Seq
			at.learn(v.Records)
			if at.turn == "" {
				return // it is settled: what follows is not stopped
			}
			p := r.intake(work, at, v.Inbox)
			switch {
			case p.end != "":
				end(errStopped)
			case p.steers:
				interrupt(errSteered)
			}
			if p.yields {
				r.yield()
			}
		}
	})
	done, err = f(work)
	why := context.Cause(work)
	end(nil)
	watching.Wait()
	r.late = errors.Is(why, errTime)
	switch {
	case !stopping(why) || !errors.Is(err, why):
	case r.f.Due != nil: // it was settled before; what follows is not stopped
		return true, r.after(ctx)
	case !done:
		return false, nil
	}
	return done, err
}

// learn takes over what calls have asked, were told and ended with since, and
// that the turn was settled.
func (p *present) learn(records []state.Record) {
	for _, rec := range records {
		b, err := record.Decode(rec)
		if err != nil {
			continue // whoever folds the log reports it
		}
		var task []string
		if c, ok := b.(record.Child); ok {
			task, b = c.Task, c.Body
		}
		switch b := b.(type) {
		case record.Settled:
			if task == nil {
				p.turn = ""
			}
		case record.Asked:
			p.asks = append(p.asks, record.Waiting{Asked: b, Task: task})
		case record.Memo:
			p.asks = slices.DeleteFunc(p.asks, func(w record.Waiting) bool {
				return w.Call == b.Call && w.Name == b.Name && slices.Equal(w.Task, task)
			})
		case record.Did:
			p.asks = slices.DeleteFunc(p.asks, func(w record.Waiting) bool {
				at := append(slices.Clone(w.Task), w.Call)
				return len(at) > len(task) && slices.Equal(at[:len(task)], task) && at[len(task)] == b.CallID
			})
		}
	}
}

// stopping says whether a turn was stopped, as opposed to its worker.
func stopping(cause error) bool {
	return errors.Is(cause, errStopped) || errors.Is(cause, errTime)
}

// boundary is what happens between two steps: the inbox is taken, and the turn
// may end for what was in it, or rest.
func (r *run) boundary(ctx context.Context) (done bool, err error) {
	end := r.take(ctx)
	switch {
	case r.f.Turn == nil:
		return true, r.release(ctx, time.Time{})
	case end != "":
		return true, r.abort(ctx, end)
	case r.f.Held():
		r.rest("held")
		return true, r.release(ctx, time.Time{})
	}
	return false, nil
}

// abort ends the turn for people. Of calls that are open nobody knows whether
// they happened.
func (r *run) abort(ctx context.Context, reason string) error {
	for _, p := range slices.Clone(r.f.Turn.Calls) {
		r.did(p, r.f.Turn.Step, record.Unknown, "Stopped: it is not known whether this call happened. Check before you repeat it.", 0)
	}
	line := lineStopped
	if reason == record.Replaced || reason == record.Withdrawn {
		line = "" // the answer to the next message says it all, or there is nobody to be told
	}
	return r.settle(ctx, record.Aborted, reason, line)
}

// rest notes that nothing works on the open turn from now on.
func (r *run) rest(why string) {
	if !r.f.Work.Resting {
		r.add(record.Rested{Turn: r.f.Turn.ID, Why: why, At: r.now()})
	}
}

// goOn notes that the turn is worked on again.
func (r *run) goOn() {
	if r.f.Turn != nil && r.f.Work.Resting && !r.f.Held() {
		r.add(record.Resumed{Turn: r.f.Turn.ID, Attempt: r.lease.Attempt, At: r.now()})
	}
}

// attempted notes, before anything is done, that an attempt came to no end. It
// says whether the turn is given up: after too many attempts, or too many in a
// row that got no further.
func (r *run) attempted(ctx context.Context) (parked bool, err error) {
	if r.lease.Attempt == 1 {
		return false, nil
	}
	rec := record.Resumed{Attempt: r.lease.Attempt, At: r.now()}
	if r.f.Turn != nil {
		rec.Turn = r.f.Turn.ID
	}
	r.add(rec)
	return r.lease.Attempt > r.Limits.Attempts || r.f.Crashes >= r.Limits.Crashes, r.commit(ctx)
}

func (r *run) now() time.Time { return r.Clock().UTC().Truncate(time.Microsecond) }
