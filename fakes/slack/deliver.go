package slack

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Words are what somebody says. Only User and Text are needed.
type Words struct {
	Channel string // the first channel if empty; made if unknown
	User    string
	Text    string // as Slack sends it: "<@U0BOT> hi &amp; bye"
	Thread  string // thread_ts, to reply
	TS      string // a message that was said already, to deliver it as another event
	Subtype string // "file_share", "thread_broadcast"
	Files   []File
	Team    string // the sender's workspace in a shared channel
}

// A Delivery is one signed request.
type Delivery struct {
	Route   string // "events", "interactions", "commands", "options": the end of its path
	EventID string
	TS      string // of the message that it is about
	Header  http.Header
	Body    []byte
}

// Request makes the HTTP request; each call makes a fresh one.
func (d Delivery) Request(url string) (*http.Request, error) {
	r, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(d.Body))
	if err != nil {
		return nil, err
	}
	r.Header = d.Header.Clone()
	return r, nil
}

// Mention lets a person say something that names the bot (the text is given the
// mention if it lacks it) and delivers it as app_mention.
func (w *Workspace) Mention(s Words) Delivery {
	if at := "<@" + w.opt.BotUser + ">"; !strings.Contains(s.Text, at) {
		s.Text = at + " " + s.Text
	}
	return w.say("app_mention", s)
}

// Message lets a person say something and delivers it as message. With the TS of
// a delivery it is the same message under another event id, as Slack does for
// a bot that has subscribed to both.
func (w *Workspace) Message(s Words) Delivery { return w.say("message", s) }

func (w *Workspace) say(kind string, s Words) Delivery {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.Channel == "" {
		s.Channel = w.opt.Channels[0].ID
	}
	r := w.channels[s.Channel]
	if r == nil {
		r = &room{Channel: Channel{ID: s.Channel, Kind: "channel"}}
		w.channels[s.Channel] = r
	}
	if s.TS == "" {
		s.TS = w.stamp()
		for i, f := range s.Files {
			s.Files[i] = w.addFile(f)
		}
		r.add(&Message{TS: s.TS, ThreadTS: s.Thread, User: s.User, Text: s.Text, Files: s.Files})
	}
	m := answer{
		"type": kind, "user": s.User, "text": s.Text, "ts": s.TS, "channel": s.Channel, "event_ts": s.TS, "team": w.opt.Team,
		"client_msg_id": "msg-" + s.TS,
		"blocks": []answer{{"type": "rich_text", "block_id": "b1", "elements": []answer{
			{"type": "rich_text_section", "elements": []answer{{"type": "text", "text": s.Text}}},
		}}},
	}
	if kind == "message" {
		m["channel_type"] = r.Kind
	}
	for k, v := range map[string]string{"thread_ts": s.Thread, "subtype": s.Subtype} {
		if v != "" {
			m[k] = v
		}
	}
	if s.Team != "" {
		m["user_team"], m["source_team"] = s.Team, s.Team
	}
	if s.Files != nil {
		m["files"] = s.Files
	}
	return w.event(s.TS, m)
}

// Edit changes a message that a person said and delivers message_changed.
func (w *Workspace) Edit(channel, ts, text string) (Delivery, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.find(channel, ts)
	if m == nil || m.Deleted {
		return Delivery{}, fmt.Errorf("edit %s/%s: no such message", channel, ts)
	}
	before := w.wire(m, false)
	m.Text, m.EditedTS = text, w.stamp()
	return w.event(ts, w.hidden(channel, "message_changed", answer{"message": w.wire(m, false), "previous_message": before})), nil
}

// Delete takes a message back and delivers message_deleted.
func (w *Workspace) Delete(channel, ts string) (Delivery, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.find(channel, ts)
	if m == nil || m.Deleted {
		return Delivery{}, fmt.Errorf("delete %s/%s: no such message", channel, ts)
	}
	before := w.wire(m, false)
	m.Deleted = true
	return w.event(ts, w.hidden(channel, "message_deleted", answer{"deleted_ts": ts, "previous_message": before})), nil
}

func (w *Workspace) hidden(channel, subtype string, more answer) answer {
	ts := w.stamp()
	more["type"], more["subtype"], more["hidden"] = "message", subtype, true
	more["channel"], more["channel_type"], more["ts"], more["event_ts"] = channel, w.channels[channel].Kind, ts, ts
	return more
}

// Event delivers any inner event under a new event id.
func (w *Workspace) Event(inner map[string]any) Delivery {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.event("", inner)
}

func (w *Workspace) event(ts string, inner map[string]any) Delivery {
	w.events++
	id := fmt.Sprintf("Ev%08d", w.events)
	d := w.Sign(mustJSON(answer{
		"token": "deprecated", "team_id": w.opt.Team, "api_app_id": w.opt.AppID, "type": "event_callback",
		"event_id": id, "event_time": w.opt.Clock().Unix(), "is_ext_shared_channel": false, "event_context": "4-fake", "event": inner,
		"authorizations": []answer{w.authorization()},
	}))
	d.EventID, d.TS = id, ts
	return d
}

// authorization is the installation that an event is for.
func (w *Workspace) authorization() answer {
	a := answer{"enterprise_id": nil, "team_id": w.opt.Team, "user_id": w.opt.BotUser, "is_bot": true, "is_enterprise_install": false}
	if w.opt.Enterprise != "" {
		a["enterprise_id"], a["is_enterprise_install"] = w.opt.Enterprise, true
	}
	return a
}

// Verification delivers the handshake that comes when the address is set.
func (w *Workspace) Verification(challenge string) Delivery {
	return w.Sign(mustJSON(answer{"token": "deprecated", "type": "url_verification", "challenge": challenge}))
}

// Sign makes a delivery of any body, signed now.
func (w *Workspace) Sign(body []byte) Delivery {
	stamp := strconv.FormatInt(w.opt.Clock().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(w.opt.SigningSecret))
	fmt.Fprintf(mac, "v0:%s:%s", stamp, body)
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", "Slackbot 1.0 (+https://api.slack.com/robots)")
	h.Set("X-Slack-Request-Timestamp", stamp)
	h.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
	return Delivery{Route: "events", Header: h, Body: body}
}

// Again is the n-th retry of a delivery: the same body, signed now.
func (w *Workspace) Again(d Delivery, n int, reason string) Delivery {
	r := w.Sign(d.Body)
	r.EventID, r.TS, r.Route = d.EventID, d.TS, d.Route
	r.Header.Set("Content-Type", d.Header.Get("Content-Type"))
	r.Header.Set("X-Slack-Retry-Num", strconv.Itoa(n))
	r.Header.Set("X-Slack-Retry-Reason", reason)
	return r
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // a test gave an event that is no JSON
	}
	return b
}
