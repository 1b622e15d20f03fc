package mcp

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// A TokenStore keeps what a log-in gave, by the name of the server. What it
// keeps is secret. Methods may be called at once.
type TokenStore interface {
	// Load returns what was saved last, nil if nothing was.
	Load(ctx context.Context, server string) ([]byte, error)
	Save(ctx context.Context, server string, secret []byte) error
}

// A FileStore keeps secrets in files of a folder, one a server, encrypted by
// AES-256-GCM and bound to the server's name.
type FileStore struct {
	dir  string
	aead cipher.AEAD
}

// NewFileStore makes the store. key is 32 bytes in base64; the folder must exist.
func NewFileStore(dir, key string) (*FileStore, error) {
	raw, err := base64.StdEncoding.DecodeString(key)
	if err != nil || len(raw) != 32 {
		return nil, fmt.Errorf("%s: want 32 bytes in base64", TokenKey.Name)
	}
	block, err := aes.NewCipher(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", TokenKey.Name, err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", TokenKey.Name, err)
	}
	return &FileStore{dir, aead}, nil
}

func (s *FileStore) path(server string) string { return filepath.Join(s.dir, server+".token") }

// Load reads a secret. It fails if the file was changed, was another server's or
// was made with another key.
func (s *FileStore) Load(_ context.Context, server string) ([]byte, error) {
	b, err := os.ReadFile(s.path(server))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("token of %s: %w", server, err)
	}
	secret, err := s.aead.Open(nil, nil, b, bound(server))
	if err != nil {
		return nil, fmt.Errorf("token of %s: damaged, or made with another key", server)
	}
	return secret, nil
}

// Save replaces a secret, whole or not at all.
func (s *FileStore) Save(_ context.Context, server string, secret []byte) error {
	return replace(s.path(server), s.aead.Seal(nil, nil, secret, bound(server)), 0o600)
}

// bound is what a secret is encrypted together with.
func bound(server string) []byte { return []byte("heddle mcp token 1\n" + server) }

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
