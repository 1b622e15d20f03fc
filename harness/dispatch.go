package harness

import (
	"errors"
	"fmt"
	"strings"

	"github.com/heddlehq/heddle/chat"
)

// MaxHops is how many conversations one after the other may be woken by a
// dispatch of the one before: loops end there.
const MaxHops = 8

// maxDispatch bounds the text of a dispatch, in bytes.
const maxDispatch = 64 << 10

// A Dispatch sends texts to conversations.
type Dispatch struct{}

// UseDispatch lets calls send a text to this conversation or to another one,
// where it is answered by who runs there.
func UseDispatch(c *Context) Dispatch {
	c.use("UseDispatch")
	return Dispatch{}
}

// Send decides that a text is heard in a thread, the zero thread being the call's
// own. It is recorded with the result of the call and heard once, as said by
// this conversation, with the trust that this conversation has now and never
// more. A thread without a conversation gets one with this agent. It fails for
// an impossible thread, a text that is empty or too long, and after MaxHops.
func (Dispatch) Send(call *Call, to chat.Thread, text string) error {
	s := call.scope
	if to == (chat.Thread{}) {
		to = s.snap.Thread
	}
	if err := to.Validate(); err != nil {
		return fmt.Errorf("dispatch: %w", err)
	}
	switch {
	case to.Channel == chat.ToConversation:
		return fmt.Errorf("dispatch: no conversation is in the channel %q; name the thread that one is in", to.Channel)
	case strings.TrimSpace(text) == "":
		return errors.New("dispatch: the text is empty")
	case len(text) > maxDispatch:
		return fmt.Errorf("dispatch: the text has %d bytes, at most %d are sent", len(text), maxDispatch)
	case s.snap.Hops >= MaxHops:
		return fmt.Errorf("dispatch: %d conversations have woken each other already", MaxHops)
	}
	trust := s.snap.Trust
	for _, v := range call.Voices() {
		trust = min(trust, v.Role)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, Message{Call: call.ID, To: to, Text: text, Trust: trust, Hops: s.snap.Hops + 1})
	return nil
}

// A Message is one text for a conversation.
type Message struct {
	Call  string // id of the call that sent it
	To    chat.Thread
	Text  string
	Trust chat.Role // with which it is heard
	Hops  int       // how many dispatches led to it, this one included
}

// Sent returns the texts for conversations decided so far, in order.
func (s *Scope) Sent() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Message(nil), s.sent...)
}
