// Package github is the GitHub adapter: it verifies and reads webhooks of an App
// or of repositories, answers in issues, pull requests, review threads and
// discussions, and tells what people may do in a repository.
package github

import (
	"context"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/config"
)

// Name is the channel's name in paths, thread keys and settings.
const Name = "github"

const defaultAPIURL = "https://api.github.com/"

// Options configure New. WebhookSecrets is required, and either AppID with
// PrivateKey or Token.
type Options struct {
	WebhookSecrets []string         // GITHUB_WEBHOOK_SECRET; any of them verifies, so that it can be changed
	AppID          string           // GITHUB_APP_ID
	PrivateKey     string           // GITHUB_APP_PRIVATE_KEY, in PEM
	Token          string           // GITHUB_TOKEN
	APIURL         string           // GITHUB_API_URL, "" for github.com
	WriteEvery     time.Duration    // GITHUB_WRITE_EVERY: time between two writes of one installation
	Access         Access           // who holds which role
	Client         *http.Client     // nil for one with timeouts; it must not follow redirects
	Clock          func() time.Time // nil for time.Now
}

// A Channel is GitHub behind one App or one token. Its methods may be called at once.
type Channel struct {
	secrets [][]byte
	appID   int64 // 0 with a token
	key     *rsa.PrivateKey
	token   string
	api     *url.URL // ends with a slash
	graph   string   // address of GraphQL
	http    *http.Client
	every   time.Duration
	sweep   time.Duration // between two looks for deliveries that failed
	access  Access
	now     func() time.Time
	self    atomic.Pointer[identity]
	memory  channels.Memory // nil without one
	moves   atomic.Pointer[moves]
	moving  sync.Mutex // held while moves are replaced

	mu       sync.Mutex
	repos    map[string]repo         // by id; guarded by mu
	installs map[int64]*installation // by id, 0 with a token; guarded by mu
	marks    map[string]channels.Progress
}

// An identity is who we are: what people write to mention us, and the user that
// our comments are by.
type identity struct {
	Slug string `json:"slug"` // of the App, or the login of the token's user
	User int64  `json:"user"` // id, 0 if GitHub did not tell
}

var (
	_ channels.Webhook    = (*Channel)(nil)
	_ channels.Sender     = (*Channel)(nil)
	_ channels.Finder     = (*Channel)(nil)
	_ channels.Roster     = (*Channel)(nil)
	_ channels.Marker     = (*Channel)(nil)
	_ channels.Historian  = (*Channel)(nil)
	_ channels.Rememberer = (*Channel)(nil)
	_ channels.Signer     = (*Channel)(nil)
	_ channels.Socket     = (*Channel)(nil)
	_ channels.Linker     = (*Channel)(nil)
)

// New checks the options and does no I/O. Its error names the setting that is
// wrong and never shows a secret.
func New(o Options) (*Channel, error) {
	c := &Channel{
		token: o.Token, http: o.Client, every: o.WriteEvery, sweep: sweepEvery, access: o.Access, now: o.Clock,
		repos: map[string]repo{}, installs: map[int64]*installation{}, marks: map[string]channels.Progress{},
	}
	c.moves.Store(&moves{})
	if len(o.WebhookSecrets) == 0 {
		return nil, fmt.Errorf("GITHUB_WEBHOOK_SECRET is empty: want the webhook's secret")
	}
	for i, s := range o.WebhookSecrets {
		if s != strings.TrimSpace(s) || config.Placeholder(s) {
			return nil, fmt.Errorf("GITHUB_WEBHOOK_SECRET: entry %d is empty or a placeholder: want the webhook's secret", i+1)
		}
		c.secrets = append(c.secrets, []byte(s))
	}
	if err := c.credentials(o); err != nil {
		return nil, err
	}
	var err error
	if c.api, c.graph, err = endpoint(o.APIURL); err != nil {
		return nil, err
	}
	if err := o.Access.validate(); err != nil {
		return nil, err
	}
	if o.WriteEvery < 0 || o.WriteEvery > time.Minute {
		return nil, fmt.Errorf("GITHUB_WRITE_EVERY: %s: want a time from 0s to 1m", o.WriteEvery)
	}
	if c.http == nil {
		c.http = channels.NewClient()
	}
	if c.now == nil {
		c.now = time.Now
	}
	return c, nil
}

// credentials takes either an App or a token.
func (c *Channel) credentials(o Options) error {
	switch {
	case o.Token != "" && (o.AppID != "" || o.PrivateKey != ""):
		return fmt.Errorf("GITHUB_TOKEN and GITHUB_APP_ID: want one of them: an App needs no token")
	case o.Token != "":
		if config.Placeholder(o.Token) || strings.ContainsAny(o.Token, " \t\r\n") {
			return fmt.Errorf("GITHUB_TOKEN is a placeholder or holds blanks: want a token")
		}
		return nil
	}
	id, err := strconv.ParseInt(o.AppID, 10, 64)
	if err != nil || id <= 0 {
		return fmt.Errorf("GITHUB_APP_ID: want the App's ID, which is a number and not the client ID (or GITHUB_TOKEN in place of an App)")
	}
	c.appID = id
	c.key, err = parseKey(o.PrivateKey)
	return err
}

// Name is "github".
func (c *Channel) Name() string { return Name }

// endpoint returns the addresses of REST, ending with a slash, and of GraphQL. A
// server of one's own has them below /api, unless a path is given.
func endpoint(s string) (*url.URL, string, error) {
	if s == "" {
		s = defaultAPIURL
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, "", fmt.Errorf("GITHUB_API_URL: want an http or https address such as %s or https://host/api/v3", defaultAPIURL)
	}
	u.Path = strings.TrimSuffix(u.Path, "/") + "/"
	if u.Path == "/" && !strings.HasPrefix(u.Host, "api.") {
		u.Path = "/api/v3/"
	}
	g := *u
	if base, own := strings.CutSuffix(u.Path, "/api/v3/"); own {
		g.Path = base + "/api/graphql"
	} else {
		g.Path += "graphql"
	}
	return u, g.String(), nil
}

const identityName = "identity"

// Remember keeps who we are, so that mentions are understood after a start
// without GitHub, and where issues went.
func (c *Channel) Remember(values, _ channels.Memory) { c.memory = values }

// Identify asks GitHub who the App or the token is. Its error is a
// *channels.SendError; Rejected means that the credentials (or the API URL) are
// no good, anything else is trouble on the way and worth another try. Then what
// an earlier start was told is used.
func (c *Channel) Identify(ctx context.Context) error {
	if err := c.recall(ctx); err != nil {
		return &channels.SendError{Verdict: channels.Unknown, Reason: "memory not read", Err: err}
	}
	before := c.self.Load()
	if before == nil { // now, because asking may take all the time there is
		before = c.remembered(ctx)
	}
	id, err := c.ask(ctx)
	if err == nil {
		if id.User == 0 && before != nil && before.Slug == id.Slug {
			id.User = before.User // this time it was not said
		}
		c.self.Store(&id)
		if b, jerr := json.Marshal(id); jerr == nil && c.memory != nil {
			_ = c.memory.Save(ctx, identityName, b) // only the next start would need it
		}
		return nil
	}
	var se *channels.SendError
	if before != nil && !(errors.As(err, &se) && se.Verdict == channels.Rejected) {
		c.self.Store(before)
	}
	return err
}

// remembered is who we were at an earlier start, nil if that is not known.
func (c *Channel) remembered(ctx context.Context) *identity {
	if c.memory == nil {
		return nil
	}
	var id identity
	if b, err := c.memory.Load(ctx, identityName); err != nil || json.Unmarshal(b, &id) != nil || id.Slug == "" {
		return nil
	}
	return &id
}

// ask does what Identify promises.
func (c *Channel) ask(ctx context.Context) (identity, error) {
	var who struct {
		ID    int64  `json:"id"`
		Slug  string `json:"slug"`
		Login string `json:"login"`
	}
	if c.appID == 0 {
		cl, err := c.client(ctx, 0)
		if err != nil {
			return identity{}, err
		}
		if err := get(ctx, cl, "user", &who); err != nil {
			return identity{}, err
		}
		if who.ID == 0 || who.Login == "" {
			return identity{}, &channels.SendError{Verdict: channels.Unknown, Reason: "answer without identity"}
		}
		return identity{Slug: who.Login, User: who.ID}, nil
	}
	app, err := c.appClient()
	if err != nil {
		return identity{}, err
	}
	if err := get(ctx, app, "app", &who); err != nil {
		return identity{}, err
	}
	if who.Slug == "" {
		return identity{}, &channels.SendError{Verdict: channels.Unknown, Reason: "answer without identity"}
	}
	id := identity{Slug: who.Slug}
	who.ID = 0
	// Whether it is told depends on the server; comments of ours are known by
	// the App that made them as well.
	if err := get(ctx, c.anonymous(), "users/"+url.PathEscape(id.Slug+"[bot]"), &who); err == nil {
		id.User = who.ID
	}
	return id, nil
}

func (c *Channel) identity() identity {
	if p := c.self.Load(); p != nil {
		return *p
	}
	return identity{}
}
