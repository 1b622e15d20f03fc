package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/config"
	"github.com/heddlehq/heddle/dispatch"
)

// threadSettings say how conversations are led.
type threadSettings struct {
	Silence time.Duration `yaml:"silence" doc:"A thread in which nothing was said for so long is not followed any more until the bot is mentioned; 336h if not set."`
	Marks   *bool         `yaml:"marks" doc:"Whether a message that takes more than a second is marked while it is being answered, as the channel can; true if not set."`
}

type roomSettings struct {
	Answer dispatch.Answer `yaml:"answer" doc:"mention (only what names the bot), follow (and what is said after that in its thread, which is the default), all (and everything else that is said there) or off (nothing)."`
}

// What holds unless it is set.
const (
	usualSilence  = 14 * 24 * time.Hour
	usualDebounce = 1200 * time.Millisecond
)

func (t threadSettings) silence() time.Duration { return cmp.Or(t.Silence, usualSilence) }

func (r routeSettings) debounce(s *config.Settings, at string) time.Duration {
	switch {
	case r.Debounce == nil:
		return usualDebounce
	case *r.Debounce < 0 || *r.Debounce > time.Minute:
		s.Refuse(at+".debounce", r.Debounce.String(), "a time of at most 1m, or 0s")
	}
	return *r.Debounce
}

// roomsOf reads what is answered where.
func (f *fileSettings) roomsOf(s *config.Settings) map[chat.Thread]dispatch.Answer {
	if f.threads.Silence < 0 {
		s.Refuse("threads.silence", f.threads.Silence.String(), "a time such as 336h")
	}
	out := map[chat.Thread]dispatch.Answer{}
	for key, r := range f.rooms {
		t := chat.Thread{Channel: key}
		if strings.Contains(key, "/") {
			var err error
			if t, err = chat.ParseThread(key); err != nil || t.Root != "" {
				s.Refuse("rooms", fmt.Sprintf("%q", key), "a room, an account or a channel, such as slack/T01/C02")
			}
		}
		out[t] = r.Answer
	}
	return out
}

// bots are those that are let in.
func (f *fileSettings) bots() map[dispatch.Bot]bool {
	out := map[dispatch.Bot]bool{}
	for _, b := range f.access.Bots {
		channel, id, _ := strings.Cut(b, "/")
		out[dispatch.Bot{Channel: channel, ID: id}] = true
	}
	return out
}

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
	for i, b := range p.file.access.Bots {
		if channel, id, ok := strings.Cut(b, "/"); !ok || channel == "" || id == "" {
			s.Refuse(fmt.Sprintf("access.bots[%d]", i), fmt.Sprintf("%q", b), "a channel and an id, such as slack/B0123")
		}
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
