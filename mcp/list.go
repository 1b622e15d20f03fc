package mcp

import (
	"context"
	"encoding/json"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Bounds on the lists of a server. One that goes beyond them is not read.
const (
	maxPages     = 64
	maxListed    = 1000    // entries
	maxListBytes = 4 << 20 // of all definitions
)

// A listing is what a server says that it offers.
type listing struct {
	tools     []*sdk.Tool
	resources bool
	prompts   bool
	protocol  string
	version   string // "NAME VERSION" by its own words
}

// list reads what a server offers.
func list(ctx context.Context, cs *sdk.ClientSession) (listing, error) {
	res := cs.InitializeResult()
	l := listing{protocol: res.ProtocolVersion}
	if res.ServerInfo != nil {
		l.version = describe(res.ServerInfo.Name+" "+res.ServerInfo.Version, maxReason)
	}
	caps := res.Capabilities
	if caps == nil {
		return l, nil
	}
	l.resources, l.prompts = caps.Resources != nil, caps.Prompts != nil
	if caps.Tools == nil {
		return l, nil
	}
	var err error
	l.tools, err = pages("tools", func(cursor string) ([]*sdk.Tool, string, error) {
		r, err := cs.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		if err != nil {
			return nil, "", err
		}
		return r.Tools, r.NextCursor, nil
	})
	return l, err
}

// pages reads all pages of a list, within the bounds.
func pages[T any](what string, page func(cursor string) ([]T, string, error)) ([]T, error) {
	var all []T
	bytes, cursor := 0, ""
	for range maxPages {
		some, next, err := page(cursor)
		if err != nil {
			return nil, fmt.Errorf("list its %s: %w", what, err)
		}
		for _, one := range some {
			b, err := json.Marshal(one)
			if err != nil {
				return nil, fmt.Errorf("list its %s: an entry without a JSON form", what)
			}
			bytes += len(b)
		}
		all = append(all, some...)
		switch {
		case len(all) > maxListed:
			return nil, fault("it lists more than %d %s", maxListed, what)
		case bytes > maxListBytes:
			return nil, fault("its list of %s has more than %d bytes", what, maxListBytes)
		case next == "":
			return all, nil
		case next == cursor:
			return nil, fault("its list of %s repeats a page", what)
		}
		cursor = next
	}
	return nil, fault("its list of %s has more than %d pages", what, maxPages)
}
