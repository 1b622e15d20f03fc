package turn

import (
	"context"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness/record"
)

// What people read when a limit is reached.
const (
	lineSteps  = "I stopped because this took too many steps. Please ask for a smaller part of it."
	lineTokens = "I stopped because this took more text than one answer may take. Please ask for a smaller part of it."
	lineCost   = "I stopped because this reached what one answer may cost. Please ask for a smaller part of it."
	lineTime   = "I stopped because this took too long. Please ask for a smaller part of it."
	lineTotal  = "This conversation has reached what it may cost. Please start a new thread."
	linePart   = "\n\nThis is what I had so far:\n\n"
)

// spent says which limit the next step, the n-th of its log, would pass, "" for
// none, and what people are told. What a task spends counts for all above it.
func (r *run) spent(n int) (reason, line string) {
	root := r
	for root.task != nil {
		root = root.task.up
	}
	r.memo.Lock()
	defer r.memo.Unlock()
	t, l := root.f.Turn, r.Limits
	switch {
	case n > l.Steps:
		reason, line = record.TooManySteps, lineSteps
	case root.over():
		reason, line = record.TooMuchTime, lineTime
	case l.Tokens > 0 && t.Usage.In+t.Usage.Out >= l.Tokens:
		reason, line = record.TooManyTokens, lineTokens
	case l.Turn > 0 && t.Cost >= l.Turn:
		reason, line = record.TooExpensiveTurn, lineCost
	case l.Total > 0 && root.f.Cost >= l.Total:
		return record.TooExpensive, lineTotal
	default:
		return "", ""
	}
	if text := r.f.Work.Text; text != "" {
		line += linePart + text
	}
	return reason, line
}

// over says whether the conversation's own turn has been worked on for too long.
func (r *run) over() bool { return r.late || r.f.Work.Spent(r.Clock()) >= r.Limits.Time }

// dropRest leaves what came during the last step to no turn, where the policy
// is to drop it.
func (r *run) dropRest(ctx context.Context, o record.Outcome) error {
	if o == record.Aborted || o == record.Parked || r.policyOf(r.f.Policy, r.f.Turn.Event) != chat.Drop {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTime) // as long as the commit that follows
	defer cancel()
	v, err := r.Log.Load(ctx, r.conv.ID, r.f.Seq)
	if err != nil {
		return err
	}
	all := r.intake(ctx, r.present(), v.Inbox)
	p := intake{line: lineDropped}
	for _, a := range all.moves {
		if a.do != drop {
			break
		}
		p.moves, p.taken, p.told = append(p.moves, a), a.Seq, a.Entry
	}
	r.apply(p)
	return nil
}
