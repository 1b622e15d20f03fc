package dispatch

import (
	"fmt"
	"strings"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

// An Answer says what is answered in a room.
type Answer string

// The answers. The zero value is Follow.
const (
	Mentions Answer = "mention" // what names the bot
	Follow   Answer = "follow"  // and what is said after that in its thread
	All      Answer = "all"     // and everything else that is said, as if it named the bot
	Off      Answer = "off"     // nothing, and nothing is heard
)

// UnmarshalText reads an answer's name, or nothing, and refuses any other text.
func (a *Answer) UnmarshalText(b []byte) error {
	switch v := Answer(b); v {
	case "", Mentions, Follow, All, Off:
		*a = v
		return nil
	}
	return fmt.Errorf("answer %q: want mention, follow, all or off", b)
}

// topicThread and the others are topics that every channel with rooms has.
const (
	topicMention = "mention"
	topicMessage = "message"
	topicThread  = "thread"
	topicDirect  = "dm"
)

// door decides for one event whether and how it is admitted. Every way in
// passes here.
func (o *Options) door(e chat.Event) state.Admit {
	a := state.Admit{Event: e}
	answer := o.answer(e.Thread)
	switch {
	case e.Kind == chat.Control || strings.HasPrefix(e.Author.Account, chat.Reserved):
		a.Ignored = "not for a channel to say" // it would be an operator's word
		return a
	case answer == Off:
		a.Ignored = "the room is off"
		return a
	case e.Author.Bot && !o.Bots[Bot{e.Thread.Channel, e.Author.ID}]:
		a.Ignored = "another bot"
		return a
	case e.Kind == chat.Edited || e.Kind == chat.Deleted:
		a.Follow, a.Quiet, a.Left = true, true, true
		return a
	}
	r := o.route(e)
	if r == nil && answer == All && e.Topic == topicMessage {
		a.Event.Topic = topicMention
		r = o.route(a.Event)
	}
	if r == nil {
		a.Ignored = "no route"
		return a
	}
	a.Agent = r.Agent
	aside := e.Kind == chat.Message && e.Facts[chat.Addressed] != ""
	switch {
	case e.Topic == topicThread && answer == Mentions:
		a.Ignored = "only mentions are answered in the room"
	case e.Topic == topicThread && (aside || answer != All): // the engine knows whether its author may end the following
		a.Follow, a.Since = true, o.since()
	case answer == All && e.Topic == topicMessage && aside:
		a.Ignored = "said to somebody else"
	}
	if goesOn(e) && a.Ignored == "" && !aside {
		a.Hold = r.Debounce
	}
	return a
}

// A Bot is one that is let in, by the provider's id.
type Bot struct{ Channel, ID string }

// since is the time since which a thread must have been used to be followed.
func (o *Options) since() time.Time {
	if o.Silence == 0 {
		return time.Time{}
	}
	return o.Clock().Add(-o.Silence)
}

func (o *Options) route(e chat.Event) *Route {
	for i := range o.Routes {
		if o.Routes[i].matches(e) {
			return &o.Routes[i]
		}
	}
	return nil
}

// answer is what is answered in a thread: what is set for its room, or else for
// its account or its channel.
func (o *Options) answer(t chat.Thread) Answer {
	for _, at := range []chat.Thread{roomOf(t), accountOf(t), {Channel: t.Channel}} {
		if a := o.Rooms[at]; a != "" {
			return a
		}
	}
	return Follow
}

// goesOn says whether the author of an event may have more to say: a person who
// talks, and has not given an order.
func goesOn(e chat.Event) bool {
	return e.Kind == chat.Message && (e.Topic == topicThread || e.Topic == topicDirect) &&
		e.Author.ID != "" && !e.Author.Bot && len(e.Files) == 0 && !chat.IsOrder(e.Text)
}
