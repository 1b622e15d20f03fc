package main

import (
	"fmt"
	"slices"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/config"
	"github.com/heddlehq/heddle/dispatch"
)

// place reads where answers are posted, zero if that is not set.
func (f *fileSettings) place(s *config.Settings, at, key string) chat.Thread {
	if key == "" {
		return chat.Thread{}
	}
	t, err := chat.ParseThread(key)
	if err != nil {
		s.Refuse(at, fmt.Sprintf("%q", key), "a room or thread, such as slack/T01/C02")
	}
	return t
}

// checkPlaces finds places that nobody can post to, and those where nobody can answer.
func (p *parts) checkPlaces(s *config.Settings) {
	followed := func(topic string) bool {
		return slices.ContainsFunc(p.routes, func(r dispatch.Route) bool {
			return slices.Contains(r.On, topic+".thread") || slices.Contains(r.On, topic+".*")
		})
	}
	for i, r := range p.routes {
		at := fmt.Sprintf("routes[%d].post_to", i)
		switch to := r.PostTo.Channel; {
		case to == "":
		case !slices.ContainsFunc(p.channels, func(c channels.Channel) bool {
			_, ok := c.(channels.Sender)
			return ok && c.Name() == to
		}):
			s.Refuse(at, fmt.Sprintf("%q", r.PostTo.Key()), "a place in a channel that is enabled and can post")
		case !followed(to):
			s.Warn(at, "no route has "+to+".thread, so what people answer there is not heard")
		}
	}
}
