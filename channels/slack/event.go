package slack

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
)

// An envelope is what Slack wraps around everything it reports, the same over
// HTTP and over a socket. Only the fields that are used.
type envelope struct {
	Type           string `json:"type"`
	Challenge      string `json:"challenge"`
	EventID        string `json:"event_id"`
	EventTime      int64  `json:"event_time"`
	EnterpriseID   string `json:"enterprise_id"`
	TeamID         string `json:"team_id"`
	AppID          string `json:"api_app_id"`
	Authorizations []struct {
		EnterpriseID string `json:"enterprise_id"`
		TeamID       string `json:"team_id"`
		UserID       string `json:"user_id"`
		IsBot        bool   `json:"is_bot"`
	} `json:"authorizations"`
	Event message `json:"event"`
}

// A message is the inner event. Blocks are left out on purpose: their kinds
// grow, and the text says the same.
type message struct {
	Type        string `json:"type"`
	Subtype     string `json:"subtype"`
	Channel     string `json:"channel"`
	ChannelType string `json:"channel_type"`
	User        string `json:"user"`
	Team        string `json:"team"`
	UserTeam    string `json:"user_team"`
	SourceTeam  string `json:"source_team"`
	BotID       string `json:"bot_id"`
	AppID       string `json:"app_id"`
	BotProfile  struct {
		AppID string `json:"app_id"`
	} `json:"bot_profile"`
	Text      string `json:"text"`
	TS        string `json:"ts"`
	EventTS   string `json:"event_ts"`
	ThreadTS  string `json:"thread_ts"`
	DeletedTS string `json:"deleted_ts"`
	Hidden    bool   `json:"hidden"`
	Reaction  string `json:"reaction"`
	ItemUser  string `json:"item_user"`
	Item      struct {
		Channel string `json:"channel"`
		TS      string `json:"ts"`
	} `json:"item"`
	Tokens struct {
		Bot []string `json:"bot"`
	} `json:"tokens"`
	Assistant struct {
		Channel  string `json:"channel_id"`
		ThreadTS string `json:"thread_ts"`
	} `json:"assistant_thread"`
	OldChannel string `json:"old_channel_id"`
	NewChannel string `json:"new_channel_id"`
	Files      []file `json:"files"`
	Edited     struct {
		User string `json:"user"`
		TS   string `json:"ts"`
	} `json:"edited"`
	Message  *message `json:"message"`
	Previous *message `json:"previous_message"`
}

type file struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	MimeType string `json:"mimetype"`
	Size     int64  `json:"size"`
}

// inbound maps an event_callback to what it means for us; pure. Spoiled tells
// that some field had a wrong type.
func (c *Channel) inbound(e *envelope, spoiled bool) (channels.Inbound, error) {
	c.belongs(e.account(), e.org())
	self := c.identity(e.account())
	if bot := e.botUser(); bot != "" {
		self.user = bot
	}
	m := &e.Event
	switch {
	case e.EventID == "" || e.AppID == "" || m.Type == "":
		return channels.Inbound{}, fmt.Errorf("event_callback without event_id, api_app_id or event type: %w", channels.ErrMalformed)
	case !c.known(e.account()):
		return ignored(e.EventID, notInstalled), nil
	case m.Type != "app_mention" && m.Type != "message":
		return c.other(e, self)
	case spoiled || m.Channel == "" || m.TS == "" || e.account() == "":
		return channels.Inbound{}, fmt.Errorf("%s event with missing or wrongly typed fields: %w", m.Type, channels.ErrMalformed)
	}
	ev, reason := e.event(self)
	if reason != "" {
		return ignored(e.EventID, reason), nil
	}
	if ev.Topic == "dm" && ev.Thread.Root != "" {
		c.titles.heard(ev.Thread.Room+"/"+ev.Thread.Root, ev.Text)
	}
	return c.one(ev)
}

// one is an event in its thread, whose room may have had another id.
func (c *Channel) one(ev chat.Event) (channels.Inbound, error) {
	c.rekey(&ev)
	if err := ev.Thread.Validate(); err != nil {
		return channels.Inbound{}, fmt.Errorf("%w: %w", err, channels.ErrMalformed)
	}
	return channels.Inbound{Events: []chat.Event{ev}}, nil
}

// rekey gives an event in a room that had another id the key and the identity
// that it would have had before.
func (c *Channel) rekey(ev *chat.Event) {
	ev.Thread.Room = c.origin(ev.Thread.Room)
	if ev.Same != "" {
		ev.Same = act(ev.Thread.Account, ev.Thread.Room, ev.Ref)
	}
}

// account is the workspace of the installation, which in a shared channel is
// not that of the sender.
func (e *envelope) account() string {
	for _, a := range e.Authorizations {
		if a.TeamID != "" {
			return a.TeamID
		}
	}
	return e.TeamID
}

// notInstalled is why what comes from a workspace leads to nothing.
const notInstalled = "workspace without an installation"

// org is the organisation of the workspace, "" if it is in none.
func (e *envelope) org() string {
	for _, a := range e.Authorizations {
		if a.EnterpriseID != "" {
			return a.EnterpriseID
		}
	}
	return e.EnterpriseID
}

func (e *envelope) botUser() string {
	for _, a := range e.Authorizations {
		if a.IsBot && a.UserID != "" {
			return a.UserID
		}
	}
	return ""
}

// event returns the chat event of a message event, or why there is none.
func (e *envelope) event(self identity) (ev chat.Event, reason string) {
	m := &e.Event
	switch m.Subtype {
	case "", "file_share", "thread_broadcast", "me_message", "bot_message":
		if reason = e.foreign(m, self); reason != "" {
			return ev, reason
		}
		if m.Hidden {
			return ev, "hidden"
		}
		return e.said(self), ""
	case "message_changed":
		if m.Message != nil && m.Message.TS == "" && m.Previous != nil {
			m.Message.TS, m.Message.ThreadTS = m.Previous.TS, m.Previous.ThreadTS // seen in recordings
		}
		if m.Message == nil || m.Message.TS == "" {
			return ev, "change without a message"
		}
		if m.Message.Subtype == "tombstone" { // a deleted message that has replies
			return e.deleted(m.Message.TS, self)
		}
		return e.edited(self)
	case "message_deleted":
		if m.DeletedTS == "" {
			return ev, "deletion without a message"
		}
		return e.deleted(m.DeletedTS, self)
	}
	if reason = e.foreign(m, self); reason == "own message" {
		return ev, reason
	}
	return ev, "subtype"
}

// foreign says why nobody we listen to wrote the message, "" if a person or
// another bot did.
func (e *envelope) foreign(m *message, self identity) string {
	switch {
	case m.AppID == e.AppID || m.BotProfile.AppID == e.AppID,
		m.User != "" && m.User == self.user,
		m.BotID != "" && m.BotID == self.bot:
		return "own message"
	case m.User == "USLACKBOT":
		return "slackbot"
	case m.User == "" && m.BotID == "":
		return "no author"
	}
	return ""
}

func (e *envelope) said(self identity) chat.Event {
	m := &e.Event
	ev := e.base(m, m.TS, m.User)
	ev.Same = act(ev.Thread.Account, m.Channel, m.TS)
	ev.Text = markdown(m.Text, self.user)
	if id := addressed(m.Text); id != "" && id != self.user {
		ev.Facts[chat.Addressed] = id
	}
	ev.At = stamp(m.TS)
	ev.Kind = chat.Message
	if m.Type == "app_mention" || mentions(m.Text, self.user) {
		ev.Kind = chat.Mention
	}
	switch {
	case m.ChannelType == "im":
		ev.Topic = "dm"
	case ev.Kind == chat.Mention:
		ev.Topic = "mention"
	case m.ThreadTS != "":
		ev.Topic = "thread"
	default:
		ev.Topic = "message"
	}
	return ev
}

func (e *envelope) edited(self identity) (chat.Event, string) {
	m := e.Event.Message
	if reason := e.foreign(m, self); reason != "" {
		return chat.Event{}, reason
	}
	if p := e.Event.Previous; p != nil && p.Text == m.Text {
		return chat.Event{}, "text unchanged" // an unfurl, a file, a new reply
	}
	user := m.User
	if m.Edited.User != "" {
		user = m.Edited.User
	}
	ev := e.base(m, m.TS, user)
	ev.Kind, ev.Topic = chat.Edited, "edited"
	ev.Text = markdown(m.Text, self.user)
	ev.At = stamp(e.Event.TS)
	return ev, ""
}

// deleted is about the message ref. Slack does not say who took it back: the
// message's author stands for it, if known.
func (e *envelope) deleted(ref string, self identity) (chat.Event, string) {
	m := &message{}
	if p := e.Event.Previous; p != nil {
		m = p
		if reason := e.foreign(m, self); reason == "own message" {
			return chat.Event{}, reason
		}
	}
	ev := e.base(m, ref, m.User)
	ev.Kind, ev.Topic = chat.Deleted, "deleted"
	ev.Files = nil
	ev.At = stamp(e.Event.TS)
	return ev, ""
}

// base fills what all events have: m is the message it is about, ref its id.
func (e *envelope) base(m *message, ref, user string) chat.Event {
	t := chat.Thread{Channel: Name, Account: e.account(), Room: e.Event.Channel, Root: m.ThreadTS}
	if t.Root == ref { // the first message of a thread
		t.Root = ""
	}
	if t.Root == "" && e.Event.ChannelType != "im" { // a direct message is one conversation, its threads are others
		t.Root = ref
	}
	ev := chat.Event{
		ID: e.AppID + "/" + e.EventID, Thread: t, Ref: ref,
		Facts: map[string]string{"channel": t.Room, "ts": ref},
	}
	switch {
	case m.BotID != "":
		ev.Author = chat.Author{ID: m.BotID, Account: t.Account, Bot: true}
	case user != "":
		ev.Author = chat.Author{ID: user, Account: t.Account}
		ev.Facts["user"] = user
		for _, team := range [...]string{m.UserTeam, m.SourceTeam, m.Team} {
			if team != "" {
				ev.Author.Account = team
				break
			}
		}
	}
	for _, f := range m.Files {
		if f.ID != "" {
			ev.Files = append(ev.Files, chat.File{ID: f.ID, Name: f.Name, MediaType: f.MimeType, Bytes: f.Size})
		}
	}
	return ev
}

// stamp reads a message id as the time it is, zero if it is none.
func stamp(ts string) time.Time {
	sec, frac, _ := strings.Cut(ts, ".")
	s, ok := channels.Seconds(sec)
	if !ok {
		return time.Time{}
	}
	us, _ := strconv.ParseInt((frac + "000000")[:6], 10, 64)
	return time.Unix(s, us*1000).UTC()
}
