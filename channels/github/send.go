package github

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/go-github/v62/github"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
)

const (
	clocksApart = 6 * time.Minute // how far our clock may be from GitHub's, and then some
	pageLength  = 100
	maxPages    = 50
)

// Limits are GitHub's: it asks for a second between the writes of one
// installation, which Send keeps to, and shows a comment in lists some time
// after it was made.
func (c *Channel) Limits() channels.Limits {
	return channels.Limits{RoomEvery: c.every, AccountEvery: c.every, SettleAfter: 5 * time.Second}
}

// A lane keeps the writes of an installation in a row, a time apart.
type lane struct {
	every time.Duration

	mu   sync.Mutex
	busy bool      // one is under way
	next time.Time // no write before
	free time.Time // no time before is still to be promised to those who are put off
}

// enter starts a write, or says how long to wait for a turn. Whoever comes back
// then finds the lane free, unless a write took longer than it should.
func (l *lane) enter(now time.Time) (wait time.Duration) {
	if l.every == 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.busy && !now.Before(l.next) {
		l.busy = true
		return 0
	}
	at := now.Add(time.Millisecond)
	if l.busy {
		at = now.Add(l.every)
	}
	for _, t := range []time.Time{l.next, l.free} {
		if at.Before(t) {
			at = t
		}
	}
	l.free = at.Add(l.every)
	return at.Sub(now)
}

func (l *lane) leave(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy, l.next = false, now.Add(l.every)
}

// write finds the repository of a thread and does one write there, when it is
// the installation's turn.
// Who is patient waits for that as long as ctx allows.
func (c *Channel) write(ctx context.Context, t chat.Thread, patient bool, do func(*github.Client, repo) error) error {
	r, cl, fresh, err := c.place(ctx, t.Account)
	if err != nil {
		return before(err)
	}
	l := &c.install(r.install).lane
	for wait := l.enter(c.now()); wait > 0; wait = l.enter(c.now()) {
		if patient && sleep(ctx, wait) {
			continue
		}
		return &channels.SendError{Verdict: channels.Limited, RetryAfter: wait, Reason: "one write at a time"}
	}
	if err = func() error {
		defer func() { l.leave(c.now()) }()
		return do(cl, r)
	}(); err == nil {
		return nil
	}
	se := *classify(err)
	switch statusOf(err) {
	case http.StatusUnauthorized:
		if c.appID != 0 { // the token was taken back: another one, or its refusal, tells more
			c.forget(r.install, cl)
			se.Verdict = channels.NotMade
		}
	case http.StatusMovedPermanently, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		c.moved(t.Account) // it has another name by now
	case http.StatusNotFound, http.StatusForbidden:
		if c.moved(t.Account); !fresh && se.Verdict == channels.Rejected { // perhaps it is another's by now
			se.Verdict = channels.NotMade
		}
	}
	return &se
}

// sleep waits, or returns false when ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Send makes one comment. Its ref is the comment's node id.
func (c *Channel) Send(ctx context.Context, p chat.Post) (ref string, err error) {
	t := c.last(p.Thread)
	at, ok := spotOf(t)
	if !ok {
		return "", &channels.SendError{Verdict: channels.Rejected, Reason: "no such thread"}
	}
	if len(p.Files) > 0 {
		return "", &channels.SendError{Verdict: channels.Rejected, Reason: "github takes no files"}
	}
	body := p.Text + "\n\n" + c.marker(p)
	err = c.write(ctx, t, false, func(cl *github.Client, r repo) (err error) {
		ref, err = c.comment(ctx, cl, r, at, body)
		return err
	})
	switch {
	case err != nil:
		return "", err
	case ref == "":
		return "", &channels.SendError{Verdict: channels.Unknown, Reason: "answer without comment id"}
	}
	return ref, nil
}

func (c *Channel) comment(ctx context.Context, cl *github.Client, r repo, at spot, body string) (string, error) {
	switch {
	case at.kind == kindDiscussion:
		return c.discuss(ctx, cl, r, at, body)
	case at.kind == kindCommit:
		made, _, err := cl.Repositories.CreateComment(ctx, r.owner, r.name, at.sha, &github.RepositoryComment{Body: &body})
		return made.GetNodeID(), err
	case at.root != 0:
		made, _, err := cl.PullRequests.CreateCommentInReplyTo(ctx, r.owner, r.name, at.number, body, at.root)
		return made.GetNodeID(), err
	}
	made, _, err := cl.Issues.CreateComment(ctx, r.owner, r.name, at.number, &github.IssueComment{Body: &body})
	return made.GetNodeID(), err
}

// Find looks through the comments since then for one of ours with the post's marker.
func (c *Channel) Find(ctx context.Context, p chat.Post, since time.Time) (ref string, err error) {
	t := c.last(p.Thread)
	at, ok := spotOf(t)
	if !ok {
		return "", nil // it cannot have been made
	}
	r, cl, _, err := c.place(ctx, t.Account)
	if err != nil {
		return "", classify(err)
	}
	since = since.Add(-clocksApart)
	own := func(user int64, body string) bool {
		self := c.identity().User
		return (self == 0 || user == self) && c.marked(body, p)
	}
	switch {
	case at.kind == kindDiscussion:
		ref, err = c.findDiscussed(ctx, cl, r, at, func(body string) bool { return c.marked(body, p) })
	case at.kind == kindCommit:
		opts := &github.ListOptions{PerPage: pageLength}
		ref, err = pages(opts, func() (string, *github.Response, error) {
			list, resp, err := cl.Repositories.ListCommitComments(ctx, r.owner, r.name, at.sha, opts)
			for _, m := range list {
				if own(m.GetUser().GetID(), m.GetBody()) {
					return m.GetNodeID(), resp, nil
				}
			}
			return "", resp, err
		})
	case at.root != 0:
		opts := &github.PullRequestListCommentsOptions{Since: since, Sort: "created", ListOptions: github.ListOptions{PerPage: pageLength}}
		ref, err = pages(&opts.ListOptions, func() (string, *github.Response, error) {
			list, resp, err := cl.PullRequests.ListComments(ctx, r.owner, r.name, at.number, opts)
			for _, m := range list {
				if own(m.GetUser().GetID(), m.GetBody()) {
					return m.GetNodeID(), resp, nil
				}
			}
			return "", resp, err
		})
	default:
		opts := &github.IssueListCommentsOptions{Since: &since, ListOptions: github.ListOptions{PerPage: pageLength}}
		ref, err = pages(&opts.ListOptions, func() (string, *github.Response, error) {
			list, resp, err := cl.Issues.ListComments(ctx, r.owner, r.name, at.number, opts)
			for _, m := range list {
				if own(m.GetUser().GetID(), m.GetBody()) {
					return m.GetNodeID(), resp, nil
				}
			}
			return "", resp, err
		})
	}
	if err != nil {
		return "", classify(err)
	}
	return ref, nil
}

// pages turns the pages of a list until one has what is looked for.
func pages(opts *github.ListOptions, page func() (string, *github.Response, error)) (string, error) {
	for range maxPages {
		ref, resp, err := page()
		if err != nil || ref != "" || resp.NextPage == 0 {
			return ref, err
		}
		opts.Page = resp.NextPage
	}
	return "", &channels.SendError{Verdict: channels.Unknown, Reason: "too many comments to look through"}
}

const (
	markerStart = "<!-- heddle:"
	markerEnd   = " -->"
)

// marker is a line that readers do not see. It carries the post's key and what
// nobody else can write, so that no other comment passes for the post.
func (c *Channel) marker(p chat.Post) string {
	return markerStart + p.Key + ":" + mac(c.secrets[0], p) + markerEnd
}

func mac(secret []byte, p chat.Post) string {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte("heddle post\n" + p.Thread.Key() + "\n" + p.Key))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// marked tells whether a comment ends with the post's marker.
func (c *Channel) marked(body string, p chat.Post) bool {
	if p.Key == "" {
		return false
	}
	body = strings.TrimRight(body, " \r\n")
	for _, s := range c.secrets {
		if strings.HasSuffix(body, markerStart+p.Key+":"+mac(s, p)+markerEnd) {
			return true
		}
	}
	return false
}

// ours tells whether a comment in the thread ends with any marker of ours.
func (c *Channel) ours(body string, t chat.Thread) bool {
	i := strings.LastIndex(body, markerStart)
	if i < 0 {
		return false
	}
	tail := body[i+len(markerStart):]
	return c.marked(body, chat.Post{Key: tail[:max(strings.LastIndexByte(tail, ':'), 0)], Thread: t})
}

// Kinds of room.
const (
	kindIssue      = "issue"
	kindPull       = "pr"
	kindDiscussion = "discussion"
	kindCommit     = "commit"
)

// A spot is what a thread means: its room is "issue:7", "pr:7", "discussion:7"
// or "commit:SHA", its root the comment that began a review thread or the one in
// a discussion that is replied to.
type spot struct {
	kind   string
	number int
	sha    string
	root   int64 // 0 for none
}

func spotOf(t chat.Thread) (s spot, ok bool) {
	var id string
	if s.kind, id, ok = strings.Cut(t.Room, ":"); !ok {
		return s, false
	}
	var err error
	switch s.kind {
	case kindCommit:
		return spot{kind: s.kind, sha: id}, isSHA(id) && t.Root == ""
	case kindIssue, kindPull, kindDiscussion:
	default:
		return s, false
	}
	if s.number, err = strconv.Atoi(id); err != nil || s.number <= 0 {
		return s, false
	}
	if t.Root == "" {
		return s, true
	}
	s.root, err = strconv.ParseInt(t.Root, 10, 64)
	return s, err == nil && s.root > 0 && s.kind != kindIssue
}

func isSHA(s string) bool {
	return len(s) >= 40 && len(s) <= 64 && strings.Trim(s, "0123456789abcdef") == ""
}
