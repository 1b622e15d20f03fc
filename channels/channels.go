// Package channels is the port of the channel family: what an adapter between
// Heddle and one provider must do, and what no adapter may write twice.
//
// An adapter turns bytes into events and a post into one request. It never
// queues, splits over time, retries or stores; dispatch does.
package channels

import (
	"context"
	"net/http"
	"time"

	"github.com/heddlehq/heddle/chat"
)

// A Channel is one provider.
type Channel interface {
	Name() string // lower case, a URL segment, constant
}

// A Webhook turns a request into events.
type Webhook interface {
	Channel
	Routes() []Route
	// Receive verifies and parses one request. It does no I/O and keeps
	// nothing, so equal bytes give equal results. It fails with an error that
	// wraps ErrUnverified or ErrStale (answered 401) or ErrMalformed (400).
	// The header is as received: Receive must refuse a signature or timestamp
	// header that is missing or present more than once.
	Receive(route string, h http.Header, body []byte, now time.Time) (Inbound, error)
}

// A Route is one path of a webhook, below "/<channel name>/".
type Route struct {
	Name       string   // path suffix and the route argument of Receive: "events"
	MediaTypes []string // accepted media types, without parameters
	MaxBytes   int64    // largest body
}

// Inbound is what one request said. The zero value is a request that asks for nothing.
type Inbound struct {
	Events    []chat.Event
	Ignored   []Ignored // understood, not meant for a conversation; acknowledged and counted
	Reply     []byte    // body of the 200, nil for none
	ReplyType string    // its media type
	// Then is what the channel itself has to do before the request may be
	// acknowledged; nil for nothing. Repeating is harmless.
	Then  func(context.Context) error
	Empty bool // without a Reply: answered 204 instead of 200
}

// Ignored names something that was received and leads to nothing.
type Ignored struct {
	ID     string // the provider's event id, "" if it has none
	Reason string // constant text, good as a label: "own message", "unknown type"
}

// A Sender posts.
type Sender interface {
	Channel
	Limits() Limits
	// Compose turns Markdown into the texts of one or more posts in the
	// channel's dialect, each within its limits. Links in a text that an outsider
	// may have steered, as its trust says, are shown and lead nowhere. Pure; never
	// returns an empty text, and nothing at all only for text without content.
	Compose(markdown string, trust chat.Role) []string
	// Send makes one request, or for files what they take, and returns the provider's
	// id of the message. Files that the channel cannot send are Rejected.
	// Every failure is a *SendError. It never sleeps or retries. A ref together
	// with a Rejected error is a message that exists, but not as asked.
	Send(ctx context.Context, p chat.Post) (ref string, err error)
}

// Limits say how fast a channel may be used and how soon it tells the truth.
type Limits struct {
	RoomEvery    time.Duration // time between two posts to a room that has refused one, 0 for none
	AccountEvery time.Duration // time between two posts to an account two rooms of which have refused one, 0 for none
	Files        bool          // posts may bring files
	Handles      bool          // events carry handles, and posts that answer them are made with those
	SettleAfter  time.Duration // how long after an attempt of unknown outcome a look (Finder) that finds nothing can be believed
}

// A Finder can tell whether a post was made: by the key it carries.
type Finder interface {
	// Find returns the provider's id of the message that p became since then,
	// "" if there is none. Every failure is a *SendError.
	Find(ctx context.Context, p chat.Post, since time.Time) (ref string, err error)
}

// A Fetcher gets the files that events declare.
type Fetcher interface {
	// Fetch reads a file of an event of the account, at most so many bytes; name
	// and media type are the provider's, as far as it has told them. It asks no
	// host but the provider's. Every failure is a *SendError, Rejected if trying
	// again cannot help; it never waits or tries again.
	Fetch(ctx context.Context, account string, f chat.File, most int64) (chat.Attachment, error)
}

// A Roster knows what people are, from verified ids, decided now.
type Roster interface {
	// Role returns the author's role in the account. Any error means the
	// caller must treat the author as an outsider.
	Role(ctx context.Context, account string, a chat.Author) (chat.Role, error)
}
