package turn

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/state"
)

// answer settles the turn with what the model said.
func (r *run) answer(ctx context.Context, resp model.Response) error {
	text := r.whole(resp)
	switch {
	case strings.TrimSpace(text) == "" && resp.Stop == model.StopRefused:
		return r.settle(ctx, record.Declined, "refused by the model", lineDeclined)
	case strings.TrimSpace(text) == "":
		return r.settle(ctx, record.Broken, "empty answer", lineEmpty)
	case resp.Stop == model.StopRefused:
		return r.settle(ctx, record.Declined, "refused by the model", text)
	case resp.Stop == model.StopLength:
		return r.settle(ctx, record.Answered, "cut at the length limit", text+lineCut)
	}
	return r.settle(ctx, record.Answered, "", text)
}

// maxPosts bounds the posts of one answer, so that no answer floods its thread.
const maxPosts = 20

// An answer of more than fewPosts posts is its beginning, and a
// file with all of it, where there can be files.
const (
	fewPosts  = 4
	beginning = 2
)

// posts are the posts of an answer, as yet without keys and place. The last says
// what was left out.
func (r *run) posts(at chat.Thread, markdown string, trust chat.Role) []chat.Post {
	if markdown == "" {
		return nil
	}
	texts, files := r.Compose(at, markdown, trust)
	n, most, rest := len(texts), maxPosts, ""
	var whole []chat.Attachment
	switch {
	case n > fewPosts && files && len(markdown) <= chat.MaxAttached:
		most, rest = beginning+1, "(this is the beginning; the whole answer is in the file)"
		whole = []chat.Attachment{{Name: "answer.md", MediaType: "text/markdown", Data: []byte(markdown)}}
	case n > maxPosts:
		rest = fmt.Sprintf("(the answer was longer than %d messages; the last %d of its %d were left out)", maxPosts, n-maxPosts+1, n)
	}
	if rest != "" {
		more, _ := r.Compose(at, rest, chat.Admin)
		texts = append(texts[:most-1:most-1], more...)
	}
	out := make([]chat.Post, len(texts))
	for i, t := range texts {
		out[i].Text = t
	}
	if len(out) > 0 {
		out[len(out)-1].Files = whole
	}
	return out
}

// say posts what answers an event, in parts, and returns their number. trust is
// that of whose words may be in it; the first part has the key of a step's n-th
// post.
func (r *run) say(e chat.Event, markdown string, trust chat.Role, turn string, step, n int) int {
	at, _ := r.where(e)
	posts := r.posts(at, markdown, trust)
	r.queue(e, posts, func(i int) string { return state.PostKey(turn, step, n+i) })
	return len(posts)
}

// where an event is answered, and whether a thread is opened there.
func (r *run) where(e chat.Event) (at chat.Thread, open bool) {
	if r.Where != nil {
		return r.Where(e)
	}
	return e.Thread, false
}

// queue puts the parts of what answers an event into the next commit.
func (r *run) queue(e chat.Event, posts []chat.Post, key func(i int) string) {
	at, open := r.where(e)
	ref, after := e.Ref, ""
	if at != e.Thread {
		ref = "" // it is not there
	}
	for i, p := range posts {
		p.Key, p.After, p.Thread, p.Open, p.ReplyTo = key(i), after, at, open, ref
		r.batch.Posts = append(r.batch.Posts, p)
		after = p.Key
	}
}

// settle ends the turn: outcome, posts and the release of the lease in one commit.
// Calls that are still open end with it.
func (r *run) settle(ctx context.Context, o record.Outcome, reason, markdown string) error {
	for _, p := range slices.Clone(r.f.Turn.Calls) {
		r.did(p, r.f.Turn.Step, record.Unknown, "The turn ended before this call did.", 0)
	}
	if r.task != nil {
		return r.report(ctx, o, reason, markdown)
	}
	if err := r.dropRest(ctx, o); err != nil {
		return err
	}
	t := *r.f.Turn
	posts := r.say(t.Event, markdown, r.trust(ctx), t.ID, t.Step, 0)
	s := record.Settled{
		Turn: t.ID, Outcome: o, Reason: reason, Steps: t.Step, Posts: posts,
		Attempt: r.lease.Attempt, Usage: t.Usage, Cost: t.Cost, Chain: r.f.Chain,
	}
	if t.Result != nil && o == record.Answered {
		s.Value = t.Result.Value
	}
	end := func() error { return r.release(ctx, time.Time{}) }
	if r.settles(ctx) {
		s.Due = cmp.Or(markdown, reason) // a turn that was replaced says nothing
		end = func() error { return r.commit(ctx) }
	}
	r.add(s)
	if err := end(); err != nil {
		return err
	}
	r.progress(t.Event, string(o))
	took := time.Duration(0) // since the newest event, where its provider says when that was
	if !t.Event.At.IsZero() {
		took = r.Clock().Sub(t.Event.At)
	}
	r.log.Info("turn settled", "turn", t.ID, "event", t.Event.ID, "outcome", string(o), "reason", reason,
		"steps", t.Step, "posts", posts, "cost", t.Cost, "took", took.Round(time.Millisecond), "chain", r.f.Chain)
	if r.f.Due != nil {
		return r.after(ctx)
	}
	return nil
}
