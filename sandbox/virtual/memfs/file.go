package memfs

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/heddlehq/heddle/sandbox"
)

// A File is an open file. It needs no closing; its methods may not be called at
// once, while several Files of one file may.
type File struct {
	fs   *FS
	node *node
	name string
	flag int
	off  int
}

// Open opens a file as os.OpenFile does. Directories cannot be opened.
func (f *FS) Open(name string, flag int, perm fs.FileMode) (*File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.find("open", name, true)
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*File, error) { return nil, &fs.PathError{Op: "open", Path: name, Err: err} }
	switch {
	case p.node == nil && flag&os.O_CREATE == 0:
		return fail(syscall.ENOENT)
	case p.node == nil:
		p.node = &node{mode: perm.Perm(), at: f.now()}
		if err := f.add("open", name, p, p.node); err != nil {
			return nil, err
		}
	case flag&os.O_EXCL != 0:
		return fail(syscall.EEXIST)
	case p.node.mode.IsDir():
		return fail(syscall.EISDIR)
	case flag&os.O_TRUNC != 0:
		f.bytes -= int64(len(p.node.data))
		p.node.data, p.node.at = nil, f.now()
	}
	return &File{fs: f, node: p.node, name: name, flag: flag}, nil
}

func (f *File) Read(p []byte) (int, error) {
	if f.flag&os.O_WRONLY != 0 {
		return 0, &fs.PathError{Op: "read", Path: f.name, Err: syscall.EBADF}
	}
	f.fs.mu.RLock()
	defer f.fs.mu.RUnlock()
	if f.off >= len(f.node.data) {
		return 0, io.EOF
	}
	n := copy(p, f.node.data[f.off:])
	f.off += n
	return n, nil
}

// Write writes all of p or, at a quota, nothing.
func (f *File) Write(p []byte) (int, error) {
	if f.flag&(os.O_WRONLY|os.O_RDWR) == 0 {
		return 0, &fs.PathError{Op: "write", Path: f.name, Err: syscall.EBADF}
	}
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	n := f.node
	if n.mode&fs.ModeDevice != 0 || n.gone {
		return len(p), nil
	}
	if f.flag&os.O_APPEND != 0 {
		f.off = len(n.data)
	}
	end := f.off + len(p)
	grow := max(0, end-len(n.data))
	if end > MaxFileBytes {
		return 0, f.limit("%d MiB in one file", MaxFileBytes>>20)
	}
	if f.fs.bytes+int64(grow) > MaxBytes {
		return 0, f.limit("%d MiB in all files", MaxBytes>>20)
	}
	n.data = append(n.data, make([]byte, grow)...) // with a hole, if another truncated the file
	copy(n.data[f.off:], p)
	n.at = f.fs.now()
	f.fs.bytes += int64(grow)
	f.off = end
	return len(p), nil
}

func (f *File) limit(format string, n int) error {
	return &fs.PathError{Op: "write", Path: f.name, Err: fmt.Errorf("%w: "+format, sandbox.ErrLimit, n)}
}

// Close does nothing.
func (f *File) Close() error { return nil }
