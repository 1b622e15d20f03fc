package turn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model/scripted"
)

// A shop takes orders under a key and loses its first replies. It writes down
// what it is asked.
type shop struct {
	mu      sync.Mutex
	log     []string
	orders  map[string]int // by key
	drops   int            // so many orders are taken without a reply
	loses   int            // so many are lost, and so is the reply
	slow    int            // an order is still being worked on, for so many looks
	deaf    int            // looks that fail
	forgets bool           // it cannot look
}

func (s *shop) order(key string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, "order")
	if s.loses > 0 {
		s.loses--
		return "", fmt.Errorf("no reply: %w", harness.ErrUnknown)
	}
	s.orders[key]++
	if s.drops > 0 {
		s.drops--
		return "", fmt.Errorf("no reply: %w", harness.ErrUnknown)
	}
	return "ordered", nil
}

func (s *shop) look(key string) (harness.Probed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, "look")
	switch {
	case s.deaf > 0:
		s.deaf--
		return harness.Probed{}, errors.New("the shop does not answer")
	case s.forgets:
		return harness.Probed{Found: harness.FoundUnclear}, nil
	case s.orders[key] == 0:
		return harness.Probed{Found: harness.FoundNothing}, nil
	case s.slow > 0:
		s.slow--
		return harness.Probed{Found: harness.FoundRunning}, nil
	}
	return harness.Probed{Found: harness.FoundDone, Result: "found the order"}, nil
}

func (s *shop) calls() string { return strings.Join(s.log, " ") }

// tool orders; the call's key is what the shop knows the order by.
func (s *shop) tool() harness.Tool {
	return act("order", func(_ context.Context, c *harness.Call) (string, error) { return s.order(c.Key()) }).
		Probe(func(_ context.Context, c *harness.Call, _ json.RawMessage) (harness.Probed, error) {
			return s.look(c.Key())
		})
}

// The outcome of a call that is in doubt is looked up before anything is
// repeated: each of the four states has its end.
func TestProbe(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		shop   *shop
		waits  int // times the conversation rests
		log    string
		end    record.End
		text   string
		found  string // states in the log
		orders int
		posts  []string
	}{
		"a reply": {&shop{}, 0, "order", record.Done, "ordered", "", 1, []string{"the end"}},
		"done":    {&shop{drops: 1}, 0, "order look", record.Done, "found the order", "done", 1, []string{"the end"}},
		"not done": {
			&shop{loses: 1}, 0, "order look order", record.Done, "ordered", "not done", 1, []string{"the end"},
		},
		"not done, again and again": {
			&shop{loses: 9},
			0, "order look order look order look", record.Failed, "Error: it was not done: no reply: its outcome is unknown",
			"not done, not done, not done", 0,
			[]string{"the end"},
		},
		"running": {
			&shop{drops: 1, slow: 2}, 2, "order look look look", record.Done, "found the order", "running, running, done", 1, []string{"the end"},
		},
		"running for ever": {
			&shop{drops: 1, slow: 99},
			maxProbes - 1, "order" + strings.Repeat(" look", maxProbes), record.NeedsHuman, textUnclear,
			strings.TrimSuffix(strings.Repeat("running, ", maxProbes), ", "), 1,
			[]string{lineUnclear("order")},
		},
		"not to be looked up for a while": {
			&shop{drops: 1, deaf: 2}, 2, "order look look look", record.Done, "found the order", "failed, failed, done", 1, []string{"the end"},
		},
		"unclear": {
			&shop{drops: 1, forgets: true}, 0, "order look", record.NeedsHuman, textUnclear, "unclear", 1, []string{lineUnclear("order")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := c.shop
			s.orders = map[string]int{}
			w := worldOf(t, plain(s.tool()), scripted.Play(lastSays(map[string]scripted.Step{"please": call("order")}), 0))
			w.say("U1", "please")
			for range c.waits {
				w.run()
				w.idle()
				w.restart()
				w.pass(maxProbeWait)
			}
			w.run()
			var found []string
			for _, p := range of[record.Probed](w.records()) {
				found = append(found, p.Found)
			}
			if got := strings.Join(found, ", "); got != c.found || s.calls() != c.log || len(s.orders) != c.orders {
				t.Errorf("found %q, want %q; the shop was asked %q, want %q; it has %v", got, c.found, s.calls(), c.log, s.orders)
			}
			listed, err := record.Retries(w.view().Records)
			if err != nil {
				t.Fatal(err)
			}
			var classes []string
			for _, r := range listed {
				if r.Class == record.ClassUnknown && r.Tool == "order" && r.Result != "left to people" {
					classes = append(classes, strings.TrimPrefix(r.Result, "probed: "))
				}
			}
			if d := cmp.Diff(found, classes); d != "" {
				t.Errorf("the retries list %s", d)
			}
			dids := of[record.Did](w.records())
			if len(dids) != 1 || dids[0].End != c.end || dids[0].Text != c.text || dids[0].Probed != (c.found != "" && c.text != "ordered") {
				t.Errorf("results %+v", dids)
			}
			if d := cmp.Diff(c.posts, w.posts()); d != "" {
				t.Errorf("posts %s", d)
			}
			if o := of[record.Settled](w.records())[0].Outcome; (o == record.NeedsHuman) != (c.end == record.NeedsHuman) {
				t.Errorf("settled as %s", o)
			}
			w.ask("U1", "and now?")
			if got := transcript(w.request(-1)); !strings.Contains(got, "[results] "+c.text) {
				t.Errorf("the model is told\n%s", got)
			}
		})
	}
}

// Over all points at which the process may die, the shop gets one order, and
// none that was not looked for after the first.
func TestProbeOverCrashes(t *testing.T) {
	t.Parallel()
	for made, n := true, 1; made; n++ {
		for _, f := range []fate{before, after} {
			for _, drops := range []int{0, 1} {
				s := &shop{orders: map[string]int{}, drops: drops}
				w := worldOf(t, plain(s.tool()), scripted.Play(lastSays(map[string]scripted.Step{"please": call("order")}), 0))
				m := &mortal{Log: w.store, dies: at(n, f)}
				w.log = m
				w.restart()
				w.say("U1", "please")
				w.live()
				made = m.count >= n
				if len(s.orders) != 1 || strings.Contains(s.calls(), "order order") {
					t.Errorf("died at commit %d, made %t: the shop was asked %q and has %v", n, f == after, s.calls(), s.orders)
				}
				if d := cmp.Diff([]string{"the end"}, w.posts()); d != "" {
					t.Errorf("died at commit %d: posts %s", n, d)
				}
			}
		}
	}
}

// A tool that ran out of time is looked after as well; without a probe the model
// is told that nobody knows.
func TestTimeOutIsUnknown(t *testing.T) {
	t.Parallel()
	s := &shop{orders: map[string]int{}}
	slow := func(ctx context.Context, c *harness.Call) (string, error) {
		if _, err := s.order(c.Key()); err != nil {
			return "", err
		}
		<-ctx.Done()
		return "", ctx.Err()
	}
	blind := act("blind", slow).Timeout(time.Millisecond)
	seen := act("seen", slow).Timeout(time.Millisecond).
		Probe(func(_ context.Context, c *harness.Call, _ json.RawMessage) (harness.Probed, error) {
			return s.look(c.Key())
		})
	w := newWorld(t, plain(blind, seen), call("blind", "seen"), scripted.Say("ok"))
	w.ask("U1", "go")
	dids := of[record.Did](w.records())
	if len(dids) != 2 || dids[0].End != record.Unknown || dids[1].End != record.Done || dids[1].Text != "found the order" {
		t.Errorf("results %+v", dids)
	}
}

// A person is asked to look when a subagent's call is in doubt, too, once all
// calls of the step are over.
func TestSubagentNeedsHuman(t *testing.T) {
	t.Parallel()
	s := &shop{orders: map[string]int{}, drops: 1, forgets: true}
	buyer := func(c *harness.Context) string { harness.UseTool(c, s.tool()); return "Buy." }
	nap := durable("nap", func(ctx context.Context, c *harness.Call) (string, error) {
		return "rested", harness.Sleep(ctx, c, "nap", c.Now().Add(time.Hour))
	})
	agent := func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		harness.UseSubagent(c, harness.Subagent{Name: "buyer", Doc: "Buys.", Agent: buyer})
		harness.UseTool(c, nap)
		return "Delegate."
	}
	w := worldOf(t, agent, scripted.Play(lastSays(map[string]scripted.Step{
		"please":        scripted.Answer(scripted.ToolCall("task", `{"agent":"buyer","prompt":"one book"}`), scripted.ToolCall("nap", `{}`)),
		"one book":      call("order"),
		"what happened": scripted.Say("nobody knows"),
	}), 0))
	w.wary.stable = false
	w.ask("U1", "please")
	if len(w.posts()) != 0 {
		t.Errorf("posts %q while a call waits", w.posts())
	}
	w.pass(time.Hour)
	w.restart()
	w.run()
	if d := cmp.Diff([]string{lineUnclear("order")}, w.posts()); d != "" {
		t.Errorf("posts %s", d)
	}
	w.ask("U1", "what happened?")
	if d := cmp.Diff([]string{lineUnclear("order"), "nobody knows"}, w.posts()); d != "" {
		t.Errorf("posts %s", d)
	}
	if s.calls() != "order look" {
		t.Errorf("the shop was asked %q", s.calls())
	}
}
