package slack

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
)

// commandHelp is shown to who asks for it.
const commandHelp = "Write what you want after `%[1]s`, such as `%[1]s what is new in this channel?` The answer comes here, and goes on in its thread. " +
	"In a thread, mention me instead: Slack has no commands there. Say `stop` in a thread, or `%[1]s stop` in our direct messages, to end what I am doing."

// commandForm reads a command as it comes over HTTP: a form.
func (c *Channel) commandForm(body []byte, at time.Time) (channels.Inbound, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return channels.Inbound{}, fmt.Errorf("body is no form: %w", channels.ErrMalformed)
	}
	fields := map[string]string{}
	for k, v := range form {
		if len(v) != 1 {
			return channels.Inbound{}, fmt.Errorf("form with a field that comes %d times: %w", len(v), channels.ErrMalformed)
		}
		fields[k] = v[0]
	}
	return c.asks(fields, at)
}

// command reads a command as it comes by a socket: the same fields as JSON.
func (c *Channel) command(body []byte, at time.Time) (channels.Inbound, error) {
	var fields map[string]any
	if err := json.Unmarshal(body, &fields); err != nil {
		return channels.Inbound{}, fmt.Errorf("payload is no object: %w", channels.ErrMalformed)
	}
	texts := map[string]string{}
	for k, v := range fields {
		if s, ok := v.(string); ok {
			texts[k] = s
		}
	}
	return c.asks(texts, at)
}

// asks reads a slash command. In a room it begins a conversation of its own; in
// a direct message it is like a message.
func (c *Channel) asks(f map[string]string, at time.Time) (channels.Inbound, error) {
	if f["ssl_check"] == "1" && f["command"] == "" {
		return ignored("", "check of the certificate"), nil
	}
	for _, name := range []string{"command", "api_app_id", "team_id", "channel_id", "user_id", "trigger_id"} {
		if f[name] == "" {
			return channels.Inbound{}, fmt.Errorf("command without %s: %w", name, channels.ErrMalformed)
		}
	}
	c.belongs(f["team_id"], f["enterprise_id"])
	if !c.known(f["team_id"]) {
		return ignored("", notInstalled), nil
	}
	text := strings.ToValidUTF8(markdown(f["text"], c.identity(f["team_id"]).user), "\uFFFD")
	word := strings.ToLower(strings.TrimSpace(text))
	private := direct(f["channel_id"], f["channel_name"])
	switch {
	case word == "" || word == "help":
		return whispered(fmt.Sprintf(commandHelp, clean(f["command"])), "help"), nil
	case (word == "stop" || word == "cancel") && !private:
		return whispered("Say `stop` in the thread where I am at work: Slack does not tell me which one you mean.", "stop without a thread"), nil
	}
	id := digest(f["trigger_id"], f["user_id"])
	e := chat.Event{
		ID: f["api_app_id"] + "/command/" + id, Thread: chat.Thread{Channel: Name, Account: f["team_id"], Room: c.origin(f["channel_id"])},
		Kind: chat.Command, Topic: "command", Ref: asked + id, Author: chat.Author{ID: f["user_id"], Account: f["team_id"]}, Text: text,
		Facts:  map[string]string{"channel": f["channel_id"], "user": f["user_id"], "command": f["command"]},
		Handle: c.handle(f["response_url"], at),
	}
	if private {
		e.Kind, e.Topic = chat.Message, "dm"
	} else {
		e.Thread.Root = asked + id
	}
	if err := e.Thread.Validate(); err != nil {
		return channels.Inbound{}, fmt.Errorf("%w: %w", err, channels.ErrMalformed)
	}
	// The command is shown in the room, so that people see what is answered.
	return channels.Inbound{Events: []chat.Event{e}, Reply: []byte(`{"response_type":"in_channel"}`), ReplyType: "application/json"}, nil
}

// whispered answers a command for who gave it only, and leads to nothing else.
func whispered(text, reason string) channels.Inbound {
	in := ignored("", reason)
	in.Reply, _ = json.Marshal(map[string]string{"response_type": "ephemeral", "text": text}) // texts always marshal
	in.ReplyType = "application/json"
	return in
}

// clean keeps of a command's name what cannot break out of a code span.
func clean(command string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("`<>&\n", r) {
			return -1
		}
		return r
	}, command)
}
