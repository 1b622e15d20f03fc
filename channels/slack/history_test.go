package slack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
	fake "github.com/heddlehq/heddle/fakes/slack"
)

// What was said while nobody listened is found as it would have been delivered,
// once, with the threads that are followed and those that began meanwhile.
func TestMissed(t *testing.T) {
	t.Parallel()
	var limited bool
	now := time.Now().Add(-3 * time.Minute)
	w, c := workspace(t, fake.Options{
		Channels: []fake.Channel{{ID: "C0GENERAL"}, {ID: "C0SECRET", Kind: "group"}, {ID: "C0FAR", Absent: true}, {ID: "D0PERSON", Kind: "im"}},
		Clock:    func() time.Time { return now },
		Hook: func(call fake.Call) fake.Fault {
			if call.Method == "conversations.replies" && !limited {
				limited = true
				return fake.Fault{Status: 429, RetryAfter: "1"}
			}
			return fake.Fault{}
		},
	}, Access{})
	c.now = func() time.Time { return now }
	old := receive(t, c, w.Mention(fake.Words{User: "U0PERSON", Text: "long ago"}))
	other := receive(t, c, w.Message(fake.Words{User: "U0PERSON", Text: "of people"}))
	w.Message(fake.Words{Channel: "D0PERSON", User: "U0PERSON", Text: "an old one"})
	now = now.Add(2 * time.Minute)
	since := now.Add(-time.Second)
	var want []chat.Event
	said := func(d fake.Delivery) { want = append(want, receive(t, c, d)) }
	said(w.Mention(fake.Words{User: "U0PERSON", Text: "new &amp; here"}))
	fresh := want[0]
	said(w.Message(fake.Words{User: "U0PERSON", Text: "in the new thread", Thread: fresh.Ref}))
	said(w.Message(fake.Words{User: "U0PERSON", Text: "in the old thread", Thread: old.Ref}))
	w.Message(fake.Words{User: "U0PERSON", Text: "among people", Thread: other.Ref})
	said(w.Message(fake.Words{Channel: "D0PERSON", User: "U0PERSON", Text: "psst"}))
	said(w.Mention(fake.Words{Channel: "C0SECRET", User: "U0PERSON", Text: "hush"}))
	said(w.Message(fake.Words{User: "U0PERSON", Text: "weather"}))
	if _, err := c.Send(t.Context(), chat.Post{Key: "k", Thread: fresh.Thread, Text: "mine"}); err != nil {
		t.Fatal(err)
	}
	var got taken
	if err := c.Missed(t.Context(), since, []chat.Thread{old.Thread, {Channel: Name, Account: "T0FAKE", Room: "D0PERSON"}, {Channel: Name, Account: "T0FAKE", Room: "C0FAR", Root: "1.1"}}, got.take); err != nil {
		t.Fatal(err)
	}
	show := func(events []chat.Event) (out []string) {
		for _, e := range events {
			out = append(out, fmt.Sprintf("%s %s %s %s %s %s", e.Same, e.Thread.Key(), e.Topic, e.Ref, e.Author.ID, e.Text))
		}
		return out
	}
	have, expected := show(got.events), show(want)
	if last := len(have) - 1; last < 0 || !strings.HasSuffix(have[last], "weather") {
		t.Errorf("what no route may name is not last: %v", have)
	}
	slices.Sort(have)
	slices.Sort(expected)
	if !slices.Equal(have, expected) {
		t.Errorf("found\n%s\nwant\n%s", strings.Join(have, "\n"), strings.Join(expected, "\n"))
	}
	if !limited {
		t.Error("Slack was not asked about a thread")
	}
}

// More than is looked at is said, and what was found stays; so is what fails.
func TestMissedInPart(t *testing.T) {
	t.Parallel()
	var code string
	w, c := workspace(t, fake.Options{Hook: func(call fake.Call) fake.Fault {
		if call.Method == "users.conversations" {
			return fake.Fault{Code: code}
		}
		return fake.Fault{}
	}}, Access{})
	since := time.Now().Add(-time.Minute)
	for i := range pageLength*missedPages + 1 {
		w.Mention(fake.Words{User: "U0PERSON", Text: strconv.Itoa(i)})
	}
	var got taken
	if err := c.Missed(t.Context(), since, nil, got.take); !errors.Is(err, errMore) || len(got.events) != pageLength*missedPages {
		t.Errorf("%d events, %v", len(got.events), err)
	}
	full := errors.New("enough")
	if err := c.Missed(t.Context(), since, nil, func(context.Context, channels.Inbound) error { return full }); !errors.Is(err, full) {
		t.Error(err)
	}
	code = "missing_scope"
	got = taken{}
	if err := c.Missed(t.Context(), since, nil, got.take); err != nil || len(got.events) > 0 {
		t.Errorf("without the scope: %d events, %v", len(got.events), err)
	}
	code = "internal_error"
	if err := c.Missed(t.Context(), since, nil, got.take); err == nil {
		t.Error("a failure is not told")
	}
}
