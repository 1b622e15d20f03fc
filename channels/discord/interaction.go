package discord

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
)

// handleFor is how long an interaction may be answered: Discord says 15 minutes.
const handleFor = 14 * time.Minute

// An interaction is one as it comes over HTTP and by the Gateway alike, or a
// webhook event, which has an Event. discordgo's own fails for one with a
// component that it does not know.
type interaction struct {
	ID      string                     `json:"id"`
	App     string                     `json:"application_id"`
	Type    *discordgo.InteractionType `json:"type"`
	Token   string                     `json:"token"`
	Guild   string                     `json:"guild_id"`
	Channel string                     `json:"channel_id"`
	In      *channelInfo               `json:"channel"`
	Member  *struct{ User *user }      `json:"member"`
	User    *user                      `json:"user"`
	Message *message                   `json:"message"`
	Data    struct {
		Name       string      `json:"name"`
		Options    []option    `json:"options"`
		CustomID   string      `json:"custom_id"`
		Values     []string    `json:"values"`
		Components []component `json:"components"`
	} `json:"data"`
	Event *struct {
		Type string `json:"type"`
	} `json:"event"`
}

type option struct {
	Name    string          `json:"name"`
	Value   json.RawMessage `json:"value"`
	Options []option        `json:"options"`
}

// A component is a field of a form, or what holds some.
type component struct {
	CustomID   string      `json:"custom_id"`
	Label      string      `json:"label"` // of a button
	Value      string      `json:"value"`
	Values     []string    `json:"values"`
	Components []component `json:"components"`
	Component  *component  `json:"component"`
}

func readInteraction(body []byte) (*interaction, error) {
	var in *interaction
	if err := json.Unmarshal(body, &in); err != nil || in == nil || in.Type == nil {
		return nil, fmt.Errorf("body is no interaction: %w", channels.ErrMalformed)
	}
	return in, nil
}

// webhookPing is the type of a webhook event that only tries the address.
const webhookPing = 0

// inbound maps an interaction to what it means for us, and to the answer that
// Discord wants within three seconds; pure. At is when it was sent, zero if that
// is not known.
func (i *interaction) inbound(own identity, at time.Time) (channels.Inbound, error) {
	switch {
	case own.app != "" && i.App != "" && i.App != own.app:
		return channels.Inbound{}, fmt.Errorf("application is another one: %w", channels.ErrMalformed)
	case *i.Type == webhookPing:
		return channels.Inbound{Ignored: []channels.Ignored{{Reason: "ping"}}, Empty: true}, nil
	case i.Event != nil:
		in := ignored("", "webhook event")
		in.Empty = true
		return in, nil
	case *i.Type == discordgo.InteractionPing:
		return i.answered(ignored("", "ping"), discordgo.InteractionResponsePong, nil)
	case *i.Type == discordgo.InteractionApplicationCommandAutocomplete:
		return i.answered(ignored(i.ID, "autocomplete"), discordgo.InteractionApplicationCommandAutocompleteResult,
			map[string]any{"choices": []any{}})
	}
	who := i.User
	if i.Member != nil {
		who = i.Member.User
	}
	if !snowflake(i.ID) || !snowflake(i.Channel) || i.Guild != "" && !snowflake(i.Guild) || who == nil || who.ID == "" {
		return channels.Inbound{}, fmt.Errorf("interaction without id, channel or author: %w", channels.ErrMalformed)
	}
	ev := i.event(own, who)
	if b := born(i.ID); at.IsZero() || b.Sub(at).Abs() < time.Hour {
		ev.At = b
	}
	in := channels.Inbound{Events: []chat.Event{ev}}
	deferred := discordgo.InteractionResponseDeferredChannelMessageWithSource
	switch *i.Type {
	case discordgo.InteractionApplicationCommand:
		e := &in.Events[0]
		e.Kind, e.Topic, e.Text = chat.Command, "command", valid(i.command())
		switch {
		case e.Text == "stop" && strings.HasPrefix(e.Thread.Root, commandRoot):
			return i.whispered(ignored(i.ID, "stop without a thread"), "Call it in the thread where I am at work: I cannot tell which one you mean.")
		case e.Text == "stop": // what it leads to is said in the room
			return i.whispered(in, "Stopping.")
		}
		e.Handle = chat.Handle{Secret: i.App + "/" + i.Token, Until: cmp.Or(at, ev.At).Add(handleFor)}
		return i.answered(in, deferred, nil)
	case discordgo.InteractionMessageComponent:
		text := strings.Join(i.Data.Values, ", ")
		if text == "" && i.Message != nil {
			text = label(i.Message.Components, i.Data.CustomID)
		}
		i.act(&in.Events[0], text)
		return i.answered(in, discordgo.InteractionResponseDeferredMessageUpdate, nil)
	case discordgo.InteractionModalSubmit:
		i.act(&in.Events[0], strings.Join(fields(i.Data.Components, nil), "\n"))
		if i.Message != nil {
			return i.answered(in, discordgo.InteractionResponseDeferredMessageUpdate, nil)
		}
		return i.whispered(in, "Received.")
	}
	return channels.Inbound{}, fmt.Errorf("interaction of type %d: %w", *i.Type, channels.ErrMalformed)
}

// answered adds the answer.
func (i *interaction) answered(in channels.Inbound, kind discordgo.InteractionResponseType, data map[string]any) (channels.Inbound, error) {
	for _, e := range in.Events {
		if err := e.Thread.Validate(); err != nil {
			return channels.Inbound{}, fmt.Errorf("%w: %w", err, channels.ErrMalformed)
		}
	}
	answer := map[string]any{"type": kind}
	if data != nil {
		answer["data"] = data
	}
	reply, err := json.Marshal(answer)
	in.Reply, in.ReplyType = reply, "application/json"
	return in, err
}

// whispered adds an answer that only the person sees.
func (i *interaction) whispered(in channels.Inbound, text string) (channels.Inbound, error) {
	return i.answered(in, discordgo.InteractionResponseChannelMessageWithSource, map[string]any{"content": text, "flags": discordgo.MessageFlagsEphemeral})
}

// event is what all interactions have.
func (i *interaction) event(own identity, who *user) chat.Event {
	p := place{account: cmp.Or(i.Guild, direct), room: i.Channel}
	if in := i.In; in != nil && in.ID == i.Channel && (room{kind: in.Type}).thread() {
		p.thread = i.Channel
		if snowflake(in.Parent) {
			p.room = in.Parent
		}
	}
	root := commandRoot + i.ID
	if i.Message != nil {
		root = i.Message.origin()
	}
	return chat.Event{
		ID: i.ID, Thread: p.at(root), Ref: commandRoot + i.ID, Author: who.author(p.account, false),
		Facts: map[string]string{"channel": i.Channel, "interaction": i.ID, "user": who.ID},
	}
}

// act fills in a button, a selection or a form.
func (i *interaction) act(ev *chat.Event, text string) {
	ev.Kind, ev.Topic, ev.Text = chat.Action, "action", valid(text)
	ev.Facts["action"] = valid(i.Data.CustomID)
	if m := i.Message; m != nil && snowflake(m.ID) {
		ev.Facts["message"] = m.ID
	}
}

// command is what a command says: the texts of its options, or the name of the
// innermost command without any.
func (i *interaction) command() string {
	name, options := i.Data.Name, i.Data.Options
	for len(options) == 1 && options[0].Value == nil {
		name, options = options[0].Name, options[0].Options
	}
	var values []string
	for _, o := range options {
		var text string
		if json.Unmarshal(o.Value, &text) != nil {
			text = string(o.Value) // a number, or yes or no
		}
		values = append(values, strings.TrimSpace(text))
	}
	if len(values) == 0 {
		return name
	}
	return strings.Join(values, " ")
}

// label is what is written on a button of a message. Components of kinds that are
// not known yet must not spoil the message, so they are read here only.
func label(raw json.RawMessage, id string) string {
	var cs []component
	_ = json.Unmarshal(raw, &cs) // as far as it goes
	for i := 0; i < len(cs); i++ {
		if cs[i].CustomID == id {
			return cs[i].Label
		}
		cs = append(cs, cs[i].Components...)
	}
	return ""
}

// fields lists what was filled in, as lines.
func fields(cs []component, lines []string) []string {
	for _, c := range cs {
		value := cmp.Or(c.Value, strings.Join(c.Values, ", "))
		if c.CustomID != "" && value != "" {
			lines = append(lines, c.CustomID+": "+value)
		}
		lines = fields(c.Components, lines)
		if c.Component != nil {
			lines = fields([]component{*c.Component}, lines)
		}
	}
	return lines
}
