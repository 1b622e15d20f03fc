// Package slack is a stand-in for a Slack workspace, for tests: it keeps
// channels and messages, answers the Web API calls that a bot makes, makes
// signed deliveries of the Events API, notes every post, and misbehaves when told to.
package slack

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/heddlehq/heddle/chat"
)

// Options describe a workspace; the zero value is a useful one.
type Options struct {
	Team          string // "T0FAKE"
	AppID         string // "A0FAKE"
	BotUser       string // "U0BOT"
	BotID         string // "B0BOT"
	BotToken      string // "xoxb-fake"; a call with any other gets invalid_auth
	AppToken      string // "xapp-fake"; for apps.connections.open, and good for nothing else
	ClientID      string // of the app, for installations; "" refuses them
	ClientSecret  string
	Rotate        bool                // tokens of installations last twelve hours
	Enterprise    string              // an organisation that installs for all its workspaces
	SigningSecret string              // "fake-signing-secret"
	Channels      []Channel           // none: C0GENERAL, and D0PERSON with the first user
	Users         []User              // none: U0PERSON, a full member
	Groups        map[string][]string // user groups: who is in which
	Clock         func() time.Time    // stamps and signatures; nil for time.Now
	Hook          func(Call) Fault    // asked before each API call is answered; nil for no faults
}

// A Channel is a place to talk. The bot is in it unless Absent.
type Channel struct {
	ID       string
	Kind     string // channel_type: "channel" if empty, "group", "mpim", "im"
	Absent   bool   // posts get not_in_channel
	Archived bool   // posts get is_archived
}

// A User is a person or bot. Team is the workspace's own if empty.
type User struct {
	ID, Team, Name                                             string
	Admin, Restricted, UltraRestricted, Bot, Stranger, Deleted bool
}

// A Call is one API call as it arrives.
type Call struct {
	Method string            // "chat.postMessage"
	Args   map[string]string // arguments, without the token
	N      int               // how many calls of this method have come, from 1
}

// A Fault is how to misbehave. The zero value behaves.
type Fault struct {
	Delay      time.Duration // before anything else
	Hang       bool          // no answer until the caller goes away; nothing is done
	Stall      bool          // the call is done, but no answer until the caller goes away
	Cut        bool          // the call is done, then the connection is cut without an answer
	Lose       bool          // the connection is cut and nothing is done
	Status     int           // this HTTP status, and nothing is done; with RetryAfter for 429
	RetryAfter string
	Code       string // "ok": false with this error, and nothing is done
}

// A Message is one message of a channel, as it is now.
type Message struct {
	TS       string
	ThreadTS string // "" for a message that is in no thread
	User     string
	BotID    string // set for the bot's own
	Text     string
	Metadata json.RawMessage
	EditedTS string
	Files    []File
	Deleted  bool // gone; stays as a tombstone while it has replies

	reactions map[string]bool // the bot's
}

// A Post is one entry of the ledger: a chat.postMessage that was accepted, or
// files that were posted.
type Post struct {
	Channel  string
	TS       string
	Asked    string      // thread_ts of the call
	Thread   chat.Thread // where it stands; Root differs from Asked if the thread was gone
	Text     string      // as posted
	Key      string      // "key" of the metadata's payload, if there is one; of files the name of the first
	Response bool        // made by a response URL
	Files    []File
	At       time.Time
}

// A Workspace is an http.Handler for the Web API, below any path. Its methods may be called at once.
type Workspace struct {
	opt Options

	mu       sync.Mutex
	channels map[string]*room
	users    map[string]User
	posts    []Post
	files    map[string]File    // by id
	uploads  map[string]*upload // those not completed
	fileIDs  int
	base     string // the address that was called last
	calls    map[string]int
	lastTS   int64 // microseconds
	events   int
	stamps   int // ids of envelopes and addresses
	sockets  sockets
	grants   grants
	whispers []Whisper
	statuses map[string]string // of assistant threads
	titles   map[string]string // of assistant threads
	hooks    map[string]*hook  // response URLs, by the last part of their path
	changed  chan struct{}     // closed and replaced at each post, and whatever sockets do
}

type room struct {
	Channel
	messages []*Message // by TS
}

// New makes a workspace.
func New(o Options) *Workspace {
	for _, d := range []struct {
		v   *string
		def string
	}{
		{&o.Team, "T0FAKE"},
		{&o.AppID, "A0FAKE"},
		{&o.BotUser, "U0BOT"},
		{&o.BotID, "B0BOT"},
		{&o.BotToken, "xoxb-fake"},
		{&o.AppToken, "xapp-fake"},
		{&o.SigningSecret, "fake-signing-secret"},
	} {
		if *d.v == "" {
			*d.v = d.def
		}
	}
	if o.Users == nil {
		o.Users = []User{{ID: "U0PERSON", Name: "person"}}
	}
	if o.Channels == nil {
		o.Channels = []Channel{{ID: "C0GENERAL"}, {ID: "D0PERSON", Kind: "im"}}
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	w := &Workspace{opt: o, channels: map[string]*room{}, users: map[string]User{}, calls: map[string]int{}, changed: make(chan struct{}), files: map[string]File{}, uploads: map[string]*upload{}}
	w.grants = grants{codes: map[string]bool{}, tokens: map[string]time.Time{}, refresh: map[string]bool{}}
	w.sockets.tickets, w.hooks, w.statuses, w.titles = map[string]bool{}, map[string]*hook{}, map[string]string{}, map[string]string{}
	for _, u := range append(slices.Clone(o.Users), User{ID: o.BotUser, Name: "heddle", Bot: true}) {
		if u.Team == "" {
			u.Team = o.Team
		}
		w.users[u.ID] = u
	}
	for _, c := range o.Channels {
		w.AddChannel(c)
	}
	return w
}

// Options are those of the workspace, with the defaults filled in.
func (w *Workspace) Options() Options { return w.opt }

// AddChannel adds a channel, or changes what is known of one.
func (w *Workspace) AddChannel(c Channel) {
	if c.Kind == "" {
		c.Kind = "channel"
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if r, ok := w.channels[c.ID]; ok {
		r.Channel = c
		return
	}
	w.channels[c.ID] = &room{Channel: c}
}

// Posts is the ledger: all accepted posts, oldest first. A post that was deleted stays in it.
func (w *Workspace) Posts() []Post {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.posts)
}

// WaitPosts returns the ledger once it has n posts, or with ctx's error before.
func (w *Workspace) WaitPosts(ctx context.Context, n int) ([]Post, error) {
	for {
		w.mu.Lock()
		posts, changed := slices.Clone(w.posts), w.changed
		w.mu.Unlock()
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

// Messages are those of a channel that are not deleted, by time.
func (w *Workspace) Messages(channel string) []Message {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []Message
	if r := w.channels[channel]; r != nil {
		for _, m := range r.messages {
			if !m.Deleted {
				out = append(out, *m)
			}
		}
	}
	return out
}

// Calls says how often each API method was called.
func (w *Workspace) Calls() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.calls)
}

// Remove deletes a message as a person would, without a delivery. The thread of
// a root without replies is gone then; with replies it goes on.
func (w *Workspace) Remove(channel, ts string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m := w.find(channel, ts); m != nil {
		m.Deleted = true
	}
}

// stamp returns a message id that no message has; ids grow, like time.
func (w *Workspace) stamp() string {
	w.lastTS = max(w.lastTS+1, w.opt.Clock().UnixMicro())
	return fmt.Sprintf("%d.%06d", w.lastTS/1e6, w.lastTS%1e6)
}

func (w *Workspace) find(channel, ts string) *Message {
	r := w.channels[channel]
	if r == nil {
		return nil
	}
	for _, m := range r.messages {
		if m.TS == ts {
			return m
		}
	}
	return nil
}

// alive tells whether a reply can hang on the root: it is there, or others hang on it.
func (r *room) alive(root string) bool {
	for _, m := range r.messages {
		if !m.Deleted && (m.TS == root || m.ThreadTS == root) {
			return true
		}
	}
	return false
}

// add puts a message where its time says.
func (r *room) add(m *Message) {
	i, _ := slices.BinarySearchFunc(r.messages, m, func(a, b *Message) int { return strings.Compare(a.TS, b.TS) })
	r.messages = slices.Insert(r.messages, i, m)
}

// ServeHTTP answers one API call; the last part of the path is the method. What
// is below "/files-pri/", "/upload/" and "/response/" counts as the methods
// download, upload and response.
func (w *Workspace) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	method := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	if method == socketPath {
		w.serveSocket(rw, r)
		return
	}
	var bytes http.HandlerFunc
	switch {
	case strings.Contains(r.URL.Path, "/files-pri/"):
		method, bytes = "download", w.download
	case strings.Contains(r.URL.Path, "/upload/"):
		method, bytes = "upload", w.receiveUpload
	case strings.Contains(r.URL.Path, "/response/"):
		method, bytes = "response", w.receiveResponse
	}
	var args map[string]string
	var token string
	var err error
	if bytes == nil {
		args, token, err = arguments(r)
	}
	w.mu.Lock()
	w.base = "http://" + r.Host
	w.calls[method]++
	call := Call{Method: method, Args: args, N: w.calls[method]}
	w.mu.Unlock()
	var f Fault
	if w.opt.Hook != nil {
		f = w.opt.Hook(call)
	}
	if !f.allow(rw, r) {
		return
	}
	if bytes != nil {
		if f.Cut {
			panic(http.ErrAbortHandler) // how net/http cuts a connection
		}
		bytes(rw, r)
		return
	}
	var out answer
	switch handle := methods[method]; {
	case err != nil:
		out = fail("invalid_form_data")
	case method == "apps.connections.open" && token == w.opt.AppToken:
		w.mu.Lock()
		out = w.openSocket(r.Host)
		w.mu.Unlock()
	case token == w.opt.AppToken || method == "apps.connections.open" && token == w.opt.BotToken:
		out = fail("not_allowed_token_type")
	case method == "oauth.v2.access":
		w.mu.Lock()
		out = w.access(args)
		w.mu.Unlock()
	case w.good(token) != "":
		out = fail(w.good(token))
	case handle == nil:
		out = fail("unknown_method")
	default:
		w.mu.Lock()
		out = handle(w, args)
		w.mu.Unlock()
	}
	if f.Stall {
		<-r.Context().Done()
		return
	}
	if f.Cut {
		panic(http.ErrAbortHandler) // how net/http cuts a connection
	}
	rw.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(rw).Encode(out) // a caller that went away needs no answer
}

// allow carries out what a fault does instead of the call, and tells whether to go on.
func (f Fault) allow(rw http.ResponseWriter, r *http.Request) bool {
	if f.Delay > 0 {
		t := time.NewTimer(f.Delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-r.Context().Done():
			return false
		}
	}
	switch {
	case f.Hang:
		<-r.Context().Done()
		return false
	case f.Lose:
		panic(http.ErrAbortHandler)
	case f.Status != 0:
		if f.RetryAfter != "" {
			rw.Header().Set("Retry-After", f.RetryAfter)
		}
		http.Error(rw, "<html>"+http.StatusText(f.Status)+"</html>", f.Status)
		return false
	case f.Code != "":
		rw.Header().Set("Content-Type", "application/json; charset=utf-8")
		_ = json.NewEncoder(rw).Encode(fail(f.Code))
		return false
	}
	return true
}
