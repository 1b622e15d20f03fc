package main

import (
	"slices"
	"strings"

	"github.com/heddlehq/heddle/channels/discord"
	"github.com/heddlehq/heddle/channels/github"
	"github.com/heddlehq/heddle/channels/slack"
	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/config"
)

// isTopic says whether a route may name on. A topic of a channel that ends in a
// word in capitals, such as "stripe.TYPE", stands for everything below it.
func isTopic(topics []string, on string) bool {
	if slices.Contains(topics, on) {
		return true
	}
	return slices.ContainsFunc(topics, func(t string) bool {
		dot := strings.LastIndexByte(t, '.') + 1
		rest, ok := strings.CutPrefix(on, t[:dot])
		return ok && t[dot:] != "*" && t[dot:] == strings.ToUpper(t[dot:]) && rest != "" && !strings.ContainsAny(strings.TrimSuffix(rest, ".*"), " *")
	})
}

// unrouted warns of channels whose events no route names.
func (p *parts) unrouted(s *config.Settings) {
	for _, c := range p.channels {
		named := false
		for _, r := range p.routes {
			named = named || slices.ContainsFunc(r.On, func(on string) bool { return strings.HasPrefix(on, c.Name()+".") })
		}
		if !named {
			s.Warn("routes", "none names "+c.Name()+": nothing that comes from there is answered")
		}
	}
}

// Holders are who holds which role in a channel, in the words of the settings.
type holders struct{ members, maintainers, admins []string }

// holders are those of a channel, false for one without people.
func (a accessSettings) holders(channel string) (holders, bool) {
	switch channel {
	case slack.Name:
		return holders{a.Slack.Members, a.Slack.Maintainers, a.Slack.Admins}, true
	case discord.Name:
		return holders{a.Discord.Members, a.Discord.Maintainers, a.Discord.Admins}, true
	case github.Name:
		return a.GitHub.holders(), true
	}
	return holders{}, false
}

// unanswered warns of channels in which nobody has the role that is answered.
func (p *parts) unanswered(s *config.Settings) {
	for _, c := range p.channels {
		h, ok := p.file.access.holders(c.Name())
		if !ok {
			continue
		}
		n := len(h.admins)
		if p.talk <= chat.Maintainer {
			n += len(h.maintainers)
		}
		if p.talk <= chat.Member {
			n += len(h.members)
		}
		if n == 0 && p.talk > chat.Outsider {
			s.Warn("access."+c.Name(), "nobody is a "+p.talk.String()+", so nobody is answered")
		}
	}
}
