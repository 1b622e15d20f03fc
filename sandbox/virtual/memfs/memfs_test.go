package memfs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"testing"
	"time"

	"github.com/heddlehq/heddle/sandbox"
)

// count adds up a tree by walking it.
func count(f *FS, dir string) (size int64, files int) {
	infos, _ := f.ReadDir(dir) // it exists
	for _, i := range infos {
		if path.Join(dir, i.Name()) == "/dev" {
			continue
		}
		files++
		switch {
		case i.IsDir():
			s, n := count(f, path.Join(dir, i.Name()))
			size, files = size+s, files+n
		case i.Mode().IsRegular():
			size += i.Size()
		}
	}
	return size, files
}

// TestWalk does things at random: what is counted stays what is there, and a
// restored tree is equal.
func TestWalk(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 0))
		f := New(time.Now)
		name := func() string {
			p := "/home/user"
			for range r.IntN(3) + 1 {
				p += "/" + string(rune('a'+r.IntN(3)))
			}
			return p
		}
		for range 300 {
			var err error
			switch r.IntN(9) {
			case 0:
				err = f.Mkdir(name(), 0o755)
			case 1, 2:
				err = f.WriteFile(name(), make([]byte, r.IntN(1000)), 0o644)
			case 3:
				err = f.Remove(name())
			case 4:
				err = f.RemoveAll(name())
			case 5, 6:
				err = f.Rename(name(), name())
			case 7:
				err = f.Symlink(name(), name())
			case 8:
				var file *File
				if file, err = f.Open(name(), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600); err == nil {
					_ = f.Remove(name())
					_, err = file.Write(make([]byte, r.IntN(100)))
				}
			}
			if p := new(fs.PathError); err != nil && !errors.As(err, &p) {
				t.Fatalf("%v is no *fs.PathError", err)
			}
		}
		size, files := count(f, "/")
		if gotSize, gotFiles := f.Usage(); gotSize != size || gotFiles != files+2 { // with /dev/null
			t.Errorf("seed %d: %d bytes in %d files are counted, %d in %d are there", seed, gotSize, gotFiles, size, files)
		}
		snapshot, err := f.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		back, err := Restore(snapshot, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		again, err := back.Snapshot()
		if err != nil || !bytes.Equal(snapshot, again) {
			t.Errorf("seed %d: a restored tree differs (%v)", seed, err)
		}
	}
}

func TestQuotas(t *testing.T) {
	t.Parallel()
	f := New(time.Now)
	if err := f.WriteFile("/home/user/f", make([]byte, MaxFileBytes+1), 0o644); !errors.Is(err, sandbox.ErrLimit) {
		t.Errorf("too big: %v", err)
	}
	var err error
	made := 0
	for ; err == nil; made++ {
		err = f.Symlink("x", fmt.Sprint("/home/user/l", made))
	}
	if !errors.Is(err, sandbox.ErrLimit) || made > MaxFiles {
		t.Errorf("after %d files: %v", made, err)
	}
}

func TestLinks(t *testing.T) {
	t.Parallel()
	f := New(time.Now)
	for to, at := range map[string]string{"/home/user/loop": "/home/user/loop", "../../..": "/home/user/up", "missing": "/home/user/dangling"} {
		if err := f.Symlink(to, at); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.Stat("/home/user/loop"); err == nil {
		t.Error("a loop leads somewhere")
	}
	if i, err := f.Stat("/home/user/up/tmp"); err != nil || !i.IsDir() {
		t.Errorf("up: %v", err)
	}
	if err := f.WriteFile("/home/user/dangling", []byte("x"), 0o644); err != nil {
		t.Errorf("write through a link: %v", err)
	}
	if data, err := f.ReadFile("/home/user/missing"); err != nil || string(data) != "x" {
		t.Errorf("got %q, %v", data, err)
	}
}

// FuzzRestore takes any bytes for a snapshot: a tree within the quotas or an error.
func FuzzRestore(f *testing.F) {
	tree := New(time.Now)
	if err := errors.Join(tree.WriteFile("/home/user/f", []byte("hello"), 0o644), tree.Symlink("f", "/home/user/l")); err != nil {
		f.Fatal(err)
	}
	seed, err := tree.Snapshot()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := Restore(data, time.Now)
		if err != nil {
			return
		}
		if size, files := got.Usage(); size > MaxBytes || files > MaxFiles {
			t.Errorf("%d bytes in %d files", size, files)
		}
	})
}
