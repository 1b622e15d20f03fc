package ui

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

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
	from, err := a.conversation(r.Context(), t.id)
	if err != nil {
		return err
	}
	seq, worked, err := a.forkAt(r.Context(), from, b.Turn, b.Seq)
	if err != nil {
		return err
	}
	files, err := a.Files(r.Context(), t.id)
	if err != nil {
		return err
	}
	parent := record.Forked{From: t.id, Seq: seq, Thread: from.Thread, NewerFiles: len(files) > 0 && worked}
	own, err := record.Encode(parent)
	if err != nil {
		return err
	}
	c, err := a.Store.Fork(r.Context(), t.id, seq, t.agent, to, own)
	if errors.Is(err, state.ErrExists) && b.Turn == "" && b.Seq == 0 {
		c, err = a.Store.Find(r.Context(), to) // the original may have gone on since
	}
	if err == nil {
		parent, err = a.parent(r.Context(), c.ID, t.id, seq)
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

// parent is where a fork of a conversation was made: at a Seq, or elsewhere before
// this request. It fails with state.ErrExists if the conversation is no fork of it.
func (a *API) parent(ctx context.Context, id, from state.ID, seq int64) (record.Forked, error) {
	for r, err := range a.ahead(ctx, id, seq, seq+1) {
		if err != nil {
			break // what is there is shorter
		}
		if b, err := record.Decode(r); err == nil {
			if f, ok := b.(record.Forked); ok && f.From == from {
				return f, nil
			}
		}
	}
	f, _, err := a.fold(ctx, id)
	if err != nil {
		return record.Forked{}, err
	}
	if f.Parent == nil || f.Parent.From != from {
		return record.Forked{}, state.ErrExists
	}
	return *f.Parent, nil
}

// forkAt finds the record to fork at: the one asked for, or the end of the turn
// asked for, or the last one that no turn was open at. No turn may be open there.
// worked says whether anything ran after it that may have changed files. The log
// is read from its end, as far back as need be.
func (a *API) forkAt(ctx context.Context, c state.Conversation, turn string, seq int64) (at int64, worked bool, err error) {
	if at = c.Seq; seq > 0 {
		at = seq
	}
	if at > c.Seq {
		return 0, false, fail(noSuchTurn, "the conversation has no such record")
	}
	known, opened, later := false, int64(0), false // later is worked, of what follows at
	for r, err := range a.back(ctx, c.ID, c.Seq+1) {
		if err != nil {
			return 0, false, err
		}
		worked = worked || r.Kind == "did" || r.Kind == "child" || r.Kind == "began"
		if r.Seq > at {
			later = worked
		}
		settled := r.Kind == "settled"
		if !settled && r.Kind != "heard" {
			continue
		}
		var of struct{ Turn string }
		if err := json.Unmarshal(r.Data, &of); err != nil {
			return 0, false, fmt.Errorf("record %d: %w", r.Seq, err)
		}
		switch {
		case turn != "" && of.Turn == turn && settled:
			return r.Seq, worked, nil
		case turn != "":
			known = known || of.Turn == turn
		case r.Seq > at, of.Turn == "": // of another time, or heard outside a turn
		case settled && opened > 0:
			return opened - 1, worked, nil
		case settled:
			return at, later, nil
		case seq > 0:
			return 0, false, fail(turnOpen, "no turn has ended there")
		default:
			opened = r.Seq
		}
	}
	switch {
	case turn != "" && !known:
		return 0, false, fail(noSuchTurn, "the conversation has no such turn")
	case turn != "" || opened == 1 || at == 0:
		return 0, false, fail(turnOpen, "no turn has ended there")
	case opened > 1:
		return opened - 1, worked, nil
	}
	return at, later, nil
}
