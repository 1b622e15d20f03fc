package discord

import (
	"context"
	"net/url"
	"slices"
	"strings"
)

// Linked reads "Copy Message Link" of Discord:
// https://discord.com/channels/GUILD/CHANNEL/MESSAGE.
func (c *Channel) Linked(_ context.Context, link *url.URL) (string, error) {
	hosts := []string{"discord.com", "ptb.discord.com", "canary.discord.com", "discordapp.com"}
	p := strings.Split(strings.Trim(link.Path, "/"), "/")
	if !slices.Contains(hosts, strings.ToLower(link.Hostname())) || len(p) != 4 || p[0] != "channels" ||
		!snowflake(p[1]) && p[1] != direct || !snowflake(p[2]) || !snowflake(p[3]) {
		return "", nil
	}
	return act(p[1], p[2], p[3]), nil
}
