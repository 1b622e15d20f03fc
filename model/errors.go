package model

import (
	"fmt"
	"time"
)

// A Fault classes a failed call by what to do about it.
type Fault string

// The faults.
const (
	Transient Fault = "transient"    // network, 5xx, overloaded: again, with back-off
	Limited   Fault = "rate limited" // 429: again, not before RetryAfter
	Truncated Fault = "truncated"    // the stream ended without its terminator: again
	Stalled   Fault = "stalled"      // no content for too long: again
	Garbled   Fault = "garbled"      // the answer breaks the wire format: again, once
	Overflow  Fault = "overflow"     // the context is too long: shorten it
	Denied    Fault = "denied"       // key, permission or unpaid bill: an operator must act
	Missing   Fault = "missing"      // no such model: an operator must act
	Invalid   Fault = "invalid"      // the request is refused as it is
	Canceled  Fault = "canceled"     // by our context
)

// Retry says whether the same request may succeed later.
func (f Fault) Retry() bool {
	switch f {
	case Transient, Limited, Truncated, Stalled, Garbled:
		return true
	}
	return false
}

// Elsewhere says whether another model may answer what this one could not.
func (f Fault) Elsewhere() bool { return f.Retry() || f == Denied || f == Missing }

// An Error is the only error of Stream. Its text never holds a key, the
// provider's body or anybody's words.
type Error struct {
	Provider   string
	Model      string
	Fault      Fault
	Status     int           // HTTP status, 0 if there was none
	RetryAfter time.Duration // 0 if the provider did not say
	Code       string        // the provider's own code: "context_length_exceeded"
	Partial    bool          // deltas were handed out before it failed
	Body       string        // what the provider said, at most 64 KiB; for the record, never for the log or a thread
	Err        error         // cause, may be nil; not part of the text
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s/%s: %s", e.Provider, e.Model, e.Fault)
	if e.Status != 0 {
		s += fmt.Sprintf(" (status %d)", e.Status)
	}
	if e.Code != "" {
		s += " " + e.Code
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
