package slack

import (
	"context"
	"sync/atomic"

	"github.com/slack-go/slack"

	"github.com/heddlehq/heddle/channels"
)

// An installation is a workspace where the app is, with the token that it has there.
type installation struct {
	token string
	api   *slack.Client
	who   atomic.Pointer[identity]
}

// An identity is who we are in a workspace.
type identity struct{ team, user, bot string }

func (c *Channel) open(token string) *installation {
	return &installation{token: token, api: slack.New(token, slack.OptionHTTPClient(c.http), slack.OptionAPIURL(c.apiURL))}
}

func (w *installation) self() identity {
	if p := w.who.Load(); p != nil {
		return *p
	}
	return identity{}
}

// identify asks Slack who the token belongs to.
func (w *installation) identify(ctx context.Context) error {
	r, err := w.api.AuthTestContext(ctx)
	if err != nil {
		return classify(err)
	}
	if r.UserID == "" || r.TeamID == "" {
		return &channels.SendError{Verdict: channels.Unknown, Reason: "answer without identity"}
	}
	w.who.Store(&identity{team: r.TeamID, user: r.UserID, bot: r.BotID})
	return nil
}

// at is the workspace of an account. Its error is a *channels.SendError.
func (c *Channel) at(_ context.Context, _ string) (*installation, error) { return c.home, nil }

// Identify asks Slack who the token belongs to, so that own messages are known
// even where a delivery does not say so. Its error is a *channels.SendError;
// Rejected means that the token (or the API URL) is no good, anything else is
// trouble on the way and worth another try.
func (c *Channel) Identify(ctx context.Context) error {
	if err := c.recall(ctx); err != nil {
		return &channels.SendError{Verdict: channels.Unknown, Reason: "what was kept is not read", Err: err}
	}
	return c.home.identify(ctx)
}

// identity is who we are in the workspace of an account, as far as it is known.
func (c *Channel) identity(string) identity { return c.home.self() }

// teams are the accounts of the workspaces that the app is in.
func (c *Channel) teams() []string { return []string{c.home.self().team} }
