package memfs

import (
	"bufio"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/heddlehq/heddle/sandbox"
)

// magic begins a snapshot and names its format: after it comes a deflated list
// of entries (mode, path, contents; all with their lengths), parents first.
const magic = "heddlefs1\n"

// MaxSnapshotBytes bounds a snapshot.
const MaxSnapshotBytes = 4 << 20

var errSnapshot = errors.New("snapshot is damaged")

// Snapshot returns the tree without times and /dev. Equal trees give equal
// bytes. It fails with sandbox.ErrLimit if they are more than MaxSnapshotBytes.
func (f *FS) Snapshot() ([]byte, error) {
	var buf bytes.Buffer
	buf.WriteString(magic)
	z, err := flate.NewWriter(&buf, flate.BestSpeed)
	if err != nil {
		return nil, err // unreachable: the level is valid
	}
	f.mu.RLock()
	writeTree(z, f.root, "")
	f.mu.RUnlock()
	if err := z.Close(); err != nil {
		return nil, err // unreachable: a buffer does not fail
	}
	if buf.Len() > MaxSnapshotBytes {
		return nil, fmt.Errorf("files take more than %d MiB compressed: %w", MaxSnapshotBytes>>20, sandbox.ErrLimit)
	}
	return buf.Bytes(), nil
}

func writeTree(w io.Writer, n *node, name string) {
	for _, kid := range slices.Sorted(maps.Keys(n.kids)) {
		k, at := n.kids[kid], name+"/"+kid
		if at == "/dev" {
			continue
		}
		head := binary.AppendUvarint(nil, uint64(k.mode))
		head = append(binary.AppendUvarint(head, uint64(len(at))), at...)
		data := k.data
		if k.mode&fs.ModeSymlink != 0 {
			data = []byte(k.to)
		}
		_, _ = w.Write(binary.AppendUvarint(head, uint64(len(data)))) // into a buffer, by way of a compressor
		_, _ = w.Write(data)
		writeTree(w, k, at)
	}
}

// Restore returns the tree of a snapshot; no bytes give that of New. It holds to
// the quotas whatever the bytes are.
func Restore(snapshot []byte, now func() time.Time) (*FS, error) {
	f := New(now)
	if len(snapshot) == 0 {
		return f, nil
	}
	packed, ok := bytes.CutPrefix(snapshot, []byte(magic))
	if !ok || len(snapshot) > MaxSnapshotBytes {
		return nil, fmt.Errorf("not a snapshot of this format: %w", fs.ErrInvalid)
	}
	delete(f.root.kids, "home")
	delete(f.root.kids, "tmp")
	f.files -= 3
	r := bufio.NewReader(flate.NewReader(bytes.NewReader(packed)))
	for {
		mode, err := binary.ReadUvarint(r)
		if errors.Is(err, io.EOF) {
			return f, nil
		}
		if err == nil {
			err = f.restoreOne(r, fs.FileMode(mode))
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w: %w", errSnapshot, fs.ErrInvalid, err)
		}
	}
}

func (f *FS) restoreOne(r *bufio.Reader, mode fs.FileMode) error {
	name, err := readBytes(r, maxPathBytes)
	if err != nil {
		return err
	}
	at := string(name)
	if at != path.Clean("/"+at) || at == "/" || strings.HasPrefix(at+"/", "/dev/") {
		return errSnapshot
	}
	data, err := readBytes(r, MaxFileBytes)
	if err != nil {
		return err
	}
	switch mode.Type() {
	case fs.ModeDir:
		return f.Mkdir(at, mode)
	case fs.ModeSymlink:
		return f.Symlink(string(data), at)
	case 0:
		return f.WriteFile(at, data, mode)
	}
	return errSnapshot
}

// readBytes reads a length and as many bytes.
func readBytes(r *bufio.Reader, most uint64) ([]byte, error) {
	n, err := binary.ReadUvarint(r)
	if err != nil {
		return nil, noEOF(err)
	}
	if n > most {
		return nil, errSnapshot
	}
	data, err := io.ReadAll(io.LimitReader(r, int64(n)))
	if err == nil && uint64(len(data)) < n {
		err = io.ErrUnexpectedEOF
	}
	return data, noEOF(err)
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
