package turn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/scripted"
	"github.com/heddlehq/heddle/state"
)

// reading is a log that counts the records it hands out, and may hand out
// another checkpoint.
type reading struct {
	state.Log
	mu         sync.Mutex
	records    int
	checkpoint func([]byte) []byte
}

func (r *reading) Load(ctx context.Context, id state.ID, after int64) (state.View, error) {
	v, err := r.Log.Load(ctx, id, after)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records += len(v.Records)
	return v, err
}

func (r *reading) Blob(ctx context.Context, id state.ID, name string) ([]byte, error) {
	b, err := r.Log.Blob(ctx, id, name)
	if name == foldBlob && r.checkpoint != nil {
		b = r.checkpoint(b)
	}
	return b, err
}

func (r *reading) since() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.records
	r.records = 0
	return n
}

// A long conversation is not read again: not by the process that has it in
// memory, and by another one only from the last checkpoint on.
func TestLoadReadsOnlyWhatIsNew(t *testing.T) {
	t.Parallel()
	w := worldOf(t, plain(), scripted.Play(scripted.Say("ok"), 0))
	r := &reading{Log: w.store}
	w.log = r
	w.restart()
	for i := range 100 {
		w.ask("U1", fmt.Sprint("message ", i))
	}
	if n := r.since(); n != 0 {
		t.Errorf("the process that wrote them read %d records", n)
	}
	w.restart()
	w.ask("U1", "last")
	if n := r.since(); n == 0 || n > 200 {
		t.Errorf("a new process read %d of 400 records", n)
	}
	if n := len(w.request(-1).Messages); n != 201 {
		t.Errorf("the last request has %d messages", n)
	}
}

// A checkpoint is a cache: without it, with a broken one or with one that is
// not of this log, the model sees the same.
func TestCheckpointIsOnlyACache(t *testing.T) {
	t.Parallel()
	longer := func(b []byte) []byte {
		id := state.ConversationID("tested", thread)
		f := record.Restore(b, id)
		f.Seq += 1000
		b, err := f.Checkpoint(id)
		if err != nil {
			t.Error(err)
		}
		return b
	}
	for name, broken := range map[string]func([]byte) []byte{
		"good": func(b []byte) []byte { return b }, "none": func([]byte) []byte { return nil },
		"half": func(b []byte) []byte { return b[:len(b)/2] }, "of a longer log": longer,
		"of another conversation": func(b []byte) []byte {
			return bytes.Replace(bytes.Replace(b, []byte("message"), []byte("foreign"), 1), []byte(`"of":"c`), []byte(`"of":"d`), 1)
		},
		"of another version": func(b []byte) []byte { return bytes.Replace(b, []byte(`"version":1`), []byte(`"version":2`), 1) },
	} {
		w := worldOf(t, plain(), scripted.Play(scripted.Say("ok"), 0))
		for i := range 20 {
			w.ask("U1", fmt.Sprint("message ", i))
		}
		blob, err := w.store.Blob(context.Background(), state.ConversationID("tested", thread), foldBlob)
		if err != nil || blob == nil {
			t.Fatalf("no checkpoint was stored: %v", err)
		}
		w.log = &reading{Log: w.store, checkpoint: broken}
		w.restart()
		w.ask("U1", "last") // the wary provider compares this request with the one before
		if n := len(w.request(-1).Messages); n != 41 {
			t.Errorf("%s: the request has %d messages, want 41", name, n)
		}
	}
}

// Folds in memory are bounded by their bytes; the least recently used go first.
func TestFoldsAreBounded(t *testing.T) {
	t.Parallel()
	f := newFolds(100)
	for i := range 10 {
		f.put(state.ID(fmt.Sprint(i)), &cached{bytes: 30})
		if f.bytes > 100 || f.order.Len() != len(f.by) {
			t.Fatalf("%d bytes in %d folds, %d by name", f.bytes, f.order.Len(), len(f.by))
		}
	}
	f.put("7", f.take("7")) // used again
	f.put("10", &cached{bytes: 30})
	var have []bool
	for _, id := range []state.ID{"6", "7", "8", "9", "10"} {
		have = append(have, f.take(id) != nil)
	}
	if d := cmp.Diff([]bool{false, true, false, true, true}, have); d != "" {
		t.Errorf("kept (-want +got):\n%s", d)
	}
	if f.take("7") != nil || f.bytes != 0 || f.order.Len() != 0 || len(f.by) != 0 {
		t.Errorf("after all were taken: %d bytes, %d folds", f.bytes, f.order.Len())
	}
	f.put("big", &cached{bytes: 101})
	if f.order.Len() != 0 || f.bytes != 0 {
		t.Error("what is larger than the bound is kept")
	}
}

// What a codec has written of a conversation is there for its next turn, lies
// with its fold and counts as it does. A task has one of its own.
func TestWrittenLiesWithTheFold(t *testing.T) {
	t.Parallel()
	var main, task []*model.Written
	noted := func(to *[]*model.Written, step scripted.Step) scripted.Step {
		return func(ctx context.Context, r model.Request) (model.Response, error) {
			*to = append(*to, r.Written)
			r.Written.Bytes = 1000
			return step(ctx, r)
		}
	}
	w := worldOf(t, giver(harness.Subagent{Agent: func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		return "Sub."
	}}), scripted.Play(bySystem(map[string]scripted.Step{
		"Sub.": noted(&task, scripted.Say("done")),
		"Help.": noted(&main, func(ctx context.Context, r model.Request) (model.Response, error) {
			if r.Messages[len(r.Messages)-1].Role == model.User {
				return scripted.Answer(taskFor("helper", "help"))(ctx, r)
			}
			return scripted.Say("ok")(ctx, r)
		}),
	}), 0))
	w.wary.stable = false
	w.ask("U1", "one")
	w.ask("U1", "two")
	if len(main) != 4 || len(task) != 2 {
		t.Fatalf("%d and %d requests", len(main), len(task))
	}
	if main[0] != main[1] || main[1] != main[2] || main[2] != main[3] || task[0] == main[0] || task[0] == task[1] {
		t.Errorf("%p, of tasks %p", main, task)
	}
	f := w.engine.folds
	c := f.take(state.ConversationID("tested", thread))
	if &c.written != main[0] || f.bytes != 0 {
		t.Errorf("the fold is not where it was written, or %d bytes are left", f.bytes)
	}
	if f.put("a", c); f.bytes != c.bytes+1000 {
		t.Errorf("%d bytes count, want %d", f.bytes, c.bytes+1000)
	}
}

// Two runs of one conversation, of which one lost its lease, leave one fold.
func TestFoldPutTwice(t *testing.T) {
	t.Parallel()
	f := newFolds(1000)
	f.put("a", &cached{bytes: 30, saved: 1})
	f.put("a", &cached{bytes: 40, saved: 2})
	if f.bytes != 40 || f.order.Len() != 1 || f.take("a").saved != 2 || f.bytes != 0 {
		t.Errorf("%d bytes, %d folds", f.bytes, f.order.Len())
	}
}

// A failed run leaves no fold with what was not committed, even if another
// process then writes as many records.
func TestFailedRunIsNotCached(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain(), scripted.Say("one"), scripted.Say("lost"), scripted.Say("two"), scripted.Say("three"))
	w.wary.stable = false
	w.log = &mortal{Log: w.store, dies: at(2, before)}
	w.restart()
	w.ask("U1", "1")
	w.say("U1", "2")
	if err := w.try(); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	failed := w.engine
	w.store.Expire()
	w.restart()
	w.run()
	w.engine = failed
	w.ask("U1", "3")
	if got := transcript(w.request(-1)); strings.Contains(got, "lost") || !strings.Contains(got, "two") {
		t.Errorf("the request is\n%s", got)
	}
}

// A conversation at rest takes nothing beyond the bounded cache.
func TestIdleConversationsTakeNothing(t *testing.T) {
	t.Parallel()
	for cache, want := range map[int]int{1: 0, 32 << 20: 50} {
		w := worldOf(t, plain(), scripted.Play(scripted.Say("ok"), 0))
		w.wary.stable = false
		w.opts.Limits.Cache = cache
		w.restart()
		for i := range 50 {
			th := thread
			th.Root = fmt.Sprint(i)
			w.admit("U1", "hi", th, false)
		}
		w.run()
		others := 0
		w.engine.breakers.Range(func(any, any) bool { others++; return true })
		if n := len(w.engine.folds.by); n != want || others != 1 {
			t.Errorf("a cache of %d bytes: %d conversations in memory, want %d; %d providers", cache, n, want, others)
		}
	}
}
