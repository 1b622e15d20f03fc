package chat

import (
	"fmt"
	"net/url"
	"strings"
)

// MaxKeyBytes bounds a thread key, so that every store can index it.
const MaxKeyBytes = 512

// ToConversation is the channel of posts that are for another conversation, and
// for no provider. No thread of a conversation is in it.
const ToConversation = "conversation"

// A Thread is the place a conversation happens. It is comparable; only its
// channel interprets the parts.
type Thread struct {
	Channel string `json:"channel"`        // provider, lower case: "slack". Never empty
	Account string `json:"account"`        // workspace, guild, repository or Stripe account. Never empty
	Room    string `json:"room,omitempty"` // channel or direct message, "" where the provider has none
	Root    string `json:"root,omitempty"` // what the thread hangs on, "" for the whole room
}

// Key is the canonical text of the thread, such as "slack/T01/C02/1721.0001".
// Parts are path-escaped, so two threads never share a key.
func (t Thread) Key() string {
	return url.PathEscape(t.Channel) + "/" + url.PathEscape(t.Account) + "/" + url.PathEscape(t.Room) + "/" + url.PathEscape(t.Root)
}

// String is Key, for logs.
func (t Thread) String() string { return t.Key() }

// Validate says why the thread cannot be used, or nil.
func (t Thread) Validate() error {
	switch {
	case t.Channel == "":
		return fmt.Errorf("thread has no channel")
	case t.Account == "":
		return fmt.Errorf("thread has no account")
	case len(t.Key()) > MaxKeyBytes:
		return fmt.Errorf("thread key has %d bytes, at most %d are allowed", len(t.Key()), MaxKeyBytes)
	}
	return nil
}

// ParseThread reads a key made by Thread.Key. Missing trailing parts are empty.
func ParseThread(key string) (Thread, error) {
	parts := strings.Split(key, "/")
	if len(parts) < 2 || len(parts) > 4 {
		return Thread{}, fmt.Errorf("thread key %q: want channel/account/room/root", key)
	}
	var out [4]string
	for i, p := range parts {
		s, err := url.PathUnescape(p)
		if err != nil {
			return Thread{}, fmt.Errorf("thread key %q: %w", key, err)
		}
		out[i] = s
	}
	t := Thread{Channel: out[0], Account: out[1], Room: out[2], Root: out[3]}
	return t, t.Validate()
}
