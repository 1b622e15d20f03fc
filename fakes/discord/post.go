package discord

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// An outgoing message.
type outgoing struct {
	Content  string          `json:"content"`
	Flags    int             `json:"flags"`
	Nonce    json.RawMessage `json:"nonce"`
	Enforce  bool            `json:"enforce_nonce"`
	Mentions *struct {
		Parse []string `json:"parse"`
		Users []string `json:"users"`
		Roles []string `json:"roles"`
	} `json:"allowed_mentions"`
	Reference *struct {
		Message string `json:"message_id"`
		Must    *bool  `json:"fail_if_not_exists"`
	} `json:"message_reference"`
	Attachments []struct {
		ID   json.RawMessage `json:"id"`
		Name string          `json:"filename"`
	} `json:"attachments"`
}

// check refuses what Discord refuses of any message.
func (o *outgoing) check(r *request) (nonce string, bad outcome) {
	if json.Unmarshal(r.body, o) != nil {
		return "", fail(http.StatusBadRequest, 50109)
	}
	_ = json.Unmarshal(o.Nonce, &nonce) // a number is one as well, and used by nobody
	switch {
	case utf8.RuneCountInString(o.Content) > 2000, utf8.RuneCountInString(nonce) > 25, len(r.files) > 10, len(o.Attachments) != len(r.files):
		return "", fail(http.StatusBadRequest, 50035)
	case strings.TrimSpace(o.Content) == "" && len(r.files) == 0:
		return "", fail(http.StatusBadRequest, 50006)
	}
	return nonce, outcome{}
}

// notified is whom a message would notify.
func (o *outgoing) notified() []string {
	var out []string
	may := func(kind string, ids []string, id string) bool {
		return o.Mentions == nil || o.Mentions.Parse == nil || slices.Contains(o.Mentions.Parse, kind) || slices.Contains(ids, id)
	}
	var users, roles []string
	if o.Mentions != nil {
		users, roles = o.Mentions.Users, o.Mentions.Roles
	}
	if (strings.Contains(o.Content, "@everyone") || strings.Contains(o.Content, "@here")) && may("everyone", nil, "") {
		out = append(out, "everyone")
	}
	for rest := o.Content; ; {
		_, after, found := strings.Cut(rest, "<@")
		if !found {
			return out
		}
		id, tail, closed := strings.Cut(after, ">")
		if rest = after; !closed {
			continue
		}
		rest = tail
		if role, ok := strings.CutPrefix(id, "&"); ok && may("roles", roles, role) {
			out = append(out, role)
		} else if user := strings.TrimPrefix(id, "!"); !ok && may("users", users, user) {
			out = append(out, user)
		}
	}
}

func (s *Server) create(c *Channel, r *request) outcome {
	var o outgoing
	nonce, bad := o.check(r)
	ref := ""
	if o.Reference != nil {
		ref = o.Reference.Message
	}
	switch {
	case c.Kind == Forum:
		return fail(http.StatusBadRequest, 50008)
	case c.Mute:
		return fail(http.StatusForbidden, 50013)
	case c.Locked:
		return fail(http.StatusForbidden, 160005)
	case bad.status != 0:
		return bad
	}
	key := c.ID + " " + nonce
	if m := s.nonces[key]; nonce != "" && o.Enforce && m != nil && s.opt.Clock().Sub(s.at(m)) < s.opt.Nonces {
		return ok(s.wire(m))
	}
	if ref != "" && s.find(c.ID, ref) == nil {
		if o.Reference.Must == nil || *o.Reference.Must {
			return fail(http.StatusBadRequest, 50035)
		}
		ref = ""
	}
	if wait := s.overRate(c.ID); wait > 0 {
		return limited(wait.Seconds(), false)
	}
	if u := s.users[s.opt.Bot]; c.Kind == Direct && u.NoDM {
		return fail(http.StatusForbidden, 50007)
	}
	m := &Message{ID: s.stamp(), Channel: c.ID, Author: s.opt.Bot, Content: strings.TrimSpace(o.Content), Nonce: nonce, Reference: ref, Flags: o.Flags, App: s.opt.App}
	if ref != "" {
		m.Type = 19
	}
	s.attach(m, r.files)
	if nonce != "" {
		s.nonces[key] = m
	}
	s.add(m, "message", o.notified())
	s.dispatch("MESSAGE_CREATE", s.event(m))
	return outcome{status: http.StatusOK, body: s.wire(m), header: s.rateHeader(c.ID)}
}

func (s *Server) at(m *Message) time.Time {
	n, _ := strconv.ParseUint(m.ID, 10, 64)
	return time.UnixMilli(int64(n>>22) + 1420070400000)
}

func (s *Server) attach(m *Message, files []File) {
	for _, f := range files {
		f.ID = s.stamp()
		m.Files = append(m.Files, f)
	}
}

// add keeps a message of the bot and notes it in the ledger.
func (s *Server) add(m *Message, via string, notified []string) {
	if s.find(m.Channel, m.ID) == nil {
		s.messages[m.Channel] = append(s.messages[m.Channel], m)
	}
	if c := s.channels[m.Channel]; c != nil {
		c.last = m.ID
	}
	s.posts = append(s.posts, Post{
		ID: m.ID, Channel: m.Channel, Thread: s.threadOf(m), Text: m.Content, Nonce: m.Nonce, Reference: m.Reference,
		Via: via, Notified: notified, Flags: m.Flags, Files: m.Files, At: s.opt.Clock(),
	})
}

const window = 5 * time.Second

// overRate is how long a channel takes no more messages.
func (s *Server) overRate(channel string) time.Duration {
	if s.opt.Rate == 0 {
		return 0
	}
	now := s.opt.Clock()
	s.spent[channel] = slices.DeleteFunc(s.spent[channel], func(t time.Time) bool { return now.Sub(t) >= window })
	if len(s.spent[channel]) >= s.opt.Rate {
		return window - now.Sub(s.spent[channel][0])
	}
	s.spent[channel] = append(s.spent[channel], now)
	return 0
}

func (s *Server) rateHeader(channel string) http.Header {
	if s.opt.Rate == 0 {
		return nil
	}
	all := s.spent[channel]
	return http.Header{
		"X-Ratelimit-Bucket": {"messages"}, "X-Ratelimit-Limit": {strconv.Itoa(s.opt.Rate)}, "X-Ratelimit-Remaining": {strconv.Itoa(s.opt.Rate - len(all))},
		"X-Ratelimit-Reset-After": {strconv.FormatFloat((window - s.opt.Clock().Sub(all[0])).Seconds(), 'f', 3, 64)},
	}
}
