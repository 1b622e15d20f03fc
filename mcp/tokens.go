package mcp

import (
	"context"
	"sync"
)

// A TokenStore keeps what a log-in gave, by the name of the server. What it
// keeps is secret. Methods may be called at once.
type TokenStore interface {
	// Load returns what was saved last, nil if nothing was.
	Load(ctx context.Context, server string) ([]byte, error)
	Save(ctx context.Context, server string, secret []byte) error
}

// memory keeps secrets as long as the process runs.
type memory struct {
	mu   sync.Mutex
	kept map[string][]byte // guarded by mu
}

func (m *memory) Load(_ context.Context, server string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kept[server], nil
}

func (m *memory) Save(_ context.Context, server string, secret []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept == nil {
		m.kept = map[string][]byte{}
	}
	m.kept[server] = secret
	return nil
}
