package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
)

// What a call waits for, what a probe has found and how a call ended can be read
// off the log.
func TestSummaries(t *testing.T) {
	t.Parallel()
	until := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	var got []string
	for _, b := range []record.Body{
		record.Asked{Call: "c1", Name: "ok", Question: "Deploy?", Who: chat.Maintainer, Until: until},
		record.Asked{Call: "c1", Name: "nap", Until: until},
		record.Memo{Call: "c1", Name: "ok", Value: json.RawMessage(`{"text":"yes"}`)},
		record.Probed{Tool: "order", Try: 1, Found: string(harness.FoundNothing)},
		record.Probed{Tool: "order", Try: 2, Found: string(harness.FoundRunning)},
		record.Probed{Tool: "order", Try: 3, Found: string(harness.FoundDone)},
		record.Probed{Tool: "order", Try: 4, Found: string(harness.FoundUnclear)},
		record.Did{Tool: "order", End: record.NeedsHuman, Text: "Nobody knows.", Unclear: "order"},
		record.Settled{Outcome: record.NeedsHuman, Reason: "outcome of a call unclear", Steps: 1, Posts: 1, Attempt: 1},
	} {
		got = append(got, summary(b))
	}
	want := `asked      the maintainers or above until 2026-03-04T12:00:00Z: Deploy?
waits      until 2026-03-04T12:00:00Z
memo       ok = {"text":"yes"}
probed     order, look 1: not done
probed     order, look 2: running
probed     order, look 3: done
probed     order, look 4: unclear
did        order, needs_human in 0s: Nobody knows.
settled    needs_human outcome of a call unclear (steps 1, posts 1, attempt 1, $0.0000)`
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}
