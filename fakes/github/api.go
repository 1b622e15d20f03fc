package github

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const maxBody = 65536 // characters

func (h *Hub) getApp(asked) reply {
	return reply{status: http.StatusOK, body: object{"id": h.opt.AppID, "slug": h.opt.Slug, "name": h.opt.Slug}}
}

// convert takes a code that Manifest made, once and for an hour.
func (h *Hub) convert(a asked) reply {
	at, ok := h.codes[a.args[0]]
	delete(h.codes, a.args[0])
	if !ok || h.opt.Clock().Sub(at) > time.Hour {
		return notFound
	}
	return reply{status: http.StatusCreated, body: object{
		"id": h.opt.AppID, "slug": h.opt.Slug, "client_id": "Iv1.fake", "client_secret": "fake", "webhook_secret": h.opt.Secret, "pem": h.PrivateKey(),
	}}
}

func (h *Hub) newToken(a asked) reply {
	id, err := strconv.ParseInt(a.args[0], 10, 64)
	if known := slices.ContainsFunc(h.opt.Repos, func(r Repo) bool { return r.Installation == id }); err != nil || !known {
		return notFound
	}
	if h.suspended[id] {
		return fail(http.StatusForbidden, "This installation has been suspended")
	}
	h.lastID++
	token := fmt.Sprintf("ghs_%d_%s", h.lastID, strings.Repeat("x", 380)) // as long as they are
	until := h.opt.Clock().Add(h.opt.TokenFor)
	h.tokens[token] = grant{id, until}
	return reply{status: http.StatusCreated, body: object{"token": token, "expires_at": until.UTC().Format(time.RFC3339), "permissions": object{"issues": "write"}}}
}

func (h *Hub) repoByID(id string) *repo {
	n, _ := strconv.ParseInt(id, 10, 64)
	return h.repos[n]
}

func (h *Hub) installation(a asked) reply {
	r := h.repoByID(a.args[0])
	if r == nil {
		return notFound
	}
	return reply{status: http.StatusOK, body: object{"id": r.Installation, "app_id": h.opt.AppID, "account": object{"id": 6}}}
}

func (h *Hub) namedInstallation(a asked) reply {
	return reply{status: http.StatusOK, body: object{"id": a.repo.Installation, "app_id": h.opt.AppID, "account": object{"id": 6}}}
}

func (h *Hub) getComment(a asked) reply {
	for _, t := range a.repo.things {
		list := t.Comments
		if strings.Contains(a.pattern, "/pulls/") {
			list = t.Review
		}
		for _, c := range list {
			if strconv.FormatInt(c.ID, 10) == a.args[0] && !c.Deleted && t.Kind != "discussion" {
				return reply{status: http.StatusOK, body: c.wire(a.repo, t)}
			}
		}
	}
	return notFound
}

func (h *Hub) repository(a asked) reply {
	r := h.repoByID(a.args[0])
	if r == nil || !a.may(r) {
		return notFound
	}
	return reply{status: http.StatusOK, body: r.wire()}
}

func (h *Hub) userByLogin(a asked) reply {
	for _, u := range h.users {
		if strings.EqualFold(u.Login, a.args[0]) {
			return reply{status: http.StatusOK, body: u.wire()}
		}
	}
	return notFound
}

func (h *Hub) me(a asked) reply {
	if a.grant.installation != 0 {
		return fail(http.StatusForbidden, "Resource not accessible by integration")
	}
	return reply{status: http.StatusOK, body: h.users[h.opt.BotUser].wire()}
}

func (h *Hub) userByID(a asked) reply {
	id, _ := strconv.ParseInt(a.args[0], 10, 64)
	u, ok := h.users[id]
	if !ok {
		return notFound
	}
	return reply{status: http.StatusOK, body: u.wire()}
}

// permission is as GitHub tells it: maintain counts as write, triage as read.
func (h *Hub) permission(a asked) reply {
	for _, u := range h.users {
		if !strings.EqualFold(u.Login, a.args[0]) {
			continue
		}
		p := u.Permission
		switch p {
		case "maintain":
			p = "write"
		case "triage":
			p = "read"
		case "":
			p = "none"
		}
		return reply{status: http.StatusOK, body: object{"permission": p, "role_name": u.Permission, "user": u.wire()}}
	}
	return notFound
}

// body reads and checks the text of a comment.
func (a asked) text() (in struct {
	Body      string `json:"body"`
	InReplyTo int64  `json:"in_reply_to"`
}, bad *reply,
) {
	refuse := func(r reply) *reply { return &r }
	switch err := json.Unmarshal(a.body, &in); {
	case err != nil:
		return in, refuse(fail(http.StatusBadRequest, "Problems parsing JSON"))
	case strings.TrimSpace(in.Body) == "":
		return in, refuse(fail(http.StatusUnprocessableEntity, "Validation Failed: body can't be blank"))
	case utf8.RuneCountInString(in.Body) > maxBody:
		return in, refuse(fail(http.StatusUnprocessableEntity, "Body is too long (maximum is 65536 characters)"))
	}
	return in, nil
}

var locked = fail(http.StatusForbidden, "Unable to create comment because issue is locked.")

// bot is who calls.
func (h *Hub) bot(prefix, body string, a asked) *Comment {
	c := h.comment(prefix, h.users[h.opt.BotUser], body)
	if a.grant.installation != 0 {
		c.ViaApp = h.opt.AppID
	}
	return &c
}

func (h *Hub) addComment(a asked) reply {
	t := a.repo.numbered(a.args[0], "issue", "pr")
	in, bad := a.text()
	switch {
	case t == nil:
		return notFound
	case bad != nil:
		return *bad
	case t.Locked:
		return locked
	}
	c := h.bot("IC", in.Body, a)
	t.Comments = append(t.Comments, c)
	h.made(a.repo, t, nil, c)
	return reply{status: http.StatusCreated, body: c.wire(a.repo, t)}
}

func (h *Hub) addReview(a asked) reply {
	t := a.repo.numbered(a.args[0], "pr")
	in, bad := a.text()
	switch {
	case t == nil:
		return notFound
	case bad != nil:
		return *bad
	case t.Locked:
		return locked
	}
	i := slices.IndexFunc(t.Review, func(c *Comment) bool { return c.ID == in.InReplyTo && !c.Deleted })
	if i < 0 || t.Review[i].Root != 0 { // only the first of a review thread is replied to
		return fail(http.StatusUnprocessableEntity, "Validation Failed: in_reply_to is no top-level review comment")
	}
	c := h.bot("PRRC", in.Body, a)
	c.Root = in.InReplyTo
	root := t.Review[i]
	t.Review = append(t.Review, c)
	h.made(a.repo, t, root, c)
	return reply{status: http.StatusCreated, body: c.wire(a.repo, t)}
}

func (h *Hub) addCommit(a asked) reply {
	in, bad := a.text()
	if bad != nil {
		return *bad
	}
	t := h.thing(a.repo, "commit", a.args[0])
	c := h.bot("CC", in.Body, a)
	t.Comments = append(t.Comments, c)
	h.made(a.repo, t, nil, c)
	return reply{status: http.StatusCreated, body: c.wire(a.repo, t)}
}

func (h *Hub) listComments(a asked) reply {
	t := a.repo.numbered(a.args[0], "issue", "pr")
	if t == nil {
		return notFound
	}
	return a.page(h.wires(a, t, t.Comments))
}

func (h *Hub) listReview(a asked) reply {
	t := a.repo.numbered(a.args[0], "pr")
	if t == nil {
		return notFound
	}
	return a.page(h.wires(a, t, t.Review))
}

func (h *Hub) listCommit(a asked) reply {
	t := a.repo.numbered(a.args[0], "commit")
	if t == nil {
		return a.page(nil)
	}
	return a.page(h.wires(a, t, t.Comments))
}

func (h *Hub) allComments(a asked) reply {
	return h.all(a, func(t *Thing) []*Comment {
		if t.Kind == "issue" || t.Kind == "pr" {
			return t.Comments
		}
		return nil
	})
}

func (h *Hub) allReview(a asked) reply {
	return h.all(a, func(t *Thing) []*Comment { return t.Review })
}

// all lists over the whole repository, by time.
func (h *Hub) all(a asked, of func(*Thing) []*Comment) reply {
	var out []object
	for _, t := range a.repo.things {
		out = append(out, h.wires(a, t, of(t))...)
	}
	slices.SortFunc(out, func(x, y object) int { return int(x["id"].(int64) - y["id"].(int64)) })
	return a.page(out)
}

func (h *Hub) allIssues(a asked) reply {
	var out []object
	for _, t := range a.repo.things {
		if (t.Kind == "issue" || t.Kind == "pr") && !t.Deleted && a.since(t.Updated) {
			out = append(out, t.wire(a.repo))
		}
	}
	slices.SortFunc(out, func(x, y object) int { return int(x["id"].(int64) - y["id"].(int64)) })
	return a.page(out)
}

func (h *Hub) getThing(a asked) reply {
	kinds := []string{"issue", "pr"}
	if strings.Contains(a.pattern, "/pulls/") {
		kinds = kinds[1:]
	}
	t := a.repo.numbered(a.args[0], kinds...)
	if t == nil {
		return notFound
	}
	out := t.wire(a.repo)
	if len(kinds) == 1 {
		delete(out, "pull_request")
		out["head"] = object{"sha": t.SHA, "ref": "branch"}
	}
	return reply{status: http.StatusOK, body: out}
}

func (a asked) since(at time.Time) bool {
	from, err := time.Parse(time.RFC3339, a.URL.Query().Get("since"))
	return err != nil || !at.Before(from)
}

func (h *Hub) wires(a asked, t *Thing, cs []*Comment) (out []object) {
	for _, c := range cs {
		if !c.Deleted && a.since(c.Updated) {
			out = append(out, c.wire(a.repo, t))
		}
	}
	return out
}

// page is one page of a list, with the link to the next.
func (a asked) page(list []object) reply {
	q := a.URL.Query()
	per, _ := strconv.Atoi(q.Get("per_page"))
	if per <= 0 || per > 100 {
		per = 30
	}
	n, _ := strconv.Atoi(q.Get("page"))
	n = max(n, 1)
	from, to := min((n-1)*per, len(list)), min(n*per, len(list))
	out := reply{status: http.StatusOK, body: append([]object{}, list[from:to]...), header: http.Header{}}
	if to < len(list) {
		q.Set("page", strconv.Itoa(n+1))
		out.header.Set("Link", fmt.Sprintf(`<http://%s%s?%s>; rel="next"`, a.Host, a.URL.Path, q.Encode()))
	}
	return out
}

func (u User) wire() object {
	kind := "User"
	if u.Bot {
		kind = "Bot"
	}
	return object{"login": u.Login, "id": u.ID, "node_id": fmt.Sprintf("U_%d", u.ID), "type": kind, "site_admin": false}
}

func (r *repo) wire() object {
	owner, name, _ := strings.Cut(r.FullName, "/")
	return object{
		"id": r.ID, "node_id": fmt.Sprintf("R_%d", r.ID), "name": name, "full_name": r.FullName, "private": false,
		"owner": object{"login": owner, "id": 6, "type": "Organization"}, "html_url": "https://github.test/" + r.FullName,
	}
}

func (c *Comment) wire(r *repo, t *Thing) object {
	at, anchor := "issues", "issuecomment-"
	if t.Kind == "pr" {
		at = "pull"
	}
	out := object{
		"id": c.ID, "node_id": c.NodeID, "user": c.User.wire(), "body": c.Body, "author_association": "MEMBER",
		"created_at": c.Created.Format(time.RFC3339), "updated_at": c.Updated.Format(time.RFC3339),
		"issue_url":                fmt.Sprintf("https://github.test/repos/%s/issues/%d", r.FullName, t.Number),
		"performed_via_github_app": nil,
	}
	if c.ViaApp != 0 {
		out["performed_via_github_app"] = object{"id": c.ViaApp}
	}
	if slices.Contains(t.Review, c) {
		anchor = "discussion_r"
		out["pull_request_url"] = fmt.Sprintf("https://github.test/repos/%s/pulls/%d", r.FullName, t.Number)
		out["path"], out["line"], out["diff_hunk"], out["commit_id"] = "main.go", 3, "@@ -1,3 +1,3 @@\n-old\n+new", t.SHA
		if c.Root != 0 {
			out["in_reply_to_id"] = c.Root
		}
	}
	if t.Kind == "discussion" {
		at, anchor = "discussions", "discussioncomment-"
		out["parent_id"] = nil
		if c.Root != 0 {
			out["parent_id"] = c.Root
		}
	}
	out["html_url"] = fmt.Sprintf("https://github.test/%s/%s/%d#%s%d", r.FullName, at, t.Number, anchor, c.ID)
	return out
}

func (t *Thing) wire(r *repo) object {
	at := map[string]string{"issue": "issues", "pr": "pull", "discussion": "discussions"}[t.Kind]
	out := object{
		"id": t.ID, "node_id": t.NodeID, "number": t.Number, "title": t.Title, "body": t.Body, "user": t.User.wire(), "state": "open", "locked": t.Locked,
		"labels": []object{}, "comments": len(t.Comments), "author_association": "MEMBER",
		"created_at": t.Created.Format(time.RFC3339), "updated_at": t.Updated.Format(time.RFC3339),
		"html_url": fmt.Sprintf("https://github.test/%s/%s/%d", r.FullName, at, t.Number),
	}
	if t.Kind == "pr" {
		out["pull_request"] = object{"url": fmt.Sprintf("https://github.test/repos/%s/pulls/%d", r.FullName, t.Number)}
	}
	return out
}
