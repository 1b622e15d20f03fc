package discord

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"github.com/heddlehq/heddle/chat"
)

// A message is one as the Gateway and the REST API tell it; only what is used,
// and more than discordgo knows. Embeds are left out, and components left as they
// are, on purpose: their kinds grow.
type message struct {
	ID           string                    `json:"id"`
	Type         discordgo.MessageType     `json:"type"`
	Channel      string                    `json:"channel_id"`
	ChannelType  *discordgo.ChannelType    `json:"channel_type"`
	Guild        string                    `json:"guild_id"`
	Author       *user                     `json:"author"`
	Webhook      string                    `json:"webhook_id"`
	App          string                    `json:"application_id"`
	Content      string                    `json:"content"`
	Edited       string                    `json:"edited_timestamp"`
	Flags        discordgo.MessageFlags    `json:"flags"`
	Mentions     []user                    `json:"mentions"`
	MentionRoles []string                  `json:"mention_roles"`
	Attachments  []attachment              `json:"attachments"`
	Stickers     []struct{ Name string }   `json:"sticker_items"`
	Reference    *reference                `json:"message_reference"`
	Referenced   *message                  `json:"referenced_message"`
	Snapshots    []struct{ Message words } `json:"message_snapshots"`
	Interaction  *struct{ ID string }      `json:"interaction_metadata"`
	Components   json.RawMessage           `json:"components"`
	Nonce        json.RawMessage           `json:"nonce"` // a number or a text
	Poll         *struct{ Question words } `json:"poll"`
}

type user struct {
	ID         string `json:"id"`
	Username   string `json:"username"`
	GlobalName string `json:"global_name"`
	Bot        bool   `json:"bot"`
	System     bool   `json:"system"`
}

type attachment struct {
	ID        string `json:"id"`
	Name      string `json:"filename"`
	MediaType string `json:"content_type"`
	Bytes     int64  `json:"size"`
}

// A reference is what a message answers, or forwards.
type reference struct {
	Type    int    `json:"type"` // 1 for what is forwarded
	Message string `json:"message_id"`
	Must    *bool  `json:"fail_if_not_exists,omitempty"`
}

// words are the text of a snapshot (content) or a poll (text).
type words struct {
	Content string `json:"content"`
	Text    string `json:"text"`
}

// foreign says why nobody we listen to wrote the message, "" if somebody did.
func (m *message) foreign(own identity) string {
	switch {
	case m.Author == nil || m.Author.ID == "":
		return "no author"
	case m.Author.ID == own.user, m.App != "" && m.App == own.app:
		return "own message"
	case m.Author.System:
		return "system message"
	case m.Flags&discordgo.MessageFlagsIsCrossPosted != 0:
		return "copy of an announcement"
	case m.Type != discordgo.MessageTypeDefault && m.Type != discordgo.MessageTypeReply:
		return "kind of message"
	case m.Content == "" && len(m.Attachments) == 0 && len(m.Stickers) == 0 && len(m.Snapshots) == 0 && m.Poll == nil:
		return "no content"
	}
	return ""
}

// said is the event of a message that was written in a place.
func (m *message) said(p place, own identity, role string) (ev chat.Event, reason string) {
	ev = m.base(p, own)
	ev.ID, ev.Kind = m.ID, chat.Message
	ev.Same = act(p.account, p.channel(), m.ID)
	ev.Text = m.text(own, role)
	if id := addressed(m.Content); id != "" && id != own.user {
		ev.Facts[chat.Addressed] = id
	}
	ev.At = born(m.ID)
	if m.mentions(own, role) {
		ev.Kind = chat.Mention
	}
	switch {
	case p.account == direct:
		ev.Topic = "dm"
	case ev.Kind == chat.Mention:
		ev.Topic = "mention"
	case p.thread != "" && p.thread == m.ID:
		ev.Topic = "post" // the first message of a forum's thread
	case p.thread != "" || m.answers(own):
		ev.Topic = "thread"
	default:
		ev.Topic = "message"
	}
	return ev, ""
}

// act names what somebody said, as links to it do.
func act(account, channel, id string) string { return account + "/" + channel + "/" + id }

// edited is the event of a change, or why there is none.
func (m *message) edited(p place, own identity, role string) (chat.Event, string) {
	at, err := time.Parse(time.RFC3339Nano, m.Edited)
	if err != nil {
		return chat.Event{}, "text unchanged" // a preview was added, a thread opened
	}
	ev := m.base(p, own)
	ev.ID, ev.Kind, ev.Topic = m.ID+"/"+m.Edited, chat.Edited, "edited"
	ev.Text = m.text(own, role)
	ev.At = at.UTC()
	return ev, ""
}

// deleted is the event of a message that was taken back.
func deleted(p place, id string) chat.Event {
	return chat.Event{
		ID: id + "/deleted", Thread: p.at(id), Kind: chat.Deleted, Topic: "deleted", Ref: id,
		Facts: map[string]string{"channel": p.channel(), "message": id},
	}
}

// base fills what the events of a message have.
func (m *message) base(p place, own identity) chat.Event {
	ev := chat.Event{
		Thread: p.at(m.root(own)), Ref: m.ID,
		Author: m.Author.author(p.account, m.Webhook != ""),
		Facts:  map[string]string{"channel": p.channel(), "message": m.ID, "user": m.Author.ID},
	}
	for _, f := range m.Attachments {
		if snowflake(f.ID) {
			ev.Files = append(ev.Files, chat.File{ID: p.channel() + "/" + m.ID + "/" + f.ID, Name: f.Name, MediaType: f.MediaType, Bytes: f.Bytes})
		}
	}
	return ev
}

func (u *user) author(account string, webhook bool) chat.Author {
	return chat.Author{ID: u.ID, Account: account, Name: cmp.Or(u.GlobalName, u.Username), Bot: u.Bot || webhook}
}

// answers says whether the message replies to one of ours.
func (m *message) answers(own identity) bool {
	r := m.Referenced
	return m.Type == discordgo.MessageTypeReply && r != nil && r.Author != nil && own.user != "" && r.Author.ID == own.user
}

// root is what a message in a channel belongs to: itself, or the root of what it
// answers, if that is ours.
func (m *message) root(own identity) string {
	if m.answers(own) {
		return m.Referenced.origin()
	}
	return m.ID
}

// origin is the root that a message of ours in a channel belongs to. Ours always
// refer to it, so that it can be told without a memory.
func (m *message) origin() string {
	switch {
	case m.Interaction != nil && snowflake(m.Interaction.ID):
		return commandRoot + m.Interaction.ID
	case m.Reference != nil && snowflake(m.Reference.Message):
		return m.Reference.Message
	}
	return m.ID
}

// commandRoot begins the roots of conversations that began with a command in a
// channel, and the Ref of what has no message.
const commandRoot = "i"

// mentions says whether the bot is addressed: by the list that Discord makes,
// not by the text. Its own role counts as well.
func (m *message) mentions(own identity, role string) bool {
	return slices.ContainsFunc(m.Mentions, func(u user) bool { return own.user != "" && u.ID == own.user }) ||
		role != "" && slices.Contains(m.MentionRoles, role)
}

// text is what the message says, in Markdown.
func (m *message) text(own identity, role string) string {
	parts := []string{markdown(m.Content, own.user, role)}
	for _, s := range m.Snapshots {
		parts = append(parts, quoted(markdown(s.Message.Content, "", "")))
	}
	for _, s := range m.Stickers {
		parts = append(parts, "[sticker: "+valid(s.Name)+"]")
	}
	if m.Poll != nil {
		parts = append(parts, "[poll: "+valid(m.Poll.Question.Text)+"]")
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "\n\n")
}

func quoted(s string) string {
	if s == "" {
		return ""
	}
	return "> " + strings.ReplaceAll(s, "\n", "\n> ")
}
