package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/testscript"
)

// A guarded server is an MCP server that wants tokens, and the authorization
// server that gives them to whoever opens its page, on one host.
type guarded struct {
	*httptest.Server
	mcp http.Handler

	mu        sync.Mutex
	redirect  string // of the client that registered last
	challenge string // of the last log-in
	denies    bool   // the next log-in
	tokens    int    // made
}

func newGuarded() *guarded {
	s := mcpServer("guarded")
	g := &guarded{mcp: sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{Stateless: true})}
	g.Server = httptest.NewServer(g)
	return g
}

func (g *guarded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	valid := fmt.Sprintf("Bearer access-hush-%d", g.tokens)
	g.mu.Unlock()
	if r.URL.Path == "/mcp" {
		if r.Header.Get("Authorization") != valid {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+g.URL+`/.well-known/oauth-protected-resource/mcp"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		g.mcp.ServeHTTP(w, r)
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/.well-known/oauth-protected-resource/mcp":
		fmt.Fprintf(w, `{"resource":%q,"authorization_servers":[%q]}`, g.URL+"/mcp", g.URL)
	case "/.well-known/oauth-authorization-server":
		fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":%q,"token_endpoint":%q,"registration_endpoint":%q,
			"response_types_supported":["code"],"code_challenge_methods_supported":["S256"],"scopes_supported":["offline_access"]}`,
			g.URL, g.URL+"/authorize", g.URL+"/token", g.URL+"/register")
	case "/register":
		var in struct {
			URIs []string `json:"redirect_uris"`
		}
		if json.NewDecoder(r.Body).Decode(&in) != nil || len(in.URIs) != 1 {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		g.redirect = in.URIs[0]
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"client_id":"registered","redirect_uris":[%q],"token_endpoint_auth_method":"none"}`, g.redirect)
	case "/authorize":
		g.authorize(w, r)
	case "/token":
		g.token(w, r)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// authorize sends the browser back.
func (g *guarded) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	g.challenge = q.Get("code_challenge")
	back := url.Values{"state": {q.Get("state")}, "code": {"code-hush"}}
	if g.denies {
		g.denies = false
		back = url.Values{"state": {q.Get("state")}, "error": {"access_denied"}}
	}
	if q.Get("redirect_uri") != g.redirect || q.Get("resource") != g.URL+"/mcp" || q.Get("code_challenge_method") != "S256" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	http.Redirect(w, r, g.redirect+"?"+back.Encode(), http.StatusFound)
}

// token checks the code and its verifier, or renews.
func (g *guarded) token(w http.ResponseWriter, r *http.Request) {
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	code := r.FormValue("code") == "code-hush" && base64.RawURLEncoding.EncodeToString(sum[:]) == g.challenge
	renews := r.FormValue("refresh_token") == fmt.Sprintf("refresh-hush-%d", g.tokens)
	if r.FormValue("resource") != g.URL+"/mcp" || !code && !renews {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":"invalid_grant"}`)
		return
	}
	g.tokens++
	fmt.Fprintf(w, `{"access_token":"access-hush-%d","refresh_token":"refresh-hush-%d","token_type":"Bearer","expires_in":1}`, g.tokens, g.tokens)
}

var loginPage = regexp.MustCompile(`http://\S+/authorize\?\S+`)

// login CODE here|paste|deny|wrong ARG ...: runs "gateway ARG ..." and is the
// person at the browser that it needs: who logs in, who pastes the address,
// who refuses, who is sent to the redirect by somebody else first.
func cmdLogin(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 3, "login CODE here|paste|deny|wrong ARG ...")
	w, ctx := in(ts)
	path, err := exec.LookPath("gateway")
	ts.Check(err)
	cmd := exec.CommandContext(ctx, path, args[2:]...)
	cmd.Dir, cmd.Env = ts.Getenv("WORK"), w.environ(ts)
	stdin, err := cmd.StdinPipe()
	ts.Check(err)
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	var said, complained strings.Builder // the second is written to until Wait returns
	cmd.Stderr = &complained
	ts.Check(cmd.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		fmt.Fprintln(&said, lines.Text())
		if page := loginPage.FindString(lines.Text()); page != "" {
			w.browse(ts, page, args[1], stdin)
		}
	}
	_ = cmd.Wait() // the exit code says how it went
	said.WriteString(complained.String())
	if code := cmd.ProcessState.ExitCode(); strconv.Itoa(code) != args[0] || strings.Contains(said.String(), "hush") {
		ts.Fatalf("exit code %d, want %s: %s", code, args[0], said.String())
	}
	ts.Logf("%s", said.String())
}

// browse opens a page and goes where it leads.
func (w *world) browse(ts *testscript.TestScript, page, how string, stdin io.Writer) {
	w.guarded.mu.Lock()
	w.guarded.denies = how == "deny"
	redirect := w.guarded.redirect
	w.guarded.mu.Unlock()
	c := &http.Client{}
	if how == "paste" {
		c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	if how == "wrong" {
		res, err := c.Get(redirect + "?code=stolen&state=guessed")
		ts.Check(err)
		_ = res.Body.Close()
		if res.StatusCode != http.StatusBadRequest {
			ts.Fatalf("somebody else's redirect: %s", res.Status)
		}
	}
	res, err := c.Get(page)
	ts.Check(err)
	_ = res.Body.Close()
	if how == "paste" {
		fmt.Fprintln(stdin, res.Header.Get("Location"))
	} else if res.StatusCode != http.StatusOK {
		ts.Fatalf("the browser sees %s", res.Status)
	}
}
