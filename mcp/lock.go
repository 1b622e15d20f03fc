package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// LockName is the usual name of the lock file, beside the settings file.
const LockName = "mcp.lock"

// A Lock holds the pinned definitions, by server. It belongs into version
// control, where people see what a server changed.
type Lock map[string]Pins

// Pins are the definitions of one server that the operator agreed to.
type Pins struct {
	Tools     map[string]string `json:"tools"` // digest by the server's name of the tool
	Resources bool              `json:"resources,omitempty"`
	Prompts   bool              `json:"prompts,omitempty"`
}

// lockFile is a Lock as it is stored.
type lockFile struct {
	Version int  `json:"version"`
	Servers Lock `json:"servers"`
}

const lockVersion = 1

// ReadLock reads a lock file. Without one nothing is pinned.
func ReadLock(path string) (Lock, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Lock{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read lock file: %w", err)
	}
	var f lockFile
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, fmt.Errorf("lock file %s: %w", path, err)
	}
	if f.Version != lockVersion {
		return nil, fmt.Errorf("lock file %s: found version %d, want %d", path, f.Version, lockVersion)
	}
	return f.Servers, nil
}

// Write writes a lock file, whole or not at all. Equal locks give equal bytes.
func (l Lock) Write(path string) error {
	b, err := json.MarshalIndent(lockFile{lockVersion, l}, "", "  ")
	if err != nil {
		return fmt.Errorf("lock file: %w", err)
	}
	return replace(path, append(b, '\n'), 0o644)
}

// replace puts a file in the place of another at once.
func replace(path string, b []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

// digest names a definition: all of it that a model or we go by, whatever the
// order of its keys.
func digest(t *sdk.Tool) (string, error) {
	b, err := json.Marshal(map[string]any{
		"name": t.Name, "title": t.Title, "description": t.Description,
		"input": t.InputSchema, "output": t.OutputSchema, "annotations": t.Annotations,
	})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}
