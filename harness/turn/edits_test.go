package turn

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model/scripted"
	"github.com/heddlehq/heddle/state"
)

// about is an event about the message of a ref.
func about(id string, k chat.Kind, ref, author, text string) chat.Event {
	e := chat.Event{ID: id, Thread: thread, Kind: k, Topic: "thread", Ref: ref, Text: text, Author: chat.Author{ID: author}}
	if k == chat.Edited || k == chat.Deleted {
		e.Topic = string(k)
	}
	return e
}

func (w *world) hears(events ...chat.Event) {
	for _, e := range events {
		w.event(e, e.Kind == chat.Edited || e.Kind == chat.Deleted)
	}
}

// What waits is read as it was changed last; what was taken back is not read.
func TestEditsOfWhatWaits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		events []chat.Event
		heard  string // texts, in order
		passed int
	}{
		"an edit":               {[]chat.Event{about("a", chat.Message, "1", "U1", "old"), about("b", chat.Edited, "1", "U1", "new")}, "new", 1},
		"two edits":             {[]chat.Event{about("a", chat.Message, "1", "U1", "old"), about("b", chat.Edited, "1", "U1", "newer"), about("c", chat.Edited, "1", "U1", "newest")}, "newest", 2},
		"of one of two":         {[]chat.Event{about("a", chat.Message, "1", "U1", "one"), about("b", chat.Message, "2", "U1", "two"), about("c", chat.Edited, "1", "U1", "new")}, "new two", 1},
		"by somebody else":      {[]chat.Event{about("a", chat.Message, "1", "U1", "old"), about("b", chat.Edited, "1", "U2", "forged")}, "old forged", 0},
		"of another message":    {[]chat.Event{about("a", chat.Message, "1", "U1", "old"), about("b", chat.Edited, "2", "U1", "other")}, "old other", 0},
		"of what has no name":   {[]chat.Event{about("a", chat.Message, "", "U1", "old"), about("b", chat.Edited, "", "U1", "other")}, "old other", 0},
		"a deletion":            {[]chat.Event{about("a", chat.Message, "1", "U1", "old"), about("b", chat.Deleted, "1", "", "")}, "", 2},
		"an edit, then deleted": {[]chat.Event{about("a", chat.Message, "1", "U1", "old"), about("b", chat.Edited, "1", "U1", "new"), about("c", chat.Deleted, "1", "U2", "")}, "", 3},
		"one of two deleted":    {[]chat.Event{about("a", chat.Message, "1", "U1", "one"), about("b", chat.Message, "2", "U1", "two"), about("c", chat.Deleted, "1", "U1", "")}, "two", 2},
		"a reaction between":    {[]chat.Event{about("a", chat.Message, "1", "U1", "old"), about("r", chat.Reacted, "1", "U1", "liked"), about("b", chat.Deleted, "1", "U1", "")}, "liked", 2},
		"what is done to it":    {[]chat.Event{about("a", chat.Notice, "1", "U1", "labeled"), about("b", chat.Edited, "1", "U1", "new")}, "labeled new", 0},
		"edited into an order":  {[]chat.Event{about("a", chat.Message, "1", "U1", "go"), about("b", chat.Edited, "1", "U1", "unfollow")}, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, plain(), scripted.Say("yes"))
			w.hears(c.events...)
			w.run()
			var heard []string
			for _, h := range of[record.Heard](w.records()) {
				heard = append(heard, h.Event.Text)
			}
			if got := strings.Join(heard, " "); got != c.heard {
				t.Errorf("heard %q, want %q", got, c.heard)
			}
			if n := len(of[record.Passed](w.records())); n != c.passed {
				t.Errorf("%d were passed over, want %d", n, c.passed)
			}
			if asked := len(w.model.Requests()) > 0; asked != (c.heard != "") {
				t.Errorf("the model was asked: %v", asked)
			}
			if v, err := w.store.Load(t.Context(), state.ConversationID("tested", thread), 0); err != nil || len(v.Inbox) > 0 {
				t.Errorf("%d are left in the inbox, %v", len(v.Inbox), err)
			}
		})
	}
}

// What the model has read is taken out of what it sees when it is taken back,
// with what was changed of it, over restarts.
func TestDeletionsRedact(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain(), scripted.Say("one"), scripted.Say("two"), scripted.Say("three"))
	w.wary.stable = false
	w.hears(about("a", chat.Message, "1", "U1", "the secret is 4711"), about("b", chat.Message, "2", "U2", "and this stays"))
	w.run()
	w.hears(about("c", chat.Edited, "1", "U1", "the secret was 4711"))
	w.ask("U2", "go on")
	w.hears(about("d", chat.Deleted, "1", "", ""))
	w.restart()
	w.ask("U2", "and now")
	if s := transcript(w.request(-2)); strings.Count(s, "4711") != 2 {
		t.Errorf("before it was taken back the model saw\n%s", s)
	}
	s := transcript(w.request(-1))
	if strings.Contains(s, "4711") || strings.Count(s, "[taken back]") != 2 || !strings.Contains(s, "and this stays") || !strings.Contains(s, `from="U1"`) {
		t.Errorf("the model sees\n%s", s)
	}
}

// A file of a message that was taken back comes into no sandbox any more, and goes
// with no task.
func TestDeletionsKeepFilesOut(t *testing.T) {
	t.Parallel()
	boxed := func(c *harness.Context) string {
		harness.UseSandbox(c, "memory")
		return plain()(c)
	}
	w := newWorld(t, boxed, scripted.Say("one"), scripted.Call("read", `{"path":"in/plan.txt"}`), scripted.Call("read", `{"path":"in/b.txt"}`), scripted.Say("two"))
	w.wary.stable = false
	w.opts.Fetch = func(_ context.Context, f Wanted) (chat.Attachment, error) {
		return chat.Attachment{Data: []byte("content of " + f.File.Name)}, nil
	}
	w.restart()
	secret, other := about("a", chat.Message, "1", "U1", "see"), about("b", chat.Message, "2", "U1", "and see")
	secret.Files, other.Files = []chat.File{{ID: "F1", Name: "plan.txt"}}, []chat.File{{ID: "F2", Name: "b.txt"}}
	w.hears(secret, other)
	w.run()
	w.hears(about("c", chat.Deleted, "1", "U1", ""))
	w.ask("U1", "read them")
	got := of[record.Did](w.records())
	if len(got) != 2 || got[0].End != record.Failed || got[1].Text != "content of b.txt\n" {
		t.Errorf("read %+v", got)
	}
	if _, err := (&run{f: w.present()}).forwarded([]string{"in/plan.txt"}); err == nil {
		t.Error("a task gets the file")
	}
}

// A turn whose only message is taken back ends without a word; others go on.
func TestTakenBackDuringATurn(t *testing.T) {
	t.Parallel()
	for _, only := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			free := make(chan struct{})
			defer close(free)
			w := worldOf(t, plain(act("job", hang(true, free))), scripted.Play(answering("job"), 0))
			w.wary.stable = false
			w.hears(about("a", chat.Message, "1", "U1", "first"))
			took := w.during(func() {
				if !only {
					w.hears(about("b", chat.Message, "2", "U1", "more"))
				}
				w.hears(about("c", chat.Deleted, "1", "", ""))
				if !only {
					w.say("U1", "stop")
				}
			})
			want := map[bool][]string{true: nil, false: {"Stopped."}}[only]
			if d := cmp.Diff(want, w.posts()); d != "" || took > 2*time.Second {
				t.Errorf("only: %v, took %v, posts (-want +got):\n%s", only, took, d)
			}
			if s := of[record.Settled](w.records()); len(s) != 1 || s[0].Outcome != record.Aborted || only != (s[0].Reason == record.Withdrawn) {
				t.Errorf("only: %v: %+v", only, s)
			}
		})
	}
}

// An edit of what the turn works on interrupts calls that may be, where messages do.
func TestEditsSteer(t *testing.T) {
	t.Parallel()
	for policy, interrupts := range map[chat.Policy]bool{chat.Steer: true, chat.Replace: true, chat.Join: false, chat.Drop: false} {
		synctest.Test(t, func(t *testing.T) {
			job := act("job", func(ctx context.Context, _ *harness.Call) (string, error) {
				select {
				case <-ctx.Done():
					return "", context.Cause(ctx)
				case <-time.After(time.Minute):
					return "done", nil
				}
			}).Interruptible()
			w := newWorld(t, plain(job), call("job"), scripted.Say("yes"))
			w.opts.Busy = func(chat.Event) chat.Policy { return policy }
			w.restart()
			w.hears(about("a", chat.Message, "1", "U1", "go"))
			w.during(func() { w.hears(about("b", chat.Edited, "1", "U1", "go there")) })
			d := of[record.Did](w.records())
			if len(d) != 1 || (d[0].End == record.Canceled) != interrupts {
				t.Errorf("%s: %+v", policy, d)
			}
			if d := cmp.Diff([]string{"yes"}, w.posts()); d != "" || !strings.Contains(transcript(w.request(-1)), "go there") {
				t.Errorf("%s: %s", policy, d)
			}
		})
	}
}

// What comes together is heard in the order in which it was said; what comes late
// says so.
func TestOrderOfProviders(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain(), scripted.Say("one"), scripted.Say("two"))
	at := func(e chat.Event, d time.Duration) chat.Event { e.At = w.clock().Add(d); return e }
	w.hears(
		at(about("c", chat.Message, "3", "U1", "third"), -time.Second), at(about("a", chat.Message, "1", "U1", "first"), -3*time.Second),
		about("x", chat.Message, "", "U1", "timeless"),
		at(about("b", chat.Message, "2", "U1", "second"), -2*time.Second), at(about("d", chat.Message, "4", "U1", "fourth"), 0),
	)
	other := at(about("o", chat.Message, "5", "U1", "elsewhere"), -10*time.Second)
	w.run()
	w.pass(time.Hour)
	w.hears(at(about("e", chat.Message, "6", "U1", "late"), -30*time.Minute), at(about("f", chat.Message, "7", "U1", "in time"), -30*time.Second), at(other, -62*time.Minute))
	w.pass(10 * time.Second)
	w.run()
	var got []string
	for _, h := range of[record.Heard](w.records()) {
		got = append(got, strings.TrimSpace(h.Event.Text+" "+strings.TrimSuffix(h.Late.String(), "0s")))
	}
	want := []string{"first", "third", "timeless", "second 1s", "fourth", "elsewhere 1h2m", "late 30m", "in time"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("heard (-want +got):\n%s", d)
	}
	if s := transcript(w.request(-1)); !strings.Contains(s, `late="30m0s"`) {
		t.Errorf("the model is told\n%s", s)
	}
}

// Whatever comes, what is put in order is what came: nothing is lost or doubled,
// what may not be moved keeps its place among its like, and a second time changes
// nothing.
func TestInOrderKeepsEverything(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		start := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
		moves := make([]move, rapid.IntRange(0, 12).Draw(t, "moves"))
		seen := map[int64]bool{}
		for i := range moves {
			e := state.Entry{Seq: int64(i), At: start.Add(time.Duration(i) * time.Duration(rapid.IntRange(0, 4).Draw(t, "gap")) * time.Second)}
			if rapid.Bool().Draw(t, "timed") {
				e.Event.At = start.Add(time.Duration(rapid.IntRange(-20, 20).Draw(t, "at")) * time.Second)
			}
			e.Event.Kind = rapid.SampledFrom([]chat.Kind{chat.Message, chat.Message, chat.Edited, chat.Deleted}).Draw(t, "kind")
			moves[i] = move{Entry: e, do: rapid.SampledFrom([]deed{hear, hear, hear, dont}).Draw(t, "do")}
		}
		inOrder(moves)
		for i, m := range moves {
			if seen[m.Seq] {
				t.Fatalf("entry %d is there twice", m.Seq)
			}
			seen[m.Seq] = true
			if i > 0 && swapped(moves[i-1], m) {
				t.Fatalf("entries %d and %d are out of order", moves[i-1].Seq, m.Seq)
			}
			if (m.do != hear || !spoken(m.Event)) && m.Seq != int64(i) {
				t.Fatalf("entry %d, which has no time, stands at %d", m.Seq, i)
			}
		}
	})
}
