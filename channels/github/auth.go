package github

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v62/github"

	"github.com/heddlehq/heddle/channels"
)

const (
	jwtFor     = 9 * time.Minute // GitHub takes 10 at most
	jwtEarly   = time.Minute     // for clocks that differ
	tokenEarly = 5 * time.Minute // how long before its end a token is replaced
	suspended  = 10 * time.Minute
	maxAnswer  = 16 << 20 // bytes
)

// parseKey reads the private key of an App, which GitHub gives as PKCS #1.
// Environments that cannot hold lines may have them written as \n.
func parseKey(text string) (*rsa.PrivateKey, error) {
	wrong := fmt.Errorf("GITHUB_APP_PRIVATE_KEY: want an RSA private key in PEM, as GitHub lets you download it")
	if !strings.Contains(text, "\n") {
		text = strings.ReplaceAll(text, `\n`, "\n")
	}
	block, _ := pem.Decode([]byte(strings.TrimSpace(text) + "\n"))
	if block == nil {
		return nil, wrong
	}
	if k, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return k, nil
	}
	if k, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		if k, ok := k.(*rsa.PrivateKey); ok {
			return k, nil
		}
	}
	return nil, wrong
}

// jwt is what the App shows itself with.
func (c *Channel) jwt() (string, error) {
	now := c.now()
	enc := base64.RawURLEncoding
	text := enc.EncodeToString([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." +
		enc.EncodeToString(fmt.Appendf(nil, `{"iat":%d,"exp":%d,"iss":"%d"}`, now.Add(-jwtEarly).Unix(), now.Add(jwtFor).Unix(), c.appID))
	sum := sha256.Sum256([]byte(text))
	sig, err := rsa.SignPKCS1v15(rand.Reader, c.key, crypto.SHA256, sum[:])
	if err != nil {
		return "", fmt.Errorf("sign as the app: %w", err)
	}
	return text + "." + enc.EncodeToString(sig), nil
}

// An edge adds a token to requests for the API, and to no others, and reads no
// more of an answer than maxAnswer.
type edge struct {
	host, token string // no token if it is ""
	next        http.RoundTripper
}

func (e edge) RoundTrip(r *http.Request) (*http.Response, error) {
	if e.token != "" && r.URL.Host == e.host {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+e.token)
	}
	resp, err := e.next.RoundTrip(r)
	if err == nil {
		resp.Body = bounded{io.LimitReader(resp.Body, maxAnswer), resp.Body}
	}
	return resp, err
}

type bounded struct {
	io.Reader
	io.Closer
}

// with returns a client that shows the token, "" for none. Each has a memory of
// limits of its own: one installation must not be stopped by another's.
func (c *Channel) with(token string) *github.Client {
	h := *c.http
	if h.Transport == nil {
		h.Transport = http.DefaultTransport
	}
	h.Transport = edge{c.api.Host, token, h.Transport}
	cl := github.NewClient(&h)
	cl.BaseURL = c.api
	return cl
}

func (c *Channel) anonymous() *github.Client { return c.with("") }

func (c *Channel) appClient() (*github.Client, error) {
	t, err := c.jwt()
	if err != nil {
		return nil, &channels.SendError{Verdict: channels.Rejected, Reason: "private key does not sign", Err: err}
	}
	return c.with(t), nil
}

// An installation is what one account has allowed the App to do, or the one of a token.
type installation struct {
	getting chan struct{} // holds one element while somebody asks for a token
	lane    lane
	client  *github.Client // nil for none; guarded by Channel.mu
	until   time.Time      // when its token is to be replaced; guarded by Channel.mu
}

func (c *Channel) install(id int64) *installation {
	c.mu.Lock()
	defer c.mu.Unlock()
	in := c.installs[id]
	if in == nil {
		in = &installation{getting: make(chan struct{}, 1), lane: lane{every: c.every}}
		if id == 0 {
			in.client, in.until = c.with(c.token), time.Unix(1<<40, 0)
		}
		c.installs[id] = in
	}
	return in
}

// client returns a client of the installation, with a token that lasts. One
// caller at a time asks for a new one.
func (c *Channel) client(ctx context.Context, id int64) (*github.Client, error) {
	in := c.install(id)
	if cl := c.valid(in); cl != nil {
		return cl, nil
	}
	select {
	case in.getting <- struct{}{}:
		defer func() { <-in.getting }()
	case <-ctx.Done():
		return nil, &channels.SendError{Verdict: channels.NotMade, Reason: "no token in time", Err: context.Cause(ctx)}
	}
	if cl := c.valid(in); cl != nil {
		return cl, nil
	}
	app, err := c.appClient()
	if err != nil {
		return nil, err
	}
	t, _, err := app.Apps.CreateInstallationToken(ctx, id, nil)
	if err != nil {
		se := before(err)
		if status := statusOf(err); se.Verdict != channels.Limited && (status == http.StatusUnauthorized || status == http.StatusForbidden) {
			// Suspended, or the key was taken back: people may change that.
			return nil, &channels.SendError{Verdict: channels.Limited, RetryAfter: suspended, Reason: "installation is suspended", Err: err}
		}
		return nil, se
	}
	if t.GetToken() == "" {
		return nil, &channels.SendError{Verdict: channels.NotMade, Reason: "answer without token"}
	}
	cl := c.with(t.GetToken())
	c.mu.Lock()
	defer c.mu.Unlock()
	in.client, in.until = cl, t.GetExpiresAt().Add(-tokenEarly)
	return cl, nil
}

func (c *Channel) valid(in *installation) *github.Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	if in.client == nil || !c.now().Before(in.until) {
		return nil
	}
	return in.client
}

// forget drops a client that GitHub no longer accepts, and what is known of a
// repository, after an answer that may come from its being out of date.
func (c *Channel) forget(id int64, cl *github.Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if in := c.installs[id]; in != nil && in.client == cl && id != 0 {
		in.client = nil
	}
}

// A repo is where a repository is found now.
type repo struct {
	owner, name string
	install     int64
	at          time.Time
}

// repoFor is how long a name is believed: whoever renames a repository may give
// its old name to another.
const (
	repoFor   = time.Minute
	reposMost = 10_000
)

// place finds the repository of an account: its name now, and a client that may
// act there. fresh tells that it was looked up just now. What fails here was
// before any post.
func (c *Channel) place(ctx context.Context, account string) (r repo, cl *github.Client, fresh bool, err error) {
	id, perr := strconv.ParseInt(account, 10, 64)
	if perr != nil || id <= 0 {
		return r, nil, true, &channels.SendError{Verdict: channels.Rejected, Reason: "no repository id"}
	}
	c.mu.Lock()
	r, ok := c.repos[account]
	c.mu.Unlock()
	if ok && c.now().Sub(r.at) < repoFor {
		cl, err = c.client(ctx, r.install)
		return r, cl, false, err
	}
	r = repo{at: c.now()}
	if c.appID != 0 {
		app, err := c.appClient()
		if err != nil {
			return r, nil, true, err
		}
		in, _, err := app.Apps.FindRepositoryInstallationByID(ctx, id)
		if err != nil {
			return r, nil, true, before(err)
		}
		r.install = in.GetID()
	}
	if cl, err = c.client(ctx, r.install); err != nil {
		return r, nil, true, err
	}
	var full struct {
		FullName string `json:"full_name"`
	}
	if err = get(ctx, cl, "repositories/"+account, &full); err != nil {
		if statusOf(err) == http.StatusUnauthorized {
			c.forget(r.install, cl)
		}
		return r, nil, true, before(err)
	}
	if r.owner, r.name, ok = strings.Cut(full.FullName, "/"); !ok {
		return r, nil, true, &channels.SendError{Verdict: channels.NotMade, Reason: "answer without repository name"}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.repos) >= reposMost {
		clear(c.repos)
	}
	c.repos[account] = r
	return r, cl, true, nil
}

// moved drops what is known of where a repository is.
func (c *Channel) moved(account string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.repos, account)
}

// get reads one resource.
func get(ctx context.Context, cl *github.Client, path string, out any) error {
	req, err := cl.NewRequest(http.MethodGet, path, nil)
	if err != nil {
		return &channels.SendError{Verdict: channels.Rejected, Reason: "no such path", Err: err}
	}
	if _, err := cl.Do(ctx, req, out); err != nil {
		return classify(err)
	}
	return nil
}
