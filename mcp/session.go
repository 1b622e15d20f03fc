package mcp

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// clientName is what servers are told of this program.
const clientName = "heddle"

var (
	errOver = errors.New("the connection is closed")
	errGone = errors.New("the connection was lost")
)

// A session is one connection to a server, from the handshake to its loss.
// A new connection is a new session; calls finish on the one they began on.
type session struct {
	cs    *sdk.ClientSession
	proc  *process // nil over HTTP
	began time.Time
	lost  chan struct{} // closed when it is of no use any more
	once  sync.Once
	why   error // after lost
	end   context.CancelCauseFunc
	over  context.Context // ended by end; all requests and calls end with it
	calls sync.WaitGroup  // running; borrowed under the server's lock
	tasks sync.WaitGroup  // goroutines of the session

	mu    sync.Mutex
	asked []Question                // by the server on its own and declined, the newest; guarded by mu
	count int                       // of all that were; guarded by mu
	heeds map[string]func(Progress) // who wants progress, by token; guarded by mu
	next  atomic.Int64              // the next token
}

// lose says that the session is of no use any more.
func (s *session) lose(err error) {
	s.once.Do(func() { s.why = err; close(s.lost) })
}

// usable says whether calls can be made: also without notifications.
func (s *session) usable() bool {
	if s == nil {
		return false
	}
	select {
	case <-s.lost:
		return errors.Is(s.why, errEnded)
	default:
		return true
	}
}

// close ends the session once its calls have ended, at once if hurry ends
// before that.
func (s *session) close(hurry <-chan struct{}, grace time.Duration) {
	idle, closed := make(chan struct{}), make(chan struct{})
	go func() { s.calls.Wait(); close(idle) }()
	select {
	case <-idle:
	case <-hurry:
	}
	s.lose(errOver)
	go func() {
		if s.cs != nil {
			_ = s.cs.Close() // it is over, however that went
		}
		close(closed)
	}()
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case <-closed:
	case <-late.C:
	}
	s.end(errOver)
	if s.proc != nil {
		s.proc.stop(grace)
	}
	<-closed
	<-idle
	s.tasks.Wait()
}

// A recorder keeps the connection that a transport makes: the SDK leaves it
// open where connecting fails.
type recorder struct {
	sdk.Transport
	conn sdk.Connection
}

// Connect connects the transport.
func (r *recorder) Connect(ctx context.Context) (sdk.Connection, error) {
	conn, err := r.Transport.Connect(ctx)
	r.conn = conn
	return conn, err
}

// connect makes a session. ctx bounds the handshake only.
func (s *Server) connect(ctx context.Context) (*session, error) {
	over, end := context.WithCancelCause(context.WithoutCancel(ctx)) // a session outlives its handshake
	sess := &session{began: time.Now(), lost: make(chan struct{}), over: over, end: end, heeds: map[string]func(Progress){}}
	r := &recorder{}
	if s.settings.Command != "" {
		p, t, err := start(s.settings, &s.stderr, s.o.pace.grace)
		if err != nil {
			end(errOver)
			return nil, err
		}
		sess.proc, r.Transport = p, t
		sess.tasks.Go(func() { <-p.exited; sess.lose(p.ending()) })
	} else {
		w := &wire{base: s.base, headers: s.settings.Headers, over: over, silence: s.o.Connect / 2, broken: sess.lose}
		t := &sdk.StreamableClientTransport{Endpoint: s.settings.URL, HTTPClient: w.client(), MaxEventSize: maxMessage}
		if s.oauth != nil {
			t.OAuthHandler = s.oauth
		}
		r.Transport = t
	}
	cs, err := s.client(sess).Connect(ctx, r, &sdk.ClientSessionOptions{ProtocolVersion: s.settings.Protocol})
	if err != nil {
		err = sess.better(ctx, err, s.o.pace.grace)
		end(errOver)
		if r.conn != nil {
			_ = r.conn.Close()
		}
		sess.close(nil, s.o.pace.grace)
		return nil, err
	}
	sess.cs = cs
	sess.tasks.Go(func() {
		err := cs.Wait()
		if err == nil {
			err = errGone
		}
		sess.lose(err)
	})
	return sess, nil
}

// better prefers the cause to what followed from it: a program that ends is
// noticed by the end of its output first.
func (s *session) better(ctx context.Context, err error, grace time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if s.proc == nil || answered(err) {
		return err
	}
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case <-s.proc.exited:
		return s.proc.ending()
	case <-late.C:
	case <-ctx.Done():
	}
	return err
}

// client makes the SDK's client of a session. It offers to be asked, and
// nothing that the protocol has given up.
func (s *Server) client(sess *session) *sdk.Client {
	o := &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{Elicitation: &sdk.ElicitationCapabilities{
			Form: &sdk.FormElicitationCapabilities{}, URL: &sdk.URLElicitationCapabilities{},
		}},
		ElicitationHandler: func(ctx context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return s.elicit(ctx, sess, r)
		},
		ToolListChangedHandler:     func(context.Context, *sdk.ToolListChangedRequest) { s.changed() },
		PromptListChangedHandler:   func(context.Context, *sdk.PromptListChangedRequest) { s.changed() },
		ResourceListChangedHandler: func(context.Context, *sdk.ResourceListChangedRequest) { s.changed() },
		// Without somebody to answer, a question ends the call instead of the wait.
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: s.o.Answer == nil},
	}
	if s.o.Progress != nil {
		o.ProgressNotificationHandler = func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { sess.progress(r.Params) }
	}
	c := sdk.NewClient(&sdk.Implementation{Name: clientName, Version: s.version()}, o)
	c.AddSendingMiddleware(uncached)
	return c
}

// uncached keeps the SDK from holding what servers answer: lists are read when
// we want them read, and what is read is passed by, so that a server cannot
// fill the memory. It keeps the definitions of tools, which calls need.
func uncached(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		res, err := next(ctx, method, req)
		switch r := res.(type) {
		case *sdk.ListToolsResult:
			r.TTLMs = 0
		case *sdk.ListResourcesResult:
			r.TTLMs = 0
		case *sdk.ListResourceTemplatesResult:
			r.TTLMs = 0
		case *sdk.ListPromptsResult:
			r.TTLMs = 0
		case *sdk.ReadResourceResult:
			if into, ok := ctx.Value(readKey{}).(**sdk.ReadResourceResult); ok && r != nil {
				*into = r
				return &sdk.ReadResourceResult{}, err
			}
		}
		return res, err
	}
}

// readKey carries where a resource goes past the SDK's cache.
type readKey struct{}

func (s *session) progress(p *sdk.ProgressNotificationParams) {
	token, _ := p.ProgressToken.(string)
	s.mu.Lock()
	heed := s.heeds[token]
	s.mu.Unlock()
	if heed != nil {
		heed(Progress{Done: p.Progress, Total: p.Total, Text: describe(p.Message, maxReason)})
	}
}

// heed calls f for the progress of a call until the returned function is called.
func (s *session) heed(f func(Progress)) (token string, stop func()) {
	token = "call-" + strconv.FormatInt(s.next.Add(1), 10)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heeds[token] = f
	return token, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.heeds, token)
	}
}

// transport is shared by the sessions of a server, so that connections are kept.
func transport(silence time.Duration) *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxResponseHeaderBytes = 64 << 10
	t.TLSHandshakeTimeout = silence
	t.MaxIdleConnsPerHost = 8
	return t
}
