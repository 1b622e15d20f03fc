package mcp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A guarded server is an MCP server that wants tokens, and the authorization
// server that gives them, on one host.
type guarded struct {
	t         *testing.T
	url       string
	authority string // of the authorization server, url if it is the same
	mcp       http.Handler

	mu        sync.Mutex
	challenge string // of the last log-in
	valid     string // access token
	refresh   string
	n         int
	expires   int // seconds
	renewed   []string
}

func newGuarded(t *testing.T) *guarded {
	t.Helper()
	d := demo("d")
	g := &guarded{t: t, expires: 3600, mcp: sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return d }, &sdk.StreamableHTTPOptions{Stateless: true})}
	h := httptest.NewServer(g)
	t.Cleanup(func() { h.CloseClientConnections(); h.Close() })
	g.url, g.authority = h.URL, h.URL
	return g
}

func (g *guarded) settings() Settings {
	s := at(g.url + "/mcp")
	s.OAuth = &OAuth{Redirect: "https://gateway.example/oauth/done", Private: true}
	return s
}

func (g *guarded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/mcp" {
		w.Header().Set("Content-Type", "application/json")
	}
	switch r.URL.Path {
	case "/mcp":
		g.mu.Lock()
		ok := g.valid != "" && r.Header.Get("Authorization") == "Bearer "+g.valid
		g.mu.Unlock()
		if !ok {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+g.url+`/.well-known/oauth-protected-resource/mcp"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		g.mcp.ServeHTTP(w, r)
	case "/.well-known/oauth-protected-resource/mcp":
		fmt.Fprintf(w, `{"resource":%q,"authorization_servers":[%q]}`, g.url+"/mcp", g.authority)
	case "/.well-known/oauth-authorization-server":
		fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":%q,"token_endpoint":%q,"registration_endpoint":%q,
			"response_types_supported":["code"],"code_challenge_methods_supported":["S256"],"scopes_supported":["offline_access"]}`,
			g.url, g.url+"/authorize", g.url+"/token", g.url+"/register")
	case "/register":
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{"client_id":"registered","redirect_uris":["https://gateway.example/oauth/done"],"token_endpoint_auth_method":"none"}`)
	case "/token":
		g.token(w, r)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (g *guarded) token(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	refuse := func() {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":"invalid_grant"}`)
	}
	if r.FormValue("resource") != g.url+"/mcp" {
		g.t.Errorf("%s: a token is asked for resource %q", r.FormValue("grant_type"), r.FormValue("resource"))
	}
	switch r.FormValue("grant_type") {
	case "authorization_code":
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		if r.FormValue("code") != "code" || base64.RawURLEncoding.EncodeToString(sum[:]) != g.challenge {
			g.t.Errorf("the code or its verifier is wrong: %v", r.Form)
			refuse()
			return
		}
	case "refresh_token":
		g.renewed = append(g.renewed, r.FormValue("refresh_token"))
		if g.refresh == "" || r.FormValue("refresh_token") != g.refresh {
			refuse()
			return
		}
	}
	g.n++
	g.valid, g.refresh = fmt.Sprintf("access-hush-%d", g.n), fmt.Sprintf("refresh-hush-%d", g.n)
	fmt.Fprintf(w, `{"access_token":%q,"refresh_token":%q,"token_type":"Bearer","expires_in":%d}`, g.valid, g.refresh, g.expires)
}

// logIn is a person who agrees.
func (g *guarded) logIn(_ context.Context, server, page string) (Grant, error) {
	u, err := url.Parse(page)
	if err != nil {
		return Grant{}, err
	}
	q := u.Query()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.challenge = q.Get("code_challenge")
	if server != "demo" || q.Get("code_challenge_method") != "S256" || q.Get("resource") != g.url+"/mcp" || q.Get("scope") != "offline_access" {
		g.t.Errorf("%s is sent to %s", server, page)
	}
	return Grant{Code: "code", State: q.Get("state")}, nil
}

// Somebody logs in once; from then on the token is kept and renewed.
func TestLogIn(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	store := &memory{}
	var log logged
	o := hurry(map[string]Settings{"demo": g.settings()})
	o.Tokens, o.Log = store, log.logger()

	if _, err := Open(t.Context(), o); !errors.Is(err, ErrLogin) {
		t.Errorf("without anybody to log in: %v", err)
	}
	o.Authorize = func(context.Context, string, string) (Grant, error) { return Grant{}, errors.New("nobody there") }
	if _, err := Open(t.Context(), o); !errors.Is(err, ErrLogin) {
		t.Errorf("nobody agreed: %v", err)
	}
	o.Authorize = func(ctx context.Context, server, page string) (Grant, error) {
		grant, err := g.logIn(ctx, server, page)
		grant.State = "forged"
		return grant, err
	}
	if _, err := Open(t.Context(), o); err == nil {
		t.Error("a redirect of somebody else is taken")
	}

	g.expires = 1 // at once: every request needs a new one
	o.Authorize = g.logIn
	first, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	first.Close()
	if kept, err := store.Load(t.Context(), "demo"); err != nil || !bytes.Contains(kept, []byte("access-hush")) {
		t.Errorf("the store holds %q, %v", kept, err)
	}

	o.Authorize = nil
	second := open(t, o)
	s, _ := second.Server("demo")
	if r, err := s.Call(t.Context(), "pid", nil); err != nil || r.Text == "" {
		t.Errorf("after a restart: %v", err)
	}
	g.mu.Lock()
	renewed := len(g.renewed)
	g.refresh = "" // taken back
	g.mu.Unlock()
	if renewed == 0 {
		t.Error("no token was renewed")
	}
	_, err = s.Call(t.Context(), "pid", nil)
	if !errors.Is(err, ErrLogin) || !strings.Contains(err.Error(), "wants a log-in") {
		t.Errorf("after the token was taken back: %v", err)
	}
	if all := log.String() + err.Error() + fmt.Sprint(s.Status()); strings.Contains(all, "hush") || strings.Contains(all, "code_challenge") {
		t.Errorf("a secret is told: %s", all)
	}

	second.Close()
	other := g.settings()
	other.URL += "?other"
	o.Servers = map[string]Settings{"demo": other}
	g.renewed = nil
	if _, err := Open(t.Context(), o); !errors.Is(err, ErrLogin) || len(g.renewed) > 0 {
		t.Errorf("the token of one server is used for another: %v", err)
	}
}

// A server cannot make us ask in a private network, or in clear.
func TestAuthorityInPrivateNetwork(t *testing.T) {
	t.Parallel()
	for _, secure := range []bool{true, false} {
		inside := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("asked for %s", r.URL.Path) }))
		if secure {
			inside.StartTLS()
		} else {
			inside.Start()
		}
		t.Cleanup(inside.Close)
		g := newGuarded(t)
		g.authority = inside.URL
		settings := g.settings()
		settings.OAuth.Private = false
		o := hurry(map[string]Settings{"demo": settings})
		o.Authorize = g.logIn
		_, err := Open(t.Context(), o)
		if err == nil || !strings.Contains(err.Error(), "address of its authorization server") {
			t.Errorf("secure %t: %v", secure, err)
		}
	}
}

func TestPublic(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"93.184.216.34:443": true, "[2606:2800:220:1::1]:443": true,
		"127.0.0.1:443": false, "10.1.2.3:443": false, "192.168.0.1:80": false, "172.16.0.1:443": false, "169.254.169.254:80": false,
		"100.64.1.1:443": false, "0.0.0.0:443": false, "224.0.0.1:443": false, "255.255.255.255:1": false,
		"[::1]:443": false, "[::]:443": false, "[fe80::1]:443": false, "[fd00::1]:443": false, "[::ffff:127.0.0.1]:443": false,
		"[::ffff:10.0.0.1]:443": false, "[64:ff9b::7f00:1]:443": false, "[ff02::1]:443": false, "localhost:443": false,
	} {
		if got := public(address) == nil; got != want {
			t.Errorf("%s: public %t, want %t", address, got, want)
		}
	}
}

// What the store holds and is no token is an error, not a log-in.
func TestStrangeStore(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	m := &memory{}
	b, _ := json.Marshal(map[string]string{"URL": g.url + "/mcp"})
	if err := m.Save(t.Context(), "demo", b); err != nil {
		t.Fatal(err)
	}
	o := hurry(map[string]Settings{"demo": g.settings()})
	o.Tokens = m
	if _, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "not a token") {
		t.Errorf("%v", err)
	}
}
