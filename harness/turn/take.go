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
func (r *run) take(ctx context.Context) {
	entries := r.entries
	r.entries = nil
	if len(entries) == 0 {
		return
	}
	roles := make([]chat.Role, len(entries))
	known := make([]bool, len(entries))
	turn := ""
	if r.f.Turn != nil {
		turn = r.f.Turn.ID
	}
	for i, e := range entries {
		roles[i], known[i] = r.role(ctx, e.Event)
		if turn == "" && !e.Quiet && r.answered(e.Event, roles[i]) {
			turn = state.TurnID(r.conv.ID, e.Seq)
		}
	}
	for i, e := range entries {
		switch {
		case r.answered(e.Event, roles[i]):
			r.add(record.Heard{Turn: turn, Event: e.Event, Role: roles[i]})
		case known[i]:
			r.add(record.Passed{Event: e.Event.ID, Author: e.Event.Author, Reason: "role below talk"})
		default:
			r.add(record.Passed{Event: e.Event.ID, Author: e.Event.Author, Reason: "role not known"})
			r.refuse(e)
		}
	}
	r.batch.Taken = entries[len(entries)-1].Seq
}

// roleWait is how long after a failed look-up of a role it is tried once more.
const roleWait = 6 * time.Second

// role is what the author is now, and whether that is known; if not, they are
// an outsider. Machines without identity are outsiders.
func (r *run) role(ctx context.Context, e chat.Event) (chat.Role, bool) {
	if e.Author.ID == "" {
		return chat.Outsider, true
	}
	role, err := r.Role(ctx, r.conv.Thread, e.Author)
	if err != nil && r.Talk > chat.Outsider && sleep(ctx, roleWait) == nil {
		role, err = r.Role(ctx, r.conv.Thread, e.Author)
	}
	return role, err == nil
}

// refuse tells those who addressed the bot that they cannot be told from strangers.
func (r *run) refuse(e state.Entry) {
	if e.Event.Kind != chat.Mention && e.Event.Topic != "dm" {
		return
	}
	for i, text := range r.Compose(r.conv.Thread, lineRole) {
		key := state.PostKey(state.TurnID(r.conv.ID, e.Seq), 0, i)
		r.batch.Posts = append(r.batch.Posts, chat.Post{Key: key, Thread: r.conv.Thread, Text: text})
	}
}

// answered says whether the event may be answered. What machines report is
// wanted, though what it says is trusted as little as a stranger's words.
func (r *run) answered(e chat.Event, role chat.Role) bool {
	return role >= r.Talk || e.Author.ID == ""
}

// trust is the role of the weakest voice the model can hear: the least of what
// each was when heard and is now.
func (r *run) trust(ctx context.Context) chat.Role {
	least := chat.Admin
	for _, v := range r.f.Voices {
		least = min(least, v.Role)
		if v.Author.ID != "" && least > chat.Outsider {
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
