package turn

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/state"
)

// What people read when a limit is reached.
const (
	lineSteps  = "I stopped because this took too many steps. Please ask for a smaller part of it."
	lineTokens = "I stopped because this took more text than one answer may take. Please ask for a smaller part of it."
	lineCost   = "I stopped because this reached what one answer may cost. Please ask for a smaller part of it."
	lineTime   = "I stopped because this took too long. Please ask for a smaller part of it."
	lineTotal  = "This conversation has reached what it may cost. Please start a new thread."
	lineDay    = "Today's budget is spent, so I stopped. Please ask again after midnight UTC."
	linePart   = "\n\nThis is what I had so far:\n\n"
)

// spent says which limit the next step, the n-th of its log, would pass, "" for
// none, and what people are told. What a task spends counts for all above it.
func (r *run) spent(ctx context.Context, n int) (reason, line string, err error) {
	today, err := r.today(ctx)
	if err != nil {
		return "", "", err
	}
	root := r.root()
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
		return record.TooExpensive, lineTotal, nil
	case l.Day > 0 && today+root.f.Cost-root.counted >= l.Day:
		reason, line = record.TooExpensiveDay, lineDay
	default:
		return "", "", nil
	}
	if text := r.f.Work.Text; text != "" {
		line += linePart + text
	}
	return reason, line, nil
}

// What all conversations cost on a day is counted in billionths of a US dollar.
const (
	costSpace = "cost"
	perDollar = 1e9
)

func (r *run) day() string { return r.Clock().UTC().Format(time.DateOnly) }

// today is the US dollars that the store has counted since midnight UTC, 0
// where there is no limit.
func (r *run) today(ctx context.Context) (float64, error) {
	if r.Limits.Day == 0 {
		return 0, nil
	}
	data, err := r.Values.Value(ctx, costSpace, r.day())
	if err != nil {
		return 0, fmt.Errorf("cost of today: %w", err)
	}
	n, err := state.Counted(data)
	return float64(n) / perDollar, err
}

// count has the next commit count what was spent since the last one.
func (r *run) count() {
	if n := int64(math.Round((r.f.Cost - r.counted) * perDollar)); n > 0 {
		r.batch.Counts = append(r.batch.Counts, state.Count{Space: costSpace, Key: r.day(), Add: n})
		r.counted += float64(n) / perDollar
	}
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
