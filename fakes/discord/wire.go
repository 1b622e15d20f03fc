package discord

import (
	"cmp"
	"strings"
	"time"
)

// Everything here is as Discord writes it; mu is held.

func (s *Server) wireUser(id string) answer {
	u := s.users[id]
	return answer{"id": id, "username": u.Name, "global_name": nil, "discriminator": "0", "avatar": nil, "bot": u.Bot}
}

func (s *Server) wireMember(u User) answer {
	roles := u.Roles
	if roles == nil {
		roles = []string{}
	}
	return answer{"user": s.wireUser(u.ID), "roles": roles, "nick": nil, "pending": u.Pending, "joined_at": "2020-01-01T00:00:00Z", "flags": 0}
}

func (s *Server) wireRoles() []answer {
	return []answer{{"id": s.opt.Guild, "name": "@everyone"}, {"id": BotRole, "name": "heddle", "tags": answer{"bot_id": s.opt.Bot}}}
}

func (s *Server) wireChannel(c *Channel) answer {
	a := answer{"id": c.ID, "type": c.Kind, "name": "room", "last_message_id": nil}
	if c.Kind != Direct {
		a["guild_id"] = s.opt.Guild
	}
	if c.Kind != Direct && c.Parent != "" {
		a["parent_id"] = c.Parent
		a["thread_metadata"] = answer{"archived": false, "locked": c.Locked}
	}
	if c.last != "" {
		a["last_message_id"] = c.last
	}
	return a
}

// wire is a message as the REST API shows it.
func (s *Server) wire(m *Message) answer {
	a := answer{
		"id": m.ID, "channel_id": m.Channel, "type": m.Type, "content": m.Content, "flags": m.Flags, "author": s.wireUser(m.Author),
		"timestamp": s.at(m).UTC().Format(time.RFC3339Nano), "edited_timestamp": nil, "tts": false, "pinned": false, "mention_everyone": false,
		"embeds": []any{}, "components": []any{}, "mention_roles": []string{}, "mentions": []answer{}, "attachments": []answer{},
	}
	var mentioned, files []answer
	for _, id := range m.Mentions {
		mentioned = append(mentioned, s.wireUser(id))
	}
	if mentioned != nil {
		a["mentions"] = mentioned
	}
	for _, f := range m.Files {
		files = append(files, answer{"id": f.ID, "filename": f.Name, "content_type": f.Type, "size": f.Bytes, "url": cmp.Or(f.URL, s.host+"/files/"+f.ID)})
	}
	if files != nil {
		a["attachments"] = files
	}
	if !m.Edited.IsZero() {
		a["edited_timestamp"] = m.Edited.UTC().Format(time.RFC3339Nano)
	}
	if m.Webhook != "" {
		a["webhook_id"] = m.Webhook
	}
	if m.App != "" {
		a["application_id"] = m.App
	}
	if m.Interaction != "" {
		a["interaction_metadata"] = answer{"id": m.Interaction, "type": 2}
	}
	if m.Reference != "" {
		a["message_reference"] = answer{"type": 0, "message_id": m.Reference, "channel_id": m.Channel}
		a["referenced_message"] = nil
		if r := s.find(m.Channel, m.Reference); r != nil {
			inner := s.wire(r)
			delete(inner, "referenced_message") // one level
			a["referenced_message"] = inner
		}
	}
	for k, v := range m.more {
		a[k] = v
	}
	return a
}

// event is a message as the Gateway tells it.
func (s *Server) event(m *Message) answer {
	a := s.wire(m)
	c := s.channels[m.Channel]
	if c != nil {
		a["channel_type"] = c.Kind
	}
	if c == nil || c.Kind != Direct {
		a["guild_id"] = s.opt.Guild
		member := s.wireMember(s.users[m.Author])
		delete(member, "user")
		a["member"] = member
	}
	if m.Nonce != "" {
		a["nonce"] = m.Nonce
	}
	return a
}

// veiled takes away what an application without the intent is not shown.
func (s *Server) veiled(a answer, intents int) answer {
	const content = 1 << 15
	if intents&content != 0 || a["guild_id"] == nil || a["author"].(answer)["id"] == s.opt.Bot {
		return a
	}
	for _, u := range a["mentions"].([]answer) {
		if u["id"] == s.opt.Bot {
			return a
		}
	}
	out := answer{}
	for k, v := range a {
		out[k] = v
	}
	out["content"], out["attachments"], out["embeds"], out["components"] = "", []answer{}, []any{}, []any{}
	return out
}

// mentioned lists the users that a text names.
func mentioned(text string) []string {
	var out []string
	for rest := text; ; {
		_, after, found := strings.Cut(rest, "<@")
		if !found {
			return out
		}
		id, _, _ := strings.Cut(after, ">")
		if id = strings.TrimPrefix(id, "!"); id != "" && strings.Trim(id, "0123456789") == "" {
			out = append(out, id)
		}
		rest = after
	}
}
