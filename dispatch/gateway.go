// Package dispatch is the only place with long-lived goroutines: it takes
// deliveries in, hands conversations to the engine, and sends what they decided
// to post.
package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

// What ends work early, as the cause of a context.
var (
	ErrDraining     = errors.New("the gateway is stopping")
	ErrDrainTimeout = errors.New("work was left unfinished when the time to stop was over; it goes on at the next start") // exit 75
)

// An Engine works on a leased conversation until its turn is settled, or to
// the next step boundary after soft ends.
type Engine interface {
	Run(ctx, soft context.Context, l state.Lease) error
}

// Options is what a gateway works with. The fields before Parallel must be set.
type Options struct {
	Store    state.Store
	Channels []channels.Channel
	Routes   []Route
	Rooms    map[chat.Thread]Answer // by room, account or channel: parts that are empty stand for all; Follow if not set
	Silence  time.Duration          // how long nothing is said in a thread before it is not followed any more; 0: however long
	Bots     map[Bot]bool           // that are let in
	Engine   Engine
	Signs    *Signs // nil: people see nothing but posts
	Owner    string // names this process in leases, unique among those on the store
	Clock    func() time.Time
	Logger   *slog.Logger
	Parallel int           // turns at once, 128
	Lease    time.Duration // how long a dead process keeps a conversation from the others, 10 s
	Drain    time.Duration // how long a stop may take altogether, 25 s: turns get all but the last 5
}

// A Gateway connects channels, store and engine.
type Gateway struct {
	Options
	senders  map[string]channels.Sender
	tally    *tally
	pace     *pacer
	health   health
	bodies   atomic.Int64    // bytes that deliveries being read may hold
	soft     context.Context // ends when draining begins
	stopSoft context.CancelFunc
	turns    sync.WaitGroup
	slots    chan struct{}
}

// New makes a gateway.
func New(o Options) *Gateway {
	if o.Parallel == 0 {
		o.Parallel = 128
	}
	if o.Lease == 0 {
		o.Lease = 10 * time.Second
	}
	if o.Drain == 0 {
		o.Drain = 25 * time.Second
	}
	g := &Gateway{
		Options: o, senders: map[string]channels.Sender{chat.ToConversation: conversations{o.Store}}, tally: newTally(o.Logger), pace: newPacer(o.Clock),
		slots: make(chan struct{}, o.Parallel),
	}
	g.soft, g.stopSoft = context.WithCancel(context.Background())
	for _, c := range o.Channels {
		if s, ok := c.(channels.Sender); ok {
			g.senders[c.Name()] = s
		}
	}
	return g
}

// Run serves until ctx ends, then drains: readiness turns false, running turns
// stop at their next step boundary, what is due is posted, and deliveries are
// taken until no turn runs. A gateway runs once. It fails with ErrDrainTimeout
// if turns had to be cut off, and with the listener's error.
func (g *Gateway) Run(ctx context.Context, ln net.Listener) error {
	srv := &http.Server{
		Handler: g.Handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(g.Logger.Handler(), slog.LevelWarn),
	}
	base := context.WithoutCancel(ctx)
	work, cutWork := context.WithCancelCause(base)
	defer cutWork(nil)
	posting, stopPosting := context.WithCancel(base)
	defer stopPosting()
	flush, cutFlush := context.WithCancel(base)
	defer cutFlush()

	var claims, posts, others sync.WaitGroup
	for range claimers {
		claims.Go(func() { g.claimLoop(work) })
	}
	posts.Go(func() { g.postLoop(flush, posting) })
	others.Go(func() { g.tally.run(flush) })
	for _, c := range g.Channels {
		here := &hearing{up: make(chan struct{}, 1)}
		if h, ok := c.(historian); ok {
			others.Go(func() { g.catchUp(g.soft, h, here) })
		}
		if s, ok := c.(channels.Socket); ok {
			others.Go(func() { g.listenLoop(g.soft, s, here) })
		}
		if s, ok := c.(channels.Sender); ok && s.Limits().Handles {
			others.Go(func() { g.sweepHandles(g.soft, s.Name()) })
		}
	}
	if g.Signs != nil {
		others.Go(func() { g.Signs.sweep(g.soft) })
		others.Go(func() { g.Signs.whisper(g.soft) })
	}
	served := make(chan error, 1)
	others.Go(func() { served <- srv.Serve(ln) })

	var err error
	select {
	case err = <-served:
		g.Logger.Error("listener failed", "err", err)
	case <-ctx.Done():
		g.Logger.Info("drain began")
	}
	g.stopSoft()
	claims.Wait()
	if !waitFor(&g.turns, g.Drain-flushTime) {
		err = errors.Join(err, ErrDrainTimeout)
		cutWork(ErrDraining)
		g.turns.Wait()
	}
	stopPosting()
	defer time.AfterFunc(flushTime, cutFlush).Stop()
	g.shutdown(base, srv)
	posts.Wait()
	cutFlush()
	others.Wait()
	return err
}

// shutdown lets requests under way end, those that take too long not.
func (g *Gateway) shutdown(ctx context.Context, srv *http.Server) {
	ctx, cancel := context.WithTimeout(ctx, flushTime)
	defer cancel()
	if err := srv.Shutdown(ctx); err != nil {
		g.Logger.Warn("connections cut off", "err", err)
		_ = srv.Close() // they are told by its being closed
	}
}

var errPanic = errors.New("panicked")

// guard runs f. A panic in it is logged with its stack and becomes errPanic:
// one bad delivery, turn or post must not end the others. What it panicked
// with may hold people's words and is not logged, unless it is Go's own.
func guard[T any](log *slog.Logger, f func() (T, error)) (v T, err error) {
	defer func() {
		if p := recover(); p != nil {
			fault, _ := p.(runtime.Error)
			log.Error("recovered from a panic", "err", fault, "stack", string(debug.Stack()))
			err = errPanic
		}
	}()
	return f()
}

// waitFor waits for a group, at most for a time; it says whether the group ended.
func waitFor(wg *sync.WaitGroup, d time.Duration) bool {
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}

// sleep waits, or returns false when ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
