package github

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
)

// A payload is what GitHub sends, only the fields that are used. The types of
// go-github leave out by which App a comment was made, and know fewer events.
type payload struct {
	Action     string `json:"action"`
	Repository struct {
		ID       int64  `json:"id"`
		FullName string `json:"full_name"`
	} `json:"repository"`
	Installation struct {
		ID int64 `json:"id"`
	} `json:"installation"`
	Sender      user   `json:"sender"`
	Issue       *thing `json:"issue"`
	PullRequest *thing `json:"pull_request"`
	Discussion  *thing `json:"discussion"`
	Comment     *thing `json:"comment"`
	Review      *thing `json:"review"`
	CheckRun    *struct {
		ID      int64  `json:"id"`
		NodeID  string `json:"node_id"`
		Name    string `json:"name"`
		HeadSHA string `json:"head_sha"`
		HTMLURL string `json:"html_url"`
		Pulls   []struct {
			Number int `json:"number"`
		} `json:"pull_requests"`
	} `json:"check_run"`
	Requested struct {
		Identifier string `json:"identifier"`
	} `json:"requested_action"`
	Label struct {
		ID   int64  `json:"id"`
		Name string `json:"name"`
	} `json:"label"`
	Assignee *user `json:"assignee"`
	Reviewer *user `json:"requested_reviewer"`
	Changes  struct {
		Body  *struct{ From string } `json:"body"`
		Title *struct{ From string } `json:"title"`
		// Of a transfer: where it goes, or came from.
		NewIssue      numbered `json:"new_issue"`
		NewDiscussion numbered `json:"new_discussion"`
		NewRepo       numbered `json:"new_repository"`
		OldIssue      numbered `json:"old_issue"`
		OldRepo       numbered `json:"old_repository"`
	} `json:"changes"`
}

type numbered struct {
	ID     int64 `json:"id"`
	Number int   `json:"number"`
}

// A user is a person or a machine.
type user struct {
	ID    int64  `json:"id"`
	Login string `json:"login"`
	Type  string `json:"type"`
}

// A thing is an issue, pull request, discussion, review or comment.
type thing struct {
	ID        int64     `json:"id"`
	NodeID    string    `json:"node_id"`
	Number    int       `json:"number"`
	Title     string    `json:"title"`
	Body      string    `json:"body"`
	HTMLURL   string    `json:"html_url"`
	User      user      `json:"user"`
	CreatedAt stamp     `json:"created_at"`
	UpdatedAt stamp     `json:"updated_at"`
	Submitted stamp     `json:"submitted_at"`
	State     string    `json:"state"`
	Pull      *struct{} `json:"pull_request"` // of an issue: it is a pull request
	InReplyTo int64     `json:"in_reply_to_id"`
	Parent    int64     `json:"parent_id"`
	Path      string    `json:"path"`
	Line      int       `json:"line"`
	Hunk      string    `json:"diff_hunk"`
	IssueURL  string    `json:"issue_url"`        // of a comment that was read
	PullURL   string    `json:"pull_request_url"` // of a review comment that was read
	Head      struct {
		SHA string `json:"sha"`
		Ref string `json:"ref"`
	} `json:"head"`
	App *struct {
		ID int64 `json:"id"`
	} `json:"performed_via_github_app"`
}

// A stamp is a time as text. Old deliveries have it in other forms, which are no time to us.
type stamp struct{ time.Time }

// UnmarshalJSON takes anything.
func (s *stamp) UnmarshalJSON(b []byte) error {
	s.Time, _ = time.Parse(time.RFC3339, strings.Trim(string(b), `"`))
	s.Time = s.UTC()
	return nil
}

// A delivery is a payload with what is needed to understand it.
type delivery struct {
	payload
	id, event string
	digest    string // of its bytes
	self      identity
	app       int64
	ours      func(body string, t chat.Thread) bool
	first     func(chat.Thread) chat.Thread // under the key with which it began
	moved     *[2]chat.Thread               // from where to where it is transferred
}

// inbound maps a delivery to what it means for us; pure. Spoiled tells that some
// field had a wrong type.
func (d *delivery) inbound(spoiled bool) (channels.Inbound, error) {
	var events []chat.Event
	var reason string
	shape := fmt.Errorf("%s event with missing or wrongly typed fields: %w", d.name(), channels.ErrMalformed)
	about, ok := d.about()
	switch d.event {
	case "ping":
		return ignored(d.id, "ping"), nil
	case "installation", "installation_repositories":
		// What the App may do shows when it does it.
		return ignored(d.id, "installation"), nil
	case "issues", "pull_request", "discussion":
		if spoiled || !ok || d.Comment != nil || d.Review != nil {
			return channels.Inbound{}, shape
		}
		events, reason = d.onThing(about)
	case "issue_comment", "pull_request_review_comment", "discussion_comment":
		if spoiled || !ok || !valid(d.Comment) {
			return channels.Inbound{}, shape
		}
		events, reason = d.onComment(about, d.Comment)
	case "pull_request_review":
		if spoiled || !ok || !valid(d.Review) {
			return channels.Inbound{}, shape
		}
		events, reason = d.onReview(about)
	case "check_run":
		events, reason = d.onCheck(spoiled)
		if reason == "" && events == nil {
			return channels.Inbound{}, shape
		}
	default:
		return ignored(d.id, "event not used"), nil
	}
	if reason != "" {
		return ignored(d.id, reason), nil
	}
	for _, e := range events {
		if err := e.Thread.Validate(); err != nil {
			return channels.Inbound{}, fmt.Errorf("%w: %w", err, channels.ErrMalformed)
		}
	}
	return channels.Inbound{Events: events}, nil
}

// name is the event's, if it is one that is used: the header is not signed.
func (d *delivery) name() string {
	if strings.Trim(d.event, "abcdefghijklmnopqrstuvwxyz_") != "" {
		return "odd"
	}
	return d.event
}

func valid(t *thing) bool { return t != nil && t.ID > 0 && t.NodeID != "" }

// An aboutness is what a delivery is about: the issue, pull request or discussion.
type aboutness struct {
	*thing
	kind string
}

// about checks that the delivery has the shape of its event and finds what it is about.
func (d *delivery) about() (aboutness, bool) {
	var a aboutness
	switch d.event {
	case "issues", "issue_comment":
		a = aboutness{d.Issue, kindIssue}
		if d.Issue != nil && d.Issue.Pull != nil {
			a.kind = kindPull
		}
		if d.PullRequest != nil || d.Discussion != nil {
			return a, false
		}
	case "pull_request", "pull_request_review", "pull_request_review_comment":
		a = aboutness{d.PullRequest, kindPull}
		if d.Issue != nil || d.Discussion != nil {
			return a, false
		}
	case "discussion", "discussion_comment":
		a = aboutness{d.Discussion, kindDiscussion}
		if d.Issue != nil || d.PullRequest != nil {
			return a, false
		}
	}
	return a, valid(a.thing) && a.Number > 0 && d.Repository.ID > 0 && d.Sender.ID > 0 && d.Action != ""
}

// thread is the conversation of the thing itself, or the one that a comment began in it.
func (d *delivery) thread(a aboutness, root int64) chat.Thread {
	t := chat.Thread{Channel: Name, Account: strconv.FormatInt(d.Repository.ID, 10), Room: a.kind + ":" + strconv.Itoa(a.Number)}
	if root != 0 {
		t.Root = strconv.FormatInt(root, 10)
	}
	return d.first(t)
}

// transfer reads where an issue or discussion goes or came from. GitHub tells
// both repositories, in any order.
func (d *delivery) transfer(a aboutness) bool {
	here := chat.Thread{Channel: Name, Account: strconv.FormatInt(d.Repository.ID, 10), Room: a.kind + ":" + strconv.Itoa(a.Number)}
	there := func(repo, n numbered) chat.Thread {
		return chat.Thread{Channel: Name, Account: strconv.FormatInt(repo.ID, 10), Room: a.kind + ":" + strconv.Itoa(n.Number)}
	}
	c := d.Changes
	switch {
	case d.Action == "transferred" && c.NewRepo.ID > 0 && c.NewIssue.Number+c.NewDiscussion.Number > 0:
		d.moved = &[2]chat.Thread{here, there(c.NewRepo, numbered{Number: max(c.NewIssue.Number, c.NewDiscussion.Number)})}
	case d.Action == "opened" && c.OldRepo.ID > 0 && c.OldIssue.Number > 0:
		d.moved = &[2]chat.Thread{there(c.OldRepo, c.OldIssue), here}
	}
	return d.moved != nil
}

// base fills what all events have: u said or did it, at the thing that is ref.
func (d *delivery) base(a aboutness, root int64, u user, ref *thing) chat.Event {
	e := chat.Event{ID: d.id, Thread: d.thread(a, root), Ref: ref.NodeID, Facts: d.facts(), At: ref.UpdatedAt.Time}
	e.Facts[a.kind] = strconv.Itoa(a.Number)
	for k, v := range map[string]string{"url": ref.HTMLURL, "sha": a.Head.SHA, "branch": a.Head.Ref, "path": ref.Path} {
		if v != "" {
			e.Facts[k] = v
		}
	}
	if ref.Line > 0 {
		e.Facts["line"] = strconv.Itoa(ref.Line)
	}
	e.Author = d.author(u)
	return e
}

func (d *delivery) facts() map[string]string {
	f := map[string]string{"repository": strconv.FormatInt(d.Repository.ID, 10)}
	if d.Repository.FullName != "" {
		f["repo"] = d.Repository.FullName
	}
	if d.Installation.ID > 0 {
		f["installation"] = strconv.FormatInt(d.Installation.ID, 10)
	}
	return f
}

func (d *delivery) author(u user) chat.Author {
	if u.ID == 0 { // the account is gone
		return chat.Author{}
	}
	return chat.Author{ID: strconv.FormatInt(u.ID, 10), Account: strconv.FormatInt(d.Repository.ID, 10), Name: u.Login, Bot: u.Type == "Bot"}
}

// own tells whether we did it: by the user, by the App (also in a person's name)
// or by a marker that only we can write.
func (d *delivery) own(t *thing, in chat.Thread) bool {
	return d.self.User != 0 && (d.Sender.ID == d.self.User || t.User.ID == d.self.User) ||
		d.app != 0 && t.App != nil && t.App.ID == d.app ||
		d.ours(t.Body, in)
}

// said is what somebody wrote, topic unless it mentions us.
func (d *delivery) said(a aboutness, root int64, t *thing, text, topic string) chat.Event {
	e := d.base(a, root, t.User, t)
	e.Kind, e.Topic = chat.Message, topic
	e.Same = t.NodeID + "/created"
	if e.At = t.CreatedAt.Time; e.At.IsZero() {
		e.At = t.Submitted.Time
	}
	if m, found := mention(text, d.self.Slug); found {
		e.Kind, e.Topic, text = chat.Mention, "mention", m
	}
	e.Text = plain(text)
	if whom := addressed(e.Text); whom != "" && e.Kind == chat.Message {
		e.Facts[chat.Addressed] = whom
	}
	return e
}

// context is what an event is about, as its author wrote it, at the time of the
// event. It is heard with that event.
func (d *delivery) context(a aboutness, root int64, hunk *thing) chat.Event {
	e := d.base(a, root, a.User, a.thing)
	e.ID, e.Kind, e.Topic = d.id+"/"+chat.About, chat.Message, chat.About
	e.Same = a.NodeID + "/created"
	e.At = a.CreatedAt.Time
	e.Text = plain(titled(a))
	if root != 0 { // a conversation of its own hears it of its own
		e.Same = strconv.FormatInt(root, 10) + "/" + chat.About
	}
	if hunk != nil && hunk.Hunk != "" {
		e.Text += "\n\nOn `" + hunk.Path + "`:\n\n```diff\n" + hunk.Hunk + "\n```"
	}
	return e
}

var kindNames = map[string]string{kindIssue: "Issue", kindPull: "Pull request", kindDiscussion: "Discussion"}

func titled(a aboutness) string {
	return strings.TrimSpace(fmt.Sprintf("%s %d: %s\n\n%s", kindNames[a.kind], a.Number, a.Title, a.Body))
}

// onComment is about a comment t, or a review, below a.
func (d *delivery) onComment(a aboutness, t *thing) ([]chat.Event, string) {
	root := d.root(t)
	in := d.thread(a, root)
	switch d.Action {
	case "created", "submitted":
		switch {
		case d.own(t, in):
			return nil, "own message"
		case strings.TrimSpace(t.Body) == "":
			return nil, "no text"
		}
		e := d.said(a, root, t, t.Body, "thread")
		if e.Kind == chat.Mention {
			return []chat.Event{d.context(a, root, t), e}, ""
		}
		return []chat.Event{e}, ""
	case "edited":
		if d.own(t, in) {
			return nil, "own message"
		}
		return d.edited(a, root, t, t.Body)
	case "deleted":
		if d.own(&thing{User: t.User, App: t.App, Body: t.Body}, in) {
			return nil, "own message"
		}
		return []chat.Event{d.deleted(a, root, t)}, ""
	}
	return nil, "action not used"
}

// root is the comment that a conversation within a room hangs on, 0 for none.
func (d *delivery) root(t *thing) int64 {
	switch {
	case d.event == "pull_request_review_comment" && t.InReplyTo != 0:
		return t.InReplyTo
	case d.event == "discussion_comment" && t.Parent != 0:
		return t.Parent
	case d.event == "pull_request_review_comment", d.event == "discussion_comment":
		return t.ID
	}
	return 0
}

func (d *delivery) onReview(a aboutness) ([]chat.Event, string) {
	events, reason := d.onComment(a, d.Review)
	for i := range events {
		if d.Review.State != "" && events[i].Ref == d.Review.NodeID {
			events[i].Facts["review"] = strings.ToLower(d.Review.State)
		}
	}
	return events, reason
}

// edited is a change of a text. One that mentions us for the first time asks us,
// if its author made it: somebody else's hand in a text says nothing of what its
// author wants.
func (d *delivery) edited(a aboutness, root int64, t *thing, text string) ([]chat.Event, string) {
	from := d.Changes.Body
	if (from == nil || from.From == t.Body) && d.Changes.Title == nil {
		return nil, "text unchanged"
	}
	e := d.said(a, root, t, text, "edited")
	e.Same = t.NodeID + "/edited/" + t.UpdatedAt.Format(time.RFC3339) + "/" + digest([]byte(text)) // times are of seconds
	e.At = t.UpdatedAt.Time
	before := t.Body
	if from != nil {
		before = from.From
	}
	if _, had := mention(before, d.self.Slug); e.Kind == chat.Mention && !had && d.Sender.ID == t.User.ID {
		return []chat.Event{d.context(a, root, t), e}, ""
	}
	e.Kind, e.Topic = chat.Edited, "edited"
	if d.Sender.ID != t.User.ID { // and so these may be the words of who edited
		e.Author = d.author(d.Sender)
		e.Facts["editor"] = strconv.FormatInt(d.Sender.ID, 10)
	}
	return []chat.Event{e}, ""
}

func (d *delivery) deleted(a aboutness, root int64, t *thing) chat.Event {
	e := d.base(a, root, d.Sender, t)
	e.Kind, e.Topic = chat.Deleted, "deleted"
	e.Same = t.NodeID + "/deleted"
	return e
}

// onThing is about an issue, a pull request or a discussion itself.
func (d *delivery) onThing(a aboutness) ([]chat.Event, string) {
	in := d.thread(a, 0)
	if d.self.User != 0 && d.Sender.ID == d.self.User {
		return nil, "own message"
	}
	if d.transfer(a) {
		return nil, "transferred"
	}
	switch d.Action {
	case "opened", "created":
		if d.own(a.thing, in) {
			return nil, "own message"
		}
		e := d.said(a, 0, a.thing, titled(a), d.event+"."+d.Action)
		if e.Kind != chat.Mention {
			e.Kind = chat.Notice
			return []chat.Event{e}, ""
		}
		// A route may want either: the first that one wants is heard.
		rule := e
		rule.ID, rule.Topic = e.ID+"/"+d.Action, d.event+"."+d.Action
		rule.Facts = maps.Clone(e.Facts)
		return []chat.Event{e, rule}, ""
	case "edited":
		if d.own(a.thing, in) {
			return nil, "own message"
		}
		return d.edited(a, 0, a.thing, titled(a))
	case "deleted":
		return []chat.Event{d.deleted(a, 0, a.thing)}, ""
	}
	topic, text, more := d.rule(a)
	if topic == "" {
		return nil, text
	}
	e := d.base(a, 0, d.Sender, a.thing)
	e.Kind, e.Topic, e.Text = chat.Notice, topic, text
	e.Same = a.NodeID + "/" + topic + more + "/" + a.UpdatedAt.Format(time.RFC3339)
	return []chat.Event{d.context(a, 0, nil), e}, ""
}

// rule is what a standing rule may be about: its topic, what happened in words,
// and what tells two such events of one moment apart. Without a topic, text is
// the reason why it is ignored.
func (d *delivery) rule(a aboutness) (topic, text, more string) {
	what := strings.ToLower(kindNames[a.kind]) + " " + strconv.Itoa(a.Number)
	switch d.Action {
	case "labeled", "unlabeled":
		if d.Label.Name == "" {
			return "", "label without a name", ""
		}
		verb := map[string]string{"labeled": "put on", "unlabeled": "taken from"}[d.Action]
		return d.Action + "." + labelTopic.Replace(strings.ToLower(d.Label.Name)), fmt.Sprintf("The label %q was %s %s.", d.Label.Name, verb, what), ""
	case "assigned":
		if !d.me(d.Assignee) {
			return "", "assigned to somebody else", ""
		}
		return "assigned", "You were assigned to " + what + ".", ""
	case "review_requested":
		if !d.me(d.Reviewer) {
			return "", "somebody else is to review", ""
		}
		return "review_requested", "You were asked to review " + what + ".", ""
	case "closed", "reopened":
		if a.kind == kindDiscussion {
			return "", "action not used", ""
		}
		return d.event + "." + d.Action, what + " was " + d.Action + ".", ""
	case "ready_for_review":
		return d.event + "." + d.Action, what + " is ready for review.", ""
	case "synchronize":
		return d.event + "." + d.Action, what + " has new commits; its head is " + a.Head.SHA + ".", "/" + a.Head.SHA
	case "answered":
		return d.event + "." + d.Action, what + " was answered.", ""
	}
	return "", "action not used", ""
}

// labelTopic makes a word of a label's name.
var labelTopic = strings.NewReplacer(" ", "-", "*", "-")

func (d *delivery) me(u *user) bool {
	return u != nil && (d.self.User != 0 && u.ID == d.self.User || d.self.User == 0 && d.self.Slug != "" && u.Type == "Bot" && u.Login == d.self.Slug+"[bot]")
}

// onCheck is about a button below a check of ours.
func (d *delivery) onCheck(spoiled bool) ([]chat.Event, string) {
	if d.Action != "requested_action" {
		return nil, "action not used"
	}
	r := d.CheckRun
	if spoiled || r == nil || r.ID == 0 || r.NodeID == "" || !isSHA(r.HeadSHA) || d.Repository.ID <= 0 || d.Sender.ID <= 0 || d.Requested.Identifier == "" {
		return nil, ""
	}
	t := chat.Thread{Channel: Name, Account: strconv.FormatInt(d.Repository.ID, 10), Room: kindCommit + ":" + r.HeadSHA}
	e := chat.Event{
		ID: d.id, Same: r.NodeID + "/" + d.digest, Kind: chat.Action, Topic: "check_run.requested_action", Author: d.author(d.Sender), Facts: d.facts(),
		Text: fmt.Sprintf("The action %q of the check %q was chosen.", d.Requested.Identifier, r.Name),
	}
	e.Facts["check_run"], e.Facts["action"], e.Facts["sha"] = strconv.FormatInt(r.ID, 10), d.Requested.Identifier, r.HeadSHA
	if r.HTMLURL != "" {
		e.Facts["url"] = r.HTMLURL
	}
	if len(r.Pulls) > 0 && r.Pulls[0].Number > 0 { // none if it comes from a fork
		t.Room = kindPull + ":" + strconv.Itoa(r.Pulls[0].Number)
		e.Facts[kindPull] = strconv.Itoa(r.Pulls[0].Number)
	}
	e.Thread = d.first(t)
	return []chat.Event{e}, ""
}
