package turn

import (
	"container/list"
	"sync"

	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/state"
)

const foldBlob = record.FoldBlob

// cached is a fold in memory. One run at a time holds it.
type cached struct {
	id    state.ID
	fold  *record.Fold
	bytes int   // of the records in it
	saved int64 // Seq of the stored checkpoint
	sums  summer
	// written is what was written of its messages for a model.
	written model.Written
}

// size is what it takes in memory, about.
func (c *cached) size() int { return c.bytes + c.written.Bytes }

// folds keeps the most recently used folds up to a number of bytes. It is a
// cache: what is not in it is read from the log.
type folds struct {
	mu    sync.Mutex
	most  int
	bytes int
	order *list.List // of *cached, the newest first
	by    map[state.ID]*list.Element
}

func newFolds(most int) *folds {
	return &folds{most: most, order: list.New(), by: map[state.ID]*list.Element{}}
}

// take removes and returns the fold, nil if it is not there.
func (f *folds) take(id state.ID) *cached {
	f.mu.Lock()
	defer f.mu.Unlock()
	el := f.by[id]
	if el == nil {
		return nil
	}
	return f.remove(el)
}

func (f *folds) put(id state.ID, c *cached) {
	c.id = id
	f.mu.Lock()
	defer f.mu.Unlock()
	if el := f.by[id]; el != nil {
		f.remove(el) // of a run that lost its lease, or of one that won it since
	}
	f.by[id] = f.order.PushFront(c)
	f.bytes += c.size()
	for f.bytes > f.most && f.order.Len() > 0 {
		f.remove(f.order.Back())
	}
}

func (f *folds) remove(el *list.Element) *cached {
	c := f.order.Remove(el).(*cached)
	delete(f.by, c.id)
	f.bytes -= c.size()
	return c
}
