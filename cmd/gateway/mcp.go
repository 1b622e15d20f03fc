package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/heddlehq/heddle/config"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/mcp"
	"github.com/heddlehq/heddle/state"
	"github.com/heddlehq/heddle/vault"
)

// remotes are the MCP servers of the settings.
type remotes struct {
	settings map[string]mcp.Settings
	path     string // of the lock file
	lock     mcp.Lock
	keys     []string     // of the vault
	opened   *mcp.Servers // nil until open
}

// remotesOf checks the servers of the settings and reads the lock file.
func remotesOf(s *config.Settings, settings map[string]mcp.Settings) *remotes {
	r := &remotes{settings: settings, path: beside(s, mcp.LockName)}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if err := settings[name].Check(name); err != nil {
			for line := range strings.Lines(err.Error()) {
				s.Refuse("mcp."+name, strings.TrimSpace(strings.TrimPrefix(line, fmt.Sprintf("mcp server %q: ", name))), "a server as docs/mcp.md has it")
			}
		}
	}
	var err error
	if r.lock, err = mcp.ReadLock(r.path); err != nil {
		s.Refuse("mcp", err.Error(), "a lock file as gateway mcp lock writes it")
	}
	return r
}

// ready refuses the servers that nobody has agreed to, and those that people
// log in at without a key for the tokens.
func (r *remotes) ready(s *config.Settings) {
	r.keys = needKeys(s, r.settings)
	for _, name := range slices.Sorted(maps.Keys(r.settings)) {
		if _, ok := r.lock[name]; !ok && !r.settings[name].NewTools {
			s.Refuse("mcp."+name, "a server that is not in "+r.path, "a server whose tools somebody looked at: gateway mcp lock "+name)
		}
	}
}

// find is the hook that mounts a server. It mounts nothing before open.
func (r *remotes) find(s *config.Settings, at, name string) func(*harness.Context) {
	if _, ok := r.settings[name]; !ok {
		s.Refuse(at, fmt.Sprintf("%q", name), "one of the servers in mcp: "+strings.Join(slices.Sorted(maps.Keys(r.settings)), ", "))
	}
	return func(c *harness.Context) {
		if r.opened == nil {
			return
		}
		if server, ok := r.opened.Server(name); ok {
			mcp.Use(c, server)
		}
	}
}

// open connects to the servers. They stay connected until close. Without a
// store those that people log in at are left out.
func (r *remotes) open(ctx context.Context, st state.Values, logger *slog.Logger) error {
	if len(r.settings) == 0 {
		return nil
	}
	settings := maps.Clone(r.settings)
	var t mcp.TokenStore
	if st == nil {
		maps.DeleteFunc(settings, func(_ string, one mcp.Settings) bool { return one.OAuth != nil })
	} else {
		var err error
		if t, err = openTokens(st, r.keys); err != nil {
			return err
		}
		if err := renewSecrets(ctx, st, r.keys, logger); err != nil {
			return err
		}
	}
	opened, err := mcp.Open(ctx, mcp.Options{Servers: settings, Lock: r.lock, Version: versionText(), Log: logger, Tokens: t})
	switch {
	case errors.Is(err, mcp.ErrLogin):
		return fmt.Errorf("%w: %w: gateway mcp login NAME", errSettings, err)
	case errors.Is(err, vault.ErrSealed):
		return fmt.Errorf("%w: %w: set the key in %s, or log in anew: gateway mcp login NAME", errSettings, err, varSecretKey.Name)
	case err != nil:
		return fmt.Errorf("%w: %w", errAway, err)
	}
	r.opened = opened
	for _, st := range opened.Status() {
		if len(st.Missing) > 0 {
			logger.Warn("mcp tools not there", "server", st.Name, "tools", st.Missing)
		}
	}
	return nil
}

func (r *remotes) close() {
	if r.opened != nil {
		r.opened.Close()
	}
}

// place says where a server is, without what may be secret.
func place(s mcp.Settings) string {
	if s.Command != "" {
		return "program " + filepath.Base(s.Command)
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		return "a wrong url"
	}
	return u.Scheme + "://" + u.Host + u.EscapedPath()
}

type mcpCmd struct {
	List   mcpListCmd   `cmd:"" help:"Connect to the MCP servers and list what they offer and what is mounted of it."`
	Lock   mcpLockCmd   `cmd:"" help:"Pin the tools of MCP servers as they are now. Read what it prints."`
	Login  mcpLoginCmd  `cmd:"" help:"Log in at an MCP server and keep its tokens in the store."`
	Logout mcpLogoutCmd `cmd:"" help:"Throw the tokens of an MCP server away."`
}

// remotesFor reads the servers for a command, which needs no other setting; only
// the named ones, or all.
func remotesFor(s *config.Settings, names []string) (*remotes, error) {
	f := readFile(s)
	r := remotesOf(s, f.mcp)
	for _, name := range names {
		if _, ok := r.settings[name]; !ok {
			s.Refuse("mcp", fmt.Sprintf("no server %q", name), "one of "+strings.Join(slices.Sorted(maps.Keys(r.settings)), ", "))
		}
	}
	if err := s.Err(); err != nil {
		return nil, err
	}
	r.settings = maps.Clone(r.settings)
	maps.DeleteFunc(r.settings, func(name string, _ mcp.Settings) bool { return len(names) > 0 && !slices.Contains(names, name) })
	return r, nil
}

// look connects as far as that is possible. With anew nothing counts as pinned.
func (r *remotes) look(ctx context.Context, s *config.Settings, anew bool) (servers *mcp.Servers, end func(), err error) {
	t, store, err := tokensFor(ctx, s, r.settings)
	if err != nil {
		return nil, nil, err
	}
	o := mcp.Options{Servers: map[string]mcp.Settings{}, Lock: r.lock, Version: versionText(), Tokens: t}
	if anew {
		o.Lock = nil
	}
	for name, one := range r.settings {
		one.Optional = true
		one.NewTools = one.NewTools || anew
		o.Servers[name] = one
	}
	if servers, err = mcp.Open(ctx, o); err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	return servers, func() {
		servers.Close()
		_ = store.Close() // what was saved is committed
	}, nil
}

type mcpListCmd struct {
	Names []string `arg:"" optional:"" help:"Servers to look at; all if none is named."`
}

// Run lists the servers.
func (c mcpListCmd) Run(ctx context.Context, e env, s *config.Settings) error {
	r, err := remotesFor(s, c.Names)
	if err != nil {
		return err
	}
	servers, end, err := r.look(ctx, s, false)
	if err != nil {
		return err
	}
	defer end()
	if len(r.settings) == 0 {
		fmt.Fprintln(e.stderr, "the settings name no MCP servers")
	}
	for _, st := range servers.Status() {
		how := "connected, " + st.Protocol + ", " + printable(st.Server)
		if !st.Connected {
			how = "not connected: " + printable(st.Err)
		}
		fmt.Fprintf(e.stdout, "%s  %s  %s\n", st.Name, place(r.settings[st.Name]), how)
		server, _ := servers.Server(st.Name)
		for _, t := range server.Tools() {
			fmt.Fprintf(e.stdout, "    mounted      %s\n", t.Mounted)
		}
		for _, q := range st.Quarantined {
			fmt.Fprintf(e.stdout, "    quarantined  %s: %s\n", printable(q.Tool), printable(q.Reason))
		}
		for _, name := range st.Missing {
			fmt.Fprintf(e.stdout, "    not there    %s\n", name)
		}
		if st.Stderr != "" && !st.Connected {
			fmt.Fprintf(e.stdout, "    it said: %s\n", indent(printable(st.Stderr)))
		}
	}
	return nil
}

type mcpLockCmd struct {
	Names []string `arg:"" optional:"" help:"Servers to pin; all if none is named."`
}

// Run writes the lock and says what changes by it. A server that cannot be
// reached keeps its pins.
func (c mcpLockCmd) Run(ctx context.Context, e env, s *config.Settings) error {
	r, err := remotesFor(s, c.Names)
	if err != nil {
		return err
	}
	servers, end, err := r.look(ctx, s, true)
	if err != nil {
		return err
	}
	defer end()
	lock := maps.Clone(r.lock)
	if len(c.Names) == 0 {
		maps.DeleteFunc(lock, func(name string, _ mcp.Pins) bool { _, ok := r.settings[name]; return !ok })
	}
	now := servers.Lock()
	var away []error
	for _, st := range servers.Status() {
		if !st.Connected {
			away = append(away, fmt.Errorf("mcp server %q is not pinned anew: %s", st.Name, st.Err))
			continue
		}
		server, _ := servers.Server(st.Name)
		fmt.Fprintf(e.stdout, "%s  %s  %s\n", st.Name, place(r.settings[st.Name]), printable(st.Server))
		changes(e, lock[st.Name], now[st.Name], server.Tools())
		for _, q := range st.Quarantined {
			fmt.Fprintf(e.stdout, "    cannot be mounted  %s: %s\n", printable(q.Tool), printable(q.Reason))
		}
		lock[st.Name] = now[st.Name]
	}
	if err := lock.Write(r.path); err != nil {
		return err
	}
	fmt.Fprintf(e.stdout, "%s pinned in %s\n", count(len(lock), "server", "servers"), r.path)
	return errors.Join(away...)
}

// changes prints what a new pin changes, with the descriptions to be read.
func changes(e env, was, now mcp.Pins, tools []mcp.Tool) {
	docs := map[string]string{}
	for _, t := range tools {
		docs[t.Name] = t.Doc
	}
	for _, name := range slices.Sorted(maps.Keys(now.Tools)) {
		what := "changed"
		switch was.Tools[name] {
		case now.Tools[name]:
			continue
		case "":
			what = "new    "
		}
		fmt.Fprintf(e.stdout, "    %s  %s: %s\n", what, printable(name), indent(printable(docs[name])))
	}
	for _, name := range slices.Sorted(maps.Keys(was.Tools)) {
		if now.Tools[name] == "" {
			fmt.Fprintf(e.stdout, "    gone     %s\n", printable(name))
		}
	}
}
