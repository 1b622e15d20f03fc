package turn

import (
	"context"
	"fmt"
	"sync"

	"github.com/heddlehq/heddle/sandbox"
	"github.com/heddlehq/heddle/state"
)

// A box is the sandbox of a run and what is known of its stored files.
type box struct {
	name  string
	sb    sandbox.Sandbox
	saved string // digest of the stored snapshot
}

// boxBlob names the stored files of a sandbox kind.
func boxBlob(name string) string { return "files/" + name }

// opener returns what opens the step's sandbox, at its first use.
func (r *run) opener(name string) func(context.Context) (sandbox.Sandbox, error) {
	var mu sync.Mutex
	return func(ctx context.Context) (sandbox.Sandbox, error) {
		mu.Lock()
		defer mu.Unlock()
		if name == "" {
			return nil, fmt.Errorf("this step has no sandbox")
		}
		if r.box != nil && r.box.name == name {
			return r.box.sb, nil
		}
		snap, err := r.Log.Blob(ctx, r.conv.ID, boxBlob(name))
		if err != nil {
			return nil, fmt.Errorf("open sandbox %s: %w", name, err)
		}
		// The sandbox outlives the call that opens it; leave closes it.
		sb, err := r.Sandboxes[name].Open(context.WithoutCancel(ctx), string(r.conv.ID), snap)
		if err != nil {
			return nil, fmt.Errorf("open sandbox %s: %w", name, err)
		}
		if r.box != nil {
			_ = r.box.sb.Close() // of the rung below; its files are stored
		}
		r.box = &box{name: name, sb: sb, saved: digest(snap)}
		return sb, nil
	}
}

// saveFiles puts the sandbox's files, if they changed, into the next commit.
func (r *run) saveFiles(ctx context.Context) error {
	if r.box == nil || !r.dirty {
		return nil
	}
	r.dirty = false
	snap, err := r.box.sb.Snapshot(ctx)
	if err != nil {
		// The sandbox died; the next use opens it from the stored files.
		r.log.Warn("sandbox files not saved", "err", err)
		_ = r.box.sb.Close()
		r.box = nil
		return nil
	}
	if d := digest(snap); snap != nil && d != r.box.saved {
		r.batch.Blobs = append(r.batch.Blobs, state.Blob{Name: boxBlob(r.box.name), Data: snap})
		r.box.saved = d
	}
	return nil
}

// leave gives up the sandbox at the end of a run.
func (r *run) leave(err error) {
	if r.box != nil {
		if cerr := r.box.sb.Close(); cerr != nil && err == nil {
			r.log.Warn("sandbox not closed", "err", cerr)
		}
	}
}
