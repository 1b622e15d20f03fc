package virtual

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/heddlehq/heddle/sandbox"
	"github.com/heddlehq/heddle/sandbox/virtual/commands"
	"github.com/heddlehq/heddle/sandbox/virtual/memfs"
	"github.com/heddlehq/heddle/sandbox/virtual/shell"
)

// WorkerArg is the first argument of our own binary when it is to be a worker.
const WorkerArg = "sandbox-worker"

// IsWorker reports whether the program was started as a worker; main asks
// before anything else and then does nothing but Worker.
func IsWorker(args []string) bool { return len(args) == 2 && args[1] == WorkerArg }

// Limits of a worker besides those of its files.
const (
	maxMemory = 256 << 20 // bytes of data, by the system
	softMem   = 160 << 20 // from where the collector works harder
	maxStack  = 64 << 20  // of one goroutine
	maxFDs    = 1024      // pipes, two each
	maxOutput = 1 << 20   // bytes kept of a command's output
)

// Worker serves one sandbox until in ends, and returns the exit code. It
// limits the whole process: it may be called only in one that does nothing else.
func Worker(in io.Reader, out io.Writer) int {
	if err := limitProcess(); err != nil {
		return 1
	}
	w := &worker{out: out, running: map[uint64]context.CancelFunc{}}
	w.files = newFiles(memfs.New(time.Now), time.Now)
	r := bufio.NewReader(in)
	for {
		var req request
		if err := readFrame(r, &req); err != nil {
			if errors.Is(err, io.EOF) {
				return 0 // whatever still runs ends with the process
			}
			return 1
		}
		w.take(req)
	}
}

type worker struct {
	writing sync.Mutex
	out     io.Writer

	mu      sync.Mutex
	files   *files // replaced by opOpen; what still runs keeps the old ones
	running map[uint64]context.CancelFunc
}

// take starts a request, or ends one.
func (w *worker) take(req request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch req.Op {
	case opCancel:
		if cancel := w.running[req.ID]; cancel != nil {
			cancel()
		}
		return
	case opOpen:
		now := time.Now
		if !req.Clock.IsZero() {
			now = func() time.Time { return req.Clock }
		}
		tree, err := memfs.Restore(req.Data, now)
		if err == nil {
			w.files = newFiles(tree, now)
		}
		w.answer(reply{ID: req.ID, Err: toRemote(err)})
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.running[req.ID] = cancel
	f := w.files
	go func() { // ends with its request; the process waits for none
		defer cancel()
		rep, err := f.do(ctx, req)
		rep.ID, rep.Err = req.ID, toRemote(err)
		w.answer(rep)
		w.mu.Lock()
		delete(w.running, req.ID)
		w.mu.Unlock()
	}()
}

// answer writes a reply. If the other side has gone, so will we.
func (w *worker) answer(rep reply) {
	w.writing.Lock()
	defer w.writing.Unlock()
	if err := writeFrame(w.out, rep); errors.Is(err, sandbox.ErrLimit) {
		_ = writeFrame(w.out, reply{ID: rep.ID, Err: toRemote(err)})
	}
}

// files are the files of a sandbox and the shell over them.
type files struct {
	tree  *memfs.FS
	shell *shell.Shell
}

func newFiles(tree *memfs.FS, now func() time.Time) *files {
	return &files{tree: tree, shell: &shell.Shell{FS: tree, Now: now}}
}

func (f *files) do(ctx context.Context, req request) (rep reply, err error) {
	switch req.Op {
	case opExec:
		rep.Result = f.exec(ctx, string(req.Data), req.Timeout)
		err = ctx.Err()
	case opRead:
		rep.Data, err = f.ReadFile(ctx, req.Path)
	case opWrite:
		err = f.write(req.Path, req.Data)
	case opList:
		rep.Infos, err = f.List(ctx, req.Path)
	case opStat:
		var info sandbox.Info
		info, err = f.Stat(ctx, req.Path)
		rep.Infos = []sandbox.Info{info}
	case opSnapshot:
		rep.Data, err = f.tree.Snapshot()
	case opGrep:
		rep.Hits, err = sandbox.GrepFiles(ctx, f, req.Query)
	case opGlob:
		rep.Paths, rep.Hits.More, err = sandbox.GlobFiles(ctx, f, req.Query.Root, req.Query.Pattern, req.Query.Limit)
	default:
		err = errors.New("unknown request")
	}
	return rep, err
}

func (f *files) exec(ctx context.Context, script string, timeout time.Duration) sandbox.Result {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var out output
	code := f.shell.Run(limited, script, &out)
	res := sandbox.Result{ExitCode: code}
	res.Output, res.Cut = out.bytes()
	if errors.Is(limited.Err(), context.DeadlineExceeded) && ctx.Err() == nil {
		res.ExitCode, res.TimedOut = 124, true
	}
	var m runtime.MemStats
	if runtime.ReadMemStats(&m); m.HeapInuse > softMem/2 {
		debug.FreeOSMemory() // else the next command might not fit beside this one's garbage
	}
	return res
}

// pathErr gives an error of the tree a kind that callers know.
func pathErr(err error) error {
	switch {
	case err == nil, errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrExist), errors.Is(err, sandbox.ErrLimit):
		return err
	}
	return errors.Join(err, fs.ErrInvalid)
}

func (f *files) ReadFile(_ context.Context, name string) ([]byte, error) {
	data, err := f.tree.ReadFile(at(name))
	return data, pathErr(err)
}

func (f *files) write(name string, data []byte) error {
	if len(data) > memfs.MaxFileBytes {
		return &fs.PathError{Op: "write", Path: name, Err: sandbox.ErrLimit}
	}
	err := f.tree.MkdirAll(path.Dir(at(name)), 0o755)
	if err == nil {
		err = f.tree.WriteFile(at(name), data, 0o644)
	}
	return pathErr(err)
}

func (f *files) List(_ context.Context, name string) ([]sandbox.Info, error) {
	infos, err := f.tree.ReadDir(at(name))
	out := make([]sandbox.Info, len(infos))
	for i, info := range infos {
		out[i] = portInfo(info)
	}
	return out, pathErr(err)
}

func (f *files) Stat(_ context.Context, name string) (sandbox.Info, error) {
	info, err := f.tree.Stat(at(name))
	if err != nil {
		return sandbox.Info{}, pathErr(err)
	}
	return portInfo(info), nil
}

// at makes a path absolute; an empty one is the working directory.
func at(name string) string { return commands.Abs(shell.Dir, path.Clean(name)) }

func portInfo(i memfs.Info) sandbox.Info {
	return sandbox.Info{Name: i.Name(), Bytes: i.Size(), Mode: i.Mode(), At: i.ModTime()}
}
