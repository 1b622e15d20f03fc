//go:build linux

package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// Where tools come and go, the engine's list costs far less than sending the
// present one; where only new ones come, no more. The figures are published.
func TestChurn(t *testing.T) {
	t.Parallel()
	const name = "anthropic/claude-opus-4-6"
	both := func(every int, change func(*churn)) (ours, naive spending) {
		for _, asNaive := range []bool{false, true} {
			s, err := converse(t.Context(), name, every, change, asNaive)
			if err != nil {
				t.Fatal(err)
			}
			if asNaive {
				naive = s
			} else {
				ours = s
			}
		}
		return ours, naive
	}
	still, same := both(0, nil)
	if still != same || still.Cached < 0.9 {
		t.Errorf("without changes: %+v and %+v", still, same)
	}
	ours, naive := both(1, (*churn).toggle)
	if ours.Cost > 1.5*still.Cost || naive.Cost < 3*ours.Cost || ours.Cached < 0.8 || naive.Cached > 0.3 {
		t.Errorf("a change a turn: %+v, naive %+v, without changes %+v", ours, naive, still)
	}
	if ours, naive := both(2, (*churn).replace); ours.Cost > 1.02*naive.Cost {
		t.Errorf("always a new one: %+v, naive %+v", ours, naive)
	}
	doc, err := os.ReadFile("../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(doc), "<!-- churn: written by make bench -->")
	table, _, _ = strings.Cut(table, "<!-- end of churn -->")
	for _, every := range churnEvery[1:] {
		if n := strings.Count(table, fmt.Sprintf("| %d | ", every)); n != 4 {
			t.Errorf("the published table has %d rows of a change every %d turns", n, every)
		}
	}
}

// The harness is measured with work that is really done.
func TestInside(t *testing.T) {
	t.Parallel()
	rep, err := measureInside(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if rep.Render <= 0 || rep.Step <= rep.Render || rep.Warm <= 0 || rep.Cold < 10*rep.Warm {
		t.Errorf("the figures cannot be: %+v", rep)
	}
	if got := insideTable(insideReport{Render: 0.0123, Step: 3, Cold: 99, Warm: 1}); !strings.Contains(got, "| at most 50 µs | 12.3 µs | met |") || !strings.Contains(got, "| 3 ms | **missed** |") {
		t.Errorf("the table is\n%s", got)
	}
}
