// Package virtual is a sandbox of the gateway's own: a bash and the usual text
// tools over files in memory, in a worker process that has no way to the host's
// files, processes or network. The worker is our binary, started again.
package virtual

import (
	"context"
	"errors"
	"fmt"
	"path"
	"sync"
	"time"

	"github.com/heddlehq/heddle/sandbox"
	"github.com/heddlehq/heddle/sandbox/virtual/memfs"
	"github.com/heddlehq/heddle/sandbox/virtual/shell"
)

// Options of a provider. The zero value is fine.
type Options struct {
	Exe   string        // binary that calls Worker; "" is the one that runs
	Idle  time.Duration // how long an unused worker is kept; 0 means five minutes
	Most  int           // workers at once; 0 means 64
	Clock time.Time     // if not zero, what scripts take for now
}

// A Provider keeps one worker per conversation and, for a while after its
// sandbox was closed, warm.
type Provider struct {
	opts Options

	mu     sync.Mutex
	closed bool
	slots  map[string]*slot // by conversation
}

// A slot is the place of one conversation.
type slot struct {
	p            *Provider
	conversation string

	// Guarded by the provider's mutex:
	refs   int // open sandboxes
	usedAt time.Time
	idle   *time.Timer // runs while refs is 0

	mu       sync.Mutex // held while a worker starts
	client   *client    // nil before the first
	ready    bool       // the files are those of the present opening
	snapshot []byte     // the last known
}

// New returns a provider. Close it.
func New(o Options) *Provider {
	if o.Idle <= 0 {
		o.Idle = 5 * time.Minute
	}
	if o.Most <= 0 {
		o.Most = 64
	}
	return &Provider{opts: o, slots: map[string]*slot{}}
}

// Name implements sandbox.Provider.
func (p *Provider) Name() string { return "virtual" }

var errClosed = errors.New("virtual: closed")

// Open attaches to the sandbox that is open for the conversation, whatever the
// snapshot, or makes one with the files of the snapshot. It fails with
// sandbox.ErrLimit while too many are open.
func (p *Provider) Open(ctx context.Context, conversation string, snapshot []byte) (sandbox.Sandbox, error) {
	s, evicted, err := p.acquire(conversation)
	if evicted != nil {
		evicted.stop()
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	if !s.ready {
		s.snapshot = snapshot
		err = s.restore(ctx)
		s.ready = err == nil
	}
	s.mu.Unlock()
	if err != nil {
		p.release(s)
		return nil, fmt.Errorf("open sandbox: %w", err)
	}
	return &box{slot: s}, nil
}

// acquire finds or makes a slot, giving up the one unused for longest if there
// are too many.
func (p *Provider) acquire(conversation string) (s, evicted *slot, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, errClosed
	}
	s = p.slots[conversation]
	if s == nil && len(p.slots) >= p.opts.Most {
		for _, other := range p.slots {
			if other.refs == 0 && (evicted == nil || other.usedAt.Before(evicted.usedAt)) {
				evicted = other
			}
		}
		if evicted == nil {
			return nil, nil, fmt.Errorf("%w: %d sandboxes are open", sandbox.ErrLimit, p.opts.Most)
		}
		evicted.idle.Stop()
		delete(p.slots, evicted.conversation)
	}
	if s == nil {
		s = &slot{p: p, conversation: conversation}
		p.slots[conversation] = s
	}
	if s.idle != nil {
		s.idle.Stop()
	}
	s.refs++
	return s, evicted, nil
}

// release gives up one use of a slot; the last starts its idle time.
func (p *Provider) release(s *slot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.refs--
	if s.refs > 0 || p.closed {
		return
	}
	s.ready = false
	s.usedAt = time.Now()
	s.idle = time.AfterFunc(p.opts.Idle, func() {
		p.mu.Lock()
		unused := s.refs == 0 && p.slots[s.conversation] == s
		if unused {
			delete(p.slots, s.conversation)
		}
		p.mu.Unlock()
		if unused {
			s.stop()
		}
	})
}

// Close ends all workers and waits for that.
func (p *Provider) Close() error {
	p.mu.Lock()
	p.closed = true
	slots := p.slots
	p.slots = nil
	p.mu.Unlock()
	for _, s := range slots {
		if s.idle != nil {
			s.idle.Stop()
		}
		s.stop()
	}
	return nil
}

// stop ends the worker of a slot.
func (s *slot) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil {
		s.client.stop()
	}
}

// restore starts a worker if there is none and gives it the last known files.
// The slot's mutex is held.
func (s *slot) restore(ctx context.Context) error {
	if s.client == nil || s.client.dead() {
		s.p.mu.Lock()
		closed := s.p.closed
		s.p.mu.Unlock()
		if closed {
			return errClosed
		}
		exe := s.p.opts.Exe
		if exe == "" {
			var err error
			if exe, err = ownBinary(); err != nil {
				return err
			}
		}
		c, err := start(exe)
		if err != nil {
			return err
		}
		s.client = c
	}
	_, err := s.client.do(ctx, request{Op: opOpen, Data: s.snapshot, Clock: s.p.opts.Clock}, patience)
	return err
}

// live returns the worker, a new one with the last known files if it has died.
func (s *slot) live(ctx context.Context) (*client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client.dead() {
		if err := s.restore(ctx); err != nil {
			return nil, err
		}
	}
	return s.client, nil
}

// A box is one opening of a sandbox.
type box struct {
	slot   *slot
	closed sync.Once
}

var _ sandbox.Searcher = (*box)(nil)

func (b *box) Dir() string { return shell.Dir }

func (b *box) Describe() string {
	return fmt.Sprintf("A bash in memory with the usual text tools (grep, sed, awk, jq, find, sort, diff and the like): no network, "+
		"no other programs, each command starts in %s with a fresh environment, background jobs end with it; files (%d MiB in all) are kept.",
		shell.Dir, memfs.MaxBytes>>20)
}

func (b *box) do(ctx context.Context, req request, limit time.Duration) (reply, error) {
	c, err := b.slot.live(ctx)
	if err != nil {
		return reply{}, err
	}
	return c.do(ctx, req, limit)
}

func (b *box) Exec(ctx context.Context, c sandbox.Command) (sandbox.Result, error) {
	if c.Timeout <= 0 {
		c.Timeout = sandbox.DefaultTimeout
	}
	rep, err := b.do(ctx, request{Op: opExec, Data: []byte(c.Script), Timeout: c.Timeout}, c.Timeout+overrun)
	return rep.Result, err
}

func (b *box) ReadFile(ctx context.Context, name string) ([]byte, error) {
	rep, err := b.do(ctx, request{Op: opRead, Path: name}, patience)
	return rep.Data, err
}

func (b *box) WriteFile(ctx context.Context, name string, data []byte) error {
	if len(data) > memfs.MaxFileBytes {
		return fmt.Errorf("write %s: %w: %d MiB in one file", path.Base(name), sandbox.ErrLimit, memfs.MaxFileBytes>>20)
	}
	_, err := b.do(ctx, request{Op: opWrite, Path: name, Data: data}, patience)
	return err
}

func (b *box) List(ctx context.Context, name string) ([]sandbox.Info, error) {
	rep, err := b.do(ctx, request{Op: opList, Path: name}, patience)
	return rep.Infos, err
}

func (b *box) Stat(ctx context.Context, name string) (sandbox.Info, error) {
	rep, err := b.do(ctx, request{Op: opStat, Path: name}, patience)
	if err != nil || len(rep.Infos) != 1 {
		return sandbox.Info{}, err
	}
	return rep.Infos[0], nil
}

func (b *box) Snapshot(ctx context.Context) ([]byte, error) {
	rep, err := b.do(ctx, request{Op: opSnapshot}, patience)
	if err != nil {
		return nil, err
	}
	b.slot.mu.Lock()
	defer b.slot.mu.Unlock()
	b.slot.snapshot = rep.Data
	return rep.Data, nil
}

func (b *box) Grep(ctx context.Context, q sandbox.Query) (sandbox.Hits, error) {
	rep, err := b.do(ctx, request{Op: opGrep, Query: q}, patience)
	return rep.Hits, err
}

func (b *box) Glob(ctx context.Context, root, pattern string, limit int) ([]string, bool, error) {
	q := sandbox.Query{Root: root, Pattern: pattern, Limit: limit}
	rep, err := b.do(ctx, request{Op: opGlob, Query: q}, patience)
	return rep.Paths, rep.Hits.More, err
}

func (b *box) Close() error {
	b.closed.Do(func() { b.slot.p.release(b.slot) })
	return nil
}
