package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// A Grant is what the redirect after a log-in brings: its query parameters
// code, state and iss.
type Grant struct{ Code, State, Issuer string }

// A login is the OAuth side of one server: authorization code with PKCE and
// resource indicator, done by the SDK. Its tokens are kept in the store.
type login struct {
	s *Server

	mu       sync.Mutex
	flow     *auth.AuthorizationCodeHandler // made when first needed; guarded by mu
	resource string                         // the token is for it; guarded by mu
}

// kept is what the store holds of a server.
type kept struct {
	URL      string // of the server: a token is for no other
	Resource string
	Client   string
	Secret   string
	TokenURL string
	Style    oauth2.AuthStyle
	Scopes   []string
	Token    *oauth2.Token
}

func newLogin(s *Server) auth.OAuthHandler { return &login{s: s} }

// TokenSource gives the source of tokens, nil before the first log-in.
func (l *login) TokenSource(ctx context.Context) (oauth2.TokenSource, error) {
	flow, err := l.handler(ctx)
	if err != nil {
		return nil, err
	}
	return flow.TokenSource(ctx)
}

// Authorize lets somebody log in, if there is somebody.
func (l *login) Authorize(ctx context.Context, req *http.Request, resp *http.Response) error {
	if l.s.o.Authorize == nil {
		defer resp.Body.Close()
		if resp.StatusCode == http.StatusForbidden && !strings.Contains(strings.Join(resp.Header.Values("WWW-Authenticate"), " "), "insufficient_scope") {
			return nil // no log-in would change that
		}
		return ErrLogin
	}
	flow, err := l.handler(ctx)
	if err != nil {
		return errors.Join(err, resp.Body.Close())
	}
	return flow.Authorize(ctx, req, resp)
}

// handler makes the flow of the SDK, with the token from the store.
func (l *login) handler(ctx context.Context) (*auth.AuthorizationCodeHandler, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.flow != nil {
		return l.flow, nil
	}
	o := l.s.settings.OAuth
	redirect := cmp.Or(o.Redirect, "http://127.0.0.1/") // without one nobody logs in here, tokens are only renewed
	c := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL: redirect, AuthorizationCodeFetcher: l.ask, RequestRefreshToken: true,
		Client: l.client(), NewTokenSource: l.keep,
	}
	switch {
	case strings.HasPrefix(o.Client, "https://"):
		c.ClientIDMetadataDocumentConfig = &auth.ClientIDMetadataDocumentConfig{URL: o.Client}
	case o.Client != "":
		c.PreregisteredClient = &oauthex.ClientCredentials{ClientID: o.Client, Issuer: o.Issuer}
		if o.Secret != "" {
			c.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: o.Secret}
		}
	}
	if c.PreregisteredClient == nil { // where the server knows no metadata documents
		c.DynamicClientRegistrationConfig = &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			RedirectURIs: []string{redirect}, ClientName: clientName, GrantTypes: []string{"authorization_code", "refresh_token"},
		}}
	}
	var err error
	if c.InitialTokenSource, err = l.load(ctx); err != nil {
		return nil, err
	}
	l.flow, err = auth.NewAuthorizationCodeHandler(c)
	return l.flow, err
}

// ask sends somebody to the authorization server.
func (l *login) ask(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	u, err := url.Parse(args.URL)
	if err != nil || u.Scheme != "https" && (u.Scheme != "http" || !l.s.settings.OAuth.Private) {
		return nil, errors.New("its authorization server has no https page for a log-in")
	}
	l.mu.Lock()
	l.resource = u.Query().Get("resource")
	l.mu.Unlock()
	g, err := l.s.o.Authorize(ctx, l.s.name, args.URL)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLogin, err)
	}
	return &auth.AuthorizationResult{Code: g.Code, State: g.State, Iss: g.Issuer}, nil
}

// load makes the source of tokens from what the store has, nil if it has none.
func (l *login) load(ctx context.Context) (oauth2.TokenSource, error) {
	b, err := l.s.o.Tokens.Load(ctx, l.s.name)
	if err != nil || b == nil {
		return nil, err
	}
	var k kept
	if err := json.Unmarshal(b, &k); err != nil || k.Token == nil {
		return nil, errors.New("what the store holds is not a token")
	}
	if k.URL != l.s.settings.URL {
		return nil, nil // the settings changed: this token is not for that server
	}
	l.resource = k.Resource
	c := &oauth2.Config{ClientID: k.Client, ClientSecret: k.Secret, Scopes: k.Scopes, Endpoint: oauth2.Endpoint{TokenURL: k.TokenURL, AuthStyle: k.Style}}
	refresh := context.WithValue(context.WithoutCancel(ctx), oauth2.HTTPClient, l.client()) // used as long as the source is
	return &saving{l: l, kept: k, src: c.TokenSource(refresh, k.Token)}, nil
}

// keep makes the source of tokens after a log-in, and stores the first.
func (l *login) keep(ctx context.Context, c *oauth2.Config, t *oauth2.Token) (oauth2.TokenSource, error) {
	l.mu.Lock()
	k := kept{
		URL: l.s.settings.URL, Resource: l.resource, Client: c.ClientID, Secret: c.ClientSecret,
		TokenURL: c.Endpoint.TokenURL, Style: c.Endpoint.AuthStyle, Scopes: c.Scopes,
	}
	l.mu.Unlock()
	return &saving{l: l, kept: k, src: c.TokenSource(ctx, t)}, nil
}

// A saving source stores every new token.
type saving struct {
	l    *login
	src  oauth2.TokenSource
	mu   sync.Mutex
	kept kept // guarded by mu
}

// Token gives a valid token. One that cannot be stored is used nevertheless.
func (s *saving) Token() (*oauth2.Token, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.src.Token()
	if err != nil || s.kept.Token != nil && s.kept.Token.AccessToken == t.AccessToken {
		return t, err
	}
	s.kept.Token = t
	b, err := json.Marshal(s.kept)
	if err == nil {
		err = s.l.s.o.Tokens.Save(context.Background(), s.l.s.name, b) // nobody's request: the token is for all
	}
	if err != nil {
		s.l.s.log.Error("mcp token not stored", "err", err)
	}
	return t, nil
}

// client makes requests to authorization servers. Their addresses come from the
// MCP server, so none may lead into a private network or over plain http, but
// for the MCP server's own host.
func (l *login) client() *http.Client {
	u, err := url.Parse(l.s.settings.URL)
	if err != nil {
		u = &url.URL{} // unreachable: checked before
	}
	plain := &net.Dialer{Timeout: l.s.o.Connect}
	guarded := &net.Dialer{Timeout: l.s.o.Connect, Control: func(_, address string, _ syscall.RawConn) error { return public(address) }}
	own := net.JoinHostPort(u.Hostname(), portOf(u))
	t := &http.Transport{TLSHandshakeTimeout: l.s.o.Connect, DisableKeepAlives: true, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		if l.s.settings.OAuth.Private || address == own {
			return plain.DialContext(ctx, network, address)
		}
		return guarded.DialContext(ctx, network, address)
	}}
	return &http.Client{Transport: &careful{l, t, u.Host}, CheckRedirect: sameOrigin, Timeout: l.s.o.Connect}
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "http":
		return "80"
	}
	return "443"
}

var errPrivate = errors.New("an address of its authorization server is in a private network")

// public says whether an address is one of the open internet.
func public(address string) error {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	ip := a.Addr().Unmap()
	if !ip.IsGlobalUnicast() || ip.IsPrivate() || sharedSpace.Contains(ip) || nat64.Contains(ip) {
		return errPrivate
	}
	return nil
}

var (
	sharedSpace = netip.MustParsePrefix("100.64.0.0/10")
	nat64       = netip.MustParsePrefix("64:ff9b::/96") // leads to any IPv4 address
)

// careful bounds the answers of authorization servers and tells them what a
// token is renewed for.
type careful struct {
	l    *login
	next http.RoundTripper
	own  string // host of the MCP server
}

// RoundTrip makes one request.
func (c *careful) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "https" && req.URL.Host != c.own && !c.l.s.settings.OAuth.Private {
		return nil, errors.New("an address of its authorization server is not https")
	}
	if req.Method == http.MethodPost && req.Body != nil && req.Header.Get("Content-Type") == "application/x-www-form-urlencoded" {
		var err error
		if req, err = c.indicate(req); err != nil {
			return nil, err
		}
	}
	resp, err := c.next.RoundTrip(req)
	if err == nil {
		resp.Body = &body{ReadCloser: resp.Body, left: 1 << 20, end: func() {}}
	}
	return resp, err
}

// indicate adds the resource to a request that renews a token.
func (c *careful) indicate(req *http.Request) (*http.Request, error) {
	b, err := io.ReadAll(req.Body)
	if err = errors.Join(err, req.Body.Close()); err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(b))
	if err == nil && form.Get("grant_type") == "refresh_token" && !form.Has("resource") {
		c.l.mu.Lock()
		form.Set("resource", c.l.resource)
		c.l.mu.Unlock()
		b = []byte(form.Encode())
	}
	req = req.Clone(req.Context())
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
	req.GetBody = nil
	return req, nil
}
