package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"
	"github.com/gorilla/websocket"

	"github.com/heddlehq/heddle/channels"
)

// A pulse is how connections live.
type pulse struct {
	open    time.Duration // from dialling to a session
	settled time.Duration // a connection that lasted so long was a good one
	again   time.Duration // least wait for a new session after one that was ended
	longest time.Duration // and at most, after many in a row
}

// With a new session every five minutes at worst, the thousand that Discord
// grants a day are not used up: it would reset the token.
var usualPulse = pulse{open: 30 * time.Second, settled: time.Minute, again: time.Second, longest: 5 * time.Minute}

// A session is what a connection is resumed by.
type session struct {
	ID      string           `json:"id"`
	URL     string           `json:"url"`
	Seq     int64            `json:"seq"` // of the last frame that was admitted
	Intents discordgo.Intent `json:"intents"`

	lost   int  // sessions in a row that did not last
	loaded bool // from the memory
}

var (
	errReconnect = errors.New("the gateway asks to connect again")
	errInvalid   = errors.New("the gateway ends the session")
	errDead      = errors.New("the gateway acknowledges no heartbeat")
)

// hopeless are the close codes that no other try helps.
var hopeless = map[int]string{
	4004: "the token is refused",
	4010: "the shard is refused",
	4011: "the bot is in so many guilds that they must be sharded, which Heddle does not do",
	4012: "the version of the gateway is refused",
	4013: "the intents are refused",
	4014: "an intent is not granted to the application",
}

// Listen holds one connection to the Gateway. One that Discord wants made again
// is made again, with the session that it has; Listen fails when one breaks or
// the session is lost, which is a gap, and the next call resumes it or begins one.
func (c *Channel) Listen(ctx context.Context, take channels.Take) error {
	live := make(chan struct{})
	c.expect(live)
	defer c.expect(nil)
	up := sync.OnceFunc(func() { close(live) })
	err := c.prepare(ctx, take)
	for err == nil || errors.Is(err, errReconnect) {
		err = c.connect(ctx, take, up)
	}
	var se *channels.SendError
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.As(err, &se) && se.Verdict == channels.Rejected:
		return fmt.Errorf("%w: %w", channels.ErrFatal, err)
	}
	return err
}

// expect says that a session will be there when live is closed, nil for never.
func (c *Channel) expect(live chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live = live
}

func (c *Channel) expected() chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.live
}

// connected waits until there is a session, if one is expected.
func (c *Channel) connected(ctx context.Context) error {
	live := c.expected()
	if live == nil {
		return nil
	}
	select {
	case <-live:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("no session yet: %w", context.Cause(ctx))
	}
}

// prepare does what comes before the first connection.
func (c *Channel) prepare(ctx context.Context, take channels.Take) error {
	if !c.identity().known {
		if err := c.Identify(ctx); err != nil {
			return err
		}
	}
	if !c.link.loaded && c.values != nil {
		b, err := c.values.Load(ctx, "session")
		if err != nil {
			return fmt.Errorf("load the session: %w", err)
		}
		if b != nil && json.Unmarshal(b, &c.link) != nil {
			c.link = session{} // of another version
		}
	}
	c.link.loaded = true
	if err := c.register(ctx); err != nil && ctx.Err() == nil {
		return take(ctx, ignored("", "commands not registered")) // tried again by the next call
	}
	return nil
}

// save remembers the session. What fails is made good by the next time: frames
// that come again are admitted once.
func (c *Channel) save(ctx context.Context) {
	if c.values == nil {
		return
	}
	if b, err := json.Marshal(c.link); err == nil {
		_ = c.values.Save(ctx, "session", b)
	}
}

// intents are what we want to be told.
func (c *Channel) intents() discordgo.Intent {
	i := discordgo.IntentGuilds | discordgo.IntentGuildMessages | discordgo.IntentGuildMessageReactions |
		discordgo.IntentDirectMessages | discordgo.IntentDirectMessageReactions
	if c.identity().content {
		i |= discordgo.IntentMessageContent
	}
	return i
}

// connect makes one connection and serves it to its end, which is never nil.
// Live is called when there is a session.
func (c *Channel) connect(ctx context.Context, take channels.Take, live func()) error {
	if c.link.Intents != c.intents() {
		c.link.ID = "" // it would not tell what is wanted now
	}
	at, err := c.address(ctx)
	if err != nil {
		return err
	}
	opening, opened := context.WithTimeout(ctx, c.pulse.open)
	defer opened()
	d := websocket.Dialer{Proxy: http.ProxyFromEnvironment, HandshakeTimeout: c.pulse.open}
	conn, res, err := d.DialContext(opening, at, nil)
	if res != nil {
		_ = res.Body.Close() // it says no more
	}
	if err != nil {
		c.link.URL = "" // where the session lives may be what is down
		return fmt.Errorf("connect to the gateway: %w", err)
	}
	k := newConnection(c, conn, live)
	err = k.serve(ctx, take)
	c.save(context.WithoutCancel(ctx)) // a stop must not cost the session
	return err
}

// address is where to connect: where the session lives, or where Discord says,
// once it grants another session.
func (c *Channel) address(ctx context.Context) (string, error) {
	if c.link.ID == "" {
		if err := wait(ctx, c.pulse.wait(c.link.lost)); err != nil {
			return "", err
		}
	}
	at := c.link.URL
	for c.link.ID == "" || at == "" {
		var r discordgo.GatewayBotResponse
		if err := c.call(ctx, http.MethodGet, "/gateway/bot", nil, &r); err != nil {
			return "", classify(err)
		}
		at = r.URL
		if l := r.SessionStartLimit; c.link.ID != "" || l.Total == 0 || l.Remaining > 0 {
			break
		}
		if err := wait(ctx, max(time.Duration(r.SessionStartLimit.ResetAfter)*time.Millisecond, time.Second)); err != nil {
			return "", err
		}
	}
	u, err := url.Parse(at)
	if err != nil || u.Scheme != "ws" && u.Scheme != "wss" {
		return "", errors.New("the address of the gateway is no WebSocket's")
	}
	u.RawQuery = url.Values{"v": {"10"}, "encoding": {"json"}}.Encode()
	return u.String(), nil
}

// wait is how long to wait for a new session after so many that did not last.
func (p pulse) wait(lost int) time.Duration {
	if lost == 0 {
		return 0
	}
	return min(p.longest, (p.again+rand.N(4*p.again))<<min(lost-1, 10))
}

// wait waits, or fails with ctx's error.
func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
