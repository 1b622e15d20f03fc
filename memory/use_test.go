package memory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/harness/turn"
	"github.com/heddlehq/heddle/memory/embedder"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/scripted"
	"github.com/heddlehq/heddle/sandbox"
	"github.com/heddlehq/heddle/state"
)

// agentOf remembers in m.
func agentOf(m *Memory) harness.Agent {
	return func(c *harness.Context) string {
		harness.UseModel(c, "scripted/m")
		Use(c, m)
		return ""
	}
}

// call runs one tool of the hook.
func call(t *testing.T, m *Memory, s harness.Snapshot, id, tool, args string) (string, []harness.Voice, error) {
	t.Helper()
	manifest, err := harness.Render(agentOf(m), s)
	if err != nil {
		t.Fatal(err)
	}
	use, ok := manifest.Tool(tool)
	if !ok || !use.Resumes(false) {
		t.Fatalf("%s is not mounted, or not durable", tool)
	}
	c := harness.NewScope(s, func(context.Context) (sandbox.Sandbox, error) { return nil, nil }).Call(id, tool)
	text, err := use.Run(context.Background(), c, json.RawMessage(args))
	return text, c.Voices(), err
}

// TestTools saves by one conversation and finds by another.
func TestTools(t *testing.T) {
	t.Parallel()
	e := &shifted{name: "e", n: 1024}
	w := newWorld(t, newStore(), Options{Embedder: e})
	by := harness.Snapshot{Thread: in("T1", "C1"), Trust: chat.Member, Now: start, Event: chat.Event{ID: "E1", Author: chat.Author{ID: "U1"}}}
	for range 2 { // a crash runs a call again
		if got, _, err := call(t, w.Memory, by, "call1", "memory_save", `{"text":"Invoices are paid on Mondays."}`); err != nil || got != "Saved." {
			t.Fatal(got, err)
		}
	}
	if _, _, err := call(t, w.Memory, by, "call2", "memory_save", `{"text":"Invoices in euro."}`); err != nil {
		t.Fatal(err)
	}
	from := by
	from.Thread = in("T1", "C2")
	got, voices, err := call(t, w.Memory, from, "call1", "memory_search", `{"query":"when do we pay an invoice on monday?","limit":1}`)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"results":[{"kind":"note","at":"2026-03-01T12:00:00Z","where":"elsewhere","thread":"slack/T1/C1/1","author":"U1","trust":"member","text":"Invoices are paid on Mondays."}]}`
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := gocmp.Diff([]harness.Voice{{Author: chat.Author{ID: "U1"}, Role: chat.Member}}, voices); diff != "" {
		t.Errorf("voices (-want +got):\n%s", diff)
	}
	if got, _, _ := call(t, w.Memory, by, "c", "memory_search", `{"query":"invoice","limit":20}`); strings.Count(got, `"this thread"`) != 2 {
		t.Errorf("in the thread itself: %s", got)
	}
	if got, _, err := call(t, w.Memory, harness.Snapshot{Thread: in("T9", "C1")}, "c", "memory_search", `{"query":"invoice"}`); err != nil || got != `{"results":[]}` {
		t.Errorf("nothing: %s, %v", got, err)
	}
	for tool, args := range map[string]string{"memory_search": `{"query":" "}`, "memory_save": `{"text":""}`} {
		if _, _, err := call(t, w.Memory, by, "c", tool, args); !errors.Is(err, harness.ErrArgs) {
			t.Errorf("%s %s: %v", tool, args, err)
		}
	}
	e.away = true
	if got, _, err := call(t, w.Memory, by, "c", "memory_search", `{"query":"invoices"}`); err != nil || !strings.Contains(got, "by words only") || !strings.Contains(got, "Mondays") {
		t.Errorf("while the embedder is away: %s, %v", got, err)
	}
	w.Embedder = &shifted{name: "another", n: 8}
	for tool, args := range map[string]string{"memory_search": `{"query":"invoice"}`, "memory_save": `{"text":"x"}`} {
		if _, _, err := call(t, w.Memory, by, "c", tool, args); !errors.Is(err, errAway) || strings.Contains(err.Error(), "another") {
			t.Errorf("%s with another embedder: %v", tool, err)
		}
	}
}

// talk runs conversations of an agent with the memory of a world, whose model
// plays the steps. Each call of it is a turn of the thread of a root; it returns
// the thread's whole log.
func talk(t *testing.T, w *world, steps ...scripted.Step) func(author, root, text string) []record.Body {
	t.Helper()
	names, err := model.NewNames([]model.Provider{scripted.New(steps...)}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := turn.New(turn.Options{
		Log: w.store, Agents: map[string]harness.Agent{"a": agentOf(w.Memory)}, Models: names, Role: w.Role, Clock: time.Now,
		Compose: func(_ chat.Thread, markdown string, _ chat.Role) ([]string, bool) { return []string{markdown}, false }, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	said := 0
	return func(author, root, text string) []record.Body {
		t.Helper()
		said++
		thread := chat.Thread{Channel: "slack", Account: "T1", Room: "C1", Root: root}
		e := chat.Event{ID: fmt.Sprint("E", said), Thread: thread, Kind: chat.Mention, Author: chat.Author{ID: author}, Text: text}
		if _, err := w.store.Admit(context.Background(), []state.Admit{{Event: e, Agent: "a"}}); err != nil {
			t.Fatal(err)
		}
		l, err := w.store.Claim(context.Background(), "test", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if err := engine.Run(context.Background(), context.Background(), l); err != nil {
			t.Fatal(err)
		}
		v, err := w.store.Load(context.Background(), l.Conversation.ID, 0)
		if err != nil {
			t.Fatal(err)
		}
		var out []record.Body
		for _, r := range v.Records {
			b, err := record.Decode(r)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, b)
		}
		return out
	}
}

// read is what the calls of a log were answered, and the trust of its steps.
func read(log []record.Body) (texts []string, trust []chat.Role) {
	for _, b := range log {
		switch b := b.(type) {
		case record.Did:
			texts = append(texts, b.Text)
		case record.Rendered:
			trust = append(trust, b.Trust)
		}
	}
	return texts, trust
}

// TestTrust runs two conversations: what the second finds of the first counts
// as a voice in it, so that its trust follows whoever said it.
func TestTrust(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newStore(), Options{})
	w.roles = map[string]chat.Role{"U1": chat.Maintainer, "U2": chat.Maintainer, "U3": chat.Admin}
	search := scripted.Call("memory_search", `{"query":"code of the door"}`)
	ask := talk(t, w,
		scripted.Call("memory_save", `{"text":"The code of the door is 42."}`), scripted.Say("saved"),
		search, scripted.Say("nothing"),
		search, scripted.Say("42"),
		scripted.Say("hello"),
	)
	ask("U1", "1", "keep it")
	if texts, _ := read(ask("U3", "2", "which code?")); len(texts) != 1 || texts[0] != `{"results":[]}` {
		t.Errorf("an admin finds what a maintainer said: %s", texts)
	}
	if texts, trust := read(ask("U2", "3", "which code?")); len(texts) != 1 || !strings.Contains(texts[0], "42") || trust[1] != chat.Maintainer {
		t.Errorf("a maintainer finds %s, with trust %v", texts, trust)
	}
	w.roles["U1"] = chat.Outsider
	_, trust := read(ask("U2", "3", "thanks"))
	if diff := gocmp.Diff([]chat.Role{chat.Maintainer, chat.Maintainer, chat.Outsider}, trust); diff != "" {
		t.Errorf("trust of the steps, when who said it is nobody any more (-want +got):\n%s", diff)
	}
}

// TestTurns finds a turn of one conversation in another, once, and with the
// trust of all who had a part in it. A turn that failed is not remembered.
func TestTurns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newStore(), Options{})
	w.roles = map[string]chat.Role{"U1": chat.Member, "U2": chat.Maintainer}
	ask := talk(t, w,
		scripted.Say("The printer stands in the hall."),
		scripted.Say("It prints in colour."),
		scripted.Fault(model.Denied, 0),
		scripted.Call("memory_search", `{"query":"printers","limit":20}`), scripted.Say("found"),
	)
	ask("U1", "1", "where is the printer?")
	ask("U2", "1", "does the printer do colour?")
	ask("U1", "2", "is the printer broken?")
	texts, _ := read(ask("U1", "3", "?"))
	if len(texts) != 1 || strings.Count(texts[0], `"kind":"turn"`) != 2 || strings.Count(texts[0], `"trust":"member"`) != 2 ||
		!strings.Contains(texts[0], `"text":"Question: where is the printer?\nAnswer: The printer stands in the hall."`) {
		t.Errorf("found %s", texts)
	}

	s := harness.Snapshot{Thread: in("T1", "C1"), Turn: "t1", Now: start, Event: chat.Event{ID: "E1", Text: "a question"}}
	for range 2 { // a crash runs a callback again
		c := harness.NewScope(s, nil).Call("settled/t1/memory", "")
		if err := w.settled(context.Background(), c, harness.Settled{Outcome: "answered", Answer: "an answer"}); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.find(in("T1", "C1"), chat.Outsider, "a question"); len(got) != 4 { // with the two above and that of the search
		t.Errorf("found %q", got)
	}
}

// TestTask gives an agent that works on a task the tools and no more.
func TestTask(t *testing.T) {
	t.Parallel()
	m := newWorld(t, newStore(), Options{}).Memory
	for depth, want := range []int{1, 0, 0} {
		manifest, err := harness.Render(agentOf(m), harness.Snapshot{Depth: depth})
		if err != nil {
			t.Fatal(err)
		}
		if len(manifest.Settles) != want {
			t.Errorf("depth %d: %d callbacks, want %d", depth, len(manifest.Settles), want)
		}
		for _, name := range []string{"memory_search", "memory_save"} {
			if _, ok := manifest.Tool(name); !ok {
				t.Errorf("depth %d: no tool %s", depth, name)
			}
		}
	}
}

// TestAtOnce remembers and searches side by side.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	m := New(Options{Values: newStore().Store, Embedder: embedder.NGram{}, Items: 25})
	done := make(chan error)
	for i := range 4 {
		go func() {
			var err error
			for n := range 10 {
				it := Item{ID: fmt.Sprint(i, n), Kind: Note, Thread: in("T1", "C1"), Text: fmt.Sprint("note ", i, n), At: start}
				_, serr := m.Search(context.Background(), Query{Text: "note", Thread: in("T1", "C1")})
				err = errors.Join(err, m.Remember(context.Background(), it), serr)
			}
			done <- err
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	r, err := New(m.Options).Search(context.Background(), Query{Text: "note", Thread: in("T1", "C1"), Limit: 20})
	if err != nil || len(r.Found) != 20 {
		t.Errorf("%d found, %v", len(r.Found), err)
	}
	if s, err := m.Stats(context.Background(), "slack/T1"); err != nil || s.Items > 25 {
		t.Errorf("%+v, %v", s, err)
	}
}

// A memory that is not there is a mistake of the agent's author.
func TestUseOfNoMemory(t *testing.T) {
	t.Parallel()
	_, err := harness.Render(func(c *harness.Context) string { Use(c, nil); return "" }, harness.Snapshot{Agent: "a", Model: "fast"})
	if want := `agent "a": memory.Use: there is no memory; make one`; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}
