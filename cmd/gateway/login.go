package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/heddlehq/heddle/config"
	"github.com/heddlehq/heddle/mcp"
)

type mcpLoginCmd struct {
	Name  string        `arg:"" help:"The server."`
	Paste bool          `help:"Read the address at which the browser ended, for a browser on another machine."`
	Wait  time.Duration `default:"5m" help:"How long to wait for somebody to log in."`
}

// Validate checks the flags.
func (c mcpLoginCmd) Validate() error {
	if c.Wait <= 0 {
		return fmt.Errorf("--wait: found %v; want a time such as 5m", c.Wait)
	}
	return nil
}

// Run lets somebody log in at a server and keeps the tokens, encrypted, in the
// store.
func (c mcpLoginCmd) Run(ctx context.Context, e env, s *config.Settings) (err error) {
	r, err := remotesFor(s, []string{c.Name})
	if err != nil {
		return err
	}
	one := r.settings[c.Name]
	if one.OAuth == nil {
		s.Refuse("mcp."+c.Name, "a server without oauth", "oauth: {} for a server that people log in at")
		return s.Err()
	}
	t, store, err := tokensFor(ctx, s, r.settings)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	back, err := c.redirect(one.OAuth.Redirect)
	if err != nil {
		return err
	}
	defer back.close()
	with := *one.OAuth
	with.Redirect = back.url
	one.OAuth, one.Optional = &with, false
	kept := &fresh{TokenStore: t}
	servers, err := mcp.Open(ctx, mcp.Options{
		Servers: map[string]mcp.Settings{c.Name: one}, Lock: r.lock, Version: versionText(), Tokens: kept, Connect: c.Wait,
		Authorize: func(ctx context.Context, _, page string) (mcp.Grant, error) { return back.wait(ctx, e, page) },
	})
	if err != nil {
		return err
	}
	servers.Close()
	switch {
	case kept.err != nil:
		return kept.err
	case !kept.saved:
		_, err = fmt.Fprintf(e.stdout, "%s wanted no log-in\n", c.Name)
	default:
		_, err = fmt.Fprintf(e.stdout, "logged in at %s; its tokens are in the store, encrypted\n", c.Name)
	}
	return err
}

// fresh is a store of tokens in which there are none yet. It notes how saving
// went, which nobody else would tell of.
type fresh struct {
	mcp.TokenStore
	mu    sync.Mutex
	saved bool
	err   error
}

func (*fresh) Load(context.Context, string) ([]byte, error) { return nil, nil }

func (f *fresh) Save(ctx context.Context, server string, secret []byte) error {
	err := f.TokenStore.Save(ctx, server, secret)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.saved, f.err = true, err
	return err
}

// A redirect is where the authorization server sends the browser back to.
type redirect struct {
	url  string
	srv  *http.Server // nil if the address is pasted
	wg   sync.WaitGroup
	came chan url.Values // what the browser brought

	mu    sync.Mutex
	state string // of the log-in that is under way
	err   error  // of the first one that failed: nobody is asked again
}

// redirect begins to wait for the browser. want is the address that the settings
// have, "" for any.
func (c mcpLoginCmd) redirect(want string) (*redirect, error) {
	if c.Paste {
		return &redirect{url: cmp.Or(want, "http://127.0.0.1/callback")}, nil
	}
	at := "127.0.0.1:0"
	if want != "" {
		u, err := url.Parse(want)
		if err != nil || u.Scheme != "http" || u.Port() == "" || !net.ParseIP(u.Hostname()).IsLoopback() && u.Hostname() != "localhost" {
			return nil, errors.New("the redirect of the settings is not at http://127.0.0.1:PORT, so nothing can wait there: use --paste")
		}
		at = u.Host
	}
	ln, err := net.Listen("tcp", at)
	if err != nil {
		return nil, err
	}
	b := &redirect{url: cmp.Or(want, "http://"+ln.Addr().String()+"/callback"), came: make(chan url.Values, 1)}
	b.srv = &http.Server{ReadTimeout: 10 * time.Second, Handler: b}
	b.wg.Go(func() { _ = b.srv.Serve(ln) }) // ends with close
	return b, nil
}

// ServeHTTP takes what the browser brings, if it belongs to the log-in.
func (b *redirect) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	b.mu.Lock()
	ours := b.state != "" && q.Get("state") == b.state
	b.mu.Unlock()
	if !ours {
		http.Error(w, "This is not the page of a log-in that is under way.", http.StatusBadRequest)
		return
	}
	select {
	case b.came <- q:
	default: // a reload
	}
	fmt.Fprintln(w, "Heddle has what it needs. You may close this page.")
}

// close lets the browser have its answer and stops waiting for it.
func (b *redirect) close() {
	if b.srv == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = b.srv.Shutdown(ctx)
	_ = b.srv.Close()
	b.wg.Wait()
}

// wait waits for the browser to come back from a page.
func (b *redirect) wait(ctx context.Context, e env, page string) (g mcp.Grant, err error) {
	p, err := url.Parse(page)
	if err != nil {
		return g, err
	}
	b.mu.Lock()
	b.state = p.Query().Get("state")
	failed := b.err
	b.mu.Unlock()
	if failed != nil {
		return g, failed
	}
	fmt.Fprintf(e.stdout, "Open this page and log in:\n\n    %s\n\n", page)
	var q url.Values
	if b.srv == nil {
		q, err = pasted(e)
	} else {
		select {
		case q = <-b.came:
		case <-ctx.Done():
			err = errors.New("nobody logged in in time")
		}
	}
	if err == nil {
		g, err = granted(q, p.Query().Get("state"))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
	return g, err
}

// pasted reads the address that somebody pastes.
func pasted(e env) (url.Values, error) {
	fmt.Fprintln(e.stdout, "The browser ends at a page that it may not be able to show. Paste its address here:")
	line, err := bufio.NewReader(e.stdin).ReadString('\n')
	if err != nil && line == "" {
		return nil, errors.New("no address was pasted")
	}
	u, err := url.Parse(strings.TrimSpace(line))
	if err != nil {
		return nil, errors.New("what was pasted is not an address")
	}
	return u.Query(), nil
}

// granted reads what the authorization server sent along.
func granted(q url.Values, state string) (mcp.Grant, error) {
	switch {
	case q.Get("state") != state:
		return mcp.Grant{}, errors.New("the address is not that of this log-in")
	case q.Get("error") != "":
		return mcp.Grant{}, fmt.Errorf("the authorization server answered %s", printable(q.Get("error")))
	case q.Get("code") == "":
		return mcp.Grant{}, errors.New("the address has no code")
	}
	return mcp.Grant{Code: q.Get("code"), State: q.Get("state"), Issuer: q.Get("iss")}, nil
}

type mcpLogoutCmd struct {
	Name string `arg:"" help:"The server, which may be gone from the settings."`
}

// Run throws the tokens of a server away, also those that no key decrypts.
func (c mcpLogoutCmd) Run(ctx context.Context, e env, s *config.Settings) (err error) {
	f := readFile(s)
	if one, ok := f.mcp[c.Name]; ok && one.OAuth == nil {
		s.Refuse("mcp."+c.Name, "a server without oauth", "a server that people log in at")
	}
	t, store, err := tokensFor(ctx, s, map[string]mcp.Settings{c.Name: {OAuth: &mcp.OAuth{}}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if b, err := t.Load(ctx, c.Name); b == nil && err == nil {
		return fmt.Errorf("there are no tokens of %s", printable(c.Name))
	}
	if err := t.Save(ctx, c.Name, nil); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.stdout, "the tokens of %s are gone\n", c.Name)
	return err
}
