package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

// An exported log is lines that a terminal may get, and reads back byte for byte.
func TestExportReadsBack(t *testing.T) {
	t.Parallel()
	when := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	v := state.View{Conversation: state.Conversation{
		ID: "c1", Agent: "a", Thread: chat.Thread{Channel: "slack", Account: "T"}, CreatedAt: when, Seq: 3,
	}, Records: []state.Record{
		{Seq: 1, At: when, Kind: "told", Data: []byte(`{"text":"<b> & \u003c é 👩\u200d💻"}`)},
		{Seq: 2, At: when, Kind: "told", Data: []byte("{\"text\":\"\u202e\u009b31m \x7f \u2028 \U000E0041 end\"}")},
		{Seq: 3, At: when, Kind: "told", Data: []byte("{\"text\":\"no UTF-8: \xff\"}")},
	}}
	var out bytes.Buffer
	if err := exportLog(&out, v); err != nil {
		t.Fatal(err)
	}
	if s := out.String(); s != printable(s) || !strings.Contains(s, `"<b> & \u003c é`) || strings.Count(s, "\n") != 4 || strings.Count(s, `"exact"`) != 2 {
		t.Errorf("exported:\n%q", s)
	}
	got, err := importLog(bytes.NewReader(out.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(v, got); d != "" {
		t.Errorf("(-exported +read):\n%s", d)
	}
	forged := strings.Replace(out.String(), " end", " fin", 1)
	if _, err := importLog(strings.NewReader(forged)); err == nil || err.Error() != "record 2: its data and its exact data differ" {
		t.Errorf("forged: %v", err)
	}
}
