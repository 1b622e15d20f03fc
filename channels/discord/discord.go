// Package discord is the Discord adapter: it holds a connection to the Gateway,
// verifies and reads interactions over HTTP, opens threads, posts and finds
// messages by the REST API, and tells what people are in a guild.
package discord

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bwmarrin/discordgo"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/config"
)

// Name is the channel's name in paths, thread keys and settings.
const Name = "discord"

const (
	defaultAPIURL = "https://discord.com/api/v10"
	userAgent     = "DiscordBot (https://github.com/heddlehq/heddle, 1)"
)

// direct is the account of direct messages, which belong to no guild.
const direct = "@me"

// Options configure New. BotToken is required.
type Options struct {
	BotToken      string           // DISCORD_BOT_TOKEN
	ApplicationID string           // DISCORD_APPLICATION_ID, "" to learn it from Discord
	PublicKey     string           // DISCORD_PUBLIC_KEY, "" for interactions by the Gateway
	APIURL        string           // DISCORD_API_URL, "" for Discord's own
	Access        Access           // who holds which role
	Client        *http.Client     // nil for one with timeouts; one without a timeout may hang as long as the context allows
	Clock         func() time.Time // nil for time.Now
}

// Access says who holds which role. An entry is the id of a role of a guild or of
// a person; Members may hold "all", every member of a guild. In direct messages a
// person has the highest role that they have in any guild of the bot.
type Access struct {
	Members, Maintainers, Admins []string
}

// A Channel is Discord behind one bot token. Its methods may be called at once.
type Channel struct {
	key    ed25519.PublicKey // nil without interactions over HTTP
	apiURL string            // without a slash at the end
	rest   *discordgo.Session
	access Access
	now    func() time.Time
	values channels.Memory // nil until Remember
	self   atomic.Pointer[identity]
	link   session // of Listen only
	pulse  pulse

	mu     sync.Mutex
	live   chan struct{}        // closed when there is a session, nil while none is expected; guarded by mu
	rooms  map[string]room      // channels and threads by id; guarded by mu
	guilds map[string]string    // the bot's own role by guild; guarded by mu
	in     []string             // guilds that the bot is in, as of inAt; guarded by mu
	inAt   time.Time            // guarded by mu
	asked  map[string]string    // what opens a thread, by message id, for its title; guarded by mu
	denied map[string]time.Time // what channels do not let us do, until when; guarded by mu
	echoes map[string]string    // own messages that came back, by nonce; guarded by mu
	marked map[string]bool      // messages that have a mark; guarded by mu
}

// An identity is who we are.
type identity struct {
	user, app string
	content   bool // the message content intent is granted
	known     bool // Discord has told
}

var (
	_ channels.Webhook    = (*Channel)(nil)
	_ channels.Socket     = (*Channel)(nil)
	_ channels.Rememberer = (*Channel)(nil)
	_ channels.Sender     = (*Channel)(nil)
	_ channels.Finder     = (*Channel)(nil)
	_ channels.Fetcher    = (*Channel)(nil)
	_ channels.Roster     = (*Channel)(nil)
	_ channels.Historian  = (*Channel)(nil)
	_ channels.Marker     = (*Channel)(nil)
	_ channels.Whisperer  = (*Channel)(nil)
	_ channels.Opener     = (*Channel)(nil)
	_ channels.Linker     = (*Channel)(nil)
)

// New checks the options and does no I/O. Its error names the setting that is
// wrong and never shows a secret.
func New(o Options) (*Channel, error) {
	if o.BotToken != strings.TrimSpace(o.BotToken) || config.Placeholder(o.BotToken) {
		return nil, fmt.Errorf("DISCORD_BOT_TOKEN is empty or a placeholder: want the bot's token, without \"Bot \"")
	}
	if o.ApplicationID != "" && !snowflake(o.ApplicationID) {
		return nil, fmt.Errorf("DISCORD_APPLICATION_ID %q: want digits", o.ApplicationID)
	}
	var key ed25519.PublicKey
	if o.PublicKey != "" {
		b, err := hex.DecodeString(o.PublicKey)
		if err != nil || len(b) != ed25519.PublicKeySize {
			return nil, fmt.Errorf("DISCORD_PUBLIC_KEY: want %d hexadecimal digits", 2*ed25519.PublicKeySize)
		}
		key = b
	}
	apiURL, err := endpoint(o.APIURL)
	if err != nil {
		return nil, err
	}
	if err := o.Access.validate(); err != nil {
		return nil, err
	}
	client, now := o.Client, o.Clock
	if client == nil {
		client = channels.NewClient()
	}
	if now == nil {
		now = time.Now
	}
	limited := *client
	limited.Transport = newBuckets(client.Transport, now)
	c := &Channel{
		key: key, apiURL: apiURL, access: o.Access, now: now, pulse: usualPulse,
		rest:  &discordgo.Session{Token: "Bot " + o.BotToken, UserAgent: userAgent, Client: &limited},
		rooms: map[string]room{}, guilds: map[string]string{}, asked: map[string]string{}, denied: map[string]time.Time{},
		echoes: map[string]string{}, marked: map[string]bool{},
	}
	c.self.Store(&identity{app: o.ApplicationID})
	return c, nil
}

// Name is "discord".
func (c *Channel) Name() string { return Name }

// Remember keeps the session of the Gateway over restarts, and which commands
// are registered.
func (c *Channel) Remember(values, _ channels.Memory) { c.values = values }

// Identify asks Discord who the token belongs to. Its error is a
// *channels.SendError; Rejected means that the token (or the API URL, or the
// application's id) is no good, anything else is trouble on the way and worth
// another try.
func (c *Channel) Identify(ctx context.Context) error {
	var user, app struct {
		ID    string `json:"id"`
		Flags int64  `json:"flags"`
	}
	if err := c.call(ctx, http.MethodGet, "/users/@me", nil, &user); err != nil {
		return classify(err)
	}
	if err := c.call(ctx, http.MethodGet, "/applications/@me", nil, &app); err != nil {
		return classify(err)
	}
	own := c.identity()
	switch {
	case user.ID == "" || app.ID == "":
		return &channels.SendError{Verdict: channels.Unknown, Reason: "answer without identity"}
	case own.app != "" && own.app != app.ID:
		return &channels.SendError{Verdict: channels.Rejected, Reason: "DISCORD_APPLICATION_ID is not the application of the token"}
	}
	const granted = 1<<18 | 1<<19 // message content, for verified and for small applications
	c.self.Store(&identity{user: user.ID, app: app.ID, content: app.Flags&granted != 0, known: true})
	return nil
}

func (c *Channel) identity() identity { return *c.self.Load() }

// Notes says what the application may not do that somebody may expect of it.
func (c *Channel) Notes() []string {
	if own := c.identity(); own.known && !own.content {
		return []string{"the message content intent is not granted: only mentions, replies to the bot, direct messages and commands can be read"}
	}
	return nil
}

func endpoint(s string) (string, error) {
	if s == "" {
		return defaultAPIURL, nil
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.RawQuery != "" || u.User != nil {
		return "", fmt.Errorf("DISCORD_API_URL: want an http or https address such as %s", defaultAPIURL)
	}
	return strings.TrimSuffix(s, "/"), nil
}

func (a Access) validate() error {
	for _, f := range []struct {
		name string
		ids  []string
	}{{"members", a.Members}, {"maintainers", a.Maintainers}, {"admins", a.Admins}} {
		for _, id := range f.ids {
			switch {
			case id == all && f.name == "members":
			case id == all:
				return fmt.Errorf("access.discord.%s: %q is allowed for members only", f.name, id)
			case !snowflake(id):
				return fmt.Errorf("access.discord.%s: %q: want all, or the id of a role or a person, which is digits", f.name, id)
			}
		}
	}
	return nil
}
