// Package discord is a stand-in for Discord, for tests: it keeps guilds, channels,
// threads and messages, answers the REST calls that a bot makes, holds the Gateway,
// makes signed interactions, notes every post, and misbehaves when told to.
package discord

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/heddlehq/heddle/chat"
)

// The kinds of channel.
const (
	Text    = 0
	Direct  = 1
	Voice   = 2
	News    = 5
	Public  = 11 // a thread
	Private = 12 // a thread
	Forum   = 15
)

// Options describe what there is; the zero value is a useful one.
type Options struct {
	App       string           // "900000000000000001"
	Bot       string           // user id of the bot, "900000000000000002"
	Token     string           // "fake-discord-token"; a call with any other gets 401
	Seed      string           // of the key that signs interactions: "fake-discord-key"
	Guild     string           // "100000000000000001"
	Channels  []Channel        // none: see Default
	Users     []User           // none: "300000000000000001", a member of the guild
	NoContent bool             // the message content intent is not granted
	Nonces    time.Duration    // how long a nonce is known, 5 min
	Heartbeat time.Duration    // between heartbeats, 41.25 s
	Sessions  int              // that may be begun, 1000
	Rate      int              // messages to a channel in five seconds, 0 for any number
	Clock     func() time.Time // stamps and signatures; nil for time.Now
	Hook      func(Call) Fault // asked before each call is answered; nil for no faults
}

// The channels of a guild of which nothing is said.
const (
	General = "200000000000000001" // text
	Help    = "200000000000000002" // forum
	DM      = "200000000000000003" // with the first user
)

// A Channel is a place to talk, a thread included. Its guild is the options' unless it is Direct.
type Channel struct {
	ID        string
	Kind      int
	Parent    string // of a thread
	Absent    bool   // the bot cannot see it: 50001
	NoThreads bool   // it may open none: 50013
	Mute      bool   // it may not write: 50013
	Locked    bool   // a thread that is closed for good
	last      string // message
}

// A User is a person, or another bot.
type User struct {
	ID, Name string
	Roles    []string
	Bot      bool
	Pending  bool // has not agreed to the rules
	Gone     bool // not in the guild
	NoDM     bool // takes no direct messages: 50007
}

// A Call is one REST call as it arrives.
type Call struct {
	Method string // "POST /channels/{}/messages": ids and tokens are left out
	Path   string
	Body   []byte
	N      int // how many calls of this method have come, from 1
}

// A Fault is how to misbehave. The zero value behaves.
type Fault struct {
	Hang       bool    // no answer until the caller goes away; nothing is done
	Stall      bool    // the call is done, but no answer until the caller goes away
	Cut        bool    // the call is done, then the connection is cut without an answer
	Lose       bool    // the connection is cut and nothing is done
	Status     int     // this HTTP status, and nothing is done
	Code       int     // with it, Discord's code
	RetryAfter float64 // with 429, in seconds
	Global     bool    // with 429
}

// A Message is one message, as it is now.
type Message struct {
	ID, Channel, Author string
	Content             string
	Nonce               string
	Reference           string // the message that it answers
	Interaction         string // that it answers
	Type                int
	Flags               int
	Edited              time.Time
	Mentions            []string // users
	Webhook             string
	App                 string
	Files               []File
	Reactions           []string // "user emoji"
	Deleted             bool
	more                map[string]any
}

// A File is attached to a message.
type File struct {
	ID    string
	Name  string
	Type  string
	Bytes int64
	Data  []byte
	URL   string // where it is said to be, instead of here
}

// A Post is one entry of the ledger: a message of the bot that became visible.
type Post struct {
	ID        string
	Channel   string
	Thread    chat.Thread // where it stands
	Text      string
	Nonce     string
	Reference string
	Via       string   // "message", "original" (filled in), "follow-up"
	Notified  []string // whom it notified: "everyone", users and roles
	Flags     int
	Files     []File
	At        time.Time
}

// A Server is an http.Handler for the REST API and the Gateway, below any path.
// Its methods may be called at once.
type Server struct {
	opt Options
	key ed25519.PrivateKey

	mu           sync.Mutex
	channels     map[string]*Channel
	users        map[string]User
	messages     map[string][]*Message // by channel, by id
	nonces       map[string]*Message
	interactions map[string]*interaction // by token
	posts        []Post
	calls        map[string]int
	spent        map[string][]time.Time // messages by channel, for the rate
	commands     []byte
	registered   int
	lastID       uint64
	sessions     map[string]*session
	begun        int       // sessions
	lastIdentify time.Time // at most one in five seconds
	link         *link     // that is open, nil if none
	links        int       // that were opened
	greet        func(int) int
	beat         int64  // that the last heartbeat told
	host         string // that we are called at
	closes       []int  // codes that clients closed with, 1006 for none
	changed      chan struct{}
}

// New makes a server.
func New(o Options) *Server {
	for _, d := range []struct {
		v   *string
		def string
	}{
		{&o.App, "900000000000000001"},
		{&o.Bot, "900000000000000002"},
		{&o.Token, "fake-discord-token"},
		{&o.Seed, "fake-discord-key"},
		{&o.Guild, "100000000000000001"},
	} {
		if *d.v == "" {
			*d.v = d.def
		}
	}
	if o.Users == nil {
		o.Users = []User{{ID: "300000000000000001", Name: "anna"}}
	}
	if o.Channels == nil {
		o.Channels = []Channel{{ID: General}, {ID: Help, Kind: Forum}, {ID: DM, Kind: Direct}}
	}
	if o.Nonces == 0 {
		o.Nonces = 5 * time.Minute
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = 41250 * time.Millisecond
	}
	if o.Sessions == 0 {
		o.Sessions = 1000
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	sum := sha256.Sum256([]byte(o.Seed))
	s := &Server{
		opt: o, key: ed25519.NewKeyFromSeed(sum[:]), channels: map[string]*Channel{}, users: map[string]User{}, messages: map[string][]*Message{},
		nonces: map[string]*Message{}, interactions: map[string]*interaction{}, calls: map[string]int{}, spent: map[string][]time.Time{},
		sessions: map[string]*session{}, changed: make(chan struct{}),
	}
	for _, u := range append(slices.Clone(o.Users), User{ID: o.Bot, Name: "heddle", Bot: true}) {
		s.users[u.ID] = u
	}
	for _, c := range o.Channels {
		s.channels[c.ID] = &c
	}
	return s
}

// Options are those of the server, with the defaults filled in.
func (s *Server) Options() Options { return s.opt }

// PublicKey is what verifies the interactions, as Discord shows it.
func (s *Server) PublicKey() string { return hex.EncodeToString(s.key.Public().(ed25519.PublicKey)) }

// Set adds a channel, or changes one. Nobody is told.
func (s *Server) Set(c Channel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.channels[c.ID] = &c
}

// SetUser adds a user, or changes one.
func (s *Server) SetUser(u User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users[u.ID] = u
}

// Posts is the ledger: all posts, oldest first.
func (s *Server) Posts() []Post {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.posts)
}

// Calls is how many calls of a method came: "POST /channels/{}/messages".
func (s *Server) Calls(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[method]
}

// Registered is how often the commands were set, and how they are.
func (s *Server) Registered() (int, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.registered, string(s.commands)
}

// ForgetNonces lets all nonces run out.
func (s *Server) ForgetNonces() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.nonces)
}

// Messages are those of a channel that are not deleted, oldest first.
func (s *Server) Messages(channel string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Message
	for _, m := range s.messages[channel] {
		if !m.Deleted {
			out = append(out, *m)
		}
	}
	return out
}

// Wait waits until done says so, which is asked at each change, or fails with
// ctx's error.
func (s *Server) Wait(ctx context.Context, done func() bool) error {
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if done() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for discord: %w", context.Cause(ctx))
		}
	}
}

// WaitPosts returns the ledger once it has n posts, or with ctx's error before.
func (s *Server) WaitPosts(ctx context.Context, n int) ([]Post, error) {
	err := s.Wait(ctx, func() bool { return len(s.Posts()) >= n })
	return s.Posts(), err
}

// change tells those who wait; mu is held.
func (s *Server) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// stamp makes an id; mu is held.
func (s *Server) stamp() string {
	const epoch = 1420070400000
	s.lastID = max(uint64(s.opt.Clock().UnixMilli()-epoch)<<22, s.lastID+1)
	return strconv.FormatUint(s.lastID, 10)
}

func (s *Server) find(channel, id string) *Message {
	if id == "" {
		return nil
	}
	for _, m := range s.messages[channel] {
		if m.ID == id && !m.Deleted {
			return m
		}
	}
	return nil
}

// threadOf is the thread that a message stands in; mu is held.
func (s *Server) threadOf(m *Message) chat.Thread {
	t := chat.Thread{Channel: "discord", Account: s.opt.Guild, Room: m.Channel}
	c := s.channels[m.Channel]
	switch {
	case c == nil:
	case c.Kind == Direct:
		t.Account = "@me"
	case c.Kind == Public || c.Kind == Private:
		t.Room, t.Root = c.Parent, c.ID
	case m.Interaction != "":
		t.Root = "i" + m.Interaction
	case m.Reference != "":
		t.Root = m.Reference
	}
	return t
}

var _ http.Handler = (*Server)(nil)
