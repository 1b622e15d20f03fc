package slack

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/heddlehq/heddle/channels"
)

const (
	routeEvents       = "events"
	routeInteractions = "interactions"
	routeCommands     = "commands"
	routeOptions      = "options"
	formType          = "application/x-www-form-urlencoded"

	maxBytes = 1 << 20
)

// Topics are what events are about, as routes name them; Usual those that are
// answered when no routes are set.
var (
	Topics = []string{
		"slack.mention", "slack.dm", "slack.thread", "slack.message", "slack.command", "slack.action", "slack.shortcut", "slack.reaction", "slack.*",
	}
	Usual = []string{"slack.mention", "slack.dm", "slack.thread", "slack.command", "slack.action"}
)

// Routes are those of the Events API and of what people press and type; none
// without a signing secret, when all comes by the socket.
func (c *Channel) Routes() []channels.Route {
	if len(c.signing) == 0 {
		return nil
	}
	routes := []channels.Route{{Name: routeEvents, MediaTypes: []string{"application/json"}, MaxBytes: maxBytes}}
	for _, name := range []string{routeInteractions, routeCommands, routeOptions} {
		routes = append(routes, channels.Route{Name: name, MediaTypes: []string{formType}, MaxBytes: maxBytes})
	}
	return routes
}

// Receive verifies and reads one request.
func (c *Channel) Receive(route string, h http.Header, body []byte, now time.Time) (channels.Inbound, error) {
	read := map[string]func([]byte, time.Time) (channels.Inbound, error){
		routeEvents: func(body []byte, _ time.Time) (channels.Inbound, error) { return c.event(body) }, routeInteractions: c.interactionForm,
		routeOptions: c.interactionForm, routeCommands: c.commandForm,
	}[route]
	if read == nil {
		return channels.Inbound{}, fmt.Errorf("route %q: %w", route, channels.ErrMalformed)
	}
	if err := c.verify(h, body, now); err != nil {
		return channels.Inbound{}, err
	}
	sent, _ := channels.Seconds(h.Get("X-Slack-Request-Timestamp")) // verified
	return read(body, time.Unix(sent, 0).UTC())
}

// event reads what the Events API reports, the same over HTTP and over a socket.
func (c *Channel) event(body []byte) (channels.Inbound, error) {
	var e envelope
	// A wrong type spoils its field only: an unknown kind of event may use our
	// names for other things, and is to be ignored.
	err := json.Unmarshal(body, &e)
	var wrong *json.UnmarshalTypeError
	if err != nil && !errors.As(err, &wrong) {
		return channels.Inbound{}, fmt.Errorf("body is not JSON: %w", channels.ErrMalformed)
	}
	switch e.Type {
	case "event_callback":
		return c.inbound(&e, wrong != nil)
	case "url_verification":
		return challenge(e.Challenge)
	case "app_rate_limited":
		return ignored("", "rate limited by slack"), nil
	case "":
		return channels.Inbound{}, fmt.Errorf("body has no type: %w", channels.ErrMalformed)
	}
	return ignored(e.EventID, "unknown type"), nil
}

// verify accepts exactly one signature and one timestamp, over the raw bytes,
// made with any of the secrets. A stale request is told from a forged one only
// if it was signed.
func (c *Channel) verify(h http.Header, body []byte, now time.Time) error {
	sigs, stamps := h.Values("X-Slack-Signature"), h.Values("X-Slack-Request-Timestamp")
	if len(sigs) != 1 || len(stamps) != 1 {
		return fmt.Errorf("want one signature and one timestamp, got %d and %d: %w", len(sigs), len(stamps), channels.ErrUnverified)
	}
	at, ok := channels.Seconds(stamps[0])
	if !ok {
		return fmt.Errorf("timestamp is not decimal: %w", channels.ErrUnverified)
	}
	var signed bool
	for _, s := range c.signing {
		mac := hmac.New(sha256.New, s)
		mac.Write([]byte("v0:" + stamps[0] + ":"))
		mac.Write(body)
		want := hex.AppendEncode([]byte("v0="), mac.Sum(nil))
		signed = hmac.Equal([]byte(sigs[0]), want) || signed
	}
	if !signed {
		return fmt.Errorf("signature does not match: %w", channels.ErrUnverified)
	}
	return channels.Fresh(at, now)
}

func challenge(text string) (channels.Inbound, error) {
	if text == "" {
		return channels.Inbound{}, fmt.Errorf("url_verification has no challenge: %w", channels.ErrMalformed)
	}
	reply, err := json.Marshal(map[string]string{"challenge": text})
	return channels.Inbound{Reply: reply, ReplyType: "application/json"}, err
}

func ignored(id, reason string) channels.Inbound {
	return channels.Inbound{Ignored: []channels.Ignored{{ID: id, Reason: reason}}}
}
