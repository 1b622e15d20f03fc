package slack

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
	fake "github.com/heddlehq/heddle/fakes/slack"
)

// Each state replaces the one before, also that of a process which is gone, and
// nothing is asked of Slack twice.
func TestMark(t *testing.T) {
	t.Parallel()
	w, c := workspace(t, fake.Options{}, Access{})
	e := receive(t, c, w.Mention(fake.Words{User: "U0PERSON", Text: "look"}))
	for _, step := range []struct {
		p    channels.Progress
		want []string
		new  bool // another process
	}{
		{channels.Working, []string{"eyes"}, false},
		{channels.Working, []string{"eyes"}, false},
		{channels.Answered, []string{"white_check_mark"}, false},
		{channels.Working, []string{"eyes"}, false},
		{channels.Working, []string{"eyes"}, true},
		{channels.Failed, []string{"x"}, true},
		{channels.Cleared, nil, false},
		{channels.Cleared, nil, true},
		{channels.Working, []string{"eyes"}, false},
		{channels.Cleared, nil, true},
	} {
		if step.new {
			c.marks.shown = map[string]shown{}
		}
		if err := c.Mark(t.Context(), e.Thread, e.Ref, step.p); err != nil {
			t.Errorf("%v: %v", step, err)
		}
		if d := cmp.Diff(step.want, w.Reactions("C0GENERAL", e.Ref)); d != "" {
			t.Errorf("%v: %s", step, d)
		}
	}
	calls := w.Calls()
	for range 10 {
		if err := c.Mark(t.Context(), e.Thread, e.Ref, channels.Cleared); err != nil {
			t.Error(err)
		}
	}
	if d := cmp.Diff(calls, w.Calls()); d != "" {
		t.Errorf("repeated: %s", d)
	}
	w.Remove("C0GENERAL", e.Ref)
	if err := c.Mark(t.Context(), e.Thread, e.Ref, channels.Working); err != nil {
		t.Errorf("at a message that is gone: %v", err)
	}
	if err := c.Mark(t.Context(), e.Thread, "command-1234", channels.Working); err != nil {
		t.Errorf("at a command: %v", err)
	}
}

// An assistant thread shows a status, which is renewed before Slack takes it away.
func TestStatus(t *testing.T) {
	t.Parallel()
	w, c := workspace(t, fake.Options{}, Access{})
	now := time.Now()
	c.now = func() time.Time { return now }
	root := w.Message(fake.Words{Channel: "D0PERSON", User: "U0PERSON", Text: "begin"})
	e := receive(t, c, w.Message(fake.Words{Channel: "D0PERSON", User: "U0PERSON", Text: "go on", Thread: root.TS}))
	show := func(p channels.Progress) {
		t.Helper()
		if err := c.Mark(t.Context(), e.Thread, e.Ref, p); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 { // as it is called, for 100 seconds
		show(channels.Working)
		now = now.Add(5 * time.Second)
	}
	if got := w.Status("D0PERSON", root.TS); got != statusText || w.Calls()["assistant.threads.setStatus"] != 2 || len(w.Reactions("D0PERSON", e.Ref)) > 0 {
		t.Errorf("status %q, %v", got, w.Calls())
	}
	show(channels.Failed)
	if got := w.Status("D0PERSON", root.TS); got != "" {
		t.Errorf("status %q stays", got)
	}
}

// An assistant thread gets the first thing that is said in it as its title, once.
func TestTitle(t *testing.T) {
	t.Parallel()
	w, c := workspace(t, fake.Options{}, Access{})
	root := w.Message(fake.Words{Channel: "D0PERSON", User: "U0PERSON", Text: "root"})
	take(t, c, map[string]any{"type": "assistant_thread_started", "assistant_thread": map[string]any{"user_id": "U0PERSON", "channel_id": "D0PERSON", "thread_ts": root.TS}})
	for i, text := range []string{strings.Repeat("long ", 20) + "\nand more", "another"} {
		e := receive(t, c, w.Message(fake.Words{Channel: "D0PERSON", User: "U0PERSON", Text: text, Thread: root.TS}))
		if err := c.Mark(t.Context(), e.Thread, e.Ref, channels.Working); err != nil {
			t.Fatal(err)
		}
		if err := c.Mark(t.Context(), e.Thread, e.Ref, channels.Answered); err != nil {
			t.Fatal(err)
		}
		if got := w.Titles()["D0PERSON/"+root.TS]; !strings.HasPrefix(got, "long long") || !strings.HasSuffix(got, "…") || len([]rune(got)) > titleRunes {
			t.Errorf("%d: title %q", i, got)
		}
	}
	if n := w.Calls()["assistant.threads.setTitle"]; n != 1 {
		t.Errorf("%d titles", n)
	}
}

// Without the scope the first try is told, and no other is made.
func TestMarkWithoutScope(t *testing.T) {
	t.Parallel()
	var tries atomic.Int64
	w, c := workspace(t, fake.Options{Hook: func(call fake.Call) fake.Fault {
		if strings.HasPrefix(call.Method, "reactions.") {
			tries.Add(1)
			return fake.Fault{Code: "missing_scope"}
		}
		return fake.Fault{}
	}}, Access{})
	e := receive(t, c, w.Mention(fake.Words{User: "U0PERSON", Text: "look"}))
	if err := c.Mark(t.Context(), e.Thread, e.Ref, channels.Working); verdictOf(err) != channels.Rejected || !strings.Contains(err.Error(), "missing_scope") {
		t.Errorf("the first: %v", err)
	}
	for _, p := range []channels.Progress{channels.Working, channels.Answered, channels.Cleared} {
		if err := c.Mark(t.Context(), e.Thread, e.Ref, p); err != nil {
			t.Errorf("%v: %v", p, err)
		}
	}
	if tries.Load() != 1 {
		t.Errorf("%d tries", tries.Load())
	}
}

// What fails for a moment is tried again at the next call.
func TestMarkFails(t *testing.T) {
	t.Parallel()
	fail := true
	w, c := workspace(t, fake.Options{Hook: func(call fake.Call) fake.Fault {
		if fail && call.Method == "reactions.add" {
			return fake.Fault{Status: 429, RetryAfter: "2"}
		}
		return fake.Fault{}
	}}, Access{})
	e := receive(t, c, w.Mention(fake.Words{User: "U0PERSON", Text: "look"}))
	if err := c.Mark(t.Context(), e.Thread, e.Ref, channels.Working); verdictOf(err) != channels.Limited {
		t.Error(err)
	}
	fail = false
	if err := c.Mark(t.Context(), e.Thread, e.Ref, channels.Working); err != nil || len(w.Reactions("C0GENERAL", e.Ref)) != 1 {
		t.Errorf("%v, %v", err, w.Reactions("C0GENERAL", e.Ref))
	}
	if err := c.Mark(t.Context(), chat.Thread{Channel: Name, Account: "T0FAKE", Room: "C0NOWHERE"}, "1.1", channels.Working); verdictOf(err) != channels.Rejected {
		t.Errorf("nowhere: %v", err)
	}
}
