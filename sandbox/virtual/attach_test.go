package virtual_test

import (
	"slices"
	"testing"
	"time"

	"github.com/heddlehq/heddle/sandbox/virtual"
)

// TestAttach pins the opening of a sandbox whose worker runs: of 1000 openings
// of 20 files, 99 in 100 take less than 50 ms. The machine may be busy with
// other things, so one round of two has to pass. A new worker, files and first
// command included, takes less than a second.
func TestAttach(t *testing.T) {
	p := provider(t, virtual.Options{})
	s := open(t, p, "x", nil)
	run(t, s, "for i in {1..20}; do seq 500 > f$i; done")
	snapshot, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	run(t, open(t, p, "cold", snapshot), "wc -l < f20")
	if took := time.Since(began); took >= time.Second {
		t.Errorf("the first command of a new worker came after %v", took)
	}
	const most = 50 * time.Millisecond
	var p99s []time.Duration
	for range 2 {
		took := make([]time.Duration, 1000)
		for i := range took {
			began := time.Now()
			s := open(t, p, "x", snapshot)
			took[i] = time.Since(began)
			if i == 0 { // the files are there
				if got := run(t, s, "wc -l < f20"); got != "500\n" {
					t.Fatalf("f20 has %q lines", got)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		slices.Sort(took)
		p99s = append(p99s, took[990])
		if took[990] < most {
			t.Logf("p99 of openings: %v", p99s)
			return
		}
	}
	t.Errorf("p99 of openings in two rounds: %v, want less than %v", p99s, most)
}
