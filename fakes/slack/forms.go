package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heddlehq/heddle/chat"
)

// Bounds of a response URL.
const (
	hookUses = 5
	hookLife = 30 * time.Minute
)

// A Whisper is a message that one person sees: chat.postEphemeral, or an
// ephemeral response.
type Whisper struct{ Channel, Thread, User, Text string }

// hook is a response URL.
type hook struct {
	channel, user string
	uses          int
	until         time.Time
}

// Whispers are those that were made, oldest first.
func (w *Workspace) Whispers() []Whisper {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.whispers)
}

// WaitWhispers returns them once there are n, or with ctx's error before.
func (w *Workspace) WaitWhispers(ctx context.Context, n int) ([]Whisper, error) {
	for {
		w.mu.Lock()
		changed := w.changed
		w.mu.Unlock()
		all := w.Whispers()
		if len(all) >= n {
			return all, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return all, fmt.Errorf("wait for %d whispers, have %d: %w", n, len(all), context.Cause(ctx))
		}
	}
}

// Command delivers a slash command, such as "/agent" with a text.
func (w *Workspace) Command(channel, user, command, text string) Delivery {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := "general"
	if r := w.channels[channel]; r != nil && r.Kind == "im" {
		name = "directmessage"
	}
	return w.form("commands", url.Values{
		"token": {"deprecated"}, "team_id": {w.opt.Team}, "team_domain": {"fake"}, "channel_id": {channel}, "channel_name": {name}, "user_id": {user},
		"user_name": {user}, "command": {command}, "text": {text}, "api_app_id": {w.opt.AppID}, "is_enterprise_install": {"false"},
		"response_url": {w.hook(channel, user)}, "trigger_id": {w.trigger()},
	})
}

// A Click is the use of an element below a message, or in another place.
type Click struct {
	Type                             string // "block_actions" if empty, "message_action", "shortcut", "view_submission", "block_suggestion"
	Channel, User, Action, Value, TS string // TS is the message's
	Callback                         string
	Private                          string                    // private_metadata of a form
	Values                           map[string]map[string]any // of a form: by block and element
}

// Interact delivers what somebody did with a piece of interface.
func (w *Workspace) Interact(c Click) Delivery {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.Type == "" {
		c.Type = "block_actions"
	}
	p := answer{
		"type": c.Type, "token": "deprecated", "api_app_id": w.opt.AppID, "trigger_id": w.trigger(), "team": answer{"id": w.opt.Team, "domain": "fake"},
		"user": answer{"id": c.User, "username": c.User, "team_id": w.opt.Team}, "callback_id": c.Callback, "is_enterprise_install": false, "enterprise": nil,
	}
	if m := w.find(c.Channel, c.TS); m != nil {
		p["message"] = w.wire(m, false)
		p["channel"] = answer{"id": c.Channel, "name": map[bool]string{true: "directmessage", false: "general"}[w.channels[c.Channel].Kind == "im"]}
		container := answer{"type": "message", "message_ts": c.TS, "channel_id": c.Channel, "is_ephemeral": false}
		if m.ThreadTS != "" {
			container["thread_ts"] = m.ThreadTS
		}
		p["container"], p["message_ts"], p["response_url"] = container, c.TS, w.hook(c.Channel, c.User)
	}
	switch c.Type {
	case "block_actions":
		p["actions"] = []answer{{
			"type": "button", "action_id": c.Action, "block_id": "b1", "value": c.Value, "action_ts": w.stamp(),
			"text": answer{"type": "plain_text", "text": c.Action},
		}}
	case "view_submission":
		p["view"] = answer{
			"id": "V" + w.trigger(), "hash": w.trigger(), "callback_id": c.Callback, "private_metadata": c.Private, "type": "modal",
			"state": answer{"values": c.Values}, "blocks": []answer{{"type": "brand_new_block"}},
		}
	case "block_suggestion":
		p["action_id"], p["value"] = c.Action, c.Value
		return w.form("options", url.Values{"payload": {string(mustJSON(p))}})
	}
	return w.form("interactions", url.Values{"payload": {string(mustJSON(p))}})
}

// form makes a delivery of a form.
func (w *Workspace) form(route string, v url.Values) Delivery {
	d := w.Sign([]byte(v.Encode()))
	d.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	d.Route = route
	return d
}

func (w *Workspace) trigger() string {
	w.stamps++
	return strconv.Itoa(w.stamps) + ".trigger"
}

// hook gives out a response URL.
func (w *Workspace) hook(channel, user string) string {
	id := w.trigger()
	w.hooks[id] = &hook{channel: channel, user: user, until: w.opt.Clock().Add(hookLife)}
	if w.base == "" { // nobody has asked us anything yet
		return "https://hooks.slack.com/response/" + id
	}
	return w.base + "/response/" + id
}

// receiveResponse takes what is posted by a response URL.
func (w *Workspace) receiveResponse(rw http.ResponseWriter, r *http.Request) {
	id := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	var m struct {
		Type string `json:"response_type"`
		Text string `json:"text"`
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.hooks[id]
	switch {
	case err != nil || json.Unmarshal(body, &m) != nil || strings.TrimSpace(m.Text) == "":
		http.Error(rw, `{"ok":false,"error":"invalid_payload"}`, http.StatusBadRequest)
		return
	case h == nil || w.opt.Clock().After(h.until):
		http.Error(rw, `{"ok":false,"error":"expired_url"}`, http.StatusNotFound)
		return
	case h.uses == hookUses:
		http.Error(rw, `{"ok":false,"error":"used_url"}`, http.StatusNotFound)
		return
	}
	h.uses++
	if m.Type != "in_channel" {
		w.whispers = append(w.whispers, Whisper{Channel: h.channel, User: h.user, Text: m.Text})
	} else {
		w.posts = append(w.posts, Post{
			Channel: h.channel, TS: w.stamp(), Text: m.Text, At: w.opt.Clock(), Response: true, Thread: chat.Thread{Channel: "slack", Account: w.opt.Team, Room: h.channel},
		})
	}
	w.note()
	_, _ = io.WriteString(rw, "ok")
}

func (w *Workspace) postEphemeral(args map[string]string) answer {
	r, ok := w.channels[args["channel"]]
	_, known := w.users[args["user"]]
	switch {
	case !ok:
		return fail("channel_not_found")
	case r.Absent:
		return fail("not_in_channel")
	case !known:
		return fail("user_not_in_channel")
	case strings.TrimSpace(args["text"]) == "":
		return fail("no_text")
	}
	w.whispers = append(w.whispers, Whisper{Channel: args["channel"], Thread: args["thread_ts"], User: args["user"], Text: args["text"]})
	w.note()
	return answer{"ok": true, "message_ts": w.stamp()}
}

// openDirect gives the direct message with a person, and makes it if there is none.
func (w *Workspace) openDirect(args map[string]string) answer {
	user := args["users"]
	if _, ok := w.users[user]; !ok {
		return fail("user_not_found")
	}
	id := "D" + strings.TrimPrefix(user, "U")
	if w.channels[id] == nil {
		w.channels[id] = &room{Channel: Channel{ID: id, Kind: "im"}}
	}
	return answer{"ok": true, "channel": answer{"id": id}}
}

// formFrame is a form as a socket carries it: the payload of interactivity, or
// the fields of a command.
func formFrame(body []byte) (kind string, payload json.RawMessage, err error) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return "", nil, err
	}
	if p := form.Get("payload"); p != "" {
		return "interactive", json.RawMessage(p), nil
	}
	if form.Get("command") == "" {
		return "", nil, errors.New("the form is neither interactivity nor a command")
	}
	fields := map[string]string{}
	for k := range form {
		fields[k] = form.Get(k)
	}
	return "slash_commands", mustJSON(fields), nil
}
