package virtual

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/heddlehq/heddle/sandbox"
)

// overrun is how long a worker may take to stop at a deadline.
const overrun = time.Second

// patience bounds requests that are not scripts.
const patience = 30 * time.Second

// A client talks to one worker process.
type client struct {
	cmd  *exec.Cmd
	errs errorHead
	done chan struct{} // closed once the process has ended

	writing sync.Mutex
	in      io.WriteCloser

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan reply
	reason  string // why we killed it
	ended   bool
}

// start starts a worker. It has nothing of ours but its two pipes.
func start(exe string) (*client, error) {
	c := &client{done: make(chan struct{}), waiting: map[uint64]chan reply{}}
	c.cmd = exec.Command(exe, WorkerArg)
	c.cmd.Env = []string{"TZ=UTC", "GOMAXPROCS=1", "GOTRACEBACK=none"}
	c.cmd.Dir = "/"
	c.cmd.Stderr = &c.errs
	c.cmd.SysProcAttr = apart()
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	go c.read(out) // ends with the process; stop waits for it
	return c, nil
}

// read hands replies to those who wait until the worker ends.
func (c *client) read(out io.Reader) {
	r := bufio.NewReader(out)
	for {
		var rep reply
		if err := readFrame(r, &rep); err != nil {
			break
		}
		c.mu.Lock()
		ch := c.waiting[rep.ID]
		delete(c.waiting, rep.ID)
		c.mu.Unlock()
		if ch != nil {
			ch <- rep
		}
	}
	_ = killAll(c.cmd.Process) // it has ended or speaks nonsense
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	_ = c.cmd.Wait()
	close(c.done)
}

// kill ends the worker; the first reason counts.
func (c *client) kill(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reason == "" {
		c.reason = reason
	}
	if !c.ended { // else its id may be another's by now
		_ = killAll(c.cmd.Process)
	}
}

// stop ends the worker and waits for that.
func (c *client) stop() {
	c.kill("closed")
	<-c.done
}

func (c *client) dead() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// broken is the error of whoever used a worker that has ended.
func (c *client) broken() error {
	c.mu.Lock()
	reason := c.reason
	c.mu.Unlock()
	if reason == "" {
		reason = c.errs.reason()
	}
	return fmt.Errorf("%w: %s", sandbox.ErrBroken, reason)
}

func (c *client) send(req request) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	return writeFrame(c.in, req)
}

// do sends a request and waits for its reply. A worker that has not answered
// after limit, or does not stop soon after ctx, is killed.
func (c *client) do(ctx context.Context, req request, limit time.Duration) (reply, error) {
	if err := ctx.Err(); err != nil {
		return reply{}, context.Cause(ctx)
	}
	ch := make(chan reply, 1)
	c.mu.Lock()
	c.last++
	req.ID = c.last
	c.waiting[req.ID] = ch
	c.mu.Unlock()
	over := time.AfterFunc(limit, func() { c.kill("it ran over its time") })
	defer over.Stop()
	if err := c.send(req); err != nil {
		c.kill("it does not listen")
	}
	var rep reply
	select {
	case rep = <-ch:
	case <-c.done:
		return reply{}, c.broken()
	case <-ctx.Done():
		grace := time.AfterFunc(overrun, func() { c.kill("it did not stop") })
		defer grace.Stop()
		_ = c.send(request{ID: req.ID, Op: opCancel}) // if that fails, grace ends it
		select {
		case <-ch:
		case <-c.done:
		}
		return reply{}, context.Cause(ctx)
	}
	if rep.Err != nil {
		return rep, rep.Err
	}
	return rep, nil
}

// An errorHead keeps the first bytes of what a dying worker says.
type errorHead struct {
	mu   sync.Mutex
	head []byte
}

func (e *errorHead) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.head = append(e.head, p[:min(len(p), 1024-len(e.head))]...)
	return len(p), nil
}

// reason says why the worker died, in words for a model.
func (e *errorHead) reason() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch s := string(e.head); {
	case strings.Contains(s, "memory"), strings.Contains(s, "OS thread"):
		return fmt.Sprintf("it took more than %d MiB of memory", maxMemory>>20)
	case strings.Contains(s, "stack overflow"), strings.Contains(s, "stack exceeds"):
		return "it nested too deeply"
	}
	return "its process ended"
}
