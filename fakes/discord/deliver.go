package discord

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Words are what somebody says. Only Text is needed.
type Words struct {
	Channel string // General if empty; a thread is a channel
	User    string // the first user if empty
	Text    string // as Discord sends it: "<@1> hi"
	Reply   string // the message that it answers; its author is notified
	Type    int    // 0, or 19 for a reply if that is set
	Webhook string
	App     string
	Files   []File
	More    map[string]any // fields of the message to add or replace
}

// Say lets a person say something; the Gateway tells it. It returns the id.
func (s *Server) Say(w Words) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.said(w)
	s.dispatch("MESSAGE_CREATE", s.event(m))
	return m.ID
}

// Mention is Say of something that names the bot.
func (s *Server) Mention(w Words) string {
	w.Text = "<@" + s.opt.Bot + "> " + w.Text
	return s.Say(w)
}

func (s *Server) said(w Words) *Message {
	if w.Channel == "" {
		w.Channel = General
	}
	if w.User == "" {
		w.User = s.opt.Users[0].ID
	}
	m := &Message{
		ID: s.stamp(), Channel: w.Channel, Author: w.User, Content: w.Text, Type: w.Type, Reference: w.Reply, Webhook: w.Webhook, App: w.App,
		Mentions: mentioned(w.Text), more: w.More,
	}
	if r := s.find(w.Channel, w.Reply); r != nil {
		m.Type = 19
		m.Mentions = append(m.Mentions, r.Author)
	}
	s.attach(m, w.Files)
	s.messages[w.Channel] = append(s.messages[w.Channel], m)
	if c := s.channels[w.Channel]; c != nil {
		c.last = m.ID
	}
	s.change()
	return m
}

// Topic begins a thread in the forum Help with a first message, whose id it has.
func (s *Server) Topic(w Words) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &Channel{ID: s.stamp(), Kind: Public, Parent: Help}
	s.channels[t.ID] = t
	w.Channel = t.ID
	m := s.said(w)
	m.ID = t.ID
	info := s.wireChannel(t)
	info["newly_created"] = true
	s.dispatch("THREAD_CREATE", info)
	s.dispatch("MESSAGE_CREATE", s.event(m))
	return t.ID
}

// Edit changes what a person said.
func (s *Server) Edit(channel, id, text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.find(channel, id)
	if m == nil {
		return fmt.Errorf("edit %s: no such message", id)
	}
	m.Content, m.Edited, m.Mentions = text, s.opt.Clock(), mentioned(text)
	s.dispatch("MESSAGE_UPDATE", s.event(m))
	return nil
}

// Delete takes a message back.
func (s *Server) Delete(channel, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.find(channel, id)
	if m == nil {
		return fmt.Errorf("delete %s: no such message", id)
	}
	m.Deleted = true
	s.dispatch("MESSAGE_DELETE", answer{"id": id, "channel_id": channel, "guild_id": s.opt.Guild})
	return nil
}

// Tell lets the Gateway tell anything.
func (s *Server) Tell(kind string, data map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dispatch(kind, data)
}

// An interaction is a right to answer.
type interaction struct {
	id, token, channel string
	at                 time.Time
	answered           bool
	original           *Message // nil until there is one
}

// A Delivery is one signed request.
type Delivery struct {
	ID     string // of the interaction
	Token  string
	Header http.Header
	Body   []byte
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

// Ask lets a person call "/agent ask" with the text, over HTTP: what the gateway
// answers must be given to Reply.
func (s *Server) Ask(w Words) Delivery {
	return s.Interact(w, map[string]any{"type": 2, "data": answer{"id": "1", "name": "agent", "type": 1, "options": []answer{
		{"name": "ask", "type": 1, "options": []answer{{"name": "text", "type": 3, "value": w.Text}}},
	}}})
}

// Interact makes an interaction of the fields, which come on top of the usual ones.
func (s *Server) Interact(w Words, fields map[string]any) Delivery {
	s.mu.Lock()
	id, token, body := s.interact(w, fields)
	s.mu.Unlock()
	d := s.Sign(mustJSON(body))
	d.ID, d.Token = id, token
	return d
}

// AskHere is Ask by the Gateway, which takes the answer itself.
func (s *Server) AskHere(w Words) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, _, body := s.interact(w, map[string]any{"type": 2, "data": answer{"id": "1", "name": "agent", "type": 1, "options": []answer{
		{"name": "ask", "type": 1, "options": []answer{{"name": "text", "type": 3, "value": w.Text}}},
	}}})
	s.dispatch("INTERACTION_CREATE", body)
	return id
}

func (s *Server) interact(w Words, fields map[string]any) (id, token string, body answer) {
	if w.Channel == "" {
		w.Channel = General
	}
	if w.User == "" {
		w.User = s.opt.Users[0].ID
	}
	id = s.stamp()
	token = "token-of-" + id
	s.interactions[token] = &interaction{id: id, token: token, channel: w.Channel, at: s.opt.Clock()}
	body = answer{"id": id, "application_id": s.opt.App, "token": token, "version": 1, "channel_id": w.Channel, "locale": "en-US", "context": 0}
	c := s.channels[w.Channel]
	if c != nil {
		body["channel"] = s.wireChannel(c)
	}
	if c == nil || c.Kind != Direct {
		body["guild_id"] = s.opt.Guild
		body["member"] = s.wireMember(s.users[w.User])
	} else {
		body["user"] = s.wireUser(w.User)
	}
	maps.Copy(body, fields)
	return id, token, body
}

// Sign makes a delivery of any body, signed now.
func (s *Server) Sign(body []byte) Delivery {
	stamp := strconv.FormatInt(s.opt.Clock().Unix(), 10)
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", "Discord-Interactions/1.0 (+https://discord.com)")
	h.Set("X-Signature-Timestamp", stamp)
	h.Set("X-Signature-Ed25519", hex.EncodeToString(ed25519.Sign(s.key, append([]byte(stamp), body...))))
	return Delivery{Header: h, Body: body}
}

// Reply takes what the gateway answered to a delivery, as Discord does.
func (s *Server) Reply(d Delivery, body []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.respond(s.interactions[d.Token], body); o.status >= 300 {
		return fmt.Errorf("discord shows that the application did not respond: %v", o.body)
	}
	return nil
}

// respond is the first answer of an interaction; mu is held.
func (s *Server) respond(i *interaction, body []byte) outcome {
	var o struct {
		Type int `json:"type"`
		Data struct {
			Content string            `json:"content"`
			Flags   int               `json:"flags"`
			Choices []json.RawMessage `json:"choices"`
		} `json:"data"`
	}
	switch {
	case i == nil || s.opt.Clock().Sub(i.at) > 3*time.Second && !i.answered:
		return fail(http.StatusNotFound, 10062)
	case i.answered:
		return fail(http.StatusBadRequest, 40060)
	case json.Unmarshal(body, &o) != nil, !slices.Contains([]int{1, 4, 5, 6, 7, 8, 9}, o.Type), len(o.Data.Choices) > 25, o.Type == 4 && o.Data.Content == "":
		return fail(http.StatusBadRequest, 50035)
	}
	i.answered = true
	if o.Type == 4 || o.Type == 5 {
		m := &Message{ID: s.stamp(), Channel: i.channel, Author: s.opt.Bot, Content: o.Data.Content, Flags: o.Data.Flags, Interaction: i.id, Webhook: s.opt.App, App: s.opt.App}
		if o.Type == 5 {
			m.Flags |= loading
		}
		i.original = m
		s.messages[i.channel] = append(s.messages[i.channel], m)
	}
	s.change()
	return done
}

// loading marks an answer that is coming.
const loading = 1 << 7

// hook is what the token of an interaction gives a right to; mu is held.
func (s *Server) hook(r *request) outcome {
	p := r.parts
	i := s.interactions[p[2]]
	if p[0] == "interactions" {
		if i == nil || i.id != p[1] || p[3] != "callback" {
			return fail(http.StatusNotFound, 10062)
		}
		return s.respond(i, r.body)
	}
	switch {
	case p[1] != s.opt.App, i == nil, s.opt.Clock().Sub(i.at) > 15*time.Minute, !i.answered:
		return fail(http.StatusNotFound, 10015)
	case len(p) == 3 && r.method == http.MethodPost:
		return s.followUp(i, r)
	case len(p) != 5 || p[3] != "messages" || p[4] != "@original":
		return fail(http.StatusNotFound, 0)
	case i.original == nil || i.original.Deleted:
		return fail(http.StatusNotFound, 10008)
	case r.method == http.MethodGet:
		return ok(s.wire(i.original))
	case r.method == http.MethodDelete:
		i.original.Deleted = true
		return done
	case r.method == http.MethodPatch:
		return s.fillIn(i, r)
	}
	return fail(http.StatusMethodNotAllowed, 0)
}

// fillIn changes the first answer; the first time it becomes visible.
func (s *Server) fillIn(i *interaction, r *request) outcome {
	var o outgoing
	if _, bad := o.check(r); bad.status != 0 {
		return bad
	}
	m := i.original
	m.Content = strings.TrimSpace(o.Content)
	s.attach(m, r.files)
	if m.Flags&loading != 0 {
		m.Flags = m.Flags&^loading | o.Flags
		s.add(m, "original", o.notified())
		s.dispatch("MESSAGE_UPDATE", s.event(m))
	} else {
		m.Edited = s.opt.Clock()
	}
	return ok(s.wire(m))
}

// followUp makes another answer. While the first is coming it becomes that.
func (s *Server) followUp(i *interaction, r *request) outcome {
	if i.original != nil && i.original.Flags&loading != 0 && !i.original.Deleted {
		return s.fillIn(i, r)
	}
	var o outgoing
	if _, bad := o.check(r); bad.status != 0 {
		return bad
	}
	m := &Message{ID: s.stamp(), Channel: i.channel, Author: s.opt.Bot, Content: strings.TrimSpace(o.Content), Flags: o.Flags, Interaction: i.id, Webhook: s.opt.App, App: s.opt.App}
	s.attach(m, r.files)
	s.add(m, "follow-up", o.notified())
	if r.query.Get("wait") == "true" {
		return ok(s.wire(m))
	}
	return done
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // a test gave an event that is no JSON
	}
	return b
}
