package sqlite_test

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/heddlehq/heddle/state"
	"github.com/heddlehq/heddle/state/sqlite"
	"github.com/heddlehq/heddle/state/statetest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	var opened sync.Map // state.Store to a function that opens it again
	var open func(t *testing.T, path string, o sqlite.Options) state.Store
	open = func(t *testing.T, path string, o sqlite.Options) state.Store {
		s, err := sqlite.Open(t.Context(), path, o)
		if err != nil {
			t.Fatalf("open: %v", err)
		}
		opened.Store(s, func(t *testing.T) state.Store { return open(t, path, o) })
		return s
	}
	statetest.Run(t, statetest.Harness{
		Open: func(t *testing.T, o statetest.Options) state.Store {
			options := sqlite.Options{Clock: o.Now}
			if o.Fault != nil {
				options.Fault = func(string) error { return o.Fault() }
			}
			return open(t, filepath.Join(t.TempDir(), "heddle.db"), options)
		},
		Reopen: func(t *testing.T, s state.Store) state.Store {
			if err := s.Close(); err != nil {
				t.Fatalf("close: %v", err)
			}
			again, _ := opened.Load(s)
			return again.(func(*testing.T) state.Store)(t)
		},
		Takeover: true,
		Faults:   true,
	})
}
