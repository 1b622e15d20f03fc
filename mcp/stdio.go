package mcp

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxStderr is how much of what a program says last is kept, in bytes.
const maxStderr = 8 << 10

// passed are the variables of ours that a program may see.
var passed = []string{"PATH", "HOME", "TMPDIR", "TZ", "LANG", "LC_ALL", "LC_CTYPE"}

// A process is a server that speaks over its standard input and output. It
// leads a process group, which is killed as a whole.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when it is gone
	err    error         // how it ended, after exited
}

// start runs the program, which says to stderr what it likes. The transport must be used once.
func start(s Settings, stderr *tail, stall time.Duration) (*process, *sdk.IOTransport, error) {
	p := &process{cmd: exec.Command(s.Command, s.Args...), exited: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stderr, p.cmd.SysProcAttr = s.Dir, stderr, apart()
	p.cmd.WaitDelay = stall // a grandchild may hold standard error open
	for _, name := range passed {
		if v, ok := os.LookupEnv(name); ok {
			p.cmd.Env = append(p.cmd.Env, name+"="+v)
		}
	}
	for name, v := range s.Env {
		p.cmd.Env = append(p.cmd.Env, name+"="+v)
	}
	theirIn, in, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("pipe: %w", err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		_, _ = theirIn.Close(), in.Close()
		return nil, nil, fmt.Errorf("pipe: %w", err)
	}
	p.cmd.Stdin, p.cmd.Stdout = theirIn, theirOut
	err = p.cmd.Start()
	_, _ = theirIn.Close(), theirOut.Close()
	if err != nil {
		_, _ = in.Close(), out.Close()
		return nil, nil, fmt.Errorf("start its program: %w", err)
	}
	go func() { // waited for by stop
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	return p, &sdk.IOTransport{Reader: out, Writer: &patient{in, stall}, MaxLineLength: maxMessage}, nil
}

// stop waits for the program to end by itself, asks it to, and kills it and all
// that it started.
func (p *process) stop(grace time.Duration) {
	for _, act := range []func(*os.Process){nil, terminate} {
		if act != nil {
			act(p.cmd.Process)
		}
		late := time.NewTimer(grace)
		select {
		case <-p.exited:
		case <-late.C:
		}
		late.Stop()
	}
	kill(p.cmd.Process) // what it left behind, too
	<-p.exited
}

// ending tells how the program ended.
func (p *process) ending() error {
	if p.err == nil {
		return fmt.Errorf("its program ended")
	}
	return fmt.Errorf("its program ended: %w", p.err)
}

// patient gives up writing to a program that does not read.
type patient struct {
	*os.File
	stall time.Duration
}

func (w *patient) Write(b []byte) (int, error) {
	if err := w.SetWriteDeadline(time.Now().Add(w.stall)); err != nil {
		return 0, err
	}
	return w.File.Write(b)
}

// A tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b[max(0, len(b)-maxStderr):]...)
	if over := len(t.buf) - maxStderr; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return plain(string(t.buf))
}
