// Package ui is what operators and their programs see of a gateway: the HTTP
// API at /api/v1 of the admin listener.
package ui

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

// Channel is the channel of the conversations that are started through the
// API: their account is the agent and their room the id they were given.
const Channel = "api"

// Options is what the API works with. All but Tokens must be set.
type Options struct {
	Store  state.Store
	Agents []string                                                          // with whom conversations can be started
	Tokens []string                                                          // any of them opens, so that they can be changed; without one nobody is let in
	Files  func(ctx context.Context, id state.ID) (map[string][]byte, error) // what its sandboxes stored when a step last ended, by path: "virtual/notes.txt"
	// Fits says what is wrong with the data and the wanted answer of an event, the
	// first of a conversation of the agent or a later one, or nil.
	Fits   func(agent string, e chat.Event, first bool) error
	Logger *slog.Logger
}

// An API serves what DESIGN promises under /api/v1. It keeps nothing between
// two requests; what it admits passes the same door as every event.
type API struct {
	Options
	tokens [][sha256.Size]byte
	mux    *http.ServeMux
	waits  chan struct{} // a place for each request that waits for something to happen
}

// mostWaits bounds the streams and long polls at once. Each asks the store
// five times a second, which takes well under a tenth of a processor for all.
const mostWaits = 128

// NewAPI makes the API.
func NewAPI(o Options) *API {
	a := &API{Options: o, mux: http.NewServeMux(), waits: make(chan struct{}, mostWaits)}
	for _, t := range o.Tokens {
		a.tokens = append(a.tokens, sha256.Sum256([]byte(t)))
	}
	methods := map[string][]string{}
	add := func(method, path string, h handler) {
		a.mux.Handle(method+" "+path, a.handle(path, h))
		methods[path] = append(methods[path], method)
	}
	add("GET", "/api/v1/conversations", a.list)
	add("GET", "/api/v1/events/{channel}/{event}", a.event)
	add("GET", "/api/v1/outbox", a.outbox)
	add("POST", "/api/v1/outbox/{conversation}/retry", a.revise(a.Store.RetryPost))
	add("POST", "/api/v1/outbox/{conversation}/drop", a.revise(a.Store.DropPost))
	// A conversation has two addresses: its id, and the agent with the id it was started under.
	for _, at := range []string{"/api/v1/conversations/{conversation}", "/api/v1/agents/{agent}/conversations/{id}"} {
		add("GET", at, a.head)
		add("GET", at+"/records", a.records)
		add("GET", at+"/stream", a.stream)
		add("GET", at+"/data", a.data)
		add("GET", at+"/files", a.files)
		add("GET", at+"/files/{path...}", a.file)
		add("POST", at+"/messages", a.send)
		add("POST", at+"/fork", a.fork)

		for _, topic := range topics {
			add("POST", at+"/"+topic, a.control(topic))
		}
	}
	for path, ms := range methods {
		a.mux.Handle(path, a.handle(path, func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Allow", strings.Join(ms, ", "))
			return fail(methodNotAllowed, "the path takes "+strings.Join(ms, " and "))
		}))
	}
	a.mux.Handle("/", a.handle("", nothingHere))
	return a
}

// ServeHTTP lets in who holds a token, before it says anything else. There are
// no headers for browsers of other origins: they are kept out.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !a.allowed(r) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="heddle"`)
		a.handle("", func(http.ResponseWriter, *http.Request) error {
			return fail(unauthorized, "no token, or not one that is valid")
		}).ServeHTTP(w, r)
		return
	}
	if p := r.URL.EscapedPath(); p != "/" && path.Clean(p) != strings.TrimSuffix(p, "/") {
		// The mux would redirect, and what is named "." or nothing would be another.
		a.handle("", nothingHere).ServeHTTP(w, r)
		return
	}
	a.mux.ServeHTTP(w, r)
}

func nothingHere(http.ResponseWriter, *http.Request) error {
	return fail(noSuchPath, "there is nothing at this path")
}

func (a *API) allowed(r *http.Request) bool {
	headers := r.Header.Values("Authorization")
	if len(headers) != 1 {
		return false
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	sum, found := sha256.Sum256([]byte(strings.TrimSpace(token))), 0
	for _, t := range a.tokens { // all of them, so that the time tells nothing
		found |= subtle.ConstantTimeCompare(t[:], sum[:])
	}
	return found == 1 && strings.EqualFold(scheme, "Bearer")
}

// A handler answers a request; an error that is no *Problem is logged and
// answered as a failure without a reason.
type handler func(w http.ResponseWriter, r *http.Request) error

// writeTime bounds the writing of one answer, or of one piece of a stream:
// who reads more slowly is cut off.
const writeTime = 10 * time.Second

// handle runs h, answers its error and logs the request by its pattern.
func (a *API) handle(pattern string, h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		answered := &answer{ResponseWriter: w}
		err := h(answered, r)
		if err != nil && r.Context().Err() != nil {
			err = fail(stopping, "the gateway is stopping") // or nobody listens any more
		}
		if err != nil {
			a.refuse(answered, err)
		}
		a.Logger.Debug("request answered", "method", r.Method, "pattern", pattern, "status", answered.status, "took", time.Since(began))
	})
}

// An answer remembers its status, 0 before it has begun.
type answer struct {
	http.ResponseWriter
	status int
}

// WriteHeader begins the answer.
func (a *answer) WriteHeader(status int) {
	a.status = status
	a.Header().Set("Cache-Control", "no-store")
	a.Header().Set("X-Content-Type-Options", "nosniff")
	a.extend()
	a.ResponseWriter.WriteHeader(status)
}

// extend gives the next piece its time. Not every ResponseWriter can.
func (a *answer) extend() {
	_ = http.NewResponseController(a.ResponseWriter).SetWriteDeadline(time.Now().Add(writeTime))
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// A target is the conversation that a request is about. Only one named by its
// agent may not exist yet.
type target struct {
	id     state.ID
	agent  string
	thread chat.Thread
}

// target finds the conversation of the path.
func (a *API) target(r *http.Request) (target, error) {
	if id := r.PathValue("conversation"); id != "" {
		c, err := a.conversation(r.Context(), state.ID(id))
		return target{c.ID, c.Agent, c.Thread}, err
	}
	agent := r.PathValue("agent")
	if !slices.Contains(a.Agents, agent) {
		return target{}, fail(noSuchAgent, "there is no agent of this name")
	}
	t, err := threadOf(agent, r.PathValue("id"))
	return target{state.ConversationID(agent, t), agent, t}, err
}

// existing is target for what only a conversation that exists has.
func (a *API) existing(r *http.Request) (target, error) {
	t, err := a.target(r)
	if err == nil && r.PathValue("conversation") == "" {
		_, err = a.conversation(r.Context(), t.id)
	}
	return t, err
}

// threadOf is the thread of a conversation that the API starts.
func threadOf(agent, id string) (chat.Thread, error) {
	t := chat.Thread{Channel: Channel, Account: agent, Room: id}
	if t.Validate() != nil || !plain(id) {
		return t, fail(badRequest, "an id has 1 to about 400 bytes and no control characters")
	}
	return t, nil
}

// plain says whether a name can be shown and stored as it is.
func plain(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7F || r == 0xFFFD })
}

// conversation reads what a store knows of one without its records.
func (a *API) conversation(ctx context.Context, id state.ID) (state.Conversation, error) {
	v, err := a.Store.Load(ctx, id, noRecords)
	return v.Conversation, a.found(err)
}

// found makes the store's not found one that is answered.
func (a *API) found(err error) error {
	if errors.Is(err, state.ErrNotFound) {
		return fail(noSuchConversation, "there is no such conversation")
	}
	return err
}

// Serve serves the handler until ctx ends. Then requests that wait for
// something are ended, and the others have a few seconds.
func Serve(ctx context.Context, ln net.Listener, h http.Handler, log *slog.Logger) error {
	return serve(ctx, ln, h, log, 15*time.Second)
}

func serve(ctx context.Context, ln net.Listener, h http.Handler, log *slog.Logger, readTime time.Duration) error {
	srv := &http.Server{
		Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: readTime, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }()
	select {
	case err := <-served:
		return fmt.Errorf("admin listener: %w", err)
	case <-ctx.Done():
	}
	// The time it may take begins when ctx has ended.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := srv.Shutdown(last); err != nil {
		_ = srv.Close() // they are told by its being closed
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("admin listener: %w", err)
	}
	return nil
}
