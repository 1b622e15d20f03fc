package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/heddlehq/heddle/config"
	"github.com/heddlehq/heddle/mcp"
	"github.com/heddlehq/heddle/state"
	"github.com/heddlehq/heddle/vault"
)

// varSecretKey is the key of the vault.
var varSecretKey = config.Var{
	Name: "HEDDLE_SECRET_KEY", Secret: true,
	Doc: "Key that encrypts the secrets in the store, such as tokens of MCP servers: 32 bytes in base64, as gateway secrets key prints. Several, separated by commas, while rotating: the first encrypts.",
}

type secretsCmd struct {
	Key secretsKeyCmd `cmd:"" help:"Print a new key for HEDDLE_SECRET_KEY."`
}

type secretsKeyCmd struct{}

// Run prints a key.
func (secretsKeyCmd) Run(e env) error {
	_, err := fmt.Fprintln(e.stdout, vault.NewKey())
	return err
}

// secretKeys reads the keys; they are refused if they are none.
func secretKeys(s *config.Settings) []string {
	if s.Get(varSecretKey) == "" {
		return nil
	}
	keys := s.NeedList(varSecretKey)
	if _, err := vault.New(nil, keys...); err != nil {
		s.Refuse(varSecretKey.Name, fmt.Sprintf("%d keys, of which one is none", len(keys)), "32 bytes in base64 each, as gateway secrets key prints")
	}
	return keys
}

// loggedIn are the servers that people log in at.
func loggedIn(servers map[string]mcp.Settings) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		if servers[name].OAuth != nil {
			names = append(names, name)
		}
	}
	return names
}

// needKeys reads the keys and refuses to do without if a server needs one.
func needKeys(s *config.Settings, servers map[string]mcp.Settings) []string {
	keys := secretKeys(s)
	if names := loggedIn(servers); len(names) > 0 && len(keys) == 0 {
		s.Refuse(varSecretKey.Name, "nothing", "a key, because people log in at "+strings.Join(names, ", ")+"; one is made by: gateway secrets key")
	}
	return keys
}

// tokens are the tokens of servers in a vault.
type tokens struct{ vault *vault.Vault }

func (t tokens) Load(ctx context.Context, server string) ([]byte, error) {
	return t.vault.Load(ctx, "mcp/"+server)
}

func (t tokens) Save(ctx context.Context, server string, secret []byte) error {
	return t.vault.Save(ctx, "mcp/"+server, secret)
}

// openTokens opens the vault in a store, nil without a key.
func openTokens(st state.Values, keys []string) (mcp.TokenStore, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	v, err := vault.New(st, keys...)
	if err != nil {
		return nil, err
	}
	return tokens{v}, nil
}

// renewSecrets encrypts all with the first of several keys. What no key decrypts
// is warned of: a server that needs it says so itself.
func renewSecrets(ctx context.Context, st state.Values, keys []string, logger *slog.Logger) error {
	if len(keys) < 2 {
		return nil
	}
	v, err := vault.New(st, keys...)
	if err != nil {
		return err
	}
	n, err := v.Renew(ctx)
	switch {
	case errors.Is(err, vault.ErrSealed):
		logger.Warn("secrets not encrypted with the first key", "err", err)
	case err != nil:
		return err
	}
	logger.Info("secrets encrypted with the first key", "secrets", n)
	return nil
}

// tokensFor opens the store and the tokens in it for a command, if one of the
// servers needs them. The closer must be closed.
func tokensFor(ctx context.Context, s *config.Settings, servers map[string]mcp.Settings) (mcp.TokenStore, io.Closer, error) {
	keys := needKeys(s, servers)
	if len(loggedIn(servers)) == 0 {
		return nil, io.NopCloser(nil), s.Err()
	}
	if strings.HasPrefix(s.Get(varState), "mem:") {
		s.Refuse(varState.Name, `"mem:"`, "a store that outlives the command, for the tokens")
	}
	if err := s.Err(); err != nil {
		return nil, nil, err
	}
	st, err := openStore(ctx, s, false)
	if errors.Is(err, state.ErrLocked) {
		return nil, nil, fmt.Errorf("the tokens are in the store: stop the gateway first: %w", err)
	}
	if err != nil {
		return nil, nil, err
	}
	t, err := openTokens(st, keys)
	if err != nil {
		return nil, nil, errors.Join(err, st.Close())
	}
	return t, st, nil
}
