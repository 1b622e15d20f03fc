package turn

import (
	"context"
	"slices"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/state"
)

// A deed is what becomes of an event in the inbox.
type deed int

const (
	hear      deed = iota // it joins the turn, opens one, or is kept as context
	dont                  // its author is not answered
	low                   // its author may not steer
	nonsense              // it asks for what there is not
	unsure                // its author cannot be looked up, and so is not answered
	await                 // it stays in the inbox, and what came after it too
	drop                  // it came while a turn was open
	abandon               // it waited when all was aborted
	replace               // it stays, and the turn ends for it
	stop                  // its author wants the turn to end
	obey                  // an operator steers
	obeyed                // one of the last two whose turn comes only now
	void                  // it is an edit of what waits, or was taken back while it did
	withdrawn             // it takes back all that the turn was to answer
	leave                 // its author wants the threads not to be followed
	depart                // its author speaks to somebody else, which means the same
	left                  // it was said after that
	looped                // bots have begun turns long enough
)

// A present is what an intake depends on besides the inbox.
type present struct {
	turn   string // the open one, "" for none
	mode   record.Mode
	policy chat.Policy // of the conversation
	ahead  []int64
	taken  int64            // the last entry that the next commit takes
	asks   []record.Waiting // what calls wait for
	rests  bool             // nothing may work on the turn for long
	refs   []string         // what the turn has heard, see record.Mark
}

func (r *run) present() present {
	p := present{mode: r.f.Mode, policy: r.f.Policy, ahead: slices.Clone(r.f.Ahead), taken: r.batch.Taken, rests: r.f.Work.Resting || r.f.Held()}
	if r.f.Turn != nil {
		p.turn, p.asks, p.refs = r.f.Turn.ID, r.f.Waits(), slices.Clone(r.f.Turn.Refs)
		for _, h := range r.f.Turn.Heard {
			p.refs = append(p.refs, record.Mark(h.Event.Thread, h.Event.Ref))
		}
	}
	return p
}

// An intake is what becomes of the inbox at a step boundary.
type intake struct {
	present        // after it
	moves   []move // in order
	end     string // why the turn ends then: a reason of record.Aborted, "" if it goes on
	steers  bool   // calls that may be interrupted are
	yields  bool   // an operator wants no further step now
	waits   bool   // an author's role must be looked up again
	left    bool   // the threads are not followed
	told    state.Entry
	line    string // what is posted about told
}

type move struct {
	state.Entry
	do    deed
	why   string // of void
	role  chat.Role
	turn  string
	ahead bool // something in front of it stays in the inbox
}

// intake says what becomes of the inbox. An event whose author cannot be looked
// up waits, and so does one that is to have a turn of its own; what came after
// it waits, too, but for what ends or steers the turn.
func (r *run) intake(ctx context.Context, at present, entries []state.Entry) intake {
	p := intake{present: at}
	behind := false
	entries, voids := edited(entries, at.taken)
	for i, e := range entries {
		if e.Seq <= at.taken {
			continue
		}
		before := slices.Contains(at.ahead, e.Seq)
		if behind && (before || e.Event.Kind != chat.Control && (p.turn == "" || !isStop(e.Event))) {
			continue
		}
		a := move{Entry: e, do: obeyed, ahead: behind}
		switch {
		case before:
		case voids[e.Seq] != "":
			if behind {
				continue
			}
			a.do, a.why = void, voids[e.Seq]
		default:
			asks := p.asks
			a.do, a.role = r.deed(ctx, &p, e)
			if behind && a.do != stop && a.do != obey {
				p.asks = asks
				continue // its turn comes: only what is noted as Ahead may go first
			}
		}
		switch a.do {
		case await:
			behind = true
			continue
		case replace:
			p.end = record.Replaced
			return p
		case hear:
			p.joins(&a, r.conv.ID)
		case stop:
			p.end = record.Stopped
		case obey:
			if all := p.steer(e.Event); all {
				p.abandon(entries[:i], &a)
				behind = false
			}
		case drop:
			p.told, p.line = e, lineDropped
		case depart: // it is read with what comes next
			p.left, a.Quiet = true, true
			p.joins(&a, r.conv.ID)
		case leave:
			p.left, p.told, p.line = true, e, lineLeft
		case withdrawn:
			a.do, p.end = hear, record.Withdrawn
			p.joins(&a, r.conv.ID)
		case void, left, looped, dont, low, nonsense, unsure, abandon, obeyed:
		}
		p.moves = append(p.moves, a)
		if !behind {
			p.taken = e.Seq
		}
		if p.end != "" {
			break
		}
	}
	return p
}

// deed is what becomes of one event after those in front of it.
func (r *run) deed(ctx context.Context, p *intake, e state.Entry) (deed, chat.Role) {
	role, known := r.role(ctx, e)
	operator := e.Event.Kind == chat.Control
	heard := r.answered(e.Event, role)
	switch {
	case e.Event.Kind == chat.Deleted: // whoever did it
		if p.turn != "" && len(p.refs) == 1 && p.refs[0] == record.Mark(e.Event.Thread, e.Event.Ref) && p.mode == "" {
			return withdrawn, role
		}
		return hear, role
	case !known && (operator || !heard) && r.Clock().Sub(e.At) < roleFor:
		p.waits = true
		return await, role
	case operator && role < chat.Maintainer:
		return low, role
	case operator && !isCommand(e.Event):
		return nonsense, role
	case operator:
		return obey, role
	case !heard && known:
		return dont, role
	case !heard:
		return unsure, role
	case e.Event.Kind == chat.Edited && slices.Contains(p.refs, record.Mark(e.Event.Thread, e.Event.Ref)):
		switch r.policyOf(p.policy, e.Event) {
		case chat.Steer, chat.Replace:
			p.steers = true
		case chat.Join, chat.Queue, chat.Drop:
		}
		return hear, role
	case e.Quiet:
		return hear, role
	case p.left && e.Event.Topic == "thread" && p.turn == "":
		return left, role
	case e.Event.Kind == chat.Message && e.Event.Topic == "thread" && e.Event.Facts[chat.Addressed] != "":
		return depart, role
	case leaves(e.Event, p.turn != "" || r.f.Turns == 0):
		return leave, role
	case p.turn == "" && e.Event.Author.Bot && r.f.BotTurns >= r.Limits.BotTurns:
		return looped, role
	case p.turn == "":
		return hear, role
	}
	answer := slices.IndexFunc(p.asks, func(w record.Waiting) bool { return answers(w, e, role) })
	asked := answer >= 0
	switch word := bare(e.Event); {
	case word == chat.OrderStop, word == chat.OrderCancel && !asked: // else it may be the answer
		return stop, role
	case p.mode == record.Paused:
		return hear, role
	case asked: // once
		p.asks = slices.Concat(p.asks[:answer], p.asks[answer+1:])
		return hear, role
	}
	switch r.policyOf(p.policy, e.Event) {
	case chat.Queue:
		if !p.rests {
			return await, role
		}
	case chat.Steer:
		p.steers = true
	case chat.Replace:
		return replace, role
	case chat.Drop:
		return drop, role
	case chat.Join:
	}
	return hear, role
}

// policyOf is the conversation's own policy, or that of the event's route.
func (r *run) policyOf(own chat.Policy, e chat.Event) chat.Policy {
	if own == "" && r.Busy != nil {
		return r.Busy(e)
	}
	return own
}

// joins puts an event into the turn. While people have taken over, it opens none.
func (p *intake) joins(a *move, id state.ID) {
	if p.mode == record.Paused {
		return
	}
	if p.turn == "" && !a.Quiet {
		p.turn = state.TurnID(id, a.Seq)
		for i := range p.moves { // edits that came before it
			if p.moves[i].do == hear {
				p.moves[i].turn = p.turn
			}
		}
	}
	a.turn = p.turn
	if of := record.Mark(a.Event.Thread, a.Event.Ref); a.turn != "" && of != "" && a.Event.Kind != chat.Deleted && !slices.Contains(p.refs, of) {
		p.refs = append(p.refs, of)
	}
}

// steer does in the intake what an operator asks. It says whether that was to
// abort all there is.
func (p *intake) steer(e chat.Event) (all bool) {
	switch e.Topic {
	case chat.Abort:
		if p.turn != "" && (e.Text == "" || e.Text == p.turn) {
			p.end = record.Stopped
		}
		return e.Text == ""
	case chat.Pause:
		p.yields, p.mode = true, record.Paused
	case chat.Step:
		p.yields, p.mode = true, record.Stepping
	case chat.Resume:
		p.mode = ""
	case chat.SetPolicy:
		p.policy = chat.Policy(e.Text)
	}
	return false
}

// abandon passes over what waits in front of an event that aborts all.
func (p *intake) abandon(before []state.Entry, a *move) {
	a.ahead = false
	for i := range p.moves {
		p.moves[i].ahead = false
	}
	for _, e := range before {
		switch {
		case slices.ContainsFunc(p.moves, func(o move) bool { return o.Seq == e.Seq }):
		case slices.Contains(p.present.ahead, e.Seq):
			p.moves = append(p.moves, move{Entry: e, do: obeyed})
		case e.Seq <= p.present.taken:
		default:
			p.moves = append(p.moves, move{Entry: e, do: abandon})
			if p.turn == "" {
				p.told, p.line = a.Entry, lineStopped
			}
		}
	}
}

// isCommand says whether an operator's event asks for something that there is.
func isCommand(e chat.Event) bool {
	switch e.Topic {
	case chat.Abort, chat.Pause, chat.Resume, chat.Step:
		return true
	case chat.SetPolicy:
		return new(chat.Policy).UnmarshalText([]byte(e.Text)) == nil
	}
	return false
}

// leaves says whether somebody wants the thread of an event not to be followed:
// by saying so or, while nothing is new or under way, by telling the bot to stop.
func leaves(e chat.Event, busy bool) bool {
	word := bare(e)
	return (e.Topic == "thread" || e.Topic == "mention") && (word == chat.OrderUnfollow || word == chat.OrderStop && !busy)
}

// isStop says whether somebody says nothing but that the turn should end.
func isStop(e chat.Event) bool {
	word := bare(e)
	return word == chat.OrderStop || word == chat.OrderCancel
}

// bare is the text of a message without case, blanks and punctuation around it.
func bare(e chat.Event) string {
	if e.Kind != chat.Mention && e.Kind != chat.Message && e.Kind != chat.Command || len(e.Files) > 0 {
		return ""
	}
	return chat.Bare(e.Text)
}
