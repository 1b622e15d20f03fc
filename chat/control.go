package chat

import "fmt"

// A Policy says what becomes of a message that comes in while a turn is open.
type Policy string

// The policies. The zero value leaves the choice to who asks.
const (
	Join    Policy = "join"    // the turn takes it at its next step
	Queue   Policy = "queue"   // it gets a turn of its own, after this one
	Steer   Policy = "steer"   // it joins, and tools that may be interrupted are
	Replace Policy = "replace" // the turn is aborted, the message begins the next one
	Drop    Policy = "drop"    // it is not taken, and its author told
)

// UnmarshalText reads a policy's name, or nothing, and refuses any other text.
func (p *Policy) UnmarshalText(b []byte) error {
	switch v := Policy(b); v {
	case "", Join, Queue, Steer, Replace, Drop:
		*p = v
		return nil
	}
	return fmt.Errorf("policy %q: want join, queue, steer, replace or drop", b)
}

// What an operator may ask: the topics of Control events.
const (
	Abort     = "abort"  // of the turn that Text names, or of all that is under way and waits
	Pause     = "pause"  // people take over: what they say is heard and not answered
	Resume    = "resume" // the end of Pause and Step
	Step      = "step"   // one step, then wait for the next such event
	SetPolicy = "policy" // Text is the Policy of the conversation, "" for its route's
)

// Leave is what a person orders with OrderUnfollow: the conversation's threads
// are not followed until the next mention.
const Leave = "leave"
