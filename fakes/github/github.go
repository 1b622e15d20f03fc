// Package github is a stand-in for GitHub, for tests: it keeps repositories,
// issues, pull requests, discussions and comments, answers the REST and GraphQL
// calls that an App or a user's token makes, signs webhook deliveries, notes
// every comment, and misbehaves when told to.
package github

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/heddlehq/heddle/chat"
)

// Options describe a hub; the zero value is a useful one.
type Options struct {
	AppID    int64            // 7
	Slug     string           // "heddle"; the bot is "heddle[bot]" and its user id BotUser
	BotUser  int64            // 7000
	Token    string           // of the bot as a user, whose login is Slug; "" for an App alone
	Secret   string           // of the webhook: "fake-webhook-secret"
	TokenFor time.Duration    // how long an installation's token lasts, 1 h
	Gap      time.Duration    // writes of one installation that come sooner after each other, or at once, are refused as secondary limits do
	Repos    []Repo           // none: fake/repo with the id 5, in installation 9
	Users    []User           // none: person, who may write
	Clock    func() time.Time // nil for time.Now
	Hook     func(Call) Fault // asked before each call is answered; nil for no faults
}

// A Repo is a repository that the App is installed on.
type Repo struct {
	ID           int64
	FullName     string
	Installation int64
}

// A User is a person or bot.
type User struct {
	ID         int64
	Login      string
	Bot        bool
	Permission string // on every repository: "none", "read", "triage", "write", "maintain" or "admin"
}

// A Call is one API call as it arrives.
type Call struct {
	Method, Path string // "POST", "/repos/fake/repo/issues/1/comments"; the path without /api/v3
	Name         string // what it is: "comment", "list comments", "token", "graphql"
	Body         []byte
	N            int // how many calls of this name have come, from 1
}

// A Fault is how to misbehave. The zero value behaves.
type Fault struct {
	Hang    bool        // no answer until the caller goes away; nothing is done
	Stall   bool        // the call is done, but no answer until the caller goes away
	Cut     bool        // the call is done, then the connection is cut without an answer
	Lose    bool        // the connection is cut and nothing is done
	Status  int         // this HTTP status, and nothing is done
	Header  http.Header // with Status
	Message string      // with Status
}

// A Post is one entry of the ledger: a comment that was accepted.
type Post struct {
	Repo    string      // full name
	Thread  chat.Thread // where it stands
	Ref     string      // node id
	ReplyTo string      // node id of the comment it hangs on, "" if none
	Body    string      // as posted
	Text    string      // without the hidden line
	Key     string      // from the hidden line, "" if there is none
	At      time.Time
}

// A Comment is a comment, or the text of an issue, pull request or discussion, as it is now.
type Comment struct {
	ID        int64
	NodeID    string
	User      User
	Body      string
	Created   time.Time
	Updated   time.Time
	Root      int64 // of a reply: the comment it hangs on, 0 for none
	Deleted   bool
	ViaApp    int64 // the App that made it, 0 for none
	Reactions []string
}

// A Thing is an issue, pull request, discussion or commit with its comments.
type Thing struct {
	Comment
	Kind     string // "issue", "pr", "discussion", "commit"
	Number   int
	SHA      string // of a commit, and of a pull request's head
	Title    string
	Locked   bool
	Comments []*Comment // in the conversation of the thing
	Review   []*Comment // of a pull request: on its lines
}

// A Hub is an http.Handler for the API, at the root or below /api. Its methods may be called at once.
type Hub struct {
	opt Options
	key func() *rsa.PrivateKey // made when it is asked for, which takes time

	mu        sync.Mutex
	repos     map[int64]*repo
	users     map[int64]User
	tokens    map[string]grant
	suspended map[int64]bool
	codes     map[string]time.Time // of Apps that were just made
	wrote     map[int64]time.Time  // when an installation last wrote
	posts     []Post
	calls     map[string]int
	lastID    int64
	tried     []attempt  // newest last
	again     []Delivery // that were to be delivered again
	changed   chan struct{}
}

type repo struct {
	Repo
	old    []string // names it had
	things map[string]*Thing
}

type grant struct {
	installation int64
	until        time.Time
}

// New makes a hub.
func New(o Options) *Hub {
	setDefault(&o.AppID, 7)
	setDefault(&o.Slug, "heddle")
	setDefault(&o.BotUser, 7000)
	setDefault(&o.Secret, "fake-webhook-secret")
	setDefault(&o.TokenFor, time.Hour)
	if o.Repos == nil {
		o.Repos = []Repo{{ID: 5, FullName: "fake/repo", Installation: 9}}
	}
	if o.Users == nil {
		o.Users = []User{{ID: 77, Login: "person", Permission: "write"}}
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	h := &Hub{
		opt: o, repos: map[int64]*repo{}, users: map[int64]User{}, tokens: map[string]grant{}, suspended: map[int64]bool{}, codes: map[string]time.Time{}, wrote: map[int64]time.Time{},
		calls: map[string]int{}, lastID: 1000, changed: make(chan struct{}),
	}
	h.key = sync.OnceValue(func() *rsa.PrivateKey {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			panic(err) // unreachable: the size is right
		}
		return key
	})
	for _, u := range o.Users {
		h.users[u.ID] = u
	}
	h.users[o.BotUser] = User{ID: o.BotUser, Login: h.botLogin(), Bot: o.Token == "", Permission: "write"}
	for _, r := range o.Repos {
		h.repos[r.ID] = &repo{Repo: r, things: map[string]*Thing{}}
	}
	return h
}

func setDefault[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}

// Options are those of the hub, with the defaults filled in.
func (h *Hub) Options() Options { return h.opt }

// PrivateKey is the App's, in PEM as GitHub lets one download it.
func (h *Hub) PrivateKey() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(h.key())}))
}

func (h *Hub) botLogin() string {
	if h.opt.Token != "" {
		return h.opt.Slug
	}
	return h.opt.Slug + "[bot]"
}

// Posts is the ledger: all accepted comments of the API, oldest first.
func (h *Hub) Posts() []Post {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.posts)
}

// WaitPosts returns the ledger once it has n posts, or with ctx's error before.
func (h *Hub) WaitPosts(ctx context.Context, n int) ([]Post, error) {
	for {
		h.mu.Lock()
		posts, changed := slices.Clone(h.posts), h.changed
		h.mu.Unlock()
		if len(posts) >= n {
			return posts, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return posts, fmt.Errorf("wait for %d posts, have %d: %w", n, len(posts), context.Cause(ctx))
		}
	}
}

// Calls says how often each call was made, by name.
func (h *Hub) Calls() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.calls)
}

// Rename gives a repository another name. The old one leads to it.
func (h *Hub) Rename(id int64, fullName string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.repos[id]
	r.old = append(r.old, r.FullName)
	r.FullName = fullName
}

// Suspend stops an installation, or lets it go on.
func (h *Hub) Suspend(installation int64, on bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.suspended[installation] = on
}

// Manifest makes the App, as a person does with a manifest, and returns the code
// that GitHub sends the browser back with.
func (h *Hub) Manifest() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lastID++
	code := fmt.Sprintf("code%d", h.lastID)
	h.codes[code] = h.opt.Clock()
	return code
}

// Revoke makes all tokens of installations invalid.
func (h *Hub) Revoke() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.tokens)
}

// Lock locks the conversation of a thing.
func (h *Hub) Lock(repo int64, kind string, number int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.thing(h.repos[repo], kind, strconv.Itoa(number)).Locked = true
}

// Reactions are those that stand at a comment, an issue, a pull request or a
// discussion now, by node id.
func (h *Hub) Reactions(node string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.node(node); c != nil {
		return slices.Clone(c.Reactions)
	}
	return nil
}

// thing returns an issue, pull request, discussion or commit, which is made when
// it is first spoken of.
func (h *Hub) thing(r *repo, kind, id string) *Thing {
	if t := r.things[kind+":"+id]; t != nil {
		return t
	}
	t := &Thing{Comment: h.comment(map[string]string{"issue": "I", "pr": "PR", "discussion": "D", "commit": "C"}[kind], User{}, "text"), Kind: kind}
	t.Number, _ = strconv.Atoi(id)
	t.Title = "Title " + id
	t.User = h.opt.Users[0]
	switch kind {
	case "commit":
		t.SHA = id
	case "pr":
		t.SHA = fmt.Sprintf("%040x", t.ID)
	}
	r.things[kind+":"+id] = t
	return t
}

// numbered finds what has the number, nil if there is nothing: issues and pull
// requests share their numbers.
func (r *repo) numbered(number string, kinds ...string) *Thing {
	for _, k := range kinds {
		if t := r.things[k+":"+number]; t != nil && !t.Deleted {
			return t
		}
	}
	return nil
}

func (h *Hub) comment(prefix string, u User, body string) Comment {
	h.lastID++
	now := h.opt.Clock().UTC().Truncate(time.Second)
	return Comment{ID: h.lastID, NodeID: fmt.Sprintf("%s_%d", prefix, h.lastID), User: u, Body: body, Created: now, Updated: now}
}

// node finds by node id.
func (h *Hub) node(id string) *Comment {
	for _, r := range h.repos {
		for _, t := range r.things {
			if t.NodeID == id {
				return &t.Comment
			}
			for _, c := range slices.Concat(t.Comments, t.Review) {
				if c.NodeID == id {
					return c
				}
			}
		}
	}
	return nil
}

// made notes a comment of the API.
func (h *Hub) made(r *repo, t *Thing, root *Comment, c *Comment) {
	p := Post{Repo: r.FullName, Ref: c.NodeID, Body: c.Body, Text: c.Body, At: h.opt.Clock()}
	id := strconv.Itoa(t.Number)
	if t.Kind == "commit" {
		id = t.SHA
	}
	p.Thread = chat.Thread{Channel: "github", Account: strconv.FormatInt(r.ID, 10), Room: t.Kind + ":" + id}
	if root != nil {
		p.Thread.Root, p.ReplyTo = strconv.FormatInt(root.ID, 10), root.NodeID
	}
	if i := strings.LastIndex(c.Body, "<!-- heddle:"); i >= 0 {
		p.Text = strings.TrimSpace(c.Body[:i])
		key, _, _ := strings.Cut(c.Body[i+len("<!-- heddle:"):], " -->")
		p.Key = key[:max(strings.LastIndexByte(key, ':'), 0)]
	}
	h.posts = append(h.posts, p)
	close(h.changed)
	h.changed = make(chan struct{})
}
