// Package state is the port of the store family: the durable inbox, log and
// outbox of every conversation. What a store returns has been committed and
// synced; what it has not returned from may or may not have happened, and every
// call may be repeated.
package state

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/heddlehq/heddle/chat"
)

// What a store fails with, besides failures of its medium, which are opaque
// and mean: not done as far as we know, try again.
var (
	ErrNone      = errors.New("nothing is ready")
	ErrLeaseLost = errors.New("the lease is lost")
	ErrNotFound  = errors.New("no such conversation")
	ErrExists    = errors.New("the thread has another conversation")
	ErrLocked    = errors.New("the store is in use by another process") // exit 75
	ErrNewer     = errors.New("the store was written by a newer version")
	ErrDamaged   = errors.New("the store is damaged")
	ErrClosed    = errors.New("the store is closed")
)

// A Store keeps conversations. All methods may be called at once.
type Store interface {
	Inbox
	Log
	Outbox
	Reader
	Values
	// Check commits something small and says whether that worked.
	Check(ctx context.Context) error
	Close() error
}

// DedupeFor is how long a store remembers event ids.
const DedupeFor = 31 * 24 * time.Hour

// NotFollowed is why an event that came with Follow was ignored.
const NotFollowed = "not followed"

// Inbox is where events come in.
type Inbox interface {
	// Admit stores events, in order, and answers one Admission each. An event
	// whose (channel, ID) or, if it has one, (channel, Same) was admitted in
	// the last DedupeFor is a duplicate, changes nothing and gets the
	// conversation, Seq and reason of the first. One that is ignored claims its ID
	// only, never its Same. All of a call is committed when it returns; on an
	// error none of it is.
	Admit(ctx context.Context, in []Admit) ([]Admission, error)
}

// Admit asks for one event to be stored.
type Admit struct {
	Event  chat.Event
	Agent  string // who answers; fixes the agent of a conversation that this event creates. Needed unless Ignored or Follow
	Follow bool   // only if the thread has a conversation already that follows it; otherwise ignored as "not followed"
	Quiet  bool   // is read with the next event, but starts no turn by itself
	// With Follow. A conversation that has left does not follow its threads until
	// something is admitted to it that is neither Follow nor Quiet.
	Since time.Time // only if the conversation was updated since then; zero: however long ago
	Left  bool      // also if the conversation has left, and whatever Since says
	// Hold is how long the author may take to say more: no turn begins for the
	// event before they have been silent for so long, or for five times so long
	// after the first that was held. Other events of the conversation are not
	// held back, and one that creates it is not held.
	Hold    time.Duration
	Ignored string // reason why no conversation gets it; "" to admit
}

// Validate says why the event cannot be admitted, or nil. Stores ask it first.
func (a Admit) Validate() error {
	switch {
	case a.Event.ID == "":
		return errors.New("event has no id")
	case a.Event.Thread.Channel == "":
		return fmt.Errorf("event %s: thread has no channel", a.Event.ID)
	case a.Ignored != "":
		return nil
	case a.Agent == "" && !a.Follow:
		return fmt.Errorf("event %s: no agent named", a.Event.ID)
	}
	if err := a.Event.Thread.Validate(); err != nil {
		return fmt.Errorf("event %s: %w", a.Event.ID, err)
	}
	return nil
}

// Admission is what became of one event.
type Admission struct {
	Status       Status
	Conversation ID     // of the conversation that has it; "" when ignored
	Seq          int64  // of its inbox entry, 0 when ignored; it has been taken once no entry of that Seq is in the inbox
	Reason       string // why it was ignored
	Conflict     bool   // a duplicate ID with other content: somebody should look
}

// Status of an admission.
type Status uint8

// The statuses.
const (
	Admitted Status = iota + 1
	Duplicate
	Ignored
)

// Log is the ordered record of each conversation.
type Log interface {
	// Claim leases the conversation that has been ready longest to owner, with
	// a new Epoch and one more Attempt, or fails with ErrNone. Ready is a
	// conversation without a live lease, not paused, that has an inbox entry
	// which is not Quiet or whose wake time has come, or which lost its lease
	// before releasing it. A claim forgets the pause and the wake time.
	Claim(ctx context.Context, owner string, ttl time.Duration) (Lease, error)
	// WaitReady returns nil when Claim may find something: at once if it may
	// now. Otherwise it waits for that, or fails with ctx's error or ErrClosed.
	WaitReady(ctx context.Context) error
	// Renew makes the lease last ttl from now, or fails with ErrLeaseLost.
	Renew(ctx context.Context, l Lease, ttl time.Duration) (Lease, error)
	// Load reads the records after a Seq, in order, and the whole inbox, or
	// fails with ErrNotFound.
	Load(ctx context.Context, id ID, after int64) (View, error)
	// Blob reads a named value of the conversation, nil if there is none.
	Blob(ctx context.Context, id ID, name string) ([]byte, error)
	// Commit makes the whole batch true if the lease is live; otherwise it
	// fails with ErrLeaseLost and changes nothing. A lease that has expired
	// but that nobody else claimed since is still live. The answer holds the
	// conversation as it is then; its Until is zero after a Release.
	Commit(ctx context.Context, l Lease, b Batch) (Lease, error)
	// Fork makes the conversation that agent has in the thread to, with the
	// records 1 to seq of another, which stays as it is, and after them its own,
	// and all blobs of the other, but nothing of its inbox, whose Seqs go on from
	// there, and of its outbox. A repeat answers with the conversation that the
	// agent has there and that begins with the other's records; any other that
	// the thread has is ErrExists.
	// Fork fails with ErrNotFound if there is no such record to fork at.
	Fork(ctx context.Context, id ID, seq int64, agent string, to chat.Thread, own ...Record) (Conversation, error)
}

// ValidateFork says why no fork can be the agent's in a thread, or nil. Stores
// ask it first.
func ValidateFork(agent string, to chat.Thread) error {
	if agent == "" {
		return errors.New("no agent named")
	}
	return to.Validate()
}

// A Lease is the exclusive right to write to a conversation until a time.
type Lease struct {
	Conversation Conversation
	Owner        string
	Epoch        int64 // grows with every claim; a write under an older one is refused
	Attempt      int   // claims since the last release; above 1 only after a crash
	Until        time.Time
}

// A Conversation is what a store knows about one without reading its log.
type Conversation struct {
	ID        ID
	Agent     string
	Thread    chat.Thread
	Seq       int64 // of the last record, 0 if there is none
	Inbox     int   // entries waiting
	CreatedAt time.Time
	UpdatedAt time.Time // of the last admission or commit
}

// A View is a conversation as of one commit.
type View struct {
	Conversation Conversation
	Records      []Record
	Inbox        []Entry
}

// A Record is one entry of a log. The store does not look into Data.
type Record struct {
	Seq  int64     // given by the store: 1, 2, 3, ... without gaps
	At   time.Time // given by the store
	Kind string
	Data []byte // JSON
}

// An Entry is an event admitted and not yet taken.
type Entry struct {
	Seq   int64 // given by the store, growing within the conversation, never used again
	At    time.Time
	Quiet bool
	Event chat.Event
}

// A Batch is one commit. The zero Batch is valid.
type Batch struct {
	Records []Record    // appended in order; Seq and At are ignored
	Taken   int64       // inbox entries up to this Seq are gone
	Posts   []chat.Post // appended to the outbox in order; one whose Key the conversation has used is ignored
	Blobs   []Blob      // named values of the conversation, replaced; nil Data deletes
	Counts  []Count     // added to values of the store; it is an error if one is no number
	Leave   bool        // the conversation leaves, see Admit.Left; not if the inbox holds something that is not Quiet
	Release bool        // give the lease back in the same commit
	Pause   time.Time   // with Release: not ready before
	Wake    time.Time   // with Release: ready then, also without inbox
}

// A Blob is a named value beside the log: a cache, a snapshot, or the bytes that a
// record names.
type Blob struct {
	Name string
	Data []byte
}

// Outbox holds posts that are decided and not yet known to be made.
type Outbox interface {
	// ClaimPosts leases up to n posts that are due, at most one per thread and
	// that the oldest unsettled one of its thread, longest due first: a post is
	// due when it is queued, at Outcome.Due, and when its claim runs out. No
	// posts is no error. Posts of one conversation that are to open a thread at
	// one place are of one thread as well, and those of others are not; once it
	// has opened one there, their Thread is that and their Open is false.
	ClaimPosts(ctx context.Context, owner string, n int, ttl time.Duration) ([]Effect, error)
	// WaitDue is to ClaimPosts what WaitReady is to Claim.
	WaitDue(ctx context.Context) error
	// SettlePost records what became of a claimed post. It fails with
	// ErrLeaseLost, changing nothing, if the claim has been taken over. Parts
	// after a post that is dead are dead as well, see chat.Post.After.
	SettlePost(ctx context.Context, e Effect, o Outcome) error
	// RetryPost queues a dead post again, behind all others and in doubt since
	// its last claim, and the parts after it that died with it; DropPost makes one
	// dead that is Pending or Unknown. Both fail with ErrNotFound if there is no
	// such post, or it is in no such state.
	RetryPost(ctx context.Context, id ID, key string) error
	DropPost(ctx context.Context, id ID, key string) error
}

// An Effect is a claimed post.
type Effect struct {
	Post         chat.Post
	Conversation ID
	Attempt      int       // claims so far, this one included
	Epoch        int64     // of the claim
	DoubtAt      time.Time // when an attempt began that may have been made, the last such; zero for none: look before sending
	FirstAt      time.Time // of the first claim
	QueuedAt     time.Time
}

// An Outcome settles one claim of a post.
type Outcome struct {
	State  PostState
	Ref    string      // with Sent: the provider's id
	Opened chat.Thread // with Sent: the thread that the post has opened, zero for none. The conversation owns it from then on, unless another one does
	Reason string      // with Dead and Due: why
	Due    time.Time   // with Due: not before
	// DoubtAt, with Due, is Effect.DoubtAt of the next claim; zero says that no
	// attempt so far was made. A claim that ends without being settled leaves
	// the time at which it began.
	DoubtAt time.Time
}

// Validate says why the outcome cannot be recorded, or nil. Stores ask it first.
func (o Outcome) Validate() error {
	switch o.State {
	case Sent:
		if o.Opened != (chat.Thread{}) {
			return o.Opened.Validate()
		}
		return nil
	case Due, Dead:
		return nil
	case Pending, Sending, Unknown:
	}
	return fmt.Errorf("no such outcome of a post: %q", o.State)
}

// PostState is where a post stands.
type PostState string

// The outcomes of a claim, the last two of which are states of a post for good,
// and the states of a post that is not settled.
const (
	Due  PostState = "due"
	Sent PostState = "sent"
	Dead PostState = "dead"

	Pending PostState = "pending" // not made so far
	Sending PostState = "sending" // claimed
	Unknown PostState = "unknown" // nobody has it, and an attempt may have made it
)

// Why posts are dead that nothing was tried for.
const (
	Holed   = "an earlier part is dead"
	Dropped = "dropped"
)

// Reader serves people: console and CLI. It sees whole commits only.
type Reader interface {
	// Conversations lists those updated before a time (zero: all), newest first, at most limit.
	Conversations(ctx context.Context, before time.Time, limit int) ([]Conversation, error)
	// Records reads the records after a Seq, in order, at most limit; none if the
	// conversation is unknown. A log has no gaps, so any part of it can be read.
	Records(ctx context.Context, id ID, after int64, limit int) ([]Record, error)
	// Posts lists the conversation's posts in order, none if it is unknown.
	Posts(ctx context.Context, id ID) ([]PostView, error)
	// Event says what became of an event admitted in the last DedupeFor, by
	// its ID, or ErrNotFound.
	Event(ctx context.Context, channel, id string) (Admission, error)
	// Acts says what became of the events that told of one human act, by its
	// Same, the oldest first; none if nothing did in the last DedupeFor.
	Acts(ctx context.Context, channel, same string) ([]Act, error)
	// Unsent lists the posts of all conversations that are not Sent, the last
	// queued first, at most limit.
	Unsent(ctx context.Context, limit int) ([]PostView, error)
	// Find returns the conversation that owns a thread, or ErrNotFound.
	Find(ctx context.Context, t chat.Thread) (Conversation, error)
	// Threads lists the threads that the conversation owns besides its own, in
	// the order in which they came; none if it is unknown.
	Threads(ctx context.Context, id ID) ([]chat.Thread, error)
}

// An Act is an event that told of something that somebody did.
type Act struct {
	Event string // its ID
	At    time.Time
	Admission
}

// A PostView is a post and its state.
type PostView struct {
	Conversation ID
	Post         chat.Post
	State        PostState // never Due
	Ref          string
	Reason       string
	Attempts     int
	QueuedAt     time.Time
	SettledAt    time.Time
}

// Values keeps named values that belong to no conversation, in spaces such as
// "memory/slack/T01".
type Values interface {
	// PutValues replaces values, in order: all of them or, on an error, none. A
	// thousand at once are fine; many more keep others waiting.
	PutValues(ctx context.Context, space string, vs ...Value) error
	// Value reads a value, nil if there is none.
	Value(ctx context.Context, space, key string) ([]byte, error)
	// ListValues lists the values of a space whose keys come after a key, in the
	// order of the bytes of their keys, at most limit.
	ListValues(ctx context.Context, space, after string, limit int) ([]Value, error)
}

// FileSpace names the values that hold the files of messages which came to a
// thread over the API, by their digests.
func FileSpace(t chat.Thread) string { return "files/" + t.Key() }

// A Value is a named value of a space.
type Value struct {
	Key  string // not empty
	Data []byte // nil deletes
}

// Validate says why the value cannot be put, or nil. Stores ask it first.
func (v Value) Validate() error {
	if v.Key == "" {
		return errors.New("value has no key")
	}
	return nil
}
