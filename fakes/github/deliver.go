package github

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// Words are what somebody says. Only Text is needed.
type Words struct {
	Repo   int64  // the first if 0
	Kind   string // "issue" if empty, "pr" or "discussion"
	Number int    // 1 if 0
	User   int64  // the first if 0
	Text   string // as people write it: "@heddle look"
	Root   int64  // the comment of a review or discussion that is replied to
	Review bool   // of a pull request: on a line
}

// A Delivery is one signed request.
type Delivery struct {
	GUID   string
	NodeID string // of the comment or thing that it is about
	ID     int64  // likewise
	Header http.Header
	Body   []byte
}

// Request makes the HTTP request; each call makes a fresh one.
func (d Delivery) Request(url string) (*http.Request, error) {
	r, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(d.Body))
	if err != nil {
		return nil, err
	}
	r.Header = d.Header.Clone()
	return r, nil
}

func (h *Hub) place(w Words) (*repo, *Thing, User) {
	setDefault(&w.Repo, h.opt.Repos[0].ID)
	setDefault(&w.Kind, "issue")
	setDefault(&w.Number, 1)
	setDefault(&w.User, h.opt.Users[0].ID)
	r := h.repos[w.Repo]
	return r, h.thing(r, w.Kind, strconv.Itoa(w.Number)), h.users[w.User]
}

// event names of a comment, by where it is.
func commentEvent(t *Thing, review bool) string {
	switch {
	case t.Kind == "discussion":
		return "discussion_comment"
	case review:
		return "pull_request_review_comment"
	}
	return "issue_comment"
}

// Say lets somebody comment and delivers it.
func (h *Hub) Say(w Words) Delivery {
	h.mu.Lock()
	defer h.mu.Unlock()
	r, t, u := h.place(w)
	prefix := "IC"
	if w.Review {
		prefix = "PRRC"
	}
	if t.Kind == "discussion" {
		prefix = "DC"
	}
	c := h.comment(prefix, u, w.Text)
	c.Root = w.Root
	list := &t.Comments
	if w.Review {
		list = &t.Review
	}
	*list = append(*list, &c)
	return h.onComment(r, t, &c, u, "created", nil)
}

func (h *Hub) onComment(r *repo, t *Thing, c *Comment, sender User, action string, changes object) Delivery {
	name := commentEvent(t, slices.Contains(t.Review, c))
	d := h.event(name, r, sender, action, object{"comment": c.wire(r, t), about(name): t.about(r, name), "changes": changes})
	d.NodeID, d.ID = c.NodeID, c.ID
	return d
}

// about is the field that holds what an event is about.
func about(event string) string {
	switch event {
	case "issues", "issue_comment":
		return "issue"
	case "discussion", "discussion_comment":
		return "discussion"
	}
	return "pull_request"
}

func (t *Thing) about(r *repo, event string) object {
	out := t.wire(r)
	if about(event) == "pull_request" {
		delete(out, "pull_request")
		out["head"] = object{"sha": t.SHA, "ref": "branch"}
	}
	return out
}

// Do lets somebody do something to an issue, pull request or discussion and
// delivers it: "opened", "labeled", "assigned". Text is its text when it is
// opened; more are further fields, such as the label.
func (h *Hub) Do(action string, w Words, more map[string]any) Delivery {
	h.mu.Lock()
	defer h.mu.Unlock()
	r, t, u := h.place(w)
	name := map[string]string{"issue": "issues", "pr": "pull_request", "discussion": "discussion"}[t.Kind]
	if action == "opened" || action == "created" {
		t.User = u
	}
	if w.Text != "" {
		t.Body = w.Text
	}
	if action == "deleted" {
		t.Deleted = true
	}
	fields := object{about(name): t.about(r, name)}
	maps.Copy(fields, more)
	d := h.event(name, r, u, action, fields)
	d.NodeID, d.ID = t.NodeID, t.ID
	return d
}

// Transfer lets somebody move an issue to another repository, where it has
// another number, and delivers what the old repository tells and the new one.
func (h *Hub) Transfer(w Words, repo int64, number int) (from, to Delivery) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r, t, u := h.place(w)
	there := h.repos[repo]
	delete(r.things, t.Kind+":"+strconv.Itoa(t.Number))
	old, was := t.wire(r), t.Number
	moved := *t
	h.lastID++
	moved.ID, moved.NodeID, moved.Number = h.lastID, fmt.Sprintf("I_%d", h.lastID), number
	there.things[t.Kind+":"+strconv.Itoa(number)] = &moved
	from = h.event("issues", r, u, "transferred", object{"issue": old, "changes": object{"new_issue": moved.wire(there), "new_repository": there.wire()}})
	to = h.event("issues", there, u, "opened", object{
		"issue": moved.wire(there), "changes": object{"old_issue": object{"id": t.ID, "number": was}, "old_repository": r.wire()},
	})
	return from, to
}

// Edit changes a comment, as user, and delivers it.
func (h *Hub) Edit(node, text string, user int64) (Delivery, error) {
	return h.change(node, user, "edited", func(c *Comment) object {
		from := c.Body
		c.Body, c.Updated = text, c.Updated.Add(time.Second)
		return object{"body": object{"from": from}}
	})
}

// Delete takes a comment back and delivers it.
func (h *Hub) Delete(node string, user int64) (Delivery, error) {
	return h.change(node, user, "deleted", func(c *Comment) object { c.Deleted = true; return nil })
}

func (h *Hub) change(node string, user int64, action string, do func(*Comment) object) (Delivery, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.repos {
		for _, t := range r.things {
			for _, c := range slices.Concat(t.Comments, t.Review) {
				if c.NodeID == node && !c.Deleted {
					changes := do(c)
					return h.onComment(r, t, c, h.users[user], action, changes), nil
				}
			}
		}
	}
	return Delivery{}, fmt.Errorf("%s %s: no such comment", action, node)
}

// Event delivers any event of the first repository under a new GUID.
func (h *Hub) Event(name, action string, user int64, fields map[string]any) Delivery {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.event(name, h.repos[h.opt.Repos[0].ID], h.users[user], action, fields)
}

func (h *Hub) event(name string, r *repo, sender User, action string, fields object) Delivery {
	body := object{"action": action, "repository": r.wire(), "sender": sender.wire()}
	if h.opt.Token == "" {
		body["installation"] = object{"id": r.Installation, "node_id": "MDI"}
	}
	for k, v := range fields {
		if v != nil {
			body[k] = v
		}
	}
	return h.sign(name, mustJSON(body))
}

// Sign makes a delivery of any body, under a new GUID.
func (h *Hub) Sign(name string, body []byte) Delivery {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sign(name, body)
}

func (h *Hub) sign(name string, body []byte) Delivery {
	h.lastID++
	d := Delivery{GUID: fmt.Sprintf("00000000-0000-4000-8000-%012d", h.lastID), Body: body, Header: http.Header{}}
	for k, v := range map[string]string{
		"Content-Type": "application/json", "User-Agent": "GitHub-Hookshot/fake", "X-GitHub-Event": name, "X-GitHub-Delivery": d.GUID,
		"X-GitHub-Hook-ID": "1", "X-Hub-Signature-256": Signature(h.opt.Secret, body),
	} {
		d.Header.Set(k, v)
	}
	if h.opt.Token == "" {
		d.Header.Set("X-GitHub-Hook-Installation-Target-Type", "integration")
		d.Header.Set("X-GitHub-Hook-Installation-Target-ID", strconv.FormatInt(h.opt.AppID, 10))
	}
	return d
}

// Signature is what X-Hub-Signature-256 holds.
func Signature(secret string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// Form is the delivery as a hook with the form content type makes it.
func (h *Hub) Form(d Delivery) Delivery {
	d.Body = []byte(url.Values{"payload": {string(d.Body)}}.Encode())
	d.Header = d.Header.Clone()
	d.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	d.Header.Set("X-Hub-Signature-256", Signature(h.opt.Secret, d.Body))
	return d
}

// Replay is the delivery under another GUID, which nobody has signed.
func (h *Hub) Replay(d Delivery) Delivery {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lastID++
	d.GUID = fmt.Sprintf("00000000-0000-4000-8000-%012d", h.lastID)
	d.Header = d.Header.Clone()
	d.Header.Set("X-GitHub-Delivery", d.GUID)
	return d
}

// An attempt is one entry of the deliveries API.
type attempt struct {
	id     int64
	status int
	at     time.Time
	Delivery
}

// Tried notes that a delivery was tried and answered with a status, 0 for none.
func (h *Hub) Tried(d Delivery, status int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lastID++
	h.tried = append(h.tried, attempt{h.lastID, status, h.opt.Clock(), d})
}

// Redelivered is what the deliveries API was asked to deliver again, in order.
// GitHub answers before it does.
func (h *Hub) Redelivered() []Delivery {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.again)
}

func (h *Hub) listDeliveries(a asked) reply {
	per, _ := strconv.Atoi(a.URL.Query().Get("per_page"))
	if per <= 0 || per > 100 {
		per = 30
	}
	end := len(h.tried)
	if c := a.URL.Query().Get("cursor"); c != "" {
		n, err := strconv.Atoi(c)
		if err != nil || n < 0 || n > end {
			return fail(http.StatusUnprocessableEntity, "invalid cursor")
		}
		end = n
	}
	out := []object{}
	for end > 0 && len(out) < per {
		end--
		t := h.tried[end]
		out = append(out, object{
			"id": t.id, "guid": t.GUID, "delivered_at": t.at.UTC().Format(time.RFC3339), "redelivery": false, "duration": 0.1,
			"status": http.StatusText(t.status), "status_code": t.status, "event": t.Header.Get("X-GitHub-Event"),
		})
	}
	r := reply{status: http.StatusOK, body: out, header: http.Header{}}
	if end > 0 {
		r.header.Set("Link", fmt.Sprintf(`<http://%s%s?per_page=%d&cursor=%d>; rel="next"`, a.Host, a.URL.Path, per, end))
	}
	return r
}

func (h *Hub) redeliver(a asked) reply {
	id, _ := strconv.ParseInt(a.args[0], 10, 64)
	i := slices.IndexFunc(h.tried, func(t attempt) bool { return t.id == id })
	if i < 0 {
		return notFound
	}
	h.again = append(h.again, h.tried[i].Delivery)
	return reply{status: http.StatusAccepted, body: object{}}
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // a test gave an event that is no JSON
	}
	return b
}
