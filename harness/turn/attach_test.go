package turn

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model/scripted"
	"github.com/heddlehq/heddle/state"
)

// attaching is an agent with files and a way to post them.
func attaching(c *harness.Context) string {
	a := harness.UseAttach(c)
	harness.UseSandbox(c, "memory")
	return plain(act("two", func(_ context.Context, call *harness.Call) (string, error) {
		return "done", a.Post(call, "", chat.Attachment{Name: "a", Data: []byte("1")}, chat.Attachment{Name: "b", Data: []byte("2")})
	}), act("large", func(_ context.Context, call *harness.Call) (string, error) {
		return "done", a.Post(call, "", chat.Attachment{Name: "a", Data: make([]byte, chat.MaxAttached)}, chat.Attachment{Name: "b", Data: []byte("2")})
	}), act("folder", func(_ context.Context, call *harness.Call) (string, error) {
		return "done", a.Post(call, "", chat.Attachment{Name: "../a", Data: []byte("1")})
	}))(c)
}

// takesFiles makes the thread's channel one that takes files, or not.
func (w *world) takesFiles(yes bool) {
	compose := w.opts.Compose
	w.opts.Compose = func(t chat.Thread, text string, r chat.Role) ([]string, bool) {
		texts, _ := compose(t, text, r)
		return texts, yes
	}
	w.restart()
}

// Files of the sandbox and of tools are posted with the results of their step,
// each once, before the answer.
func TestFilesArePosted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, attaching,
		scripted.Call("write", `{"path":"out/chart.csv","content":"1,2\n"}`),
		scripted.Answer(scripted.ToolCall("attach", `{"path":"out/chart.csv","text":"The chart:\n---\nsee below"}`), scripted.ToolCall("two", "{}"),
			scripted.ToolCall("attach", `{"path":"none"}`), scripted.ToolCall("large", "{}"), scripted.ToolCall("folder", "{}")),
		scripted.Say("there"))
	w.takesFiles(true)
	w.ask("U1", "please")
	ps, err := w.store.Posts(t.Context(), state.ConversationID("tested", thread))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	keys := map[string]bool{}
	for _, p := range ps {
		line := p.Post.Text
		for _, f := range p.Post.Files {
			line += fmt.Sprintf(" [%s %s %q]", f.Name, f.MediaType, f.Data)
		}
		got = append(got, line)
		keys[p.Post.Key] = true
	}
	want := []string{"The chart:", `see below [chart.csv text/csv; charset=utf-8 "1,2\n"]`, ` [a  "1"] [b  "2"]`, "there"}
	if d := cmp.Diff(want, got); d != "" || len(keys) != len(want) {
		t.Errorf("%d keys, posts (-want +got):\n%s", len(keys), d)
	}
	if n := len(of[record.Posted](w.records())); n != 2 {
		t.Errorf("%d records, want 2", n)
	}
	told := transcript(w.request(-1))
	for _, want := range []string{"chart.csv (4 bytes) is posted with this step", "read none: file does not exist", "and 1 MB is the most", `the file "../a" is empty, or has no name`} {
		if !strings.Contains(told, want) {
			t.Errorf("the model is not told %q:\n%s", want, told)
		}
	}
}

// Calls that run side by side post in the order in which they were made.
func TestFilesKeepTheOrderOfCalls(t *testing.T) {
	t.Parallel()
	posted := make(chan struct{})
	w := newWorld(t, func(c *harness.Context) string {
		a := harness.UseAttach(c)
		post := func(call *harness.Call) (string, error) {
			return "done", a.Post(call, "", chat.Attachment{Name: call.Tool, Data: []byte("1")})
		}
		return plain(act("first", func(_ context.Context, call *harness.Call) (string, error) {
			<-posted
			return post(call)
		}), act("second", func(_ context.Context, call *harness.Call) (string, error) {
			defer close(posted)
			return post(call)
		}))(c)
	}, call("first", "second"), scripted.Say("end"))
	w.takesFiles(true)
	w.ask("U1", "please")
	ps, err := w.store.Posts(t.Context(), state.ConversationID("tested", thread))
	if err != nil || len(ps) != 3 || ps[0].Post.Files[0].Name != "first" || ps[1].Post.Files[0].Name != "second" {
		t.Errorf("posted %+v, %v", ps, err)
	}
}

// Where no file can be posted, the model has no tool for it, and a call fails.
func TestFilesAreNotPostedEverywhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, attaching, call("two"), scripted.Say("end"))
	w.takesFiles(false)
	w.ask("U1", "please")
	if got := offered(w.request(0)); strings.Contains(got, "attach") {
		t.Errorf("offered %s", got)
	}
	if told := transcript(w.request(-1)); !strings.Contains(told, "no files can be posted in this thread") || len(w.posts()) != 1 {
		t.Errorf("%d posts, told\n%s", len(w.posts()), told)
	}
}

// Where an answer opens a thread, a text does and the files follow it.
func TestFilesOpenNoThread(t *testing.T) {
	t.Parallel()
	w := newWorld(t, attaching, call("two"), scripted.Say("end"))
	room := chat.Thread{Channel: "slack", Account: "T1", Room: "C9"}
	w.opts.Where = func(chat.Event) (chat.Thread, bool) { return room, true }
	w.takesFiles(true)
	w.ask("U1", "please")
	ps, err := w.store.Posts(t.Context(), state.ConversationID("tested", thread))
	if err != nil || len(ps) != 3 {
		t.Fatalf("%d posts, %v", len(ps), err)
	}
	first, second := ps[0].Post, ps[1].Post
	if first.Text != "a, b" || first.Files != nil || !first.Open || first.Thread != room || len(second.Files) != 2 || second.Text != "" || second.After != first.Key {
		t.Errorf("posted %+v, then %+v", first, second)
	}
}

// A text above files that is so long that it becomes a file takes no file's place.
func TestLongTextAboveFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, attaching, scripted.Call("write", `{"path":"f","content":"1"}`),
		scripted.Call("attach", `{"path":"f","text":"a\n---\nb\n---\nc\n---\nd\n---\ne"}`), scripted.Say("end"))
	w.takesFiles(true)
	w.ask("U1", "please")
	ps, err := w.store.Posts(t.Context(), state.ConversationID("tested", thread))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range ps {
		for _, f := range p.Post.Files {
			got = append(got, f.Name)
		}
	}
	if d := cmp.Diff([]string{"answer.md", "f"}, got); d != "" {
		t.Errorf("files (-want +got):\n%s", d)
	}
}

// A subagent posts where its giver answers.
func TestTasksPostFiles(t *testing.T) {
	t.Parallel()
	child := func(c *harness.Context) string {
		a := harness.UseAttach(c)
		harness.UseTool(c, act("report", func(_ context.Context, call *harness.Call) (string, error) {
			return "done", a.Post(call, "the report", chat.Attachment{Name: "r", Data: []byte("1")})
		}))
		return "Child."
	}
	w := worldOf(t, giver(harness.Subagent{Agent: child}), scripted.Play(bySystem(map[string]scripted.Step{
		"Child.": lastSays(map[string]scripted.Step{"first": call("report")}),
		"Help.":  lastSays(map[string]scripted.Step{"please": scripted.Answer(taskFor("helper", "first"))}),
	}), 0))
	w.wary.stable = false
	w.takesFiles(true)
	w.ask("U1", "please")
	ps, err := w.store.Posts(t.Context(), state.ConversationID("tested", thread))
	if err != nil || len(ps) != 2 || ps[0].Post.Text != "the report" || len(ps[0].Post.Files) != 1 || ps[0].Post.Thread != thread {
		t.Errorf("posts %+v, %v", ps, err)
	}
}
