package sqlite

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/heddlehq/heddle/state"
)

// maxBatch bounds how many operations share a transaction, and so how long the
// first waits for the last.
const maxBatch = 256

// A writer owns the one connection that writes. It runs whatever operations
// are waiting in one transaction: they share the sync to disk, which is what a
// commit costs. It never waits for company.
type writer struct {
	clock func() time.Time
	conn  *conn
	ready hint // when a conversation can be claimed next
	due   hint // when a post can be claimed next

	mu     sync.Mutex
	queue  []*op
	closed error // why new operations are refused, nil while they are not

	wake    chan struct{} // holds one element when there is something to do
	stopped chan struct{} // closed when the last operation is done

	heads  heads
	oldest time.Time // at most the age of the oldest event; zero is to be looked up
}

// An op is one operation that waits for the writer.
type op struct {
	ctx  context.Context
	run  func(*tx) error // may run again, after a rollback
	err  error
	done chan struct{} // closed when it is committed, or err says why it is not
}

// A tx is the transaction under way. It begins with the first write.
type tx struct {
	*conn
	w     *writer
	now   time.Time // of the operation running
	begun bool
	ready change
	due   change
}

// do runs an operation on the writer and returns when it is committed. When
// ctx ends first the operation may or may not happen; others are not disturbed.
func do[T any](ctx context.Context, w *writer, run func(*tx) (T, error)) (T, error) {
	var answer, none T
	o := &op{ctx: ctx, done: make(chan struct{})}
	o.run = func(t *tx) (err error) {
		answer, err = run(t)
		return err
	}
	if err := w.submit(o); err != nil {
		return none, err
	}
	select {
	case <-o.done:
	case <-ctx.Done():
		return none, ctx.Err()
	}
	if o.err != nil {
		return none, o.err
	}
	return answer, nil
}

func (w *writer) submit(o *op) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed != nil {
		return w.closed
	}
	w.queue = append(w.queue, o)
	w.nudge()
	return nil
}

func (w *writer) nudge() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// refuse makes new operations fail and ends all waiting. The writer stops when
// those accepted are done.
func (w *writer) refuse(why error) {
	w.mu.Lock()
	w.closed = why
	w.mu.Unlock()
	w.nudge()
	w.ready.close(why)
	w.due.close(why)
}

// run is the writer's goroutine, from Open to Close.
func (w *writer) run() {
	defer close(w.stopped)
	var spare []*op
	for range w.wake {
		w.mu.Lock()
		queue, closed := w.queue, w.closed
		w.queue = spare[:0]
		w.mu.Unlock()
		for rest := queue; len(rest) > 0; {
			n := min(len(rest), maxBatch)
			w.commit(rest[:n])
			rest = rest[n:]
		}
		clear(queue)
		spare = queue
		if closed != nil {
			return
		}
	}
}

// commit makes a batch true. When anything fails, each operation gets a
// transaction of its own, so that only those fail that cannot be done.
func (w *writer) commit(batch []*op) {
	err := w.try(batch)
	for i, o := range batch {
		switch {
		case err == nil:
		case len(batch) == 1:
			o.err = err
		default:
			w.commit(batch[i : i+1])
			continue
		}
		close(o.done)
	}
}

// try runs a batch in one transaction. On an error nothing of it happened.
func (w *writer) try(batch []*op) (err error) {
	t := &tx{conn: w.conn, w: w}
	defer func() {
		if err != nil {
			if t.begun {
				w.conn.rollback()
			}
			t.ready, t.due = change{known: true, at: long}, change{known: true, at: long}
			w.heads, w.oldest = heads{}, time.Time{}
		}
		w.ready.apply(t.ready)
		w.due.apply(t.due)
	}()
	for _, o := range batch {
		if o.err = o.ctx.Err(); o.err != nil {
			continue
		}
		t.now = w.now()
		if o.err = o.run(t); o.err != nil && !refusal(o.err) {
			return o.err
		}
	}
	if t.begun {
		_, err = w.conn.exec("COMMIT")
	}
	return err
}

// refusal says whether an operation has ended well, by refusing before it
// changed anything.
func refusal(err error) bool {
	return errors.Is(err, state.ErrNone) || errors.Is(err, state.ErrLeaseLost) || errors.Is(err, state.ErrNotFound) ||
		errors.Is(err, state.ErrExists) || errors.Is(err, errLong)
}

func (w *writer) now() time.Time { return time.UnixMicro(w.clock().UnixMicro()).UTC() }

// exec writes, in the transaction.
func (t *tx) exec(sql string, args ...any) (int64, error) {
	if err := t.open(); err != nil {
		return 0, err
	}
	return t.conn.exec(sql, args...)
}

// open begins the transaction, unless it has begun.
func (t *tx) open() error {
	if t.begun {
		return nil
	}
	_, err := t.conn.exec("BEGIN IMMEDIATE")
	t.begun = err == nil
	return err
}
