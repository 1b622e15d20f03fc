// Package stripe is a stand-in for Stripe, for tests: it keeps objects and
// events, answers the API calls that a gateway makes, enforces idempotency keys,
// makes signed webhooks, notes every write, and misbehaves when told to.
package stripe

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options describe Stripe; the zero value is a useful one.
type Options struct {
	APIKey   string           // "rk_test_fake"; a call with any other gets 401
	Secret   string           // "whsec_fake": of the webhook endpoint
	Live     bool             // events and objects are of live mode
	Accounts []string         // connected accounts that the key reaches
	Denied   []string         // first parts of paths that the key has no right to: "refunds"
	Clock    func() time.Time // created, signatures, and how long keys are kept; nil for time.Now
	Hook     func(Call) Fault // asked before each API call is answered; nil for no faults
}

// A Call is one API call as it arrives.
type Call struct {
	Method  string // "POST"
	Path    string // "/v1/refunds"
	Account string // of the header Stripe-Account
	Key     string // idempotency key, "" for none
	Form    map[string]string
	N       int // how many calls of this method and path have come, from 1
}

// A Fault is how to misbehave. The zero value behaves.
type Fault struct {
	Cut        bool   // the call is done, then the connection is cut without an answer
	Lose       bool   // the connection is cut and nothing is done
	Status     int    // this HTTP status with Code, and nothing is done
	Code       string // "lock_timeout", "idempotency_key_in_use"
	RetryAfter string
}

// An Object is one object of Stripe as its JSON has it.
type Object map[string]any

// A Write is one entry of the ledger: a call that changed something.
type Write struct {
	Call
	Object string // id of what it made or changed
}

// A Server is an http.Handler for the API. Its methods may be called at once.
type Server struct {
	opt Options

	mu      sync.Mutex
	objects map[string]map[string]Object // by account, then by id
	order   []string                     // ids of all objects, oldest first
	events  []stored
	writes  []Write
	kept    map[string]answer // by account and idempotency key
	calls   map[string]int
	last    int
}

// A stored event.
type stored struct {
	account   string
	object    Object
	delivered bool
}

// keptFor is how long an idempotency key is remembered.
const keptFor = 24 * time.Hour

// New makes a Stripe.
func New(o Options) *Server {
	if o.APIKey == "" {
		o.APIKey = "rk_test_fake"
	}
	if o.Secret == "" {
		o.Secret = "whsec_fake"
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return &Server{opt: o, objects: map[string]map[string]Object{}, kept: map[string]answer{}, calls: map[string]int{}}
}

// Options are those of the server, with the defaults filled in.
func (s *Server) Options() Options { return s.opt }

// Put keeps an object of an account ("" for the own one) under its id.
func (s *Server) Put(account string, o Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(account, o)
}

func (s *Server) put(account string, o Object) {
	if s.objects[account] == nil {
		s.objects[account] = map[string]Object{}
	}
	id := fmt.Sprint(o["id"])
	if _, known := s.objects[account][id]; !known {
		s.order = append(s.order, id)
	}
	o["livemode"] = s.opt.Live
	if o["metadata"] == nil {
		o["metadata"] = map[string]any{}
	}
	s.objects[account][id] = o
}

// Get is the object as it is now.
func (s *Server) Get(account, id string) (Object, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[account][id]
	return maps.Clone(o), ok
}

// Writes is the ledger: every call that changed something, oldest first.
func (s *Server) Writes() []Write {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.writes)
}

// Calls says how often each method and path was called: "GET /v1/events".
func (s *Server) Calls() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.calls)
}

// Close takes a connected account away from the key, as its owner may.
func (s *Server) Close(account string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opt.Accounts = slices.DeleteFunc(slices.Clone(s.opt.Accounts), func(a string) bool { return a == account })
}

// ServeHTTP answers one API call.
func (s *Server) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		invalid("form", "the form cannot be read").write(rw)
		return
	}
	form := map[string]string{}
	for k, v := range r.Form {
		form[k] = v[len(v)-1]
	}
	c := Call{
		Method: r.Method, Path: r.URL.Path, Account: r.Header.Get("Stripe-Account"),
		Key: r.Header.Get("Idempotency-Key"), Form: form,
	}
	name := r.Method + " " + r.URL.Path
	s.mu.Lock()
	s.calls[name]++
	c.N = s.calls[name]
	s.mu.Unlock()
	var f Fault
	if s.opt.Hook != nil {
		f = s.opt.Hook(c)
	}
	if f.Lose {
		panic(http.ErrAbortHandler) // how net/http cuts a connection
	}
	if f.Status != 0 {
		if f.RetryAfter != "" {
			rw.Header().Set("Retry-After", f.RetryAfter)
		}
		fault(f.Status, "api_error", f.Code, "a fault that was asked for").write(rw)
		return
	}
	s.mu.Lock()
	a := s.answer(c, r).frozen()
	s.mu.Unlock()
	if f.Cut {
		panic(http.ErrAbortHandler)
	}
	a.write(rw)
}

// answer checks what Stripe checks of every call, and the idempotency key.
func (s *Server) answer(c Call, r *http.Request) answer {
	key, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case !bearer || key != s.opt.APIKey:
		return fault(http.StatusUnauthorized, "invalid_request_error", "", "Invalid API Key provided")
	case r.Header.Get("Stripe-Version") == "":
		return invalid("", "no version")
	case c.Account != "" && !slices.Contains(s.opt.Accounts, c.Account):
		return fault(http.StatusForbidden, "invalid_request_error", "account_invalid", "The provided key does not have access to account '"+c.Account+"' (or that account does not exist).")
	case c.Method == http.MethodGet:
		return s.read(c)
	case len(c.Key) > 255:
		return invalid("", "idempotency key too long")
	}
	name := c.Account + " " + c.Key
	if was, ok := s.kept[name]; ok && s.opt.Clock().Sub(was.at) < keptFor {
		if was.path != c.Path || !maps.Equal(was.form, c.Form) {
			return fault(http.StatusBadRequest, "idempotency_error", "", "Keys for idempotent requests can only be used with the same parameters they were first used with.")
		}
		was.replayed = true
		return was
	}
	a := s.change(c).frozen()
	if a.status < http.StatusBadRequest && c.Key != "" {
		a.at, a.path, a.form = s.opt.Clock(), c.Path, c.Form
		s.kept[name] = a
	}
	return a
}
