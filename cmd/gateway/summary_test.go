package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
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
		record.Heard{Event: chat.Event{Author: chat.Author{ID: "api"}, Topic: "message", Data: json.RawMessage(`{"id":7}`), Want: json.RawMessage(`{"type":"string"}`)}, Role: chat.Admin},
		record.Began{Hooks: []string{"load", "greet"}},
		record.Controlled{Author: chat.Author{ID: "api"}, Topic: chat.Pause},
		record.Settled{Outcome: record.Answered, Steps: 1, Attempt: 1},
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
heard      api (admin) message: ; data {"id":7}; wants {"type":"string"}
began      load greet
controlled api: pause
settled    answered (steps 1, posts 0, attempt 1, $0.0000)
settled    needs_human: outcome of a call unclear (steps 1, posts 1, attempt 1, $0.0000)`
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

// No kind of record is shown as the name of its type.
func TestEveryRecordIsShown(t *testing.T) {
	t.Parallel()
	shown, err := os.ReadFile("conversations.go")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../harness/record/*.go")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, name := range files {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func \((\w+)\) kind\(\)`).FindAllStringSubmatch(string(src), -1) {
			if n++; !strings.Contains(string(shown), "case record."+m[1]+":") {
				t.Errorf("summary has no case for record.%s", m[1])
			}
		}
	}
	if n < 20 {
		t.Errorf("%d kinds of records found", n)
	}
}
