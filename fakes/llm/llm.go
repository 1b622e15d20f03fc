// Package llm is a stand-in for model providers: one HTTP server that speaks
// Chat Completions, Responses, Messages and generateContent, streamed. It plays
// a script, refuses what the real ones refuse, fails in the ways they fail, and
// keeps a ledger.
package llm

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/heddlehq/heddle/model/script"
)

// Options say how the server behaves.
type Options struct {
	Script    *script.Player // nil: it repeats what the user said
	Key       string         // the key it wants, "" for any
	Pace      time.Duration  // before every word
	KeepAlive time.Duration  // between keep-alives while it waits, 0 for a second
	Caches    bool           // it has a prompt cache and reports it
}

// Server is the stand-in. Chat Completions are at any path that ends in
// /chat/completions, Responses at /responses, Messages at /messages, and
// generateContent at MODEL:streamGenerateContent; OpenAI's embeddings at /embeddings.
type Server struct {
	opt   Options
	cache cache

	mu       sync.Mutex
	requests []Request
	ids      int
	signed   map[string]string // signatures of reasoning it has made: wire and model
}

// A Request is an entry of the ledger.
type Request struct {
	Wire     string // "openai", "responses", "anthropic" or "gemini"
	Model    string
	System   string
	Tools    []string
	Messages []Message
	Refused  string // why it was refused, "" if it was answered
	Body     []byte
}

// A Message is one of a request's, in one form for all wires.
type Message struct {
	Role    string // "user", "assistant" or "results"
	Text    string // of results: theirs, joined by line feeds
	Images  int
	Calls   []script.Call
	callIDs []string // of calls, or of what results answer
}

// New returns a server.
func New(o Options) *Server {
	if o.KeepAlive <= 0 {
		o.KeepAlive = time.Second
	}
	if o.Script == nil {
		s, err := script.Parse("when \"\"\nsay: {user}")
		if err != nil {
			panic(err) // unreachable: the text is constant
		}
		o.Script = script.NewPlayer(s)
	}
	return &Server{opt: o, signed: map[string]string{}}
}

// Requests is the ledger, in the order of arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// A format is what differs between the wires.
type format interface {
	name() string
	key(*http.Request) string
	read(s *Server, r *http.Request, body []byte) (Request, error) // an error refuses the request
	refuse(status int, kind, code, text string) any
	keepAlive() string
	stream(a *answer) []string // the events of an answer, one a word
	report(refusal any) string // the event that reports a failure in mid-stream
}

// ServeHTTP answers a request of any wire.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/embeddings") {
		s.embed(w, r)
		return
	}
	f := formatOf(r.URL.Path)
	if f == nil {
		http.NotFound(w, r)
		return
	}
	if r.Method != http.MethodPost {
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 32<<20))
	if err != nil {
		reply(w, http.StatusRequestEntityTooLarge, f.refuse(413, "request_too_large", "request_too_large", "Request exceeds the maximum size"))
		return
	}
	if s.opt.Key != "" && f.key(r) != s.opt.Key {
		reply(w, http.StatusUnauthorized, f.refuse(401, "authentication_error", "invalid_api_key", "Incorrect API key provided"))
		return
	}
	q, err := f.read(s, r, body)
	q.Wire, q.Body = f.name(), body
	if err != nil {
		q.Refused = err.Error()
	}
	s.mu.Lock()
	s.requests = append(s.requests, q)
	s.mu.Unlock()
	if err != nil {
		reply(w, http.StatusBadRequest, f.refuse(400, "invalid_request_error", "", err.Error()))
		return
	}
	s.play(w, r, f, q)
}

func formatOf(path string) format {
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		return openAI{}
	case strings.HasSuffix(path, "/responses"):
		return responses{}
	case strings.HasSuffix(path, "/messages"):
		return anthropic{}
	case strings.HasSuffix(path, ":streamGenerateContent"):
		return gemini{}
	}
	return nil
}

// play does what the script says to this conversation.
func (s *Server) play(w http.ResponseWriter, r *http.Request, f format, q Request) {
	talk := make([]script.Message, len(q.Messages))
	for i, m := range q.Messages {
		talk[i] = script.Message{Role: m.Role, Text: m.Text}
	}
	line, ok, err := s.opt.Script.Next(r.Context(), talk)
	switch {
	case err != nil:
		return // the client has gone
	case !ok:
		reply(w, http.StatusBadRequest, f.refuse(400, "invalid_request_error", "script_over", "the script has no line left"))
		return
	}
	status, kind, code, text := refusal(line.Fault)
	begun := line.Say != "" || line.Calls != nil || line.Think != ""
	if status != 0 && !begun {
		if line.After > 0 {
			w.Header().Set("Retry-After", fmt.Sprintf("%g", line.After.Seconds()))
		}
		reply(w, status, f.refuse(status, kind, code, text))
		return
	}
	a := s.answer(q, line)
	out := stream{w: w, r: r, pace: s.opt.Pace}
	out.open()
	events := f.stream(a)
	if line.Fault != "" {
		events = events[:len(events)-a.closing]
	}
	for _, e := range events {
		out.send(e)
	}
	if status != 0 {
		out.send(f.report(f.refuse(status, kind, code, text)))
	}
	switch line.Fault {
	case "garbled":
		out.send("data: {\"type\":\"content_block_delta\",\"choices\":[\n\n")
	case "stalled":
		out.pace = s.opt.KeepAlive
		for out.send(f.keepAlive()) {
		}
	case "truncated":
		panic(http.ErrAbortHandler) // the connection breaks
	}
}

// refusal is how a fault is reported; those of the stream itself have none.
func refusal(fault string) (status int, kind, code, text string) {
	switch fault {
	case "transient":
		return 503, "api_error", "", "The server is overloaded"
	case "limited":
		return 429, "rate_limit_error", "rate_limit_exceeded", "Rate limit reached"
	case "overflow":
		return 400, "invalid_request_error", "context_length_exceeded", "prompt is too long: 210000 tokens > 200000 maximum"
	case "denied":
		return 403, "permission_error", "", "Your key has no permission for this"
	case "missing":
		return 404, "not_found_error", "model_not_found", "The model does not exist"
	case "invalid":
		return 400, "invalid_request_error", "", "The request is invalid"
	}
	return 0, "", "", ""
}

// An answer is a line with what a server adds.
type answer struct {
	script.Line
	id, model, signature string
	callIDs              []string
	in, out              int
	read, wrote          int // of in, from and to the cache
	closing              int // how many of its events end the stream; set by format.stream
}

func (s *Server) answer(q Request, l script.Line) *answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids++
	a := &answer{Line: l, id: fmt.Sprintf("answer_%d", s.ids), model: q.Model, in: (len(q.Body) + 3) / 4}
	a.out = (len(l.Say) + len(l.Think) + 3) / 4
	if s.opt.Caches {
		a.read, a.wrote = s.cache.look(q.Wire, q.Model, q.Body)
	}
	for range l.Calls {
		s.ids++
		a.callIDs = append(a.callIDs, fmt.Sprintf("call_%06d", s.ids))
		a.out += 8
	}
	if l.Think != "" {
		a.signature = fmt.Sprintf("c2lnbmF0dXJl%06d==", s.ids)
		s.signed[a.signature] = q.Wire + "/" + q.Model
	}
	return a
}

// isSigned says whether a signature was made for this wire and model.
func (s *Server) isSigned(signature, wire, model string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return signature != "" && s.signed[signature] == wire+"/"+model
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// A stream writes events, at a pace.
type stream struct {
	w    http.ResponseWriter
	r    *http.Request
	pace time.Duration
}

func (s *stream) open() {
	s.w.Header().Set("Content-Type", "text/event-stream")
	s.w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(s.w).Flush()
}

// send reports whether the client is still there.
func (s *stream) send(event string) bool {
	if s.pace > 0 {
		t := time.NewTimer(s.pace)
		defer t.Stop()
		select {
		case <-t.C:
		case <-s.r.Context().Done():
			return false
		}
	}
	if _, err := io.WriteString(s.w, event); err != nil {
		return false
	}
	return http.NewResponseController(s.w).Flush() == nil && s.r.Context().Err() == nil
}

// words cuts a text into what is streamed one by one.
func words(text string) []string {
	if text == "" {
		return nil
	}
	return strings.SplitAfter(text, " ")
}

// halves cuts arguments in two, so that they arrive in pieces.
func halves(s string) []string { return []string{s[:len(s)/2], s[len(s)/2:]} }
