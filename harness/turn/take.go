package turn

import (
	"context"
	"fmt"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/state"
)

// take does with the inbox what the intake says and tells why the open turn ends
// then, "" if it does not. Who is not answered is passed over, and the text
// with it.
func (r *run) take(ctx context.Context) (end string) {
	p := r.intake(ctx, r.present(), r.entries)
	r.entries, r.waiting, r.steered = nil, p.waits, p.steers
	r.apply(p)
	return p.end
}

func (r *run) apply(p intake) {
	inOrder(p.moves)
	for _, a := range p.moves {
		switch a.do {
		case hear, depart:
			r.batch.Leave = r.batch.Leave || a.do == depart
			r.add(record.Heard{Turn: a.turn, Event: a.Event, Role: a.role, Late: r.lateBy(a.Entry)})
			r.replied(a.Entry, a.role)
		case dont:
			r.pass(a.Entry, "role below talk")
			if a.Event.Topic != "thread" { // it may not have been said to the bot
				r.refuse(a, fmt.Sprintf(lineRefused, r.Talk, a.role))
			}
		case low:
			r.pass(a.Entry, "role below maintainer")
		case nonsense:
			r.pass(a.Entry, "no such command")
		case unsure:
			r.pass(a.Entry, "role not known")
			r.refuse(a, lineRole)
		case drop:
			r.pass(a.Entry, "busy")
		case abandon:
			r.pass(a.Entry, "aborted")
		case void:
			r.pass(a.Entry, a.why)
		case withdrawn: // heard
		case left:
			r.pass(a.Entry, state.NotFollowed)
		case looped:
			r.pass(a.Entry, "too many turns in a row for bots")
		case stop, obey, leave:
			r.obey(a)
		case obeyed:
			r.add(record.Passed{Event: a.Event.ID, Author: a.Event.Author, Reason: "obeyed", Entry: a.Seq})
		case await, replace:
		}
	}
	r.batch.Taken = max(r.batch.Taken, p.taken)
	if p.told.Seq > 0 {
		r.tell(p.told, p.line)
	}
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

// refuse lets an author know why they are not answered; the room is not told.
func (r *run) refuse(a move, line string) {
	if r.Refused != nil && !a.Quiet {
		r.Refused(a.Event, line)
	}
}

// progress tells how far the conversation's own turn is.
func (r *run) progress(e chat.Event, outcome string) {
	if r.Progress != nil && r.task == nil {
		r.Progress(r.conv.ID, e, outcome)
	}
}

// obey notes that an event was obeyed. What follows from it is the intake's and
// the fold's.
func (r *run) obey(a move) {
	c := record.Controlled{Event: a.Event.ID, Author: a.Event.Author, Topic: a.Event.Topic, Text: a.Event.Text}
	switch a.do {
	case stop:
		c.Topic, c.Text = chat.Abort, ""
	case leave:
		c.Topic, c.Text = chat.Leave, ""
		r.batch.Leave = true
	}
	if r.f.Turn != nil {
		c.Turn = r.f.Turn.ID
	}
	if a.ahead {
		c.Ahead = a.Seq
	}
	r.add(c)
	r.log.Info("event obeyed", "event", a.Event.ID, "author", a.Event.Author.ID, "topic", c.Topic)
}

// role is what the author is now, and whether that is known; if not, they are
// an outsider. They are looked up where they spoke. Machines without identity are
// outsiders. What was known once of an entry holds for the run.
func (r *run) role(ctx context.Context, e state.Entry) (chat.Role, bool) {
	if e.Event.Author.ID == "" {
		return chat.Outsider, true
	}
	if e.Event.Author.Account == chat.ConversationAccount {
		return carried(e.Event), true
	}
	if role, ok := r.roles.Load(e.Seq); ok {
		return role.(chat.Role), true
	}
	role, err := r.Role(ctx, e.Event.Thread, e.Event.Author)
	if err == nil {
		r.roles.Store(e.Seq, role)
	}
	return role, err == nil
}

// tell posts a line about an event that gets no turn.
func (r *run) tell(e state.Entry, line string) {
	if e.Quiet {
		return
	}
	r.say(e.Event, line, chat.Admin, state.TurnID(r.conv.ID, e.Seq), 0, 0)
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
			at := v.Thread
			if at == (chat.Thread{}) {
				at = r.conv.Thread
			}
			role, _ := r.Role(ctx, at, v.Author) // not known is Outsider
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
