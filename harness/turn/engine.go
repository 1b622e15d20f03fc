// Package turn executes manifests: it takes a conversation's inbox, renders the
// agent, calls the model, runs tools and commits, step by step, until the turn
// is settled. Recovery has no path of its own: a crashed turn is claimed again
// and goes on from its log.
package turn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/sandbox"
	"github.com/heddlehq/heddle/state"
)

// Options is what an engine works with. All but Values, Busy, Fetch, Version and Limits must be set.
type Options struct {
	Log       state.Log
	Values    state.Values // of the same store; only for Limits.Day
	Agents    map[string]harness.Agent
	Models    *model.Names
	Sandboxes map[string]sandbox.Provider
	Role      func(ctx context.Context, t chat.Thread, a chat.Author) (chat.Role, error) // now; with an error Outsider
	Talk      chat.Role                                                                  // least role that is answered
	Busy      func(chat.Event) chat.Policy                                               // for an event that comes while a turn is open; nil: all join
	Where     func(chat.Event) (t chat.Thread, open bool)                                // where an event is answered, see chat.Post.Open; nil: in its thread
	// Compose returns the texts of posts, see channels.Sender, and whether posts there may bring files.
	Compose func(t chat.Thread, markdown string, trust chat.Role) (texts []string, files bool)
	// Progress is told that a turn answers an event, at each step, and the turn's
	// outcome. Refused is told what the author of an event is to know who is not
	// answered. Both return at once; nil: nobody is.
	Progress func(c state.ID, e chat.Event, outcome string)
	Refused  func(e chat.Event, line string)
	Fetch    func(context.Context, Wanted) (chat.Attachment, error) // gets a file; nil: none are. A model reads the error
	Clock    func() time.Time
	Logger   *slog.Logger
	Version  string // of the code, for the log
	Limits   Limits
}

// Limits bound a turn. Zero fields get the default.
type Limits struct {
	Steps    int           // model calls of one turn, 50
	Time     time.Duration // of work on one turn, without its rests, 1 hour
	Tokens   int           // read and written for one turn and its tasks; none for 0
	Turn     float64       // US dollars for one turn and its tasks; no limit for 0
	Total    float64       // US dollars for one conversation; no limit for 0
	Day      float64       // US dollars for all conversations of the store on one day in UTC; no limit for 0
	Tries    int           // of one model call, 5
	Wait     time.Duration // longest wait before a model call is tried again, 2 minutes
	Attempts int           // claims of one turn before it is parked, 10
	Crashes  int           // attempts in a row that got no further before it is parked, 3
	BotTurns int           // turns in a row that bots may begin in one conversation, 3
	Cache    int           // bytes of conversations kept in memory, 32 MiB
}

func (l Limits) withDefaults() Limits {
	set := func(v *int, def int) {
		if *v == 0 {
			*v = def
		}
	}
	set(&l.Steps, 50)
	set(&l.Tries, 5)
	set(&l.Attempts, 10)
	set(&l.Crashes, 3)
	set(&l.BotTurns, 3)
	set(&l.Cache, 32<<20)
	if l.Wait == 0 {
		l.Wait = 2 * time.Minute
	}
	if l.Time == 0 {
		l.Time = time.Hour
	}
	return l
}

// An Engine runs turns. It may run many at once, of different conversations.
type Engine struct {
	Options
	folds    *folds
	breakers sync.Map // by name of the provider: *model.Breaker
}

// A provider that failed so often in a row is left alone for a while.
const (
	breakAfter = 10
	breakFor   = 15 * time.Second
)

func (e *Engine) breaker(provider string) *model.Breaker {
	b, ok := e.breakers.Load(provider)
	if !ok {
		b, _ = e.breakers.LoadOrStore(provider, model.NewBreaker(breakAfter, breakFor, e.Clock))
	}
	return b.(*model.Breaker)
}

// New makes an engine and renders every agent once as a new conversation would
// see it: a mistake in one, or a model or sandbox that does not exist, is an error.
func New(o Options) (*Engine, error) {
	o.Limits = o.Limits.withDefaults()
	e := &Engine{Options: o, folds: newFolds(o.Limits.Cache)}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(o.Agents)) {
		for _, trust := range []chat.Role{chat.Outsider, chat.Admin} {
			if err := e.try(name, o.Agents[name], trust); err != nil {
				errs = append(errs, err)
				break
			}
		}
	}
	return e, errors.Join(errs...)
}

func (e *Engine) try(name string, a harness.Agent, trust chat.Role) error {
	return e.tryAt(a, harness.Snapshot{Agent: name, Trust: trust, Now: e.Clock()})
}

func (e *Engine) tryAt(a harness.Agent, s harness.Snapshot) error {
	m, err := harness.Render(a, s)
	var re *harness.RenderError
	switch {
	case errors.As(err, &re) && re.Panic != nil:
		return fmt.Errorf("%w: %s%s", err, panicText(re.Panic), panicPlace(re.Detail))
	case err != nil:
		return err
	}
	if _, err := e.Models.Resolve(m.Model); err != nil {
		return fmt.Errorf("agent %q: UseModel: %w", s.Agent, err)
	}
	if m.Sandbox != "" && e.Sandboxes[m.Sandbox] == nil {
		return fmt.Errorf("agent %q: UseSandbox: no kind %q; want one of %s", s.Agent, m.Sandbox, strings.Join(slices.Sorted(maps.Keys(e.Sandboxes)), ", "))
	}
	for _, sub := range m.Subagents {
		if err := e.tryAt(sub.Agent, below(s, &m, sub)); err != nil {
			return fmt.Errorf("agent %q: %w", s.Agent, err)
		}
	}
	return nil
}

// Run works on the leased conversation until its turn is settled. When soft
// ends it stops at the next step boundary and gives the lease back, the turn
// still open; when ctx ends it stops at once and, unless the lease is lost, gives
// it back: that is no crash. On an error nothing uncommitted is left behind, and
// otherwise the lease is as it was.
func (e *Engine) Run(ctx, soft context.Context, l state.Lease) error {
	c, entries, err := e.load(ctx, l.Conversation.ID)
	if err != nil {
		return err
	}
	soft, yield := context.WithCancel(soft)
	defer yield()
	r := &run{
		Engine: e, soft: soft, yield: yield, lease: l, conv: l.Conversation, f: c.fold, cached: c, sums: &c.sums, written: &c.written, entries: entries, memo: &sync.Mutex{},
		boxes:   &boxes{providers: e.Sandboxes, log: e.Log, id: l.Conversation.ID},
		counted: c.fold.Cost, log: e.Logger.With("conversation", string(l.Conversation.ID), "epoch", l.Epoch, "attempt", l.Attempt),
	}
	if r.f.Turn != nil {
		r.tasks = paths("", r.f.Turn)
	}
	err = r.turn(ctx)
	if cerr := r.boxes.close(); cerr != nil {
		r.log.Warn("sandbox not closed", "err", cerr)
	}
	if err != nil {
		if ctx.Err() != nil && !errors.Is(context.Cause(ctx), state.ErrLeaseLost) {
			r.batch, r.err = state.Batch{Release: true, Wake: e.Clock()}, nil
			if berr := r.commit(ctx); berr != nil {
				r.log.Warn("lease not given back", "err", berr)
			}
		}
		return fmt.Errorf("conversation %s: %w", l.Conversation.ID, err)
	}
	e.folds.put(l.Conversation.ID, c)
	return nil
}

// load reads what the log has beyond the fold in memory, and the inbox.
func (e *Engine) load(ctx context.Context, id state.ID) (*cached, []state.Entry, error) {
	c := e.folds.take(id)
	if c == nil {
		blob, err := e.Log.Blob(ctx, id, foldBlob)
		if err != nil {
			return nil, nil, fmt.Errorf("load %s: %w", id, err)
		}
		c = &cached{fold: record.Restore(blob, id), bytes: len(blob)}
		c.saved = c.fold.Seq
	}
	v, err := e.Log.Load(ctx, id, c.fold.Seq)
	if err != nil {
		return nil, nil, fmt.Errorf("load %s: %w", id, err)
	}
	if c.fold.Seq > 0 && c.fold.Seq+int64(len(v.Records)) != v.Conversation.Seq {
		// A checkpoint that is not of this log: read it from the beginning.
		c = &cached{fold: &record.Fold{}}
		if v, err = e.Log.Load(ctx, id, 0); err != nil {
			return nil, nil, fmt.Errorf("load %s: %w", id, err)
		}
	}
	if err := c.fold.Add(v.Records); err != nil {
		return nil, nil, fmt.Errorf("fold %s: %w", id, err)
	}
	for _, r := range v.Records {
		c.bytes += len(r.Data)
	}
	return c, v.Inbox, nil
}

// A run is one attempt at one turn, or at one task of it.
type run struct {
	*Engine
	task    *task           // what it works on, nil for the conversation's own turn
	soft    context.Context // ends when the run should stop at the next step boundary
	yield   func()          // ends soft
	gentle  context.Context // of calls that may be interrupted
	lease   state.Lease
	conv    state.Conversation
	f       *record.Fold
	cached  *cached
	entries []state.Entry // of the inbox, not yet taken
	batch   state.Batch   // what the next commit holds
	err     error         // of encoding, reported by the next commit
	waiting bool          // an event in the inbox waits for its author's role
	steered bool          // a message came that ends calls that may be interrupted
	saving  bool          // it saves files that tasks share
	asking  bool          // a call has asked the thread something; guarded by memo
	roles   sync.Map      // of the authors of entries, by Seq
	late    bool          // the turn has been worked on for too long
	boxes   *boxes
	tasks   []string          // paths of those that were open or begun, which may have files; of the conversation's own run, guarded by memo
	seen    map[string][]byte // images, by name of their blobs
	// manifest is that of the last step, nil before the first.
	manifest *harness.Manifest
	looked   *box        // whose guide was looked for
	dirty    bool        // a tool that may have changed files ran since they were saved
	memo     *sync.Mutex // calls and tasks that run at once commit one after the other
	sums     *summer     // of the messages
	counted  float64     // US dollars of f.Cost that the store has counted
	written  *model.Written
	sent     model.Request // the last one
	log      *slog.Logger
}

// turn reads as the life of a turn: repair, take, step until settled. An answer
// that a crash cut off is closed first. A turn that is given up leaves what came
// meanwhile to the next one.
func (r *run) turn(ctx context.Context) error {
	if r.f.Due != nil {
		return r.after(ctx)
	}
	parked, err := r.attempted(ctx)
	if err != nil {
		return err
	}
	if !parked && r.hasOpen() && (r.lease.Attempt == 1 || r.urgent(ctx)) {
		if done, err := r.boundary(ctx); done || err != nil {
			return err
		}
		r.expire()
	}
	r.tear("")
	if r.hasOpen() {
		done, err := r.watched(ctx, func(ctx context.Context) (bool, error) { return r.repair(ctx, parked) })
		if done || err != nil {
			return err
		}
		if err := r.refresh(ctx); err != nil {
			return err
		}
	}
	if !parked || r.f.Turn == nil {
		if done, err := r.boundary(ctx); done || err != nil {
			return err
		}
	}
	if parked {
		return r.settle(ctx, record.Parked, "crashed too often", lineBroken)
	}
	r.goOn()
	for {
		work := r.step
		if r.hasOpen() && !r.over() { // they were stopped for what has an answer now
			work = func(ctx context.Context) (bool, error) { return r.repair(ctx, false) }
		}
		if done, err := r.watched(ctx, work); done || err != nil {
			return err
		}
		if r.soft.Err() != nil {
			return r.release(ctx, r.Clock())
		}
		if err := r.refresh(ctx); err != nil {
			return err
		}
		if done, err := r.boundary(ctx); done || err != nil {
			return err
		}
	}
}

// refresh reads what came into the inbox meanwhile.
func (r *run) refresh(ctx context.Context) error {
	v, err := r.Log.Load(ctx, r.conv.ID, r.f.Seq)
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	r.entries = v.Inbox
	return nil
}

// urgent says whether the inbox has to be taken before open calls are run again.
func (r *run) urgent(ctx context.Context) bool {
	p := r.intake(ctx, r.present(), r.entries)
	return p.end != "" || p.yields || r.f.Held()
}

// add appends an entry to the next commit and to the fold. The fold gets it as
// the log gives it back, so that a restart changes nothing that a model sees.
func (r *run) add(b record.Body) {
	rec, err := record.Encode(b)
	if err == nil && record.Shown(b) {
		b, err = record.Decode(rec)
	}
	if err != nil {
		r.err = errors.Join(r.err, err)
		return
	}
	r.batch.Records = append(r.batch.Records, rec)
	if r.task == nil {
		r.f.Append(rec, b)
	} else {
		r.f.Apply(b) // the chain is the conversation's
	}
}

// commitTime bounds a commit, also that of who was stopped meanwhile: whether
// it was made must be known.
const commitTime = 10 * time.Second

// commit makes true what was added since the last commit.
func (r *run) commit(ctx context.Context) error {
	if r.task != nil {
		r.memo.Lock()
		defer r.memo.Unlock()
	}
	return r.commitHeld(ctx)
}

// commitHeld is commit for who holds memo.
func (r *run) commitHeld(ctx context.Context) error {
	if r.err != nil {
		return r.err
	}
	if r.task != nil {
		return r.hand(ctx)
	}
	for _, rec := range r.batch.Records {
		r.cached.bytes += len(rec.Data)
	}
	r.count()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTime)
	defer cancel()
	l, err := r.Log.Commit(ctx, r.lease, r.batch)
	if err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	r.lease, r.batch = l, state.Batch{}
	return nil
}

// release commits and gives the lease back; a wake time makes the conversation
// ready without new events.
func (r *run) release(ctx context.Context, wake time.Time) error {
	r.batch.Release, r.batch.Wake = true, wake
	if r.waiting {
		r.batch.Pause = r.Clock().Add(roleWait)
	}
	if r.f.Seq-r.cached.saved >= max(64, r.cached.saved/2) {
		data, err := r.f.Checkpoint(r.conv.ID)
		if err != nil {
			return fmt.Errorf("checkpoint: %w", err)
		}
		r.batch.Blobs = append(r.batch.Blobs, state.Blob{Name: foldBlob, Data: data})
		r.cached.saved = r.f.Seq
	}
	return r.commit(ctx)
}
