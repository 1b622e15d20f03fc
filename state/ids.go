package state

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"
	"time"

	"github.com/heddlehq/heddle/chat"
)

// An ID names a conversation. It follows from the agent and the thread, so
// every replica computes the same one.
type ID string

var base32Lower = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

func derive(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return base32Lower.EncodeToString(sum[:16])
}

// ConversationID derives the id of the conversation that an agent has in a thread.
func ConversationID(agent string, t chat.Thread) ID {
	return ID("c" + derive("conversation", agent, t.Key()))
}

// TurnID derives the id of the turn that begins with an inbox entry, so that a
// retried turn has the same id.
func TurnID(c ID, firstTaken int64) string {
	return "t" + derive("turn", string(c), fmt.Sprint(firstTaken))
}

// PostKey names the n-th post of a step. Step numbers come from the log, never
// from a loop counter, so every attempt computes the same key.
func PostKey(turn string, step, n int) string {
	return fmt.Sprintf("%s/%d/%d", turn, step, n)
}

// HeldUntil is when a turn may begin for an event that is held since now, the
// first of whose author was held at a time.
func HeldUntil(now, first time.Time, hold time.Duration) time.Time {
	until, most := now.Add(hold), first.Add(5*hold)
	if most.Before(until) {
		return most
	}
	return until
}
