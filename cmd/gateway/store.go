package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heddlehq/heddle/config"
	"github.com/heddlehq/heddle/state"
	"github.com/heddlehq/heddle/state/mem"
	"github.com/heddlehq/heddle/state/sqlite"
)

// A storeKind is what HEDDLE_STATE may name before the first colon. Both
// functions get what stands behind it.
type storeKind struct {
	wrong func(rest string) (found, want string) // why no gateway can own the store there, "" if one can; changes nothing
	open  func(ctx context.Context, rest string, readOnly bool) (state.Store, error)
}

// storeOf finds the kind of store that HEDDLE_STATE names.
func storeOf(s *config.Settings) (kind storeKind, rest string, wrong config.Problems) {
	value := s.Get(varState)
	name, rest, colon := strings.Cut(value, ":")
	kind, ok := stores[name]
	if ok && colon {
		return kind, rest, nil
	}
	p := config.Problem{Setting: varState.Name, Found: strconv.Quote(value), Want: "sqlite:PATH or mem:"}
	if colon {
		p.Found = strconv.Quote(name + ":") // behind it may be a password
	} else if !ok {
		p.Want = "sqlite:" + value
	}
	return kind, rest, config.Problems{p}
}

// checkStore notes why a gateway cannot own the store that HEDDLE_STATE names.
func checkStore(s *config.Settings) {
	kind, rest, wrong := storeOf(s)
	for _, p := range wrong {
		s.Refuse(p.Setting, p.Found, p.Want)
	}
	if wrong == nil {
		if found, want := kind.wrong(rest); found != "" {
			s.Refuse(varState.Name, found, want)
		}
	}
}

// openStore opens the store that HEDDLE_STATE names.
func openStore(ctx context.Context, s *config.Settings, readOnly bool) (state.Store, error) {
	kind, rest, wrong := storeOf(s)
	if wrong != nil {
		return nil, wrong
	}
	return kind.open(ctx, rest, readOnly)
}

var memStore = storeKind{
	wrong: func(rest string) (found, want string) {
		if rest != "" {
			return strconv.Quote("mem:" + rest), "mem: and nothing behind it"
		}
		return "", ""
	},
	open: func(_ context.Context, _ string, readOnly bool) (state.Store, error) {
		if readOnly {
			return nil, config.Problems{{Setting: varState.Name, Found: `"mem:"`, Want: "sqlite:PATH: a store in memory is seen by its own process only"}}
		}
		return mem.Open(time.Now), nil
	},
}

var sqliteStore = storeKind{
	wrong: func(path string) (found, want string) {
		if found := notWritable(path); found != "" {
			return found, "sqlite:PATH, a file that this process may write, in a directory that exists and that it may write to as well"
		}
		return "", ""
	},
	open: func(ctx context.Context, path string, readOnly bool) (state.Store, error) {
		if _, err := os.Stat(path); readOnly && errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("no store at %s yet", path)
		}
		return sqlite.Open(ctx, path, sqlite.Options{ReadOnly: readOnly})
	},
}

// notWritable says why a file cannot be written to or be made, "" if it can.
// The directory counts as well: files beside this one come and go.
func notWritable(path string) string {
	if path == "" {
		return "no path"
	}
	if file, err := filepath.EvalSymlinks(path); err == nil {
		path = file
	}
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist): // it will be made
	case err != nil:
		return err.Error()
	case info.IsDir():
		return fmt.Sprintf("the directory %q", path)
	case !info.Mode().IsRegular():
		return fmt.Sprintf("%q, which is no file", path)
	default:
		if err := unix.Access(path, unix.R_OK|unix.W_OK); err != nil {
			return fmt.Sprintf("the file %q: %v", path, err)
		}
	}
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return fmt.Sprintf("no directory %q", dir)
	}
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return fmt.Sprintf("the directory %q: %v", dir, err)
	}
	return ""
}
