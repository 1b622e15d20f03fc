// Package mcp is a client of Model Context Protocol servers. [Open] connects to
// the servers of the settings and keeps them connected; [Use] is the hook that
// mounts what one of them offers.
//
// A server is a stranger. What it says of its tools is pinned by digest in a
// lock file: a tool whose definition is not the pinned one is not mounted, it is
// reported. Everything it says is bounded in size and in time, and cannot pass
// for words of the harness. What it answers cannot change what is mounted before
// the conversation's next event.
//
// The sampling, roots and logging of older revisions are not offered, and the
// instructions that a server sends are not used.
package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// Options configure Open. Only Servers is required.
type Options struct {
	Servers map[string]Settings // by the name that tools carry
	Lock    Lock                // the pinned definitions
	Version string              // of this program, told to servers
	Log     *slog.Logger        // nil for none
	Connect time.Duration       // most that connecting and reading the lists may take, 0 for 15 s
	Every   time.Duration       // how often lists are read again, 0 for 5 min

	// Answer answers what servers ask during a call, nil to decline: the call
	// then fails with a *QuestionError. It may be called at once.
	Answer func(ctx context.Context, q Question) (Answer, error)
	// Progress is told how calls get on, nil for nobody. It must return at once.
	Progress func(Progress)
	// Tokens keeps OAuth tokens, nil for as long as the process runs.
	Tokens TokenStore
	// Authorize sends somebody to a URL to log in and returns what the redirect
	// brought back. Where it is nil, a server that asks for a log-in fails with
	// ErrLogin. Connect must leave people the time.
	Authorize func(ctx context.Context, server, url string) (Grant, error)

	pace pace
}

// pace is how fast things are tried again; tests hurry.
type pace struct {
	least, most time.Duration // between two attempts to connect
	gap         time.Duration // between two readings of the lists
	grace       time.Duration // for a connection or a process to end by itself
	optional    time.Duration // most that opening waits for an optional server
}

func (o *Options) fill() {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Connect == 0 {
		o.Connect = 15 * time.Second
	}
	if o.Every == 0 {
		o.Every = 5 * time.Minute
	}
	if o.Tokens == nil {
		o.Tokens = &memory{}
	}
	if o.pace == (pace{}) {
		o.pace = pace{least: time.Second, most: time.Minute, gap: 10 * time.Second, grace: 2 * time.Second, optional: 3 * time.Second}
	}
}

// Servers are the connections of one gateway. Methods may be called at once.
type Servers struct {
	all  map[string]*Server
	stop context.CancelFunc
	wg   sync.WaitGroup
}

// Open connects to all servers side by side and returns when each has been
// tried once; the optional ones are waited for a few seconds only. It fails if
// the settings are wrong or a server that is not optional cannot be reached;
// optional ones are tried again in the background, as is every server whose
// connection is lost later. ctx is for opening only.
func Open(ctx context.Context, o Options) (*Servers, error) {
	o.fill()
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(o.Servers)) {
		errs = append(errs, o.Servers[name].Check(name))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx)) // the connections outlive opening
	s := &Servers{all: map[string]*Server{}, stop: stop}
	tried := make(chan attempt, len(o.Servers))
	waited := map[string]bool{} // who has not been tried yet; true for those that are needed
	for name, settings := range o.Servers {
		server := newServer(name, settings, o)
		s.all[name] = server
		waited[name] = !settings.Optional
		s.wg.Go(func() { server.run(run, func(err error) { tried <- attempt{name, err} }) })
	}
	if err := wait(ctx, o, waited, tried); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// An attempt is how the first connection to a server went.
type attempt struct {
	server string
	err    error
}

// wait waits until the servers that are needed have been tried, and for the
// optional ones as long as that is worth it.
func wait(ctx context.Context, o Options, needed map[string]bool, tried <-chan attempt) error {
	late := time.NewTimer(o.pace.optional)
	defer late.Stop()
	var errs []error
	for len(needed) > 0 {
		select {
		case a := <-tried:
			if a.err != nil && needed[a.server] {
				errs = append(errs, &openError{a.server, a.err})
			}
			delete(needed, a.server)
		case <-late.C:
			maps.DeleteFunc(needed, func(_ string, must bool) bool { return !must })
		case <-ctx.Done():
			return fmt.Errorf("open mcp servers: %w", context.Cause(ctx))
		}
	}
	return errors.Join(errs...)
}

// Close ends all calls, connections and processes and waits for them.
func (s *Servers) Close() {
	s.stop()
	s.wg.Wait()
}

// Server finds a server by the name in the settings.
func (s *Servers) Server(name string) (*Server, bool) {
	server, ok := s.all[name]
	return server, ok
}

// Status tells how the servers are, by name.
func (s *Servers) Status() []Status {
	var out []Status
	for _, name := range slices.Sorted(maps.Keys(s.all)) {
		out = append(out, s.all[name].Status())
	}
	return out
}

// Refresh reads the lists of all connected servers now and waits for it.
// Conversations take the new lists with their next event.
func (s *Servers) Refresh(ctx context.Context) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(s.all)) {
		errs = append(errs, s.all[name].Refresh(ctx))
	}
	return errors.Join(errs...)
}

// Lock pins what the servers list at this time, whatever was pinned before. It
// keeps the pins of servers that are not connected.
func (s *Servers) Lock() Lock {
	out := Lock{}
	for name, server := range s.all {
		if pins, ok := server.pins(); ok {
			out[name] = pins
		}
	}
	return out
}
