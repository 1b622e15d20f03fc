package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

func TestLock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "heddle.db")
	s := openStore(t, path, Options{})
	if _, err := Open(t.Context(), path, Options{}); !errors.Is(err, state.ErrLocked) {
		t.Errorf("opened twice: %v", err)
	}
	if _, err := s.Admit(t.Context(), ask(1, "a")); err != nil {
		t.Errorf("admit after another tried to open: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closed again: %v", err)
	}
	openStore(t, path, Options{})
}

// A link is another name of the same store, also to a folder.
func TestLinksShareTheLock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "heddle.db")
	openStore(t, path, Options{})
	for name, target := range map[string]string{"other.db": path, "folder": dir} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, other := range []string{filepath.Join(dir, "other.db"), filepath.Join(dir, "folder", "heddle.db")} {
		if _, err := Open(t.Context(), other, Options{}); !errors.Is(err, state.ErrLocked) {
			t.Errorf("%s: %v, want it locked", other, err)
		}
	}
}

// The driver must be one without the known faults in WAL and in UPSERT.
func TestDriverVersion(t *testing.T) {
	t.Parallel()
	s := openStore(t, filepath.Join(t.TempDir(), "heddle.db"), Options{})
	var got string
	err := s.read(t.Context(), func(c *conn) error {
		return c.query(`SELECT sqlite_version()`, func(r row) error { got = r.text(0); return nil })
	})
	var major, minor int
	if _, serr := fmt.Sscanf(got, "%d.%d", &major, &minor); err != nil || serr != nil || major != 3 || minor < 51 {
		t.Errorf("SQLite %q (%v, %v), want 3.51 or newer", got, err, serr)
	}
}

func TestFileModes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openStore(t, filepath.Join(dir, "a b?c#%d.db"), Options{})
	if _, err := s.Admit(t.Context(), ask(1, "a")); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, %v; want 0600", e.Name(), info.Mode(), err)
		}
	}
	if want := []string{"a b?c#%d.db", "a b?c#%d.db-shm", "a b?c#%d.db-wal", "a b?c#%d.db.lock"}; !slices.Equal(names, want) {
		t.Errorf("files are %q, want %q", names, want)
	}
}

// TestReadOnly looks into a store that is open, and one that is not.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "heddle.db")
	if _, err := Open(t.Context(), path, Options{ReadOnly: true}); err == nil {
		t.Fatal("opened a store that is not there")
	}
	if _, err := os.Stat(path); err == nil {
		t.Fatal("looking has made a file")
	}
	s := openStore(t, path, Options{})
	look := func() {
		t.Helper()
		r := openStore(t, path, Options{ReadOnly: true})
		c, err := r.Find(t.Context(), ask(1, "a")[0].Event.Thread)
		if err != nil {
			t.Fatalf("find: %v", err)
		}
		if v, err := r.Load(t.Context(), c.ID, 0); err != nil || len(v.Inbox) != 1 {
			t.Errorf("load: %d entries, %v", len(v.Inbox), err)
		}
		_, admitErr := r.Admit(t.Context(), ask(2, "b"))
		_, claimErr := r.Claim(t.Context(), "worker", time.Minute)
		_, postsErr := r.ClaimPosts(t.Context(), "worker", 1, time.Minute)
		_, forkErr := r.Fork(t.Context(), c.ID, 1, "assistant", ask(2, "b")[0].Event.Thread)
		putErr := r.PutValues(t.Context(), "s", state.Value{Key: "k"})
		for _, err := range []error{admitErr, claimErr, postsErr, forkErr, putErr, r.Check(t.Context()), r.WaitReady(t.Context()), r.WaitDue(t.Context())} {
			if !errors.Is(err, errReadOnly) {
				t.Errorf("a write: got error %v, want %v", err, errReadOnly)
			}
		}
		if err := r.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if _, err := s.Admit(t.Context(), ask(1, "a")); err != nil {
		t.Fatal(err)
	}
	look()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	look()
}

func TestRefusedFiles(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, path string, statements ...string) {
		c, err := connect(path, "rwc")
		if err != nil {
			t.Fatal(err)
		}
		defer c.close()
		for _, s := range statements {
			if _, err := c.exec(s); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		spoil func(t *testing.T, path string)
		want  error
		text  string
	}{
		"newer":     {func(t *testing.T, p string) { run(t, p, "PRAGMA user_version = 99") }, state.ErrNewer, "format 99"},
		"foreign":   {func(t *testing.T, p string) { os.Remove(p); run(t, p, "CREATE TABLE x (y)") }, nil, "another program"},
		"not ours":  {func(t *testing.T, p string) { write(t, p, 0, []byte(strings.Repeat("not a database ", 9000))) }, state.ErrDamaged, ""},
		"torn page": {func(t *testing.T, p string) { write(t, p, 4096, []byte(strings.Repeat("\xa5", 64))) }, state.ErrDamaged, ""},
		"cut off":   {func(t *testing.T, p string) { truncate(t, p, 3*4096) }, state.ErrDamaged, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "heddle.db")
			if err := openStore(t, path, Options{}).Close(); err != nil {
				t.Fatal(err)
			}
			c.spoil(t, path)
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range []Options{{}, {ReadOnly: true}} {
				_, err := Open(t.Context(), path, o)
				if o.ReadOnly && c.want == state.ErrDamaged {
					continue // people may look at what is left
				}
				if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
					t.Errorf("open %+v: got error %v, want %v with %q", o, err, c.want, c.text)
				}
			}
			if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
				t.Errorf("the refused file has been changed, %v", err)
			}
		})
	}
}

func write(t *testing.T, path string, at int64, data []byte) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(data, at); err != nil {
		t.Fatal(err)
	}
}

func truncate(t *testing.T, path string, size int64) {
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
}

// TestOpenFails lets each statement of opening fail once; opening again works.
func TestOpenFails(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"new", "existing"} {
		path := filepath.Join(t.TempDir(), "heddle.db")
		for n := 0; ; n++ {
			if dir == "new" {
				path = filepath.Join(t.TempDir(), "heddle.db")
			}
			left := n
			s, err := Open(t.Context(), path, Options{Fault: func(string) error {
				if left--; left < 0 {
					return errFault
				}
				return nil
			}})
			if err == nil {
				s.Close()
				if want := map[string]int{"new": 15, "existing": 8}[dir]; n < want {
					t.Errorf("opening a store that is %s could fail at %d statements, want at least %d", dir, n, want)
				}
				break
			}
			if !errors.Is(err, errFault) {
				t.Fatalf("failure %d: %v", n, err)
			}
			s = openStore(t, path, Options{})
			if _, err := s.Admit(t.Context(), ask(1, fmt.Sprint(n))); err != nil {
				t.Fatalf("after failure %d: %v", n, err)
			}
			s.Close()
		}
	}
}

// TestKill takes the files of a running store, as a killed process leaves them,
// and cuts its log in many places, as a lost power supply may: what is there
// is always the first commits, whole.
func TestKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "heddle.db")
	s := openStore(t, path, Options{})
	if _, err := s.Admit(t.Context(), ask(1, "a")); err != nil {
		t.Fatal(err)
	}
	l, err := s.Claim(t.Context(), "worker", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	const commits = 10
	for n := range commits {
		b := state.Batch{Records: []state.Record{{Kind: "a", Data: make([]byte, 3000)}, {Kind: "b"}}, Posts: []chat.Post{{Key: fmt.Sprint(n)}}}
		if l, err = s.Commit(t.Context(), l, b); err != nil {
			t.Fatal(err)
		}
	}
	log, err := os.Stat(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	last := 0
	for cut := log.Size(); cut >= 0; cut -= 4001 {
		path := kill(t, path)
		truncate(t, path+"-wal", cut)
		killed := openStore(t, path, Options{})
		v, err := killed.Load(t.Context(), l.Conversation.ID, 0)
		if errors.Is(err, state.ErrNotFound) {
			break
		}
		posts, postsErr := killed.Posts(t.Context(), l.Conversation.ID)
		if err != nil || postsErr != nil || len(v.Records) != 2*len(posts) || len(v.Inbox) != 1 {
			t.Errorf("cut at %d: %d records, %d posts, %d entries; %v, %v", cut, len(v.Records), len(posts), len(v.Inbox), err, postsErr)
		}
		if cut == log.Size() && len(posts) != commits || cut < log.Size() && len(posts) > last {
			t.Errorf("cut at %d: %d commits are left", cut, len(posts))
		}
		last = len(posts)
		if _, err := killed.Claim(t.Context(), "next", time.Hour); err != nil && last > 0 {
			t.Errorf("cut at %d: claim: %v", cut, err)
		}
		killed.Close()
	}
	if last != 0 {
		t.Errorf("the shortest log had %d commits, want 0", last)
	}
}

// kill copies the files of a running store and says where.
func kill(t *testing.T, path string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "heddle.db")
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to+suffix, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// TestPrune admits for longer than repeats are recognised.
func TestPrune(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := openStore(t, filepath.Join(t.TempDir(), "heddle.db"), Options{Clock: func() time.Time { return now }})
	const perDay = 4
	for n := range 100 * perDay {
		if _, err := s.Admit(t.Context(), ask(1, fmt.Sprint(n))); err != nil {
			t.Fatal(err)
		}
		now = now.Add(24 * time.Hour / perDay) // between calls: the writer is idle
	}
	var rows int64
	if err := s.read(t.Context(), func(c *conn) (err error) {
		rows, err = c.number(`SELECT count(*) FROM events`)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if want := int64(state.DedupeFor / (24 * time.Hour) * perDay); rows != want {
		t.Errorf("%d events are remembered, want %d", rows, want)
	}
}

// TestBigFile checks a file that was not closed, and not one that was.
func TestBigFile(t *testing.T) {
	t.Parallel()
	for _, clean := range []bool{true, false} {
		path := filepath.Join(t.TempDir(), "heddle.db")
		s := openStore(t, path, Options{})
		if _, err := s.Admit(t.Context(), ask(1, "a")); err != nil {
			t.Fatal(err)
		}
		l, err := s.Claim(t.Context(), "worker", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Commit(t.Context(), l, state.Batch{Records: []state.Record{{Kind: "a", Data: make([]byte, smallBytes+1)}}}); err != nil {
			t.Fatal(err)
		}
		if clean {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		} else {
			path = kill(t, path)
		}
		checked := false
		openStore(t, path, Options{Fault: func(statement string) error {
			checked = checked || strings.Contains(statement, "quick_check")
			return nil
		}}).Close()
		if checked == clean {
			t.Errorf("closed before: %v; checked: %v", clean, checked)
		}
	}
}
