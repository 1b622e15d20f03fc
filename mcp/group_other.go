//go:build !unix

package mcp

import (
	"os"
	"syscall"
)

// Without process groups only the program itself is ended.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

func terminate(p *os.Process) { _ = p.Kill() }

func kill(p *os.Process) { _ = p.Kill() }
