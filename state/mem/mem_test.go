package mem_test

import (
	"testing"

	"github.com/heddlehq/heddle/state"
	"github.com/heddlehq/heddle/state/mem"
	"github.com/heddlehq/heddle/state/statetest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	statetest.Run(t, statetest.Harness{
		Open: func(_ *testing.T, o statetest.Options) state.Store { return mem.Open(o.Now) },
		Reopen: func(_ *testing.T, s state.Store) state.Store {
			s.(*mem.Store).Expire()
			return s
		},
		Takeover: true,
	})
}
