package harnesstest

import (
	"encoding/json"
	"testing"

	"github.com/heddlehq/heddle/harness"
)

// renders is how often Same renders each snapshot: the order of a map shows.
const renders = 20

// Same fails the test unless the agent declares the same for equal snapshots, as
// often as it is rendered, and leaves the snapshot as it is.
func Same(t testing.TB, a harness.Agent, snapshots ...harness.Snapshot) {
	t.Helper()
	for i, s := range snapshots {
		before := text(t, s)
		want := ""
		for n := range renders {
			m, err := harness.Render(a, s)
			if err != nil {
				t.Errorf("snapshot %d: %v", i, err)
				break
			}
			got := m.View().Digest() + " " + m.System() + " " + callbacks(m)
			if n == 0 {
				want = got
			}
			if got != want {
				t.Errorf("snapshot %d: render %d declares something else than the first:\n%s\n%s", i, n+1, want, got)
				break
			}
		}
		if text(t, s) != before {
			t.Errorf("snapshot %d: a render has changed the snapshot", i)
		}
	}
}

func text(t testing.TB, s harness.Snapshot) string {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Errorf("snapshot: %v", err)
	}
	return string(b)
}

// callbacks names what hangs in a turn.
func callbacks(m harness.Manifest) string {
	return names(m.Starts) + names(m.Finishes) + names(m.Guards) + names(m.Asks) + names(m.Answers) + names(m.Settles) + names(m.Folds)
}

func names[F any](cs []harness.Callback[F]) string {
	out := "/"
	for _, c := range cs {
		out += c.Name + " "
	}
	return out
}
