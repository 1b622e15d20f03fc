package ui

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/state"
)

// fork makes a conversation that begins as this one did up to the end of a
// turn. Both go on by themselves.
func (a *API) fork(w http.ResponseWriter, r *http.Request) error {
	var b struct {
		ID   string `json:"id"`   // of the new one; made up if not given
		Turn string `json:"turn"` // that is its last
		Seq  int64  `json:"seq"`  // or: the record that is
	}
	t, err := a.target(r)
	if err != nil {
		return err
	}
	if err := read(w, r, &b); err != nil {
		return err
	}
	if b.Turn != "" && b.Seq != 0 || b.Seq < 0 {
		return fail(badRequest, "turn or seq says where, not both; seq is the number of a record")
	}
	if b.ID == "" {
		b.ID = rand.Text()
	}
	to, err := threadOf(t.agent, b.ID)
	if err != nil {
		return err
	}
	v, err := a.Store.Load(r.Context(), t.id, 0)
	if err != nil {
		return a.found(err)
	}
	seq, err := forkAt(v.Records, b.Turn, b.Seq)
	if err != nil {
		return err
	}
	files, err := a.Files(r.Context(), t.id)
	if err != nil {
		return err
	}
	parent := record.Forked{From: t.id, Seq: seq, Thread: v.Conversation.Thread, NewerFiles: len(files) > 0 && worked(v.Records[seq:])}
	own, err := record.Encode(parent)
	if err != nil {
		return err
	}
	c, err := a.Store.Fork(r.Context(), t.id, seq, t.agent, to, own)
	if errors.Is(err, state.ErrExists) && b.Turn == "" && b.Seq == 0 {
		c, err = a.Store.Find(r.Context(), to) // the original may have gone on since
	}
	if err == nil {
		parent, err = a.parent(r.Context(), c.ID, t.id)
	}
	switch {
	case errors.Is(err, state.ErrExists):
		return fail(conversationExists, "the id is that of another conversation")
	case err != nil:
		a.Logger.Error("conversation not forked", "conversation", string(t.id), "err", err)
		return fail(storeFailed, "the fork is not stored")
	}
	w.Header().Set("Location", "/api/v1/conversations/"+string(c.ID))
	return reply(w, http.StatusCreated, struct {
		conversationView
		Parent record.Forked `json:"parent"`
	}{viewOf(c), parent})
}

// worked says whether anything ran that may have changed files.
func worked(records []state.Record) bool {
	return slices.ContainsFunc(records, func(r state.Record) bool {
		return r.Kind == "did" || r.Kind == "child" || r.Kind == "began"
	})
}

// parent is where a fork of a conversation was made, which may have been before
// this request. It fails with state.ErrExists if the conversation is none.
func (a *API) parent(ctx context.Context, id, from state.ID) (record.Forked, error) {
	v, err := a.Store.Load(ctx, id, 0)
	if err != nil {
		return record.Forked{}, err
	}
	var f record.Fold
	if err := f.Add(v.Records); err != nil {
		return record.Forked{}, fmt.Errorf("fold %s: %w", id, err)
	}
	if f.Parent == nil || f.Parent.From != from {
		return record.Forked{}, state.ErrExists
	}
	return *f.Parent, nil
}

// forkAt finds the record to fork at: the one asked for, or the end of the turn
// asked for, or of the last one that has ended. No turn may be open there.
func forkAt(records []state.Record, turn string, seq int64) (int64, error) {
	var f record.Fold
	found, known := int64(0), turn == ""
	for _, r := range records {
		was := f.Turn
		if err := f.Add([]state.Record{r}); err != nil {
			return 0, fmt.Errorf("fold: %w", err)
		}
		known = known || f.Turn != nil && f.Turn.ID == turn
		ended := was != nil && f.Turn == nil
		if f.Turn == nil && (turn == "" || ended && was.ID == turn) && (seq == 0 || r.Seq == seq) {
			found = r.Seq
		}
	}
	switch {
	case found > 0:
		return found, nil
	case !known || seq > int64(len(records)):
		return 0, fail(noSuchTurn, "the conversation has no such turn or record")
	}
	return 0, fail(turnOpen, "no turn has ended there")
}
