package slack

import (
	"context"
	"net/url"
	"strings"
)

// Linked returns what a message that a link leads to is known by, "" if it is no
// link to a message in Slack: …/archives/C02/p1721000100000100.
func (c *Channel) Linked(ctx context.Context, u *url.URL) (string, error) {
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	if len(parts) != 3 || parts[0] != "archives" || !token(parts[1], "CDG") {
		return "", nil
	}
	digits, ok := strings.CutPrefix(parts[2], "p")
	if !ok || len(digits) < 7 || strings.Trim(digits, "0123456789") != "" {
		return "", nil
	}
	if c.home == nil {
		return "", nil // which workspace a link leads to, only its name would say
	}
	if c.home.self().team == "" {
		if err := c.Identify(ctx); err != nil {
			return "", err
		}
	}
	at := len(digits) - 6
	return act(c.home.self().team, c.origin(parts[1]), digits[:at]+"."+digits[at:]), nil
}

// act is what a message is known by, whichever event tells of it.
func act(team, channel, ts string) string { return team + "/" + channel + "/" + ts }
