package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/config"
	"github.com/heddlehq/heddle/dispatch"
	"github.com/heddlehq/heddle/harness/turn"
	"github.com/heddlehq/heddle/state"
	"github.com/heddlehq/heddle/ui"
)

// leastToken is the least length of a token of the API, in bytes.
const leastToken = 16

// adminTokens reads the tokens of the API, none if it is closed.
func adminTokens(s *config.Settings) []string {
	if s.Get(varToken) == "" {
		return nil
	}
	tokens := s.NeedList(varToken)
	for _, t := range tokens {
		if t != "" && len(t) < leastToken {
			s.Refuse(varToken.Name, fmt.Sprintf("a token of %d bytes", len(t)), fmt.Sprintf("at least %d, such as openssl rand -hex 32 prints", leastToken))
		}
	}
	return tokens
}

// api makes the API over a store.
func (p *parts) api(st state.Store, fits func(string, chat.Event, bool) error, logger *slog.Logger) *ui.API {
	if len(p.tokens) == 0 {
		logger.Warn("the API lets nobody in: set HEDDLE_ADMIN_TOKEN to what openssl rand -hex 32 prints")
	}
	return ui.NewAPI(ui.Options{
		Store: st, Agents: slices.Sorted(maps.Keys(p.agents)), Tokens: p.tokens, Files: filesOf(st), Fits: fits, Logger: logger,
	})
}

// serveBoth runs the gateway and the admin listener until ctx ends or one of
// them fails, which ends the other.
func serveBoth(ctx context.Context, g *dispatch.Gateway, ln net.Listener, api *ui.API, admin net.Listener, logger *slog.Logger) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	var err error
	wg.Go(func() {
		defer stop()
		err = ui.Serve(ctx, admin, api, logger)
	})
	gatewayErr := g.Run(ctx, ln)
	stop()
	wg.Wait()
	return errors.Join(gatewayErr, err)
}

// filesOf reads the files that the conversation's sandboxes have stored.
func filesOf(log state.Log) func(context.Context, state.ID) (map[string][]byte, error) {
	return func(ctx context.Context, id state.ID) (map[string][]byte, error) {
		all := map[string][]byte{}
		for kind, read := range storedFiles {
			stored, err := log.Blob(ctx, id, turn.FilesBlob(kind))
			if err != nil {
				return nil, err
			}
			if stored == nil {
				continue
			}
			files, err := read(stored)
			if err != nil {
				return nil, fmt.Errorf("files of %s: %w", id, err)
			}
			for name, data := range files {
				all[kind+"/"+name] = data
			}
		}
		return all, nil
	}
}
