package github

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/google/go-github/v62/github"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
)

const (
	overlap     = 10 * time.Minute // how much earlier a sweep looks
	mostRetries = 5                // attempts at one delivery, all sweeps together
	sweepPages  = 20               // of one list
)

// Missed brings what did not arrive. GitHub delivers once and does not try
// again, but keeps for three days what it tried: of an App's deliveries those
// that never succeeded are asked for again, and come through the front door.
// With a token it reads what was said in the repositories of the threads that are
// followed.
func (c *Channel) Missed(ctx context.Context, since time.Time, followed []chat.Thread, take channels.Take) error {
	if c.identity().Slug == "" {
		if err := c.Identify(ctx); err != nil && c.identity().Slug == "" {
			return err
		}
	}
	if c.appID == 0 {
		return c.reread(ctx, since, followed, take)
	}
	return c.redeliver(ctx, since)
}

// redeliver asks for the App's deliveries that have failed since then, once each.
func (c *Channel) redeliver(ctx context.Context, since time.Time) error {
	cl, err := c.appClient()
	if err != nil {
		return err
	}
	type tried struct {
		id    int64
		times int
		ok    bool
	}
	byGUID := map[string]*tried{}
	var order []string // newest first
	opts := &github.ListCursorOptions{PerPage: pageLength}
	for seen := false; !seen; {
		list, resp, err := cl.Apps.ListHookDeliveries(ctx, opts)
		if err != nil {
			return classify(err)
		}
		for _, d := range list {
			if d.GetDeliveredAt().Before(since.Add(-overlap)) {
				seen = true
				break
			}
			t := byGUID[d.GetGUID()]
			if t == nil {
				t = &tried{id: d.GetID()}
				byGUID[d.GetGUID()] = t
				order = append(order, d.GetGUID())
			}
			t.times++
			t.ok = t.ok || d.GetStatusCode() >= 200 && d.GetStatusCode() < 300
		}
		if opts.Cursor = resp.Cursor; opts.Cursor == "" || len(list) == 0 {
			break
		}
	}
	for _, guid := range slices.Backward(order) {
		t := byGUID[guid]
		if t.ok || t.times >= mostRetries {
			continue
		}
		var accepted *github.AcceptedError
		if _, _, err := cl.Apps.RedeliverHookDelivery(ctx, t.id); err != nil && !errors.As(err, &accepted) {
			return classify(err)
		}
	}
	return nil
}

// reread hands on what was said since then in the repositories of the threads,
// oldest first.
func (c *Channel) reread(ctx context.Context, since time.Time, followed []chat.Thread, take channels.Take) error {
	var accounts []string
	for _, t := range followed {
		if at := c.last(t).Account; !slices.Contains(accounts, at) {
			accounts = append(accounts, at)
		}
	}
	var failed error
	for _, account := range accounts {
		if err := c.rereadOne(ctx, account, since, take); err != nil {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// A finding is something that was said, and where.
type finding struct {
	*thing
	list string // it was found in: "issues", "issues/comments", "pulls/comments"
}

func (c *Channel) rereadOne(ctx context.Context, account string, since time.Time, take channels.Take) error {
	r, cl, _, err := c.place(ctx, account)
	if err != nil {
		return err
	}
	base := "repos/" + r.owner + "/" + r.name + "/"
	var found []finding
	var failed error
	for _, list := range []string{"issues", "issues/comments", "pulls/comments"} {
		q := url.Values{"since": {since.UTC().Format(time.RFC3339)}, "sort": {"created"}, "direction": {"asc"}, "state": {"all"}, "per_page": {strconv.Itoa(pageLength)}}
		things, err := things(ctx, cl, base+list, q)
		failed = errors.Join(failed, err)
		for _, t := range things {
			if !t.CreatedAt.Before(since) { // else it was only changed
				found = append(found, finding{t, list})
			}
		}
	}
	slices.SortStableFunc(found, func(a, b finding) int { return a.CreatedAt.Compare(b.CreatedAt.Time) })
	parents := map[string]*thing{}
	for _, f := range found {
		d := delivery{id: "reread/" + f.NodeID, self: c.identity(), app: c.appID, ours: c.ours, first: c.first}
		d.Action, d.Sender, d.Repository.FullName = "created", f.User, r.owner+"/"+r.name
		d.Repository.ID, _ = strconv.ParseInt(account, 10, 64) // place has read it
		switch f.list {
		case "issues":
			d.event, d.Action, d.Issue = "issues", "opened", f.thing
			if f.Pull != nil {
				d.event, d.Issue, d.PullRequest = "pull_request", nil, f.thing
			}
		case "issues/comments":
			d.event, d.Comment = "issue_comment", f.thing
			d.Issue, err = parent(ctx, cl, parents, base+"issues/"+path.Base(f.IssueURL))
		case "pulls/comments":
			d.event, d.Comment = "pull_request_review_comment", f.thing
			d.PullRequest, err = parent(ctx, cl, parents, base+"pulls/"+path.Base(f.PullURL))
		}
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		in, err := d.inbound(false)
		if err == nil {
			err = take(ctx, in)
		}
		if err != nil {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// parent reads what comments are about, once.
func parent(ctx context.Context, cl *github.Client, known map[string]*thing, at string) (*thing, error) {
	if t := known[at]; t != nil {
		return t, nil
	}
	t := &thing{}
	if err := get(ctx, cl, at, t); err != nil {
		return nil, err
	}
	known[at] = t
	return t, nil
}

// things reads a list, page by page.
func things(ctx context.Context, cl *github.Client, list string, q url.Values) ([]*thing, error) {
	var all []*thing
	for page := 1; page <= sweepPages; {
		q.Set("page", strconv.Itoa(page))
		req, err := cl.NewRequest(http.MethodGet, list+"?"+q.Encode(), nil)
		if err != nil {
			return all, err
		}
		var some []*thing
		resp, err := cl.Do(ctx, req, &some)
		if err != nil {
			return all, classify(err)
		}
		for _, t := range some {
			if t != nil {
				all = append(all, t)
			}
		}
		if page = resp.NextPage; page == 0 {
			return all, nil
		}
	}
	return all, &channels.SendError{Verdict: channels.Unknown, Reason: "too much to look through"}
}
