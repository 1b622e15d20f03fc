//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	secret     = "bench-signing-secret"
	startLimit = 30 * time.Second
	stopLimit  = 40 * time.Second
)

// A rig is one gateway, or the floor, in front of a world.
type rig struct {
	floor bool
	world *world
	data  string // folder of the store
	args  []string
	env   []string

	child  *exec.Cmd
	ended  chan struct{} // closed when child has ended and its output is read
	said   *tail
	addr   atomic.Value // string, of the running child
	client *http.Client
}

// A subject is what is measured: a gateway's binary, or the floor if it has none.
type subject struct {
	binary  string
	history bool // the floor sends the whole thread to the model
	dir     string
}

func (s subject) name() string {
	if s.binary == "" {
		return "floor"
	}
	return "gateway"
}

// newRig prepares an empty store and a world; nothing runs yet.
func newRig(s subject, p pace) (*rig, error) {
	data, err := os.MkdirTemp(s.dir, "heddle-bench-")
	if err != nil {
		return nil, err
	}
	w, err := newWorld(p)
	if err != nil {
		return nil, err
	}
	r := &rig{floor: s.binary == "", world: w, data: data, client: &http.Client{
		Timeout:   3 * time.Second, // as Slack's
		Transport: &http.Transport{MaxIdleConns: 256, MaxIdleConnsPerHost: 256, DisableCompression: true},
	}}
	if r.floor {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		r.args = []string{self, serveFloor, "--world", w.base, "--file", filepath.Join(data, "log")}
		if s.history {
			r.args = append(r.args, "--history")
		}
		return r, nil
	}
	settings := filepath.Join(data, "gateway.yaml")
	r.args = []string{s.binary, "run"}
	r.env = []string{
		"PATH=" + os.Getenv("PATH"), "HEDDLE_LISTEN=127.0.0.1:0", "HEDDLE_ADMIN_LISTEN=127.0.0.1:0", "HEDDLE_CONFIG=" + settings,
		"HEDDLE_STATE=sqlite:" + filepath.Join(data, "heddle.db"),
		"SLACK_BOT_TOKEN=xoxb-1-bench", "SLACK_SIGNING_SECRET=" + secret, "SLACK_API_URL=" + w.base + "/slack/api/",
		"OPENAI_API_KEY=bench-key", "OPENAI_BASE_URL=" + w.base + "/v1",
	}
	return r, os.WriteFile(settings, []byte("models: {fast: openai/fake-model, strong: openai/fake-model}\n"), 0o600)
}

// close ends what runs and removes the store.
func (r *rig) close() {
	_ = r.stop(syscall.SIGKILL) // nothing is left to lose
	r.world.close()
	_ = os.RemoveAll(r.data)
}

// start runs the child and returns how long it took until it was ready.
func (r *rig) start(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	began := time.Now()
	c := exec.Command(r.args[0], r.args[1:]...)
	c.Env = r.env
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := c.StderrPipe()
	if err != nil {
		return 0, err
	}
	if err := c.Start(); err != nil {
		return 0, err
	}
	r.child, r.ended, r.said = c, make(chan struct{}), &tail{}
	ready := make(chan string, 1)
	go r.read(out, ready)
	select {
	case addr := <-ready:
		r.addr.Store(addr)
	case <-r.ended:
		return 0, fmt.Errorf("%s ended at its start: %s", r.args[0], r.said)
	case <-ctx.Done():
		return 0, fmt.Errorf("start %s: %w: %s", r.args[0], ctx.Err(), r.said)
	}
	for !r.isReady(ctx) {
		if !pause(ctx, time.Millisecond) {
			return 0, fmt.Errorf("wait for %s: %w: %s", r.args[0], ctx.Err(), r.said)
		}
	}
	return time.Since(began), nil
}

// read follows the child's log to its end.
func (r *rig) read(out io.Reader, ready chan<- string) {
	defer close(r.ended)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		r.said.add(lines.Bytes())
		var line struct{ Msg, Listen string }
		if bytes.Contains(lines.Bytes(), []byte(`"gateway ready"`)) && json.Unmarshal(lines.Bytes(), &line) == nil {
			ready <- line.Listen
		}
	}
	_ = r.child.Wait() // how it ended is of no interest: it was told to
}

func (r *rig) isReady(ctx context.Context) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url("/readyz"), nil)
	if err != nil {
		return false
	}
	res, err := r.client.Do(req)
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	return res.StatusCode == http.StatusOK
}

func (r *rig) url(path string) string {
	addr, _ := r.addr.Load().(string)
	return "http://" + addr + path
}

// stop sends the child a signal and waits for its end.
func (r *rig) stop(sig syscall.Signal) error {
	if r.child == nil {
		return nil
	}
	defer func() { r.child = nil }()
	_ = r.child.Process.Signal(sig) // it may have ended by itself
	t := time.NewTimer(stopLimit)
	defer t.Stop()
	select {
	case <-r.ended:
		return nil
	case <-t.C:
		_ = r.child.Process.Kill()
		<-r.ended
		return fmt.Errorf("%s did not stop in %v", r.args[0], stopLimit)
	}
}

func (r *rig) usage() usage { return usageOf(r.child.Process.Pid) }

// pause waits, or returns false when ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// build makes the gateway's binary, unless one is given.
func build(ctx context.Context, given, dir string) (string, error) {
	if given != "" {
		return given, nil
	}
	binary := filepath.Join(dir, "gateway")
	c := exec.CommandContext(ctx, "go", "build", "-o", binary, "github.com/heddlehq/heddle/cmd/gateway")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the gateway: %w: %s", err, out)
	}
	return binary, nil
}

// A tail keeps the last lines of a log.
type tail struct {
	mu    sync.Mutex
	lines [10]string
	n     int
}

func (t *tail) add(line []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines[t.n%len(t.lines)] = string(line)
	t.n++
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := t.n % len(t.lines)
	return strings.Join(slices.Concat(t.lines[i:], t.lines[:i]), "\n")
}
