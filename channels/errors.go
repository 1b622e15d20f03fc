package channels

import (
	"errors"
	"fmt"
	"time"
)

// What Webhook.Receive fails with. The texts are for the log, never for the answer.
var (
	ErrUnverified = errors.New("request is not verified")
	ErrStale      = errors.New("request is outside the time window")
	ErrMalformed  = errors.New("request is malformed")
)

// A Verdict says what a failed send means for the post.
type Verdict uint8

// The verdicts. Unknown is the zero value: when in doubt, look before repeating.
const (
	Unknown  Verdict = iota // may have been made: look (Finder) before trying again
	NotMade                 // certainly not made and worth another try
	Limited                 // certainly not made; not before RetryAfter, and the room's other posts wait as well
	Rejected                // not made as asked and never will be: dead letter
)

func (v Verdict) String() string {
	return [...]string{"unknown", "not made", "limited", "rejected"}[v]
}

// A SendError is the only error of Send, Find and Fetch. Its text holds neither
// secrets nor people's words.
type SendError struct {
	Verdict    Verdict
	RetryAfter time.Duration // with Limited
	Reason     string        // the provider's error code or a constant: "channel_not_found", "timeout"
	Err        error         // cause, may be nil; not part of the text
}

func (e *SendError) Error() string { return fmt.Sprintf("%s: %s", e.Verdict, e.Reason) }

// Unwrap returns the cause.
func (e *SendError) Unwrap() error { return e.Err }
