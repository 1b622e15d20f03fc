package sqlite

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/state"
)

// TestFormat1 opens a file of the first format, with an event that was taken,
// one that waits and one that was ignored.
func TestFormat1(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "heddle.db")
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	in := ask(1, "waits")[0]
	id := state.ConversationID(in.Agent, in.Event.Thread)
	event, err := json.Marshal(in.Event)
	if err != nil {
		t.Fatal(err)
	}
	script, err := migrations.ReadFile("migrations/0001_store.sql")
	if err != nil {
		t.Fatal(err)
	}
	var all []statement
	for s := range strings.SplitSeq(strings.TrimSpace(string(script)), ";\n") {
		all = append(all, statement{s, nil})
	}
	admitted := `INSERT INTO events (at, channel, id, conversation, reason, digest) VALUES (?, ?, ?, ?, ?, 0)`
	all = append(all,
		statement{fmt.Sprintf("PRAGMA application_id = %d", applicationID), nil},
		statement{"PRAGMA user_version = 1", nil},
		statement{`INSERT INTO conversations (n, id, thread, agent, created_at, updated_at, seq, arrived, loud, taken, epoch, attempt, ready_at)
			VALUES (7, ?, ?, 'assistant', ?3, ?3, 1, 2, 2, 1, 1, 0, ?3)`, []any{string(id), in.Event.Thread.Key(), now}},
		statement{`INSERT INTO records (key, at, kind, data) VALUES (?, ?, 'said', x'31')`, []any{key(7, 1), now}},
		statement{`INSERT INTO inbox (key, at, quiet, event) VALUES (?, ?, 0, ?)`, []any{key(7, 2), now, event}},
		statement{admitted, []any{now, "slack", "taken", 7, nil}},
		statement{admitted, []any{now, "slack", "waits", 7, nil}},
		statement{admitted, []any{now, "github", "waits", nil, "boring"}},
	)
	c, err := connect(path, "rwc")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.inTx(all...); err != nil {
		t.Fatal(err)
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}

	o := Options{Clock: func() time.Time { return now }}
	if _, err := Open(t.Context(), path, Options{ReadOnly: true}); err == nil || !strings.Contains(err.Error(), "format 1: start the gateway") {
		t.Errorf("looking into an old file: %v", err)
	}
	s := openStore(t, path, o)
	for event, want := range map[string]state.Admission{
		"slack taken":  {Status: state.Admitted, Conversation: id},
		"slack waits":  {Status: state.Admitted, Conversation: id, Seq: 2},
		"github waits": {Status: state.Ignored, Reason: "boring"},
	} {
		channel, event, _ := strings.Cut(event, " ")
		got, err := s.Event(t.Context(), channel, event)
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("event %s of %s: %v, (-want +got)\n%s", event, channel, err, d)
		}
	}
	v, err := s.Load(t.Context(), id, 0)
	if err != nil || len(v.Records) != 1 || len(v.Inbox) != 1 || v.Inbox[0].Seq != 2 {
		t.Errorf("view is %+v, %v; want the record and the entry", v, err)
	}
	if err := s.PutValues(t.Context(), "s", state.Value{Key: "k", Data: []byte("v")}); err != nil {
		t.Error(err)
	}
	if next, err := s.Admit(t.Context(), ask(1, "next")); err != nil || next[0].Seq != 3 {
		t.Errorf("the next event: %+v, %v; want it to be entry 3", next, err)
	}
}
