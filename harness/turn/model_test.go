package turn

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/scripted"
	"github.com/heddlehq/heddle/state"
)

const secret = "sk-verysecret and {\"error\":{\"type\":\"x\"}}"

// fault fails as a provider does, with a body that nobody may see.
func fault(f model.Fault, after time.Duration) scripted.Step {
	return func(context.Context, model.Request) (model.Response, error) {
		return model.Response{}, &model.Error{Fault: f, RetryAfter: after, Status: 500, Code: "its_code", Body: secret, Err: fmt.Errorf("%s", secret)}
	}
}

// Each fault is tried again or not, and ends in a line that people understand.
func TestModelFaults(t *testing.T) {
	t.Parallel()
	for f, tt := range map[model.Fault]struct {
		requests int
		line     string
	}{
		model.Transient: {5, lineBusy},
		model.Limited:   {5, lineBusy},
		model.Truncated: {5, lineBusy},
		model.Stalled:   {5, lineBusy},
		model.Garbled:   {2, lineBusy},
		model.Canceled:  {1, lineBusy},
		model.Overflow:  {1, lineLong},
		model.Denied:    {1, lineSettings},
		model.Missing:   {1, lineSettings},
		model.Invalid:   {1, lineSettings},
	} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := worldOf(t, plain(), scripted.Play(fault(f, 0), 0))
				w.ask("U1", "hi")
				if n := len(w.model.Requests()); n != tt.requests {
					t.Errorf("%d requests, want %d", n, tt.requests)
				}
				if d := cmp.Diff([]string{tt.line}, w.posts()); d != "" {
					t.Errorf("posts (-want +got):\n%s", d)
				}
				s := of[record.Settled](w.records())
				if len(s) != 1 || s[0].Outcome != record.Broken || s[0].Reason != "model "+string(f) {
					t.Errorf("settled %+v", s)
				}
				if all := fmt.Sprint(w.records(), w.posts(), w.logged.String()); strings.Contains(all, "verysecret") {
					t.Errorf("the provider's body got out: %s", all)
				}
			})
		})
	}
}

// Waits grow, each within the bounds of its jitter, and each is recorded.
func TestBackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var at []time.Time
		failing := fault(model.Transient, 0)
		w := worldOf(t, plain(), scripted.Play(func(ctx context.Context, r model.Request) (model.Response, error) {
			at = append(at, time.Now())
			if len(at) == 5 {
				return scripted.Say("at last")(ctx, r)
			}
			return failing(ctx, r)
		}, 0))
		w.ask("U1", "hi")
		retried := of[record.Retried](w.records())
		if len(at) != 5 || len(retried) != 4 || w.posts()[0] != "at last" {
			t.Fatalf("%d requests, recorded %+v, posts %v", len(at), retried, w.posts())
		}
		for i, r := range retried {
			most := 500 * time.Millisecond << i
			wait := at[i+1].Sub(at[i])
			if wait < most/2 || wait > most || r.Wait != wait || r.Try != i+1 || r.Fault != model.Transient || r.Status != 500 || r.Code != "its_code" {
				t.Errorf("wait %d was %v, want %v to %v; recorded %+v", i+1, wait, most/2, most, r)
			}
		}
	})
	for try := 1; try < 100; try++ {
		most := min(500*time.Millisecond<<min(try-1, 20), 30*time.Second)
		low, high := most, time.Duration(0)
		for range 500 {
			d := backoff(try)
			low, high = min(low, d), max(high, d)
		}
		if low < most/2 || high > most || high-low < most/4 {
			t.Errorf("try %d: waits from %v to %v, want them spread over %v to %v", try, low, high, most/2, most)
		}
	}
}

// A provider that says when to come back is not asked earlier; one that says
// hours is not waited for.
func TestRetryAfterIsObeyed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plain(), fault(model.Limited, 7*time.Second), scripted.Say("ok"), fault(model.Limited, time.Hour), scripted.Say("never"))
		began := time.Now()
		w.ask("U1", "hi")
		if took := time.Since(began); took != 7*time.Second {
			t.Errorf("asked again after %v", took)
		}
		began = time.Now()
		w.ask("U1", "hi")
		if took := time.Since(began); took != 0 {
			t.Errorf("gave up after %v", took)
		}
		if d := cmp.Diff([]string{"ok", lineBusy}, w.posts()); d != "" {
			t.Errorf("posts (-want +got):\n%s", d)
		}
	})
}

// An empty answer is asked for once more, also after other faults.
func TestEmptyAnswer(t *testing.T) {
	t.Parallel()
	thought := scripted.Answer(model.Part{Kind: model.Reasoning, Text: "hm"})
	for name, tt := range map[string]struct {
		steps    []scripted.Step
		requests int
		post     string
	}{
		"once":            {[]scripted.Step{scripted.Say(" \n"), scripted.Say("ok")}, 2, "ok"},
		"twice":           {[]scripted.Step{thought, scripted.Say("")}, 2, lineEmpty},
		"after a fault":   {[]scripted.Step{fault(model.Transient, 0), scripted.Answer(), scripted.Say("ok")}, 3, "ok"},
		"garbled, empty":  {[]scripted.Step{fault(model.Garbled, 0), scripted.Answer(), scripted.Say("late")}, 2, lineEmpty},
		"fault, garbled":  {[]scripted.Step{fault(model.Transient, 0), fault(model.Garbled, 0), scripted.Say("ok")}, 3, "ok"},
		"a call, no text": {[]scripted.Step{call("look"), scripted.Say("ok")}, 2, "ok"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, plain(act("look", func(context.Context, *harness.Call) (string, error) { return "", nil })), tt.steps...)
				w.ask("U1", "hi")
				if d := cmp.Diff([]string{tt.post}, w.posts()); d != "" || len(w.model.Requests()) != tt.requests {
					t.Errorf("%d requests, want %d; posts (-want +got):\n%s", len(w.model.Requests()), tt.requests, d)
				}
			})
		})
	}
}

// An answer that was cut or declined says so.
func TestStopReasons(t *testing.T) {
	t.Parallel()
	stop := func(s model.Stop, text string) scripted.Step {
		return func(context.Context, model.Request) (model.Response, error) {
			return model.Response{Stop: s, Parts: []model.Part{{Kind: model.Text, Text: text}}}, nil
		}
	}
	for name, tt := range map[string]struct {
		step    scripted.Step
		post    string
		outcome record.Outcome
		reason  string
	}{
		"length":         {stop(model.StopLength, "half"), "half" + lineCut, record.Answered, "cut at the length limit"},
		"length, empty":  {stop(model.StopLength, ""), lineEmpty, record.Broken, "empty answer"},
		"refused":        {stop(model.StopRefused, "I will not."), "I will not.", record.Declined, "refused by the model"},
		"refused, empty": {stop(model.StopRefused, ""), lineDeclined, record.Declined, "refused by the model"},
		"end":            {stop(model.StopEnd, "ok"), "ok", record.Answered, ""},
	} {
		w := newWorld(t, plain(), tt.step)
		w.ask("U1", "hi")
		s := of[record.Settled](w.records())[0]
		if d := cmp.Diff([]string{tt.post}, w.posts()); d != "" || s.Outcome != tt.outcome || s.Reason != tt.reason {
			t.Errorf("%s: settled %+v, posts (-want +got):\n%s", name, s, d)
		}
	}
}

// A turn does not go round for ever.
func TestTooManySteps(t *testing.T) {
	t.Parallel()
	w := worldOf(t, plain(act("look", func(context.Context, *harness.Call) (string, error) { return "", nil })), scripted.Play(call("look"), 0))
	w.engine.Limits.Steps = 3
	w.ask("U1", "hi")
	if d := cmp.Diff([]string{lineSteps}, w.posts()); d != "" || len(w.model.Requests()) != 3 {
		t.Errorf("%d requests, posts (-want +got):\n%s", len(w.model.Requests()), d)
	}
}

// A long answer becomes several posts, each with a key of its own.
func TestAnswerInParts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain(), scripted.Say("one\n---\ntwo"), scripted.Say("three"))
	w.ask("U1", "hi")
	w.ask("U1", "hi")
	if d := cmp.Diff([]string{"one", "two", "three"}, w.posts()); d != "" {
		t.Errorf("posts (-want +got):\n%s", d)
	}
}

// An answer of too many posts ends with a post that says what was left out.
func TestAnswerInTooManyParts(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{maxPosts: maxPosts, maxPosts + 1: maxPosts - 1, 500: maxPosts - 1} {
		var parts []string
		for i := range n {
			parts = append(parts, fmt.Sprintf("part %d", i))
		}
		w := newWorld(t, plain(), scripted.Say(strings.Join(parts, "\n---\n")))
		w.ask("U1", "hi")
		all := parts[:want:want]
		if want < n {
			all = append(all, fmt.Sprintf("(the answer was longer than 20 messages; the last %d of its %d were left out)", n-want, n))
		}
		if d := cmp.Diff(all, w.posts()); d != "" {
			t.Errorf("%d parts: posts (-want +got):\n%s", n, d)
		}
		if s := of[record.Settled](w.records())[0]; s.Posts != maxPosts {
			t.Errorf("%d parts: settled with %d posts", n, s.Posts)
		}
	}
}

// Where posts may bring files, an answer of many posts is its beginning and a
// file with all of it.
func TestLongAnswerBecomesAFile(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{fewPosts: fewPosts, fewPosts + 1: beginning, 500: beginning} {
		var parts []string
		for i := range n {
			parts = append(parts, fmt.Sprintf("part %d", i))
		}
		answer := strings.Join(parts, "\n---\n")
		w := newWorld(t, plain(), scripted.Say(answer))
		inner := w.opts.Compose
		w.opts.Compose = func(t chat.Thread, markdown string, trust chat.Role) ([]string, bool) {
			texts, _ := inner(t, markdown, trust)
			return texts, true
		}
		w.restart()
		w.ask("U1", "hi")
		ps, err := w.store.Posts(t.Context(), state.ConversationID("tested", thread))
		if err != nil {
			t.Fatal(err)
		}
		var got []chat.Post
		for _, p := range ps {
			got = append(got, chat.Post{Text: p.Post.Text, Files: p.Post.Files})
		}
		var all []chat.Post
		for _, p := range parts[:want] {
			all = append(all, chat.Post{Text: p})
		}
		if want < n {
			all = append(all, chat.Post{
				Text:  "(this is the beginning; the whole answer is in the file)",
				Files: []chat.Attachment{{Name: "answer.md", MediaType: "text/markdown", Data: []byte(answer)}},
			})
		}
		if d := cmp.Diff(all, got); d != "" {
			t.Errorf("%d parts: posts (-want +got):\n%s", n, d)
		}
	}
}

// What is posted is as trusted as the weakest whose text the model saw.
func TestPostsAreComposedByTrust(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain(), scripted.Say("one"), scripted.Say("two"))
	w.roles["U1"], w.roles["U2"] = chat.Maintainer, chat.Outsider
	var got []chat.Role
	w.opts.Compose = func(_ chat.Thread, markdown string, trust chat.Role) ([]string, bool) {
		if markdown != "" { // else only files are asked for
			got = append(got, trust)
		}
		return []string{markdown}, false
	}
	w.restart()
	w.ask("U1", "hi")
	w.ask("U2", "ho")
	if d := cmp.Diff([]chat.Role{chat.Maintainer, chat.Outsider}, got); d != "" {
		t.Errorf("trust (-want +got):\n%s", d)
	}
}
