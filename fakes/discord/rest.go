package discord

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

type answer map[string]any

// An outcome is what a call is answered with.
type outcome struct {
	status int
	body   any
	header http.Header
}

func ok(body any) outcome { return outcome{status: http.StatusOK, body: body} }

var done = outcome{status: http.StatusNoContent}

func fail(status, code int) outcome {
	return outcome{status: status, body: answer{"code": code, "message": "error " + strconv.Itoa(code)}}
}

// A request is a call on its way through the server.
type request struct {
	method string
	parts  []string // of the path, after the API's own prefix
	query  url.Values
	body   []byte
	files  []File
	auth   string
}

// shape is the call without ids and tokens.
func (r *request) shape() string {
	parts := slices.Clone(r.parts)
	for i, p := range parts {
		switch {
		case strings.Trim(p, "0123456789") == "",
			i > 1 && (parts[i-2] == "{}" && (r.parts[0] == "webhooks" || r.parts[0] == "interactions") && i == 2),
			i > 0 && parts[i-1] == "reactions":
			parts[i] = "{}"
		}
	}
	if len(parts) > 2 && (parts[0] == "webhooks" || parts[0] == "interactions") {
		parts[2] = "{}"
	}
	return r.method + " /" + strings.Join(parts, "/")
}

// ServeHTTP answers one call.
func (s *Server) ServeHTTP(rw http.ResponseWriter, hr *http.Request) {
	if strings.HasSuffix(hr.URL.Path, "/socket") {
		s.serveSocket(rw, hr)
		return
	}
	if id := path.Base(hr.URL.Path); strings.HasSuffix(hr.URL.Path, "/files/"+id) {
		s.serveFile(rw, id)
		return
	}
	r, err := read(hr)
	if err != nil {
		write(rw, fail(http.StatusBadRequest, 50109))
		return
	}
	s.mu.Lock()
	s.host = "http://" + hr.Host
	shape := r.shape()
	s.calls[shape]++
	c := Call{Method: shape, Path: hr.URL.Path, Body: r.body, N: s.calls[shape]}
	s.mu.Unlock()
	var f Fault
	if s.opt.Hook != nil {
		f = s.opt.Hook(c)
	}
	switch {
	case f.Hang:
		<-hr.Context().Done()
		return
	case f.Lose:
		panic(http.ErrAbortHandler)
	case f.Status == http.StatusTooManyRequests:
		write(rw, limited(f.RetryAfter, f.Global))
		return
	case f.Status != 0:
		write(rw, fail(f.Status, f.Code))
		return
	}
	s.mu.Lock()
	o := s.answer(r)
	if s.change(); r.parts[0] == "gateway" && o.status == http.StatusOK {
		o.body.(answer)["url"] = "ws://" + hr.Host + "/socket"
	}
	s.mu.Unlock()
	switch {
	case f.Stall:
		<-hr.Context().Done()
		return
	case f.Cut:
		panic(http.ErrAbortHandler)
	}
	write(rw, o)
}

// serveFile shows an attachment; its address is the right.
func (s *Server) serveFile(rw http.ResponseWriter, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ms := range s.messages {
		for _, m := range ms {
			for _, f := range m.Files {
				if f.ID == id && !m.Deleted {
					_, _ = rw.Write(f.Data) // the caller may have left
					return
				}
			}
		}
	}
	rw.WriteHeader(http.StatusNotFound)
}

func limited(after float64, global bool) outcome {
	h := http.Header{"X-Ratelimit-Scope": {"user"}, "Retry-After": {strconv.Itoa(int(after) + 1)}}
	if global {
		h = http.Header{"X-Ratelimit-Global": {"true"}, "X-Ratelimit-Scope": {"global"}, "Retry-After": {strconv.Itoa(int(after) + 1)}}
	}
	return outcome{status: http.StatusTooManyRequests, header: h, body: answer{"message": "You are being rate limited.", "retry_after": after, "global": global}}
}

func write(rw http.ResponseWriter, o outcome) {
	for k, v := range o.header {
		rw.Header()[k] = v
	}
	if o.body == nil {
		rw.WriteHeader(o.status)
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(o.status)
	_ = json.NewEncoder(rw).Encode(o.body) // the caller may have left
}

// read takes a request apart; a multipart body is its payload_json and files.
func read(hr *http.Request) (*request, error) {
	r := &request{method: hr.Method, query: hr.URL.Query(), auth: hr.Header.Get("Authorization")}
	parts := strings.Split(strings.Trim(hr.URL.EscapedPath(), "/"), "/")
	for i, p := range parts {
		if slices.Contains([]string{"channels", "guilds", "users", "applications", "webhooks", "interactions", "gateway"}, p) {
			parts = parts[i:]
			break
		}
	}
	for _, p := range parts {
		u, err := url.PathUnescape(p)
		if err != nil {
			return nil, err
		}
		r.parts = append(r.parts, u)
	}
	body, err := io.ReadAll(io.LimitReader(hr.Body, 26<<20))
	if err != nil {
		return nil, err
	}
	kind, params, _ := mime.ParseMediaType(hr.Header.Get("Content-Type"))
	switch {
	case kind == "multipart/form-data":
		return r, r.readForm(multipart.NewReader(strings.NewReader(string(body)), params["boundary"]))
	case len(body) > 0 && (kind != "application/json" || !json.Valid(body)):
		return nil, fmt.Errorf("body is no JSON")
	}
	r.body = body
	return r, nil
}

func (r *request) readForm(mr *multipart.Reader) error {
	for {
		p, err := mr.NextPart()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		data, err := io.ReadAll(p)
		if err != nil {
			return err
		}
		if p.FormName() == "payload_json" {
			r.body = data
			continue
		}
		r.files = append(r.files, File{Name: p.FileName(), Type: p.Header.Get("Content-Type"), Bytes: int64(len(data)), Data: data})
	}
}

// answer does what a call asks; mu is held.
func (s *Server) answer(r *request) outcome {
	p := r.parts
	if p[0] == "webhooks" && len(p) >= 3 || p[0] == "interactions" && len(p) == 4 { // the token is the right
		return s.hook(r)
	}
	if r.auth != "Bot "+s.opt.Token {
		return fail(http.StatusUnauthorized, 0)
	}
	switch {
	case r.is("GET", "users", "@me"):
		return ok(s.wireUser(s.opt.Bot))
	case r.is("GET", "users", "@me", "guilds"):
		return ok([]answer{{"id": s.opt.Guild, "name": "Fake"}})
	case r.is("POST", "users", "@me", "channels"):
		return s.openDM(r)
	case r.is("GET", "applications", "@me"):
		flags := 1 << 19
		if s.opt.NoContent {
			flags = 0
		}
		return ok(answer{"id": s.opt.App, "name": "heddle", "flags": flags})
	case r.is("PUT", "applications", "", "commands"):
		return s.register(r)
	case r.is("GET", "gateway", "bot"):
		return ok(answer{"url": "", "shards": 1, "session_start_limit": answer{
			"total": s.opt.Sessions, "remaining": s.opt.Sessions - s.begun, "reset_after": 1000, "max_concurrency": 1,
		}})
	case r.is("GET", "guilds", "", "members", ""):
		return s.member(p[1], p[3])
	case r.is("GET", "guilds", "", "roles"):
		return ok(s.wireRoles())
	case r.is("GET", "guilds", "", "channels"):
		return ok(s.list(func(c *Channel) bool { return c.Kind != Direct && c.Kind != Public && c.Kind != Private && !c.Absent }))
	case r.is("GET", "guilds", "", "threads", "active"):
		return ok(answer{"threads": s.list(func(c *Channel) bool { return (c.Kind == Public || c.Kind == Private) && !c.Absent })})
	case p[0] == "channels" && len(p) > 1:
		return s.channel(r)
	}
	return fail(http.StatusNotFound, 0)
}

// is compares the call; "" stands for any part.
func (r *request) is(method string, path ...string) bool {
	if r.method != method || len(r.parts) != len(path) {
		return false
	}
	for i, p := range path {
		if p != "" && p != r.parts[i] {
			return false
		}
	}
	return true
}

func (s *Server) channel(r *request) outcome {
	c := s.channels[r.parts[1]]
	switch {
	case c == nil:
		return fail(http.StatusNotFound, 10003)
	case c.Absent:
		return fail(http.StatusForbidden, 50001)
	case r.is("GET", "channels", ""):
		return ok(s.wireChannel(c))
	case r.is("POST", "channels", "", "typing"):
		return done
	case r.is("GET", "channels", "", "messages"):
		return s.history(c, r)
	case r.is("GET", "channels", "", "messages", ""):
		if m := s.find(c.ID, r.parts[3]); m != nil {
			return ok(s.wire(m))
		}
		return fail(http.StatusNotFound, 10008)
	case r.is("POST", "channels", "", "messages"):
		return s.create(c, r)
	case r.is("PATCH", "channels", "", "messages", ""):
		return s.edit(c, r)
	case r.is("POST", "channels", "", "messages", "", "threads"):
		return s.openThread(c, r)
	case len(r.parts) == 7 && r.parts[4] == "reactions" && r.parts[6] == "@me":
		return s.react(c, r)
	}
	return fail(http.StatusNotFound, 0)
}

func (s *Server) edit(c *Channel, r *request) outcome {
	m := s.find(c.ID, r.parts[3])
	var o outgoing
	_, bad := o.check(r)
	switch {
	case m == nil:
		return fail(http.StatusNotFound, 10008)
	case m.Author != s.opt.Bot:
		return fail(http.StatusForbidden, 50005)
	case bad.status != 0:
		return bad
	}
	m.Content, m.Edited = strings.TrimSpace(o.Content), s.opt.Clock()
	return ok(s.wire(m))
}

func (s *Server) openThread(c *Channel, r *request) outcome {
	var o struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal(r.body, &o) // no name is refused below
	m := s.find(c.ID, r.parts[3])
	switch {
	case c.Kind != Text && c.Kind != News:
		return fail(http.StatusBadRequest, 50024)
	case c.NoThreads:
		return fail(http.StatusForbidden, 50013)
	case m == nil:
		return fail(http.StatusNotFound, 10008)
	case s.channels[m.ID] != nil:
		return fail(http.StatusBadRequest, 160004)
	case o.Name == "" || utf8.RuneCountInString(o.Name) > 100:
		return fail(http.StatusBadRequest, 50035)
	}
	t := &Channel{ID: m.ID, Kind: Public, Parent: c.ID}
	s.channels[m.ID] = t
	info := s.wireChannel(t)
	info["name"] = o.Name
	s.dispatch("THREAD_CREATE", info)
	return outcome{status: http.StatusCreated, body: info}
}

func (s *Server) react(c *Channel, r *request) outcome {
	m := s.find(c.ID, r.parts[3])
	if m == nil {
		return fail(http.StatusNotFound, 10008)
	}
	mark := s.opt.Bot + " " + r.parts[5]
	m.Reactions = slices.DeleteFunc(m.Reactions, func(x string) bool { return x == mark })
	switch r.method {
	case http.MethodPut:
		m.Reactions = append(m.Reactions, mark)
	case http.MethodDelete:
	default:
		return fail(http.StatusMethodNotAllowed, 0)
	}
	return done
}

// history lists a page, newest first, as Discord does.
func (s *Server) history(c *Channel, r *request) outcome {
	limit, _ := strconv.Atoi(r.query.Get("limit"))
	if limit <= 0 {
		limit = 50
	}
	if limit > 100 {
		return fail(http.StatusBadRequest, 50035)
	}
	var found []answer
	for _, m := range s.messages[c.ID] {
		if m.Deleted || m.Flags&64 != 0 || !older(r.query.Get("after"), m.ID) {
			continue
		}
		if found = append(found, s.wire(m)); len(found) == limit && r.query.Get("after") != "" {
			break
		}
	}
	slices.Reverse(found)
	return ok(found[:min(limit, len(found))])
}

func older(a, b string) bool {
	return len(a) < len(b) || len(a) == len(b) && a < b
}

func (s *Server) openDM(r *request) outcome {
	var o struct {
		ID string `json:"recipient_id"`
	}
	u, known := s.users[o.ID]
	if json.Unmarshal(r.body, &o) == nil {
		u, known = s.users[o.ID]
	}
	switch {
	case !known:
		return fail(http.StatusNotFound, 10013)
	case u.NoDM:
		return fail(http.StatusForbidden, 50007)
	}
	for _, c := range s.channels {
		if c.Kind == Direct && (c.Parent == o.ID || c.Parent == "" && o.ID == s.opt.Users[0].ID) {
			return ok(s.wireChannel(c))
		}
	}
	c := &Channel{ID: s.stamp(), Kind: Direct, Parent: o.ID}
	s.channels[c.ID] = c
	return ok(s.wireChannel(c))
}

func (s *Server) register(r *request) outcome {
	var set []struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	}
	if r.parts[1] != s.opt.App {
		return fail(http.StatusForbidden, 20012)
	}
	if json.Unmarshal(r.body, &set) != nil || len(set) > 100 {
		return fail(http.StatusBadRequest, 50035)
	}
	for _, c := range set {
		if c.Name == "" || c.Name != strings.ToLower(c.Name) || len(c.Name) > 32 || c.Description == "" || len(c.Description) > 100 {
			return fail(http.StatusBadRequest, 50035)
		}
	}
	s.commands = r.body
	s.registered++
	return ok(json.RawMessage(r.body))
}

func (s *Server) member(guild, id string) outcome {
	u, known := s.users[id]
	switch {
	case guild != s.opt.Guild:
		return fail(http.StatusNotFound, 10004)
	case !known || u.Gone:
		return fail(http.StatusNotFound, 10007)
	}
	return ok(s.wireMember(u))
}

func (s *Server) list(want func(*Channel) bool) []answer {
	out := []answer{}
	for _, c := range s.channels {
		if want(c) {
			out = append(out, s.wireChannel(c))
		}
	}
	return out
}
