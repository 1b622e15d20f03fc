package slack

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
)

// handleLife is how long Slack takes posts by a response URL.
const handleLife = 30 * time.Minute

// An interaction is what somebody did with a piece of interface. Blocks are left
// out, as of messages.
type interaction struct {
	Type        string `json:"type"`
	AppID       string `json:"api_app_id"`
	CallbackID  string `json:"callback_id"`
	TriggerID   string `json:"trigger_id"`
	ResponseURL string `json:"response_url"`
	Team        struct {
		ID string `json:"id"`
	} `json:"team"`
	Enterprise struct {
		ID string `json:"id"`
	} `json:"enterprise"`
	User struct {
		ID     string `json:"id"`
		TeamID string `json:"team_id"`
	} `json:"user"`
	Channel struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"channel"`
	Container struct {
		ChannelID string `json:"channel_id"`
		MessageTS string `json:"message_ts"`
		ThreadTS  string `json:"thread_ts"`
	} `json:"container"`
	Message message        `json:"message"`
	Actions []actionOfUser `json:"actions"`
	View    view           `json:"view"`
}

type actionOfUser struct {
	ActionID string `json:"action_id"`
	BlockID  string `json:"block_id"`
	ActionTS string `json:"action_ts"`
	Label    struct {
		Text string `json:"text"`
	} `json:"text"`
	choice
}

// choice is what an element holds; which field, is the element's kind.
type choice struct {
	Value        string   `json:"value"`
	Option       option   `json:"selected_option"`
	Options      []option `json:"selected_options"`
	User         string   `json:"selected_user"`
	Users        []string `json:"selected_users"`
	Channel      string   `json:"selected_channel"`
	Conversation string   `json:"selected_conversation"`
	Date         string   `json:"selected_date"`
	Time         string   `json:"selected_time"`
}

type option struct {
	Value string `json:"value"`
}

type view struct {
	ID         string                      `json:"id"`
	Hash       string                      `json:"hash"`
	CallbackID string                      `json:"callback_id"`
	Private    string                      `json:"private_metadata"`
	State      struct{ Values viewValues } `json:"state"`
}

type viewValues map[string]map[string]choice

// text is what was chosen, "" for a button without a value.
func (c choice) text() string {
	many := slices.Clone(c.Users)
	for _, o := range c.Options {
		many = append(many, o.Value)
	}
	return cmp.Or(c.Value, c.Option.Value, c.User, c.Channel, c.Conversation, c.Date, c.Time, strings.Join(many, ", "))
}

// interactionForm reads an interaction as it comes over HTTP: JSON in one field
// of a form. What the address holds beside it is not read.
func (c *Channel) interactionForm(body []byte, at time.Time) (channels.Inbound, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil || len(form["payload"]) != 1 {
		return channels.Inbound{}, fmt.Errorf("form with %d payloads, want one: %w", len(form["payload"]), channels.ErrMalformed)
	}
	return c.interaction([]byte(form.Get("payload")), at)
}

// interaction reads what somebody did with buttons, menus, forms and shortcuts.
func (c *Channel) interaction(body []byte, at time.Time) (channels.Inbound, error) {
	var i interaction
	err := json.Unmarshal(body, &i)
	var wrong *json.UnmarshalTypeError
	if err != nil && !errors.As(err, &wrong) {
		return channels.Inbound{}, fmt.Errorf("payload is not JSON: %w", channels.ErrMalformed)
	}
	switch i.Type {
	case "block_actions", "view_submission", "message_action", "shortcut":
	case "block_suggestion": // of a menu that asks for its options while somebody types
		return channels.Inbound{Reply: []byte(`{"options":[]}`), ReplyType: "application/json", Ignored: ignored("", "menu without options").Ignored}, nil
	case "":
		return channels.Inbound{}, fmt.Errorf("payload has no type: %w", channels.ErrMalformed)
	default:
		return ignored("", "unknown type"), nil
	}
	if i.AppID == "" || i.User.ID == "" || i.account() == "" {
		return channels.Inbound{}, fmt.Errorf("%s without api_app_id, user or team: %w", i.Type, channels.ErrMalformed)
	}
	c.belongs(i.account(), i.Enterprise.ID)
	if !c.known(i.account()) {
		return ignored("", notInstalled), nil
	}
	var events []chat.Event
	switch i.Type {
	case "block_actions":
		events = i.pressed()
	case "view_submission":
		events = i.submitted()
	case "message_action":
		events = i.about(c.identity(i.account()))
	case "shortcut":
		events = i.global()
	}
	if len(events) == 0 {
		return ignored("", i.Type+" without a thread"), nil
	}
	for n := range events {
		c.rekey(&events[n])
		if err := events[n].Thread.Validate(); err != nil {
			return channels.Inbound{}, fmt.Errorf("%w: %w", err, channels.ErrMalformed)
		}
		if events[n].Author.ID == i.User.ID {
			events[n].Handle = c.handle(i.ResponseURL, at)
		}
	}
	return channels.Inbound{Events: events}, nil
}

func (i *interaction) account() string { return cmp.Or(i.Team.ID, i.User.TeamID) }

// thread is where the message stands that was acted on, zero if it is none.
func (i *interaction) thread() chat.Thread {
	t := chat.Thread{
		Channel: Name, Account: i.account(), Room: cmp.Or(i.Container.ChannelID, i.Channel.ID),
		Root: cmp.Or(i.Container.ThreadTS, i.Message.ThreadTS),
	}
	if t.Root == i.ref() { // the first message of a thread
		t.Root = ""
	}
	if t.Root == "" && !direct(t.Room, i.Channel.Name) {
		t.Root = i.ref()
	}
	if t.Room == "" {
		return chat.Thread{}
	}
	return t
}

func (i *interaction) ref() string { return cmp.Or(i.Container.MessageTS, i.Message.TS) }

// direct tells a direct message between two.
func direct(room, name string) bool { return name == "directmessage" || strings.HasPrefix(room, "D") }

// base fills what all events of an interaction have. What tells it from others
// is told by id, in as many parts as it takes.
func (i *interaction) base(t chat.Thread, topic string, id ...string) chat.Event {
	return chat.Event{
		ID: i.AppID + "/" + topic + "/" + digest(append(id, t.Key(), i.User.ID)...), Thread: t, Kind: chat.Action, Topic: topic, Ref: i.ref(),
		Author: chat.Author{ID: i.User.ID, Account: cmp.Or(i.User.TeamID, t.Account)},
		Facts:  map[string]string{"channel": t.Room, "user": i.User.ID},
	}
}

// digest makes an id of what may be long.
func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// pressed is the use of buttons and menus below a message.
func (i *interaction) pressed() []chat.Event {
	t := i.thread()
	if t == (chat.Thread{}) || i.ref() == "" {
		return nil // on the app's home or in a form
	}
	var out []chat.Event
	for _, a := range i.Actions {
		e := i.base(t, "action", i.ref(), a.BlockID, a.ActionID, a.ActionTS)
		e.Text, e.At = cmp.Or(a.text(), markdown(a.Label.Text, "")), stamp(a.ActionTS)
		e.Facts["ts"], e.Facts["action"], e.Facts["block"] = e.Ref, a.ActionID, a.BlockID
		out = append(out, e)
	}
	return out
}

// submitted is a form that was sent in. Its thread is that which was put into it
// when it was opened; only the app can put something there.
func (i *interaction) submitted() []chat.Event {
	t, err := chat.ParseThread(i.View.Private)
	if err != nil || t.Channel != Name || t.Account != i.account() {
		return nil
	}
	e := i.base(t, "action", i.View.ID, i.View.Hash)
	e.Facts["view"], e.Facts["callback"] = i.View.ID, i.View.CallbackID
	var lines []string
	for _, block := range slices.Sorted(maps.Keys(i.View.State.Values)) {
		for _, action := range slices.Sorted(maps.Keys(i.View.State.Values[block])) {
			lines = append(lines, action+": "+i.View.State.Values[block][action].text())
		}
	}
	e.Text = strings.ToValidUTF8(strings.Join(lines, "\n"), "\uFFFD")
	return []chat.Event{e}
}

// about is a shortcut on a message: the person asks, and the message follows as
// its own author's words, so that it does not speak with the rights of who asks.
func (i *interaction) about(self identity) []chat.Event {
	t := i.thread()
	if t == (chat.Thread{}) || i.Message.TS == "" {
		return nil
	}
	asks := i.base(t, "mention", i.TriggerID)
	asks.Kind, asks.Ref = chat.Mention, i.Message.TS
	asks.Text = "(asks you, with a shortcut, about the message " + i.Message.TS + ")"
	asks.Facts["ts"], asks.Facts["callback"] = i.Message.TS, i.CallbackID
	e := envelope{AppID: i.AppID, TeamID: t.Account, EventID: "shortcut/" + digest(i.TriggerID), Event: i.Message}
	e.Event.Channel, e.Event.Type = t.Room, "message"
	if direct(t.Room, i.Channel.Name) {
		e.Event.ChannelType = "im"
	}
	if e.foreign(&e.Event, self) != "" {
		return []chat.Event{asks} // it is known, or nobody's
	}
	said := e.said(self)
	if said.Topic != "dm" {
		said.Kind, said.Topic = chat.Message, "thread"
	}
	delete(said.Facts, chat.Addressed) // whomever it was for, now the bot is asked
	return []chat.Event{asks, said}
}

// global is a shortcut from anywhere: it begins or goes on with the direct
// conversation.
func (i *interaction) global() []chat.Event {
	e := i.base(chat.Thread{Channel: Name, Account: i.account(), Room: i.User.ID}, "shortcut", i.TriggerID)
	e.Kind, e.Text = chat.Command, i.CallbackID
	e.Facts["callback"] = i.CallbackID
	return []chat.Event{e}
}

// handle is the right to answer by a response URL, none if the URL is not one
// of Slack's.
func (c *Channel) handle(address string, at time.Time) chat.Handle {
	if address == "" || !c.hook(address) {
		return chat.Handle{}
	}
	return chat.Handle{Secret: address, Until: at.Add(handleLife)}
}

// hook tells whether an address is one of Slack's for answers: over TLS, or
// where the Web API is.
func (c *Channel) hook(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.User != nil || !slices.Contains(c.hooks, u.Host) {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && strings.HasPrefix(c.apiURL, "http://"+u.Host+"/")
}
