package dispatch

import (
	"context"
	"encoding/json"
	"time"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

// conversations is the sender of what one conversation decided that another one
// hears: its posts hold what is to be admitted. A repeat is admitted once, so
// there is nothing to look for.
type conversations struct{ inbox state.Inbox }

func (conversations) Name() string { return chat.ToConversation }

func (conversations) Limits() channels.Limits { return channels.Limits{} }

// Compose leaves the text as it is.
func (conversations) Compose(markdown string, _ chat.Role) []string { return []string{markdown} }

// Send admits the event of a post.
func (c conversations) Send(ctx context.Context, p chat.Post) (string, error) {
	var in state.Admit
	if err := json.Unmarshal([]byte(p.Text), &in); err != nil {
		return "", &channels.SendError{Verdict: channels.Rejected, Reason: "malformed", Err: err}
	}
	if err := in.Validate(); err != nil {
		return "", &channels.SendError{Verdict: channels.Rejected, Reason: "cannot be stored", Err: err}
	}
	out, err := c.inbox.Admit(ctx, []state.Admit{in})
	if err != nil {
		return "", &channels.SendError{Verdict: channels.NotMade, Reason: "not admitted", Err: err} // or it was, and is again
	}
	return string(out[0].Conversation), nil
}

// Find says that the post was not made: making it again is harmless.
func (conversations) Find(context.Context, chat.Post, time.Time) (string, error) { return "", nil }
