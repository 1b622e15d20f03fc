package channels

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/heddlehq/heddle/chat"
)

// This file holds what only some channels can do. dispatch asks for each by
// type assertion.

// ErrFatal is wrapped by what Listen fails with when another try cannot help:
// the token is refused, an intent is not granted.
var ErrFatal = errors.New("the provider refuses the connection")

// Take admits what one delivery said. All of it is on disk when it returns nil;
// otherwise none of it may be acknowledged.
type Take func(ctx context.Context, in Inbound) error

// A Socket holds connections of its own by which events come.
type Socket interface {
	Channel
	// Listen connects and hands on what comes until ctx ends or it cannot go
	// on; it acknowledges a frame only after take returned nil. It may keep
	// several connections, and everything it started has ended when it returns.
	// dispatch calls it again, with back-off, unless the error wraps ErrFatal.
	// It returns nil if ctx ended, or at once if the settings ask for no socket.
	Listen(ctx context.Context, take Take) error
}

// Memory keeps small values of one channel over restarts.
type Memory interface {
	Load(ctx context.Context, name string) ([]byte, error)     // nil if there is none
	Save(ctx context.Context, name string, value []byte) error // nil deletes
}

// A Rememberer keeps things over restarts.
type Rememberer interface {
	// Remember is called once, before anything else. What is a secret goes into
	// secrets, which is nil when the gateway has no key to encrypt it with.
	Remember(values, secrets Memory)
}

// Pages are plain pages for people's browsers, such as those of an installation.
type Pages interface {
	// Pages returns what answers GET, by path suffix below "/<channel name>/".
	Pages() map[string]http.HandlerFunc
}

// A Historian can tell what happened while nobody listened.
type Historian interface {
	// Missed hands on what happened after a time, oldest first, in bounded
	// number: what would have been delivered then, with the same ids (ID or
	// Same), so that what was delivered is admitted once. In threads that are
	// followed it looks for what was said there. Its error says that it did not
	// see all; what it handed on stays.
	Missed(ctx context.Context, since time.Time, followed []chat.Thread, take Take) error
}

// Progress is how far the answer to an event is.
type Progress uint8

// The states of an answer, as shown at the event.
const (
	Cleared  Progress = iota // no mark: nothing is under way
	Working                  // it was noticed and is being answered
	Answered                 // the answer is there
	Failed                   // there will be none
)

// A Marker shows how far an answer is: by a reaction at the event, by "is
// typing", or however the provider's people expect it.
type Marker interface {
	// Mark replaces what was shown before; repeating is harmless. While Working
	// it is called again every few seconds. ref is the event's Ref, "" if it has
	// none. Every failure is a *SendError, and none of them matters much.
	Mark(ctx context.Context, t chat.Thread, ref string, p Progress) error
}

// A Whisperer can tell one person something that the room does not see.
type Whisperer interface {
	// Whisper tells the author of an event. Every failure is a *SendError.
	Whisper(ctx context.Context, e chat.Event, text string) error
}

// An Opener knows in which thread people answer to a post that opened one.
type Opener interface {
	// Opened returns the thread of answers to p, which was made as ref.
	Opened(p chat.Post, ref string) chat.Thread
}

// A Linker knows the links that people have of what was said.
type Linker interface {
	// Linked returns what events about the message that a link leads to have as
	// Same, "" if it is no such link of the provider. It may ask the provider who
	// we are.
	Linked(ctx context.Context, link *url.URL) (same string, err error)
}

// A Signer can sign as its provider does, because they share a secret.
type Signer interface {
	// Sign returns the headers that make a body a delivery to a route now.
	Sign(route string, body []byte, now time.Time) http.Header
}
