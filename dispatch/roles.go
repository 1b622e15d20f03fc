package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
)

const (
	roleFor     = time.Minute     // how long a role is believed
	roleFailFor = 5 * time.Second // and how long a failed look-up is not repeated
	roleTime    = 3 * time.Second // of one look-up
	rolesMost   = 10_000          // remembered at once
)

// Roles looks up what people are, at most once a minute each. Whoever cannot
// be looked up is an outsider.
type Roles struct {
	rosters map[string]channels.Roster
	bots    map[Bot]bool
	clock   func() time.Time
	log     *slog.Logger
	mu      sync.Mutex
	known   map[person]*lookup
}

type person struct{ channel, account, home, id string }

type lookup struct {
	done  chan struct{} // closed when role and until are set
	role  chat.Role
	err   error
	until time.Time
}

// NewRoles asks those channels that are rosters. The bots are members, all others
// outsiders.
func NewRoles(cs []channels.Channel, bots map[Bot]bool, clock func() time.Time, log *slog.Logger) *Roles {
	r := &Roles{rosters: map[string]channels.Roster{}, bots: bots, clock: clock, log: log, known: map[person]*lookup{}}
	for _, c := range cs {
		if ro, ok := c.(channels.Roster); ok {
			r.rosters[c.Name()] = ro
		}
	}
	return r
}

// ErrRole says that a role could not be looked up. Why is logged.
var ErrRole = errors.New("the role is not known")

// Role is the author's role in the thread's account now. With an error, which
// wraps ErrRole, it is Outsider.
func (r *Roles) Role(ctx context.Context, t chat.Thread, a chat.Author) (chat.Role, error) {
	if a.Account == chat.APIAccount {
		return chat.Admin, nil
	}
	if a.Bot && r.bots[Bot{t.Channel, a.ID}] {
		return chat.Member, nil
	}
	ro := r.rosters[t.Channel]
	if ro == nil || a.ID == "" || a.Bot {
		return chat.Outsider, nil
	}
	key := person{t.Channel, t.Account, a.Account, a.ID}
	r.mu.Lock()
	l := r.known[key]
	if l != nil {
		select {
		case <-l.done:
			if !r.clock().Before(l.until) {
				l = nil
			}
		default: // somebody is asking already
		}
	}
	mine := l == nil
	if mine {
		if len(r.known) >= rolesMost {
			clear(r.known)
		}
		l = &lookup{done: make(chan struct{})}
		r.known[key] = l
	}
	r.mu.Unlock()
	if mine {
		r.ask(ctx, ro, t, a, l)
		return l.role, l.err
	}
	select {
	case <-l.done:
		return l.role, l.err
	case <-ctx.Done():
		return chat.Outsider, fmt.Errorf("%w: %w", ErrRole, context.Cause(ctx))
	}
}

func (r *Roles) ask(ctx context.Context, ro channels.Roster, t chat.Thread, a chat.Author, l *lookup) {
	defer close(l.done)
	l.err = ErrRole // also if the roster panics: others wait for this, and a stranger would be passed over
	// Others wait for this answer as well: the caller's end must not end it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), roleTime)
	defer cancel()
	role, err := ro.Role(ctx, t.Account, a)
	if err != nil {
		r.log.Warn("role not known", "channel", t.Channel, "err", err)
		l.until = r.clock().Add(roleFailFor)
		return
	}
	l.role, l.err, l.until = role, nil, r.clock().Add(roleFor)
}

// Compose turns Markdown of some trust into the texts of posts to the thread's
// channel, and says whether they may bring files.
func Compose(cs []channels.Channel) func(chat.Thread, string, chat.Role) ([]string, bool) {
	by := map[string]channels.Sender{}
	for _, c := range cs {
		if s, ok := c.(channels.Sender); ok {
			by[c.Name()] = s
		}
	}
	return func(t chat.Thread, markdown string, trust chat.Role) ([]string, bool) {
		if s := by[t.Channel]; s != nil {
			return s.Compose(markdown, trust), s.Limits().Files
		}
		return nil, false
	}
}
