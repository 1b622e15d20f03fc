package turn

import (
	"context"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/state"
)

// take moves the inbox into the turn, opening one for the first event that
// asks for an answer. Who is not answered is passed over, and the text with it.
// An event whose author cannot be looked up waits, and what came after it too.
func (r *run) take(ctx context.Context) {
	entries := r.entries
	r.entries, r.waiting = nil, false
	roles := make([]chat.Role, len(entries))
	known := make([]bool, len(entries))
	turn := ""
	if r.f.Turn != nil {
		turn = r.f.Turn.ID
	}
	for i, e := range entries {
		roles[i], known[i] = r.role(ctx, e.Event)
		if !known[i] && !r.answered(e.Event, roles[i]) && r.Clock().Sub(e.At) < roleFor {
			r.waiting = true
			entries = entries[:i]
			break
		}
		if turn == "" && !e.Quiet && r.answered(e.Event, roles[i]) {
			turn = state.TurnID(r.conv.ID, e.Seq)
		}
	}
	if len(entries) == 0 {
		return
	}
	for i, e := range entries {
		switch {
		case r.answered(e.Event, roles[i]):
			r.add(record.Heard{Turn: turn, Event: e.Event, Role: roles[i]})
			r.replied(e, roles[i])
		case known[i]:
			r.pass(e, "role below talk")
		default:
			r.pass(e, "role not known")
			r.refuse(e)
		}
	}
	r.batch.Taken = entries[len(entries)-1].Seq
}

// A role that cannot be looked up is asked for again after roleWait, until the
// event has waited for roleFor.
const (
	roleWait = 10 * time.Second
	roleFor  = 3 * time.Minute
)

// pass leaves an event unanswered and its text unrecorded.
func (r *run) pass(e state.Entry, reason string) {
	r.add(record.Passed{Event: e.Event.ID, Author: e.Event.Author, Reason: reason})
	r.log.Info("event passed over", "event", e.Event.ID, "author", e.Event.Author.ID, "reason", reason)
}

// role is what the author is now, and whether that is known; if not, they are
// an outsider. Machines without identity are outsiders.
func (r *run) role(ctx context.Context, e chat.Event) (chat.Role, bool) {
	if e.Author.ID == "" {
		return chat.Outsider, true
	}
	if e.Author.Account == chat.ConversationAccount {
		return carried(e), true
	}
	role, err := r.Role(ctx, r.conv.Thread, e.Author)
	return role, err == nil
}

// refuse tells somebody that they cannot be told from a stranger.
func (r *run) refuse(e state.Entry) {
	if e.Quiet {
		return
	}
	for i, text := range r.Compose(r.conv.Thread, lineRole) {
		key := state.PostKey(state.TurnID(r.conv.ID, e.Seq), 0, i)
		r.batch.Posts = append(r.batch.Posts, chat.Post{Key: key, Thread: r.conv.Thread, Text: text})
	}
}

// answered says whether the event may be answered. What machines report and
// what conversations send is wanted, even if it is trusted as little as a
// stranger's words.
func (r *run) answered(e chat.Event, role chat.Role) bool {
	return role >= r.Talk || e.Author.ID == "" || e.Author.Account == chat.ConversationAccount
}

// trust is the role of the weakest voice the model can hear: the least of what
// each was when heard and is now.
func (r *run) trust(ctx context.Context) chat.Role {
	least := chat.Admin
	if r.task != nil {
		least = r.task.up.trust(ctx)
	}
	for _, v := range r.f.Voices {
		least = min(least, v.Role)
		if v.Author.ID != "" && v.Author.Account != chat.ConversationAccount && least > chat.Outsider {
			role, _ := r.Role(ctx, r.conv.Thread, v.Author) // not known is Outsider
			least = min(least, role)
		}
	}
	return least
}

// digestArgs is what the arguments of a call are known by.
func digestArgs(p model.Part) string {
	if p.BadArgs != "" {
		return digest([]byte(p.BadArgs))
	}
	return digest(p.Args)
}
