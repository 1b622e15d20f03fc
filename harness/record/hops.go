package record

import (
	"strconv"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
)

// The facts of an event that another conversation has sent: the trust which that
// had then, and how many dispatches led to it.
const (
	FactTrust = "trust"
	FactHops  = "hops"
)

// Hops is how many dispatches led to an event.
func Hops(e chat.Event) int {
	if e.Author.Account != chat.ConversationAccount {
		return 0
	}
	n, err := strconv.Atoi(e.Facts[FactHops])
	if err != nil {
		return harness.MaxHops // not ours: it leads no further
	}
	return n
}
