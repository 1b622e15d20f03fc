package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/slack-go/slack"

	"github.com/heddlehq/heddle/channels"
)

// Slack hands every envelope to one of an app's connections, ten of them at
// most. Two are held, so that a cut of one is no gap, and each is replaced
// before it is left when Slack says that it will close it.
const (
	links       = 2
	firstWait   = time.Second / 2 // before a link is made again that did fail
	longestWait = 5 * time.Second // and at most
	openTime    = 8 * time.Second // of asking for an address and connecting
	writeTime   = 5 * time.Second // of one frame
	mostBytes   = 16 << 20        // of one frame
	mostAtOnce  = 256             // envelopes admitted together, and waiting
)

// A pulse is how links live.
type pulse struct {
	ping  time.Duration // between our pings
	dead  time.Duration // without a frame, ping or pong
	leave time.Duration // after Slack said that it will close
	held  time.Duration // a link that lasted so long is made again at once
}

var usualPulse = pulse{ping: 10 * time.Second, dead: 30 * time.Second, leave: 30 * time.Second, held: 10 * time.Second}

// hopeless are the codes of an app token that no other try helps.
var hopeless = []string{"invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "not_allowed_token_type", "missing_scope"}

// phase is how far a link is.
type phase uint8

const (
	coming  phase = iota // being made
	up                   // open
	leaving              // open, and to be closed by Slack
	phases
)

// news is what a link tells: where it was, where it is now, or why it ended.
type news struct {
	was, now phase
	ended    bool
	err      error
	lived    time.Duration // of one that ended
	all      int           // connections of the app, of one that is up
}

// Listen holds connections in Socket Mode. One that ends is made again at once;
// it fails when none is left and none can be made: that is a gap, in which
// something may have been missed. What Slack cannot deliver for a moment it sends
// again by itself.
func (c *Channel) Listen(ctx context.Context, take channels.Take) error {
	if c.appToken == "" {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	told := make(chan news)
	tell := func(n news) {
		select {
		case told <- n:
		case <-ctx.Done():
		}
	}
	var count [phases]int
	var wait time.Duration
	var due <-chan time.Time // of the next try, nil if that is now
	shared := false
	for {
		for ; due == nil && count[coming]+count[up] < links; count[coming]++ {
			running.Go(func() { c.link(ctx, take, tell) })
		}
		select {
		case <-ctx.Done():
			return nil
		case <-due:
			due = nil
		case n := <-told:
			count[n.was]--
			if !n.ended {
				count[n.now]++
				// Ours that are being made may be counted by Slack already.
				if ours := count[coming] + count[up] + count[leaving]; n.all > ours && !shared {
					shared = true
					_ = take(ctx, ignored("", "another connection takes part of the app's events")) // counting does not fail
				}
				continue
			}
			if errors.Is(n.err, channels.ErrFatal) || n.was == coming && count == [phases]int{} {
				return n.err
			}
			if n.was != coming && n.lived >= c.pulse.held {
				wait = 0
				continue
			}
			wait = min(max(2*wait, firstWait), longestWait)
			due = time.After(max(wait, pause(n.err)))
		}
	}
}

// pause is how long Slack wants to be left alone.
func pause(err error) time.Duration {
	var se *channels.SendError
	if errors.As(err, &se) && se.Verdict == channels.Limited {
		return se.RetryAfter
	}
	return 0
}

// link makes one connection and serves it to its end.
func (c *Channel) link(ctx context.Context, take channels.Take, tell func(news)) {
	conn, err := c.connect(ctx)
	if err != nil {
		tell(news{was: coming, ended: true, err: err})
		return
	}
	l := &link{Channel: c, conn: conn, tell: tell, began: time.Now(), waiting: make(chan envelopeIn, mostAtOnce)}
	ctx, l.stop = context.WithCancel(ctx)
	defer l.stop()
	var beside sync.WaitGroup
	beside.Go(func() { l.admit(ctx, take) })
	beside.Go(func() { l.beat(ctx) })
	// A read ends by its deadline only, so that what was read is still acknowledged.
	defer context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Now()) })()
	err = l.read(ctx)
	l.stop()
	close(l.waiting)
	beside.Wait()
	_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(time.Second)) // politeness
	_ = conn.Close()                                                                                                                           // it has ended
	tell(news{was: l.phase, ended: true, err: err, lived: time.Since(l.began)})
}

// connect asks for an address, which is good for one connection, and connects.
func (c *Channel) connect(ctx context.Context) (*websocket.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	_, address, err := c.app.StartSocketModeContext(ctx)
	var code slack.SlackErrorResponse
	switch {
	case errors.As(err, &code) && slices.Contains(hopeless, code.Err):
		return nil, fmt.Errorf("SLACK_APP_TOKEN: %w: %w", channels.ErrFatal, classify(err))
	case err != nil:
		return nil, fmt.Errorf("open a connection: %w", classify(err))
	}
	d := websocket.Dialer{Proxy: http.ProxyFromEnvironment, HandshakeTimeout: openTime}
	conn, res, err := d.DialContext(ctx, address, http.Header{"Origin": {"https://api.slack.com"}})
	if res != nil && res.Body != nil {
		_ = res.Body.Close() // of a refusal; nothing is wanted of it
	}
	if err != nil {
		return nil, fmt.Errorf("connect to Slack's socket: %w", classify(err)) // the address, a secret, is in err
	}
	conn.SetReadLimit(mostBytes)
	return conn, nil
}

// A link is one connection.
type link struct {
	*Channel
	conn    *websocket.Conn
	stop    context.CancelFunc
	tell    func(news)
	began   time.Time
	phase   phase
	waiting chan envelopeIn
}

// A frame is what Slack sends.
type frame struct {
	Type       string          `json:"type"`
	ID         string          `json:"envelope_id"`
	Payload    json.RawMessage `json:"payload"`
	Answerable bool            `json:"accepts_response_payload"`
	Reason     string          `json:"reason"`
	All        int             `json:"num_connections"`
}

// envelopeIn is an envelope that waits to be admitted and acknowledged.
type envelopeIn struct {
	id    string
	in    channels.Inbound
	reply json.RawMessage
}

// read takes frames until the connection ends, or falls silent, or ctx ends.
func (l *link) read(ctx context.Context) error {
	alive := func() error {
		err := l.conn.SetReadDeadline(time.Now().Add(l.pulse.dead))
		if ctx.Err() != nil { // in this order: the end of ctx may have set one before
			err = l.conn.SetReadDeadline(time.Now())
		}
		return err
	}
	answer := l.conn.PingHandler()
	l.conn.SetPingHandler(func(data string) error { return errors.Join(alive(), answer(data)) })
	l.conn.SetPongHandler(func(string) error { return alive() })
	for {
		if err := alive(); err != nil {
			return fmt.Errorf("read from Slack's socket: %w", classify(err))
		}
		_, data, err := l.conn.ReadMessage()
		if err != nil {
			return fmt.Errorf("read from Slack's socket: %w", classify(err))
		}
		var f frame
		if json.Unmarshal(data, &f) != nil {
			f = frame{Type: "unreadable", ID: f.ID}
		}
		switch {
		case f.Type == "hello" && l.phase == coming:
			l.turn(up, f.All)
		case f.Type == "disconnect":
			if f.Reason == "link_disabled" || f.Reason == "too_many_websockets" {
				return fmt.Errorf("slack closes the socket: %s", f.Reason)
			}
			if l.phase != leaving {
				l.turn(leaving, 0)
				defer time.AfterFunc(l.pulse.leave, l.stop).Stop()
			}
		case f.ID != "":
			l.waiting <- l.open(f)
		}
	}
}

// turn tells that the link is in another phase.
func (l *link) turn(now phase, all int) {
	n := news{was: l.phase, now: now, all: all}
	l.phase = now
	l.tell(n)
}

// open reads what an envelope holds. What cannot be read is acknowledged, too:
// it would be the same again.
func (l *link) open(f frame) envelopeIn {
	e := envelopeIn{id: f.ID}
	var err error
	switch f.Type {
	case "events_api":
		e.in, err = l.event(f.Payload)
	case "interactive":
		e.in, err = l.interaction(f.Payload, time.Now())
	case "slash_commands":
		e.in, err = l.command(f.Payload, time.Now())
	default:
		e.in = ignored("", "unknown envelope")
	}
	if err != nil {
		e.in = ignored("", "malformed")
	}
	if f.Answerable {
		e.reply = e.in.Reply
	}
	return e
}

// admit admits what waits, all of it at once and in its order, and acknowledges
// it. What was not admitted is not acknowledged, and comes again.
func (l *link) admit(ctx context.Context, take channels.Take) {
	for first := range l.waiting {
		batch := []envelopeIn{first}
		for more := true; more && len(batch) < mostAtOnce; {
			select {
			case next, open := <-l.waiting:
				if more = open; open {
					batch = append(batch, next)
				}
			default:
				more = false
			}
		}
		var all channels.Inbound
		for _, e := range batch {
			all.Events = append(all.Events, e.in.Events...)
			all.Ignored = append(all.Ignored, e.in.Ignored...)
			all.Then = both(all.Then, e.in.Then)
		}
		if take(ctx, all) != nil {
			continue // dispatch has said so
		}
		for _, e := range batch {
			ack := struct {
				ID      string          `json:"envelope_id"`
				Payload json.RawMessage `json:"payload,omitempty"`
			}{e.id, e.reply}
			_ = l.conn.SetWriteDeadline(time.Now().Add(writeTime)) // fails with the write
			if l.conn.WriteJSON(ack) != nil {
				l.stop() // what is not acknowledged comes again
				break
			}
		}
	}
}

// both does one thing after the other; each may be nil.
func both(a, b func(context.Context) error) func(context.Context) error {
	if a == nil || b == nil {
		if a == nil {
			return b
		}
		return a
	}
	return func(ctx context.Context) error { return errors.Join(a(ctx), b(ctx)) }
}

// beat pings, so that a connection which died without a word is noticed.
func (l *link) beat(ctx context.Context) {
	t := time.NewTicker(l.pulse.ping)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			_ = l.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeTime)) // the reader notices
		}
	}
}
