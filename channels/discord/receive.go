package discord

import (
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/heddlehq/heddle/channels"
)

const (
	routeInteractions = "interactions"
	maxBytes          = 1 << 20
)

// Topics are what events are about, as routes name them; Usual those that are
// answered when no routes are set.
var (
	Topics = []string{
		"discord.mention", "discord.dm", "discord.thread", "discord.post", "discord.message",
		"discord.command", "discord.action", "discord.reaction", "discord.*",
	}
	Usual = []string{"discord.mention", "discord.dm", "discord.thread", "discord.command"}
)

// Routes has the one route of interactions, if there is a key to verify them.
func (c *Channel) Routes() []channels.Route {
	if c.key == nil {
		return nil
	}
	return []channels.Route{{Name: routeInteractions, MediaTypes: []string{"application/json"}, MaxBytes: maxBytes}}
}

// Receive verifies and reads one interaction, or one webhook event, which comes
// to the same address if somebody sets it so.
func (c *Channel) Receive(route string, h http.Header, body []byte, now time.Time) (channels.Inbound, error) {
	if route != routeInteractions {
		return channels.Inbound{}, fmt.Errorf("route %q: %w", route, channels.ErrMalformed)
	}
	at, err := c.verify(h, body, now)
	if err != nil {
		return channels.Inbound{}, err
	}
	in, err := readInteraction(body)
	if err != nil {
		return channels.Inbound{}, err
	}
	return in.inbound(c.identity(), at)
}

// verify accepts exactly one signature and one timestamp, over the raw bytes, and
// returns the time. A stale request is told from a forged one only if it was signed.
func (c *Channel) verify(h http.Header, body []byte, now time.Time) (time.Time, error) {
	sigs, stamps := h.Values("X-Signature-Ed25519"), h.Values("X-Signature-Timestamp")
	if len(sigs) != 1 || len(stamps) != 1 {
		return time.Time{}, fmt.Errorf("want one signature and one timestamp, got %d and %d: %w", len(sigs), len(stamps), channels.ErrUnverified)
	}
	sig, err := hex.DecodeString(sigs[0])
	if err != nil || len(sig) != ed25519.SignatureSize || sigs[0] != strings.ToLower(sigs[0]) {
		return time.Time{}, fmt.Errorf("signature has not the form of one: %w", channels.ErrUnverified)
	}
	at, ok := channels.Seconds(stamps[0])
	if !ok {
		return time.Time{}, fmt.Errorf("timestamp is not decimal: %w", channels.ErrUnverified)
	}
	if c.key == nil || !ed25519.Verify(c.key, append([]byte(stamps[0]), body...), sig) {
		return time.Time{}, fmt.Errorf("signature does not match: %w", channels.ErrUnverified)
	}
	if err := channels.Fresh(at, now); err != nil {
		return time.Time{}, err
	}
	return time.Unix(at, 0).UTC(), nil
}

func ignored(id, reason string) channels.Inbound {
	return channels.Inbound{Ignored: []channels.Ignored{{ID: id, Reason: reason}}}
}

// snowflake tells an id of Discord, which is digits. They go into paths.
func snowflake(s string) bool {
	return s != "" && len(s) <= 32 && strings.Trim(s, "0123456789") == ""
}

// epoch is the first millisecond of Discord's ids.
const epoch = 1420070400000

// born is the time at which an id was made, zero if it is none.
func born(id string) time.Time {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(int64(n>>22) + epoch).UTC()
}

// after is the id that lies before all that were made since t.
func after(t time.Time) string {
	return strconv.FormatInt(max(0, t.UnixMilli()-epoch)<<22, 10)
}
