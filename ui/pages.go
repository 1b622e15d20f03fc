package ui

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/state"
)

// A log is read in pieces of at most so many records, so that long ones do not
// fill the memory, and from the end in smaller ones first: mostly that is enough.
const (
	firstPiece = 64
	mostPiece  = 512
)

var errGap = errors.New("the log has a gap")

// ahead reads the records after a Seq up to another, the oldest first.
func (a *API) ahead(ctx context.Context, id state.ID, after, to int64) iter.Seq2[state.Record, error] {
	return func(yield func(state.Record, error) bool) {
		for after < to {
			rs, err := a.Store.Records(ctx, id, after, int(min(to-after, mostPiece)))
			if err == nil && len(rs) == 0 {
				err = fmt.Errorf("records of %s: %w", id, errGap)
			}
			if err != nil {
				yield(state.Record{}, err)
				return
			}
			for _, r := range rs {
				if !yield(r, nil) {
					return
				}
			}
			after = rs[len(rs)-1].Seq
		}
	}
}

// back reads the records before a Seq, of which all must be there, the newest first.
func (a *API) back(ctx context.Context, id state.ID, before int64) iter.Seq2[state.Record, error] {
	return func(yield func(state.Record, error) bool) {
		for n := int64(firstPiece); before > 1; n = min(2*n, mostPiece) {
			after := max(before-1-n, 0)
			rs, err := a.Store.Records(ctx, id, after, int(before-1-after))
			if err == nil && len(rs) < int(before-1-after) {
				err = fmt.Errorf("records of %s: %w", id, errGap)
			}
			if err != nil {
				yield(state.Record{}, err)
				return
			}
			for i := len(rs) - 1; i >= 0; i-- {
				if !yield(rs[i], nil) {
					return
				}
			}
			before = after + 1
		}
	}
}

// fold is the present of a conversation: its records after the last checkpoint
// are read. The view has its inbox and no records.
func (a *API) fold(ctx context.Context, id state.ID) (*record.Fold, state.View, error) {
	stored, err := a.Store.Blob(ctx, id, record.FoldBlob)
	if err != nil {
		return nil, state.View{}, err
	}
	f := record.Restore(stored, id)
	v, err := a.Store.Load(ctx, id, noRecords)
	if err != nil {
		return nil, v, a.found(err)
	}
	for r, err := range a.ahead(ctx, id, f.Seq, v.Conversation.Seq) {
		if err == nil {
			err = f.Add([]state.Record{r})
		}
		if err != nil {
			return nil, v, fmt.Errorf("fold %s: %w", id, err)
		}
	}
	return f, v, nil
}
