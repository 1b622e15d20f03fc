// Package memfs is a file tree in memory with quotas. It knows directories,
// regular files, symbolic links and /dev/null; permission bits are kept but not
// enforced. Paths are absolute and slash-separated. Errors are *fs.PathError.
package memfs

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/heddlehq/heddle/sandbox"
)

// Quotas of one tree.
const (
	MaxBytes     = 16 << 20 // of all files
	MaxFileBytes = 8 << 20  // of one file
	MaxFiles     = 4096     // files, directories and links
	maxPathBytes = 4096
	maxNameBytes = 255
	maxHops      = 40 // symbolic links followed in one path
)

// An FS is a file tree. Its methods may be called at once.
type FS struct {
	now func() time.Time

	mu    sync.RWMutex
	root  *node
	bytes int64
	files int
}

type node struct {
	mode fs.FileMode
	at   time.Time
	data []byte           // of a regular file
	kids map[string]*node // of a directory
	to   string           // of a symbolic link
	gone bool             // removed; what is still written to it is lost
}

// New returns a tree with empty /home/user and /tmp.
func New(now func() time.Time) *FS {
	f := &FS{now: now}
	f.root = f.newDir(0o755)
	for _, name := range []string{"home", "tmp", "dev"} {
		f.root.kids[name] = f.newDir(0o755)
	}
	f.root.kids["home"].kids["user"] = f.newDir(0o755)
	f.files = 5
	f.root.kids["dev"].kids["null"] = &node{mode: fs.ModeDevice | fs.ModeCharDevice | 0o666, at: now()}
	return f
}

func (f *FS) newDir(perm fs.FileMode) *node {
	return &node{mode: fs.ModeDir | perm.Perm(), at: f.now(), kids: map[string]*node{}}
}

// Info describes a file; it is an fs.FileInfo.
type Info struct {
	name string
	size int64
	mode fs.FileMode
	at   time.Time
	node *node
}

func (i Info) Name() string       { return i.name }
func (i Info) Size() int64        { return i.size }
func (i Info) Mode() fs.FileMode  { return i.mode }
func (i Info) ModTime() time.Time { return i.at }
func (i Info) IsDir() bool        { return i.mode.IsDir() }
func (i Info) Sys() any           { return nil }

// Same reports whether both describe one file.
func Same(a, b Info) bool { return a.node == b.node }

func (n *node) info(name string) Info {
	i := Info{name: name, size: int64(len(n.data)), mode: n.mode, at: n.at, node: n}
	if n.mode&fs.ModeSymlink != 0 {
		i.size = int64(len(n.to))
	}
	return i
}

// A place is where a path leads: node is nil if only its directory exists.
type place struct {
	dir  *node // nil for the root
	name string
	node *node
}

// find resolves a path, following a link in its last name if follow is set.
func (f *FS) find(op, name string, follow bool) (place, error) {
	fail := func(err error) (place, error) { return place{}, &fs.PathError{Op: op, Path: name, Err: err} }
	if name == "" {
		return fail(syscall.ENOENT)
	}
	rest := path.Clean("/" + name)
	for range maxHops {
		if len(rest) > maxPathBytes {
			return fail(syscall.ENAMETOOLONG)
		}
		p, next, err := f.descend(rest, follow)
		if err != nil {
			return fail(err)
		}
		if next == "" {
			return p, nil
		}
		rest = next
	}
	return fail(syscall.ELOOP)
}

// descend walks a clean path up to its end or the first link to follow, and
// returns the path that the link leads to.
func (f *FS) descend(name string, follow bool) (p place, next string, err error) {
	if name == "/" {
		return place{name: "/", node: f.root}, "", nil
	}
	parts := strings.Split(name[1:], "/")
	dir := f.root
	for i, part := range parts {
		switch {
		case !dir.mode.IsDir():
			return place{}, "", syscall.ENOTDIR
		case len(part) > maxNameBytes:
			return place{}, "", syscall.ENAMETOOLONG
		case strings.IndexByte(part, 0) >= 0:
			return place{}, "", syscall.EINVAL
		}
		last := i == len(parts)-1
		kid := dir.kids[part]
		if kid != nil && kid.mode&fs.ModeSymlink != 0 && (!last || follow) {
			to := kid.to
			if !path.IsAbs(to) {
				to = path.Join("/", path.Join(parts[:i]...), to)
			}
			return place{}, path.Join("/", to, path.Join(parts[i+1:]...)), nil
		}
		if last {
			return place{dir: dir, name: part, node: kid}, "", nil
		}
		if kid == nil {
			return place{}, "", syscall.ENOENT
		}
		dir = kid
	}
	return place{}, "", syscall.ENOENT // unreachable: parts is never empty
}

// get is find for a path that must exist.
func (f *FS) get(op, name string, follow bool) (place, error) {
	p, err := f.find(op, name, follow)
	if err == nil && p.node == nil {
		err = &fs.PathError{Op: op, Path: name, Err: syscall.ENOENT}
	}
	return p, err
}

// Stat describes a file, following links.
func (f *FS) Stat(name string) (Info, error) { return f.stat("stat", name, true) }

// Lstat describes a file or link.
func (f *FS) Lstat(name string) (Info, error) { return f.stat("lstat", name, false) }

func (f *FS) stat(op, name string, follow bool) (Info, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	p, err := f.get(op, name, follow)
	if err != nil {
		return Info{}, err
	}
	return p.node.info(path.Base(path.Clean("/" + name))), nil
}

// ReadDir lists a directory by name.
func (f *FS) ReadDir(name string) ([]Info, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	p, err := f.get("readdir", name, true)
	if err != nil {
		return nil, err
	}
	if !p.node.mode.IsDir() {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: syscall.ENOTDIR}
	}
	infos := make([]Info, 0, len(p.node.kids))
	for _, kid := range slices.Sorted(maps.Keys(p.node.kids)) {
		infos = append(infos, p.node.kids[kid].info(kid))
	}
	return infos, nil
}

// Readlink returns what a link holds.
func (f *FS) Readlink(name string) (string, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	p, err := f.get("readlink", name, false)
	if err == nil && p.node.mode&fs.ModeSymlink == 0 {
		err = &fs.PathError{Op: "readlink", Path: name, Err: syscall.EINVAL}
	}
	if err != nil {
		return "", err
	}
	return p.node.to, nil
}

// Usage returns the bytes and files in use.
func (f *FS) Usage() (bytes int64, files int) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.bytes, f.files
}

// add puts a new node into a directory.
func (f *FS) add(op, name string, p place, n *node) error {
	if f.files >= MaxFiles {
		return &fs.PathError{Op: op, Path: name, Err: fmt.Errorf("%w: %d files", sandbox.ErrLimit, MaxFiles)}
	}
	f.files++
	p.dir.kids[p.name] = n
	p.dir.at = f.now()
	return nil
}

// Mkdir makes one directory.
func (f *FS) Mkdir(name string, perm fs.FileMode) error {
	return f.make("mkdir", name, func() *node { return f.newDir(perm) })
}

// Symlink makes a link that holds to.
func (f *FS) Symlink(to, name string) error {
	if len(to) > maxPathBytes || to == "" {
		return &fs.PathError{Op: "symlink", Path: name, Err: syscall.EINVAL}
	}
	return f.make("symlink", name, func() *node { return &node{mode: fs.ModeSymlink | 0o777, at: f.now(), to: to} })
}

func (f *FS) make(op, name string, n func() *node) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.find(op, name, false)
	if err != nil {
		return err
	}
	if p.node != nil {
		return &fs.PathError{Op: op, Path: name, Err: syscall.EEXIST}
	}
	return f.add(op, name, p, n())
}

// MkdirAll makes a directory and its parents; one that exists is fine.
func (f *FS) MkdirAll(name string, perm fs.FileMode) error {
	name = path.Clean("/" + name)
	if info, err := f.Stat(name); err == nil {
		if !info.IsDir() {
			return &fs.PathError{Op: "mkdir", Path: name, Err: syscall.ENOTDIR}
		}
		return nil
	}
	if err := f.MkdirAll(path.Dir(name), perm); err != nil {
		return err
	}
	err := f.Mkdir(name, perm)
	if info, statErr := f.Stat(name); err != nil && statErr == nil && info.IsDir() {
		return nil // another made it meanwhile
	}
	return err
}

// Remove removes a file, a link or an empty directory.
func (f *FS) Remove(name string) error { return f.remove(name, false) }

// RemoveAll removes a file or a directory with all in it. Of the root only the
// contents go. A path that leads nowhere is fine.
func (f *FS) RemoveAll(name string) error { return f.remove(name, true) }

func (f *FS) remove(name string, all bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.find("remove", name, false)
	switch {
	case err != nil:
		return err
	case p.node == nil && all:
		return nil
	case p.node == nil:
		return &fs.PathError{Op: "remove", Path: name, Err: syscall.ENOENT}
	case !all && len(p.node.kids) > 0:
		return &fs.PathError{Op: "remove", Path: name, Err: syscall.ENOTEMPTY}
	case p.dir == nil:
		for kid, n := range p.node.kids {
			f.drop(n)
			delete(p.node.kids, kid)
		}
		return nil
	}
	f.drop(p.node)
	delete(p.dir.kids, p.name)
	p.dir.at = f.now()
	return nil
}

// drop gives back what a node and all below it take.
func (f *FS) drop(n *node) {
	n.gone = true
	f.files--
	f.bytes -= int64(len(n.data))
	for _, kid := range n.kids {
		f.drop(kid)
	}
}

// Rename moves a file or directory, replacing a file or an empty directory.
func (f *FS) Rename(from, to string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	src, err := f.get("rename", from, false)
	if err != nil {
		return err
	}
	dst, err := f.find("rename", to, false)
	if err != nil {
		return err
	}
	fail := func(err error) error { return &fs.PathError{Op: "rename", Path: to, Err: err} }
	switch {
	case src.node == dst.node:
		return nil
	case src.dir == nil || dst.dir == nil || holds(src.node, dst.dir):
		return fail(syscall.EINVAL)
	case dst.node == nil:
	case src.node.mode.IsDir() && !dst.node.mode.IsDir():
		return fail(syscall.ENOTDIR)
	case !src.node.mode.IsDir() && dst.node.mode.IsDir():
		return fail(syscall.EISDIR)
	case len(dst.node.kids) > 0:
		return fail(syscall.ENOTEMPTY)
	}
	if dst.node != nil {
		f.drop(dst.node)
	}
	delete(src.dir.kids, src.name)
	dst.dir.kids[dst.name] = src.node
	src.dir.at, dst.dir.at = f.now(), f.now()
	return nil
}

// holds reports whether dir is n or below it.
func holds(n, dir *node) bool {
	if n == dir {
		return true
	}
	for _, kid := range n.kids {
		if holds(kid, dir) {
			return true
		}
	}
	return false
}

// Chmod sets the permission bits.
func (f *FS) Chmod(name string, perm fs.FileMode) error {
	return f.change("chmod", name, func(n *node) { n.mode = n.mode.Type() | perm.Perm() })
}

// Chtimes sets the time of the last change.
func (f *FS) Chtimes(name string, at time.Time) error {
	return f.change("chtimes", name, func(n *node) { n.at = at })
}

func (f *FS) change(op, name string, set func(*node)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.get(op, name, true)
	if err == nil {
		set(p.node)
	}
	return err
}

// ReadFile returns the contents of a file.
func (f *FS) ReadFile(name string) ([]byte, error) {
	file, err := f.Open(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	return slices.Clone(file.node.data), nil
}

// WriteFile replaces the contents of a file, or makes it.
func (f *FS) WriteFile(name string, data []byte, perm fs.FileMode) error {
	file, err := f.Open(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
	if err == nil {
		_, err = file.Write(data)
	}
	return err
}
