package virtual

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/heddlehq/heddle/sandbox"
	"github.com/heddlehq/heddle/sandbox/virtual/memfs"
)

// The two processes exchange frames: four bytes of length, then a request or a
// reply as gob. Replies come in any order.
const maxFrame = memfs.MaxBytes + 1<<20

type op string

const (
	opOpen     op = "open"   // Data is a snapshot; the files become those
	opCancel   op = "cancel" // ends the request of that ID, is not answered
	opExec     op = "exec"   // Data is the script
	opRead     op = "read"
	opWrite    op = "write"
	opList     op = "list"
	opStat     op = "stat"
	opSnapshot op = "snapshot"
	opGrep     op = "grep"
	opGlob     op = "glob"
)

type request struct {
	ID      uint64
	Op      op
	Path    string
	Data    []byte
	Timeout time.Duration // of opExec
	Clock   time.Time     // of opOpen: if not zero, what "now" is
	Query   sandbox.Query // of opGrep; opGlob uses its Root, Pattern and Limit
}

type reply struct {
	ID     uint64
	Err    *remoteError
	Data   []byte // contents or a snapshot
	Result sandbox.Result
	Infos  []sandbox.Info
	Hits   sandbox.Hits
	Paths  []string
}

// kinds are the errors that keep their identity on the way.
func kinds() []error {
	return []error{
		fs.ErrNotExist, fs.ErrExist, fs.ErrPermission, fs.ErrInvalid,
		sandbox.ErrLimit, context.Canceled, context.DeadlineExceeded,
	}
}

// A remoteError is an error of the worker.
type remoteError struct {
	Text  string
	Kinds []int // positions in kinds
}

func (e *remoteError) Error() string { return e.Text }

func (e *remoteError) Unwrap() []error {
	var is []error
	for _, k := range e.Kinds {
		if all := kinds(); k >= 0 && k < len(all) {
			is = append(is, all[k])
		}
	}
	return is
}

func toRemote(err error) *remoteError {
	if err == nil {
		return nil
	}
	e := &remoteError{Text: err.Error()}
	for i, kind := range kinds() {
		if errors.Is(err, kind) {
			e.Kinds = append(e.Kinds, i)
		}
	}
	return e
}

// writeFrame writes v with one call of Write.
func writeFrame(w io.Writer, v any) error {
	buf := bytes.NewBuffer(make([]byte, 4))
	if err := gob.NewEncoder(buf).Encode(v); err != nil {
		return err
	}
	size := buf.Len() - 4
	if size > maxFrame {
		return fmt.Errorf("frame of %d bytes: %w", size, sandbox.ErrLimit)
	}
	binary.BigEndian.PutUint32(buf.Bytes(), uint32(size))
	_, err := w.Write(buf.Bytes())
	return err
}

// readFrame reads into v.
func readFrame(r io.Reader, v any) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > maxFrame {
		return fmt.Errorf("frame of %d bytes", size)
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(r, data); err != nil {
		return err
	}
	return gob.NewDecoder(bytes.NewReader(data)).Decode(v)
}
