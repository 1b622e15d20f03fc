package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/slack-go/slack"

	"github.com/heddlehq/heddle/channels"
)

// An installation is a workspace, or an organisation of workspaces, where the app
// is, with the token that it has there.
type installation struct {
	token string
	api   *slack.Client
	who   atomic.Pointer[identity]
	kept  *keptInstallation // nil for the one of the bot token
}

// An identity is who we are in a workspace.
type identity struct{ team, user, bot string }

// keptInstallation is what is kept of one that people have made.
type keptInstallation struct {
	Account string        `json:"account"` // the workspace, or the organisation for all in it
	Org     bool          `json:"org"`
	App     string        `json:"app"`
	User    string        `json:"user"` // who we are
	Bot     string        `json:"bot"`
	Token   string        `json:"token"`
	Refresh string        `json:"refresh,omitempty"` // good for one use; "" if the token is good for ever
	Life    time.Duration `json:"life,omitempty"`
	Until   time.Time     `json:"until,omitzero"`
	At      time.Time     `json:"at"` // when it was made
}

// stale says whether the token ends soon: a fifth of its life before.
func (k *keptInstallation) stale(now time.Time) bool {
	return k.Refresh != "" && now.After(k.Until.Add(-k.Life/5))
}

const (
	installsName  = "installations" // list of accounts, among the values
	installPrefix = "installation/" // one each, among the secrets
	mostInstalls  = 10_000
)

func (c *Channel) open(token string) *installation {
	return &installation{token: token, api: slack.New(token, slack.OptionHTTPClient(c.http), slack.OptionAPIURL(c.apiURL))}
}

// opened is an installation that was kept.
func (c *Channel) opened(k keptInstallation) *installation {
	i := c.open(k.Token)
	i.kept = &k
	i.who.Store(&identity{team: k.Account, user: k.User, bot: k.Bot})
	return i
}

func (i *installation) self() identity {
	if p := i.who.Load(); p != nil {
		return *p
	}
	return identity{}
}

// identify asks Slack who the token belongs to.
func (i *installation) identify(ctx context.Context) error {
	r, err := i.api.AuthTestContext(ctx)
	if err != nil {
		return classify(err)
	}
	if r.UserID == "" || r.TeamID == "" {
		return &channels.SendError{Verdict: channels.Unknown, Reason: "answer without identity"}
	}
	i.who.Store(&identity{team: r.TeamID, user: r.UserID, bot: r.BotID})
	return nil
}

// Identify asks Slack who the bot token belongs to, so that own messages are known
// even where a delivery does not say so, and reads which workspaces have installed
// the app. Its error is a *channels.SendError; Rejected means that the token (or
// the API URL) is no good, anything else is trouble on the way and worth another try.
func (c *Channel) Identify(ctx context.Context) error {
	if err := c.recall(ctx); err != nil {
		return &channels.SendError{Verdict: channels.Unknown, Reason: "what was kept is not read", Err: err}
	}
	if c.home == nil {
		return nil
	}
	return c.home.identify(ctx)
}

// recallInstallations reads the installations that were kept.
func (c *Channel) recallInstallations(ctx context.Context) error {
	if c.clientID == "" || c.values == nil || c.secrets == nil {
		return nil
	}
	accounts, err := c.accounts(ctx)
	if err != nil {
		return err
	}
	all := map[string]*installation{}
	for _, a := range accounts {
		data, err := c.secrets.Load(ctx, installPrefix+a)
		if err != nil {
			return fmt.Errorf("installation %s: %w", a, err)
		}
		var k keptInstallation
		if data == nil || json.Unmarshal(data, &k) != nil {
			continue // it was being made or removed when the process ended
		}
		all[a] = c.opened(k)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.installs = all
	return nil
}

func (c *Channel) accounts(ctx context.Context) (out []string, err error) {
	data, err := c.values.Load(ctx, installsName)
	if err != nil || data == nil {
		return nil, err
	}
	return out, json.Unmarshal(data, &out)
}

// keep keeps an installation, durably before it is used.
func (c *Channel) keep(ctx context.Context, k keptInstallation) (*installation, error) {
	data, err := json.Marshal(k)
	if err != nil {
		return nil, err // unreachable: it holds texts and times
	}
	if err := c.secrets.Save(ctx, installPrefix+k.Account, data); err != nil {
		return nil, fmt.Errorf("keep installation %s: %w", k.Account, err)
	}
	if err := c.list(ctx, k.Account, true); err != nil {
		return nil, err
	}
	i := c.opened(k)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.installs[k.Account] = i
	return i, nil
}

// drop forgets an installation; one that is not there is forgotten already.
func (c *Channel) drop(ctx context.Context, account string) error {
	c.mu.Lock()
	delete(c.installs, account) // first, so that nothing is posted any more
	c.mu.Unlock()
	if err := c.secrets.Save(ctx, installPrefix+account, nil); err != nil {
		return fmt.Errorf("forget installation %s: %w", account, err)
	}
	return c.list(ctx, account, false)
}

// list puts an account into the list of those that are kept, or takes it out. It
// must be called by the holder of installing.
func (c *Channel) list(ctx context.Context, account string, there bool) error {
	accounts, err := c.accounts(ctx)
	if err != nil || slices.Contains(accounts, account) == there {
		return err
	}
	if there {
		accounts = append(accounts, account)
	} else {
		accounts = slices.DeleteFunc(accounts, func(a string) bool { return a == account })
	}
	if len(accounts) > mostInstalls {
		return errors.New("too many workspaces have installed the app")
	}
	data, err := json.Marshal(accounts)
	if err != nil {
		return err // unreachable: they are strings
	}
	return c.values.Save(ctx, installsName, data)
}

// installed is the installation of an account, by its workspace or its
// organisation, nil if there is none.
func (c *Channel) installed(account string) *installation {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := c.installs[account]; i != nil {
		return i
	}
	if org := c.orgs[account]; org != "" {
		return c.installs[org]
	}
	// After a start no event has said yet which organisation a workspace is in.
	var only *installation
	for _, i := range c.installs {
		if i.kept.Org {
			if only != nil {
				return nil
			}
			only = i
		}
	}
	return only
}

// belongs notes which organisation a workspace is in.
func (c *Channel) belongs(team, org string) {
	if c.clientID == "" || team == "" || org == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.orgs) >= roomsMost {
		clear(c.orgs)
	}
	c.orgs[team] = org
}

// known says whether somebody has installed the app in an account.
func (c *Channel) known(account string) bool { return c.clientID == "" || c.lookUp(account) != nil }

// lookUp is the installation of an account, that of the bot token included.
func (c *Channel) lookUp(account string) *installation {
	if i := c.installed(account); i != nil {
		return i
	}
	if c.home != nil && (c.clientID == "" || account == "" || c.home.self().team == "" || c.home.self().team == account) {
		return c.home
	}
	return nil
}

// at is the installation of an account, with a token that is good. Its error is
// a *channels.SendError.
func (c *Channel) at(ctx context.Context, account string) (*installation, error) {
	i := c.lookUp(account)
	switch {
	case i == nil:
		return nil, &channels.SendError{Verdict: channels.Rejected, Reason: "the app is not installed there"}
	case i.kept == nil || !i.kept.stale(c.now()):
		return i, nil
	}
	return c.renew(ctx, i.kept.Account)
}

// renew gets an installation a new token. While the old one is still good, that
// is used when Slack cannot be asked.
func (c *Channel) renew(ctx context.Context, account string) (*installation, error) {
	select {
	case c.installing <- struct{}{}:
		defer func() { <-c.installing }()
	case <-ctx.Done():
		return nil, &channels.SendError{Verdict: channels.NotMade, Reason: "cancelled", Err: ctx.Err()}
	}
	c.mu.Lock()
	i := c.installs[account]
	c.mu.Unlock()
	switch {
	case i == nil:
		return nil, &channels.SendError{Verdict: channels.Rejected, Reason: "the app is not installed there"}
	case !i.kept.stale(c.now()):
		return i, nil // somebody else has done it
	}
	r, err := slack.RefreshOAuthV2TokenContext(ctx, c.http, c.clientID, c.clientSecret, i.kept.Refresh, slack.OAuthOptionAPIURL(c.apiURL))
	if err == nil && (r.AccessToken == "" || r.RefreshToken == "") {
		err = errors.New("answer without tokens")
	}
	if err == nil {
		k := *i.kept
		k.Token, k.Refresh, k.Life = r.AccessToken, r.RefreshToken, time.Duration(r.ExpiresIn)*time.Second
		k.Until = c.now().Add(k.Life)
		// The refresh token is used up: what came for it must be kept, whoever gives up.
		sctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTime)
		defer cancel()
		if i, err := c.keep(sctx, k); err == nil {
			return i, nil
		}
		// Until the next start it is known here only.
		i = c.opened(k)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.installs[account] = i
		return i, nil
	}
	if c.now().Before(i.kept.Until) {
		return i, nil
	}
	se := classify(err)
	if se.Verdict == channels.Unknown {
		se.Verdict = channels.NotMade // nothing was posted
	}
	if se.Verdict == channels.Rejected {
		se.Reason = "the app must be installed again: " + se.Reason
	}
	return nil, se
}

// removed is what becomes of an installation whose workspace has removed the app,
// or the token of its bot. One that was made since stays.
func (c *Channel) removed(ctx context.Context, account string, at time.Time, tokens []string) error {
	select {
	case c.installing <- struct{}{}:
		defer func() { <-c.installing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	c.mu.Lock()
	i := c.installs[account]
	if i == nil {
		i = c.installs[c.orgs[account]]
	}
	c.mu.Unlock()
	if i == nil || at.Before(i.kept.At) || tokens != nil && !slices.Contains(tokens, i.kept.User) {
		return nil
	}
	return c.drop(ctx, i.kept.Account)
}

// identity is who we are in the workspace of an account, as far as it is known.
func (c *Channel) identity(account string) identity {
	if i := c.lookUp(account); i != nil {
		return i.self()
	}
	return identity{}
}

// teams are the accounts of the workspaces that the app is in. Those of an
// organisation are not known.
func (c *Channel) teams() (out []string) {
	if c.home != nil {
		out = append(out, c.home.self().team)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, account := range slices.Sorted(maps.Keys(c.installs)) {
		if !c.installs[account].kept.Org {
			out = append(out, account)
		}
	}
	return out
}
