package turn

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/scripted"
)

// The files of tasks end with them, also of those that a task has given when it
// is stopped, and when another process began them.
func TestFilesEndWithTheTasks(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"stopped", "stopped after a crash"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { filesEnd(t, how != "stopped") })
		})
	}
}

func filesEnd(t *testing.T, crash bool) {
	free := make(chan struct{})
	defer close(free)
	inner := func(c *harness.Context) string {
		harness.UseSandbox(c, "memory")
		harness.UseTool(c, act("job", hang(true, free)).Durable())
		return "Work."
	}
	outer := func(c *harness.Context) string {
		harness.UseSubagent(c, harness.Subagent{Name: "worker", Doc: "works", Agent: inner, OwnFiles: true})
		return "Lead."
	}
	w := worldOf(t, giver(harness.Subagent{Agent: outer}), scripted.Play(bySystem(map[string]scripted.Step{
		"Help.": scripted.Answer(taskFor("helper", "hang")),
		"Lead.": scripted.Answer(taskFor("worker", "hang")),
		"Work.": func(ctx context.Context, r model.Request) (model.Response, error) {
			if len(r.Messages) > 1 {
				return call("job")(ctx, r)
			}
			return scripted.Call("write", `{"path":"a","content":"x"}`)(ctx, r)
		},
	}), 0))
	w.wary.stable = false
	w.say("U1", "go")
	if crash {
		w.log = &mortal{Log: w.store, dies: at(5, after)} // when the inner task has called job
		w.restart()
		if err := w.try(); !errors.Is(err, errDied) {
			t.Fatalf("it was not cut off: %v", err)
		}
		w.store.Expire()
		w.log = w.store
		w.restart()
		if !w.hasFiles() {
			t.Error("the inner task has no files")
		}
		w.say("U1", "stop")
		w.run()
	} else {
		w.during(func() {
			if !w.hasFiles() {
				t.Error("the inner task has no files")
			}
			w.say("U1", "stop")
		})
	}
	if w.hasFiles() {
		t.Error("the files of the inner task are left")
	}
}

// hasFiles says whether files of a task's task are stored.
func (w *world) hasFiles() bool {
	w.t.Helper()
	for path := range children(w.records()) {
		b, err := w.store.Blob(context.Background(), w.view().Conversation.ID, "task/"+path+"/memory")
		if err != nil {
			w.t.Fatal(err)
		}
		if b != nil {
			return true
		}
	}
	return false
}
