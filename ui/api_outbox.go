package ui

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

// A postView is a post that is not sent.
type postView struct {
	Conversation state.ID        `json:"conversation"`
	Key          string          `json:"key"`
	Thread       chat.Thread     `json:"thread"`
	State        state.PostState `json:"state"` // "pending", "sending", "unknown" or "dead"
	Reason       string          `json:"reason,omitempty"`
	Attempts     int             `json:"attempts"`
	QueuedAt     time.Time       `json:"queued_at"`
	SettledAt    time.Time       `json:"settled_at,omitzero"`
	Text         string          `json:"text"`
}

// outbox lists the posts that are not sent.
func (a *API) outbox(w http.ResponseWriter, r *http.Request) error {
	q := query{values: r.URL.Query()}
	limit := int(q.number("limit", usualPage, 1, mostPage))
	if err := q.done(); err != nil {
		return err
	}
	all, err := a.Store.Unsent(r.Context(), limit)
	if err != nil {
		return err
	}
	out := struct {
		Posts []postView `json:"posts"`
	}{Posts: []postView{}}
	for _, p := range all {
		out.Posts = append(out.Posts, postView{
			p.Conversation, p.Post.Key, p.Post.Thread, p.State, p.Reason, p.Attempts, p.QueuedAt, p.SettledAt, p.Post.Text,
		})
	}
	return reply(w, http.StatusOK, out)
}

// revise answers a request about one post of a conversation. Repeating one that
// was done is answered like a post that is not there.
func (a *API) revise(do func(ctx context.Context, id state.ID, key string) error) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		var b struct {
			Key string `json:"key"`
		}
		if err := read(w, r, &b); err != nil {
			return err
		}
		if b.Key == "" {
			return fail(badRequest, "key names the post")
		}
		switch err := do(r.Context(), state.ID(r.PathValue("conversation")), b.Key); {
		case errors.Is(err, state.ErrNotFound):
			return fail(noSuchPost, "there is no such post in a state that allows it")
		case err != nil:
			return err
		}
		return reply(w, http.StatusOK, struct{}{})
	}
}
