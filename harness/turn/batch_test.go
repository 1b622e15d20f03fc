package turn

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model/scripted"
	"github.com/heddlehq/heddle/sandbox"
)

// One answer edits a file twice, by two names, and writes another. The edits
// follow each other and lose nothing; the write does not wait for them.
func TestBatchOfFileTools(t *testing.T) {
	t.Parallel()
	edit := func(path, from, to string) string {
		return `{"path":"` + path + `","old_text":"` + from + `","new_text":"` + to + `"}`
	}
	w := newWorld(t, func(c *harness.Context) string { harness.UseSandbox(c, "memory"); return plain()(c) },
		scripted.Call("write", `{"path":"/f","content":"one two"}`),
		scripted.Answer(
			scripted.ToolCall("edit", edit("/f", "one", "eins")),
			scripted.ToolCall("edit", edit("//f", "two", "zwei")),
			scripted.ToolCall("write", `{"path":"/other","content":"beside"}`)),
		scripted.Answer(scripted.ToolCall("read", `{"path":"/f"}`), scripted.ToolCall("read", `{"path":"/other"}`)),
		scripted.Say("ok"))
	gate := &gate{boxKind: w.boxes, wrote: make(chan struct{}), both: make(chan struct{})}
	w.engine.Sandboxes["memory"] = gate
	w.ask("U1", "go")
	var got []string
	for _, d := range of[record.Did](w.records()) {
		got = append(got, d.Tool+": "+d.Text)
	}
	want := []string{
		"write: wrote 7 bytes to /f, a new file",
		"edit: replaced 1 in /f", "edit: replaced 1 in //f", "write: wrote 6 bytes to /other, a new file",
		"read: eins zwei\n", "read: beside\n",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("results (-want +got):\n%s", d)
	}
	if gate.late {
		t.Error("the write waited for the edits")
	}
	if gate.most != 1 {
		t.Errorf("%d edits were between reading and writing at once", gate.most)
	}
}

// A gate is a sandbox kind in which who reads /f for an edit goes on only when
// /other is written, and gives a second reader the time to come.
type gate struct {
	*boxKind
	wrote chan struct{} // closed when /other is written
	both  chan struct{} // closed when two are between reading and writing

	mu           sync.Mutex
	inside, most int
	late         bool
}

func (g *gate) Open(ctx context.Context, id string, snap []byte) (sandbox.Sandbox, error) {
	sb, err := g.boxKind.Open(ctx, id, snap)
	return gateBox{sb, g}, err
}

type gateBox struct {
	sandbox.Sandbox
	g *gate
}

func (b gateBox) ReadFile(ctx context.Context, p string) ([]byte, error) {
	data, err := b.Sandbox.ReadFile(ctx, clean(p))
	if clean(p) != "/f" || string(data) == "eins zwei" {
		return data, err
	}
	b.g.mu.Lock()
	b.g.inside++
	b.g.most = max(b.g.most, b.g.inside)
	if b.g.inside == 2 {
		close(b.g.both)
	}
	b.g.mu.Unlock()
	select {
	case <-b.g.wrote:
	case <-time.After(10 * time.Second):
		b.g.mu.Lock()
		b.g.late = true
		b.g.mu.Unlock()
	}
	select {
	case <-b.g.both:
	case <-time.After(20 * time.Millisecond):
	}
	return data, err
}

func (b gateBox) WriteFile(ctx context.Context, p string, data []byte) error {
	err := b.Sandbox.WriteFile(ctx, clean(p), data)
	b.g.mu.Lock()
	defer b.g.mu.Unlock()
	switch {
	case clean(p) == "/other":
		close(b.g.wrote)
	case b.g.inside > 0:
		b.g.inside--
	}
	return err
}

// clean makes the two names of the file one.
func clean(p string) string {
	if p == "//f" {
		return "/f"
	}
	return p
}
