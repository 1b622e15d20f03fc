package turn

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/sandbox"
	"github.com/heddlehq/heddle/state"
)

// saveTime bounds the saving of files: a sandbox that hangs must not hold the
// conversation for ever.
const saveTime = time.Minute

// boxes is the sandbox of a run: at most one is open. Tools open it, also one
// that was left behind when its time was over.
type boxes struct {
	providers map[string]sandbox.Provider
	log       state.Log
	id        state.ID
	opening   sync.Mutex // held by who opens
	saving    sync.Mutex // held while files that tasks share are saved and committed
	task      string     // whose files these are, "" for the conversation's
	mu        sync.Mutex // guards the rest, held over no I/O
	open      *box
	closed    bool
}

// A box is an open sandbox and what is known of its stored files.
type box struct {
	name  string
	sb    sandbox.Sandbox
	saved string // digest of the stored snapshot
	// placed counts the attached files that were looked for in it.
	placed int
}

// FilesBlob names the blob with a conversation's stored files of a sandbox kind.
func FilesBlob(kind string) string { return "files/" + kind }

// blob names the stored files of a sandbox kind.
func (b *boxes) blob(kind string) string {
	if b.task == "" {
		return FilesBlob(kind)
	}
	return "task/" + b.task + "/" + kind
}

// keep begins to save files of a sandbox kind; what it returns ends that, when
// they are committed: tasks share them.
func (r *run) keep(kind string) func() {
	if r.saving {
		return func() {}
	}
	b := r.boxesFor(kind)
	b.saving.Lock()
	r.saving = true
	return func() {
		r.saving = false
		b.saving.Unlock()
	}
}

// owner names whose sandbox it is.
func (b *boxes) owner() string {
	if b.task == "" {
		return string(b.id)
	}
	return string(b.id) + "/" + b.task
}

// now is the open sandbox, nil for none.
func (b *boxes) now() *box {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open
}

// swap replaces the open sandbox, whose files are stored, and closes it. When
// the run is over it closes the new one instead.
func (b *boxes) swap(next *box) error {
	b.mu.Lock()
	old := b.open
	b.open = next
	if b.closed && next != nil {
		old, b.open = next, nil
	}
	b.mu.Unlock()
	if old == nil {
		return nil
	}
	return old.sb.Close()
}

// close ends the use of the sandbox.
func (b *boxes) close() error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	return b.swap(nil)
}

// opener returns what opens the step's sandbox, at its first use, and puts the
// attached files into it.
func (b *boxes) opener(name string, files []record.Kept) func(context.Context) (sandbox.Sandbox, error) {
	return func(ctx context.Context) (sandbox.Sandbox, error) {
		if name == "" {
			return nil, errors.New("this step has no sandbox")
		}
		b.opening.Lock()
		defer b.opening.Unlock()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if now := b.now(); now != nil && now.name == name {
			return now.sb, b.place(ctx, now, files)
		}
		snap, err := b.log.Blob(ctx, b.id, b.blob(name))
		if err != nil {
			return nil, fmt.Errorf("open sandbox %s: %w", name, err)
		}
		sb, err := b.providers[name].Open(ctx, b.owner(), snap)
		if err != nil {
			return nil, fmt.Errorf("open sandbox %s: %w", name, err)
		}
		now := &box{name: name, sb: sb, saved: digest(snap)}
		_ = b.swap(now) // the old one is of no use any more
		return sb, b.place(ctx, now, files)
	}
}

// place writes attached files that are not there. One for which there is no room
// is left out: who reads it is told that there is none. The caller holds opening.
func (b *boxes) place(ctx context.Context, in *box, files []record.Kept) error {
	for ; in.placed < len(files); in.placed++ {
		k := files[in.placed]
		if k.Gone {
			continue
		}
		_, err := in.sb.Stat(ctx, k.Path)
		if err == nil {
			continue
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("put files into sandbox %s: %w", in.name, err)
		}
		data, err := b.log.Blob(ctx, b.id, k.Blob)
		if err == nil && data != nil {
			err = in.sb.WriteFile(ctx, k.Path, data)
		}
		if err != nil && !errors.Is(err, sandbox.ErrLimit) {
			return fmt.Errorf("put files into sandbox %s: %w", in.name, err)
		}
	}
	return nil
}

// attached are the files that people attached, for the sandbox of the
// conversation: a task with one of its own gets none.
func (r *run) attached(b *boxes) []record.Kept {
	if b.task != "" {
		return nil
	}
	for r.task != nil {
		r = r.task.up
	}
	return r.f.Files
}

// saveFiles puts the sandbox's files, if they changed, into the next commit.
// If the sandbox has died, the model is told what is lost; the next use opens
// it from the stored files.
func (r *run) saveFiles(ctx context.Context, kind string) error {
	boxes := r.boxesFor(kind)
	box := boxes.now()
	if box == nil || !r.dirty {
		return nil
	}
	r.dirty = false
	limited, cancel := context.WithTimeout(ctx, saveTime)
	defer cancel()
	snap, err := box.sb.Snapshot(limited)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, sandbox.ErrLimit):
		r.dirty = true // the next step tries again
		r.add(record.Told{Turn: r.f.Turn.ID, Step: r.f.Turn.Step, Text: fmt.Sprintf(
			"The files of the %s sandbox are too large to be stored. Delete what is not needed: until then, changes are lost when the sandbox ends.", box.name)})
		return nil
	case err != nil:
		r.log.Warn("sandbox files not saved", "err", err)
		_ = boxes.swap(nil)
		r.add(record.Told{Turn: r.f.Turn.ID, Step: r.f.Turn.Step, Text: fmt.Sprintf(
			"The %s sandbox failed. It starts anew with its files as they were before the last tool calls; check what is missing.", box.name)})
		return nil
	}
	if d := digest(snap); snap != nil && d != box.saved {
		r.batch.Blobs = append(r.batch.Blobs, state.Blob{Name: boxes.blob(box.name), Data: snap})
		box.saved = d
	}
	return nil
}

// paths are those of the open tasks of a turn and of what they have given.
func paths(above string, t *record.Turn) (out []string) {
	for call, f := range t.Tasks {
		out = append(out, above+call)
		if f.Turn != nil {
			out = append(out, paths(above+call+"/", f.Turn)...)
		}
	}
	return out
}

// dropFiles deletes, with the next commit, the files of a task that is over, and
// of those that it has given and did not wait for.
func (r *run) dropFiles(call string) {
	over := strings.TrimPrefix(r.boxes.task+"/"+call, "/")
	r.memo.Lock()
	defer r.memo.Unlock()
	root := r.root()
	for _, path := range root.tasks {
		if path != over && !strings.HasPrefix(path, over+"/") {
			continue
		}
		for kind := range r.Sandboxes {
			r.batch.Blobs = append(r.batch.Blobs, state.Blob{Name: (&boxes{task: path}).blob(kind)})
		}
	}
}
