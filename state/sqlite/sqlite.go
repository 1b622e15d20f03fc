// Package sqlite is the store in one SQLite file, for one process.
//
// Every change goes through one writer, which commits what many callers want
// in one synced transaction. A lock beside the file proves that no other
// process owns the store, so opening it ends all leases and claims that its
// last owner left. What is ready is found in the file; only the time of the
// next look is kept in memory.
package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	driversqlite "modernc.org/sqlite"

	"github.com/heddlehq/heddle/state"
)

// Options of a store. The zero Options are right for a gateway.
type Options struct {
	Clock    func() time.Time // time.Now if nil
	ReadOnly bool             // look into the store, also while its owner runs; whatever writes fails

	// Fault is called by tests before each statement that the writer runs; an
	// error from it is the statement's. It is called by one goroutine at a time.
	Fault func(statement string) error
}

// A Store is an open file.
type Store struct {
	clock       func() time.Time
	w           *writer
	readers     chan *conn // the idle ones of readerCount
	readerCount int
	closing     chan struct{}
	lock        *os.File
	close       func() error
}

var _ state.Store = (*Store)(nil)

var errReadOnly = errors.New("the store is open for reading only")

// maxReaders is how many reads by people, and of long logs, run at once.
const maxReaders = 2

// Open opens the store at path, and creates it if it is not there. It fails
// with ErrLocked, ErrNewer or ErrDamaged.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	s := &Store{clock: o.Clock, readers: make(chan *conn, maxReaders), closing: make(chan struct{})}
	s.close = sync.OnceValue(s.shut)
	s.w = &writer{
		clock: o.Clock, wake: make(chan struct{}, 1), stopped: make(chan struct{}),
		ready: hint{at: long}, due: hint{at: long},
	}
	path, err := realPath(path)
	if err == nil && o.ReadOnly {
		s.w.refuse(errReadOnly)
	} else if err == nil {
		err = s.own(ctx, path, o)
	}
	for range maxReaders {
		if err == nil {
			err = s.addReader(path)
		}
	}
	if err == nil && o.ReadOnly { // an owner has checked it
		err = s.read(ctx, checkFormat)
	}
	if err != nil {
		_ = s.release() // what is wrong is known
		return nil, fmt.Errorf("open store %s: %w", path, err)
	}
	if !o.ReadOnly {
		go s.w.run()
	}
	return s, nil
}

// realPath is the one name of a file, so that two links to it share its lock.
func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return path, err
	}
	if file, err := filepath.EvalSymlinks(path); err == nil {
		return file, nil
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path)) // the file is new
	return filepath.Join(dir, filepath.Base(path)), err
}

// own locks the file and makes the writer's connection to it.
func (s *Store) own(ctx context.Context, path string, o Options) (err error) {
	if s.lock, err = lockFile(path + ".lock"); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	// Syncs as SQLite does where it is built natively: the data and the size,
	// not the timestamps. Where there is no such call it stays with fsync.
	_, _ = driversqlite.Fdatasync(true)
	s.w.conn, err = connect(path, "rw", "busy_timeout(5000)", "synchronous(FULL)",
		"wal_autocheckpoint(2000)", "journal_size_limit(67108864)", "cache_size(-16384)", "temp_store(MEMORY)")
	if err != nil {
		return err
	}
	s.w.conn.fault = o.Fault
	return s.w.conn.prepare(ctx, s.w.now())
}

// lockFile takes the lock that says who owns the store. The file stays: to
// remove it would let two processes lock two files of one name.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, state.ErrLocked
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}

func (s *Store) addReader(path string) error {
	c, err := connect(path, "ro", "busy_timeout(5000)", "query_only(1)", "temp_store(MEMORY)")
	if err == nil {
		s.readers <- c
		s.readerCount++
	}
	return err
}

// Check commits a time and says whether that worked.
func (s *Store) Check(ctx context.Context) error {
	_, err := do(ctx, s.w, func(t *tx) (int64, error) {
		return t.exec(`UPDATE health SET checked_at = ? WHERE n = 1`, t.now)
	})
	if err != nil {
		return fmt.Errorf("check: %w", err)
	}
	return nil
}

// Close waits for what is under way, folds the log of the file into it and
// gives up the lock. Calls after it fail with ErrClosed.
func (s *Store) Close() error { return s.close() }

func (s *Store) shut() error {
	s.w.refuse(state.ErrClosed)
	close(s.closing)
	if s.lock == nil {
		return s.release()
	}
	<-s.w.stopped
	_, err := s.w.conn.exec(`UPDATE health SET clean = 1 WHERE n = 1`)
	folded := s.w.conn.query(`PRAGMA wal_checkpoint(TRUNCATE)`, func(row) error { return nil })
	return errors.Join(err, folded, s.release())
}

// release closes what is open.
func (s *Store) release() error {
	var errs []error
	for range s.readerCount {
		errs = append(errs, (<-s.readers).close())
	}
	if s.w.conn != nil {
		errs = append(errs, s.w.conn.close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	return errors.Join(errs...)
}
