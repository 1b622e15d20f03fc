//go:build !linux

package virtual

import (
	"os"
	"runtime/debug"
	"syscall"
)

// limitProcess bounds what the runtime can bound. Only Linux has a limit that
// counts the memory of a Go program.
func limitProcess() error {
	debug.SetMemoryLimit(softMem)
	debug.SetMaxStack(maxStack)
	return nil
}

func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

// ownBinary is the file of the program that runs.
func ownBinary() (string, error) { return os.Executable() }

// killAll ends a worker.
func killAll(p *os.Process) error { return p.Kill() }
