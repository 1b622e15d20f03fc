// Package sandbox is the port of the sandbox family: where commands run and
// files live. A sandbox belongs to one conversation and is opened by name.
package sandbox

import (
	"context"
	"errors"
	"io/fs"
	"time"
)

// What a sandbox fails with besides opaque failures of its machinery. File
// errors wrap fs.ErrNotExist, fs.ErrInvalid and the like.
var (
	ErrLimit  = errors.New("a limit of the sandbox is reached") // wrapped with which one
	ErrBroken = errors.New("the sandbox has died")              // open it again
)

// A Provider opens sandboxes of one kind.
type Provider interface {
	Name() string // "virtual"
	// Open starts or attaches to the sandbox of a conversation. snapshot is
	// what Snapshot returned last, nil for a fresh one.
	Open(ctx context.Context, conversation string, snapshot []byte) (Sandbox, error)
	Close() error // ends all that it opened
}

// A Sandbox runs commands and keeps files. Paths are slash-separated and, if
// relative, below Dir. Methods may be called at once; commands then interleave.
type Sandbox interface {
	Dir() string      // working directory of every command
	Describe() string // one sentence for the model: what this is, what it lacks
	// Exec runs a shell script to its end. A script that fails, is stopped at
	// its timeout or prints too much is a Result, not an error; an error means
	// that it is not known what ran. It ends what it started when ctx ends.
	Exec(ctx context.Context, c Command) (Result, error)
	ReadFile(ctx context.Context, path string) ([]byte, error)
	WriteFile(ctx context.Context, path string, data []byte) error // makes parents
	List(ctx context.Context, path string) ([]Info, error)         // one directory, by name
	Stat(ctx context.Context, path string) (Info, error)
	// Snapshot returns the files in a form Open takes, nil if the provider
	// keeps them itself. Equal files give equal bytes.
	Snapshot(ctx context.Context) ([]byte, error)
	Close() error
}

// A Searcher is a sandbox with a search of its own, faster than reading every
// file through the port. Its hits equal those of Grep and Glob in this package.
type Searcher interface {
	Grep(ctx context.Context, q Query) (Hits, error)
	Glob(ctx context.Context, root, pattern string, limit int) (paths []string, more bool, err error)
}

// A Command is one run of the shell.
type Command struct {
	Script  string
	Timeout time.Duration // 0 means DefaultTimeout
}

// DefaultTimeout bounds a command that names no time.
const DefaultTimeout = 2 * time.Minute

// A Result is what a command did.
type Result struct {
	Output   []byte // stdout and stderr as they came, cut in the middle at the sandbox's limit, with a line that says so there
	Cut      int64  // bytes left out of Output
	ExitCode int    // 124 after a timeout
	TimedOut bool
}

// Info describes a file.
type Info struct {
	Name  string // base name
	Bytes int64
	Mode  fs.FileMode
	At    time.Time
}

// A Query is a search in file contents.
type Query struct {
	Pattern string // regular expression (RE2)
	Literal bool   // Pattern is plain text
	Root    string // file or directory
	Include string // pattern on the base name, "" for all
	Limit   int    // most hits, 0 means DefaultHits
}

// Hits are matching lines by path, then line.
type Hits struct {
	Lines []Hit
	More  bool // there are more than Limit
}

// A Hit is one matching line.
type Hit struct {
	Path string
	Line int    // from 1
	Text string // at most MaxLineBytes of it
}
