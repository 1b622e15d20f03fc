package virtual

import (
	"os"
	"runtime/debug"
	"syscall"
)

// limitProcess bounds what the process may take. RLIMIT_DATA is the one that
// counts the memory of a Go program; the others keep it from what it never does.
func limitProcess() error {
	debug.SetMemoryLimit(softMem)
	debug.SetMaxStack(maxStack)
	for _, l := range []struct {
		resource int
		most     uint64
	}{
		{syscall.RLIMIT_DATA, maxMemory},
		{syscall.RLIMIT_NOFILE, maxFDs},
		{syscall.RLIMIT_FSIZE, 0},
		{syscall.RLIMIT_CORE, 0}, // the last: the trace test takes it for the begin of serving
	} {
		if err := syscall.Setrlimit(l.resource, &syscall.Rlimit{Cur: l.most, Max: l.most}); err != nil {
			return err
		}
	}
	return nil
}

// apart makes a worker deaf to the terminal's signals and dies with its parent.
func apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// ownBinary is the program that runs, even if its file was replaced since.
func ownBinary() (string, error) { return "/proc/self/exe", nil }

// killAll ends a worker and whatever may run it.
func killAll(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }
