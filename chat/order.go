package chat

import (
	"strings"
	"unicode"
)

// Words that are orders when they are all that a message says.
const (
	OrderStop     = "stop"     // end what is under way or, if there is nothing, leave the thread
	OrderCancel   = "cancel"   // end what is under way
	OrderUnfollow = "unfollow" // leave the thread
)

// Bare is a text without case, and without blanks and punctuation around it.
func Bare(text string) string {
	return strings.ToLower(strings.TrimFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsPunct(r) }))
}

// IsOrder says whether a text is nothing but an order.
func IsOrder(text string) bool {
	switch Bare(text) {
	case OrderStop, OrderCancel, OrderUnfollow:
		return true
	}
	return false
}
