package harness_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/sandbox"
)

// snapshot is what a render of these tests sees unless a test says otherwise.
func snapshot() harness.Snapshot {
	return harness.Snapshot{
		Agent: "tested", Conversation: "c1", Thread: chat.Thread{Channel: "slack", Account: "T1", Room: "C1", Root: "1"},
		Event: chat.Event{ID: "E1", Author: chat.Author{ID: "U1"}}, Trust: chat.Member,
		Now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
	}
}

func render(t *testing.T, a harness.Agent, s harness.Snapshot) harness.Manifest {
	t.Helper()
	m, err := harness.Render(a, s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func names(m harness.Manifest) string {
	var out []string
	for _, t := range m.Tools {
		out = append(out, t.Name)
	}
	return strings.Join(out, " ")
}

// echo is a tool that returns its argument.
func echo(name string) harness.Tool {
	type in struct {
		Text string `json:"text" jsonschema:"what to return"`
	}
	return harness.NewTool(name, "Returns the text.", func(_ context.Context, _ *harness.Call, a in) (string, error) { return a.Text, nil })
}

// A bench runs tools of one manifest against one sandbox, as a step does.
type bench struct {
	t     *testing.T
	m     harness.Manifest
	scope *harness.Scope
	files *files
}

func newBench(t *testing.T, a harness.Agent) *bench {
	t.Helper()
	f := newFiles()
	return &bench{t: t, m: render(t, a, snapshot()), files: f, scope: harness.NewScope(snapshot(), f.open)}
}

// withFiles is a bench with the six file tools.
func withFiles(t *testing.T) *bench {
	t.Helper()
	return newBench(t, func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		harness.UseSandbox(c, "memory")
		return ""
	})
}

// run calls a tool; args are JSON-encoded.
func (b *bench) run(tool string, args any) (string, error) {
	b.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		b.t.Fatal(err)
	}
	tl, ok := b.m.Tool(tool)
	if !ok {
		b.t.Fatalf("no tool %s, there are: %s", tool, names(b.m))
	}
	return tl.Run(context.Background(), b.scope.Call("call_1", tool), raw)
}

// must is run without an error.
func (b *bench) must(tool string, args any) string {
	b.t.Helper()
	out, err := b.run(tool, args)
	if err != nil {
		b.t.Fatalf("%s: %v", tool, err)
	}
	return out
}

type object = map[string]any

// files is a sandbox in memory, of files only: directories are what paths
// imply, and Exec is exec.
type files struct {
	mu    sync.Mutex
	data  map[string]string // by absolute path
	exec  func(context.Context, sandbox.Command) (sandbox.Result, error)
	delay time.Duration // of each write
}

func newFiles() *files { return &files{data: map[string]string{}} }

func (f *files) open(context.Context) (sandbox.Sandbox, error) { return f, nil }

func (f *files) abs(p string) string {
	if !path.IsAbs(p) {
		p = path.Join(f.Dir(), p)
	}
	return path.Clean(p)
}

func (f *files) Dir() string      { return "/box" }
func (f *files) Describe() string { return "files in memory" }

func (f *files) Exec(ctx context.Context, c sandbox.Command) (sandbox.Result, error) {
	return f.exec(ctx, c)
}

func (f *files) ReadFile(_ context.Context, p string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.data[f.abs(p)]
	if !ok {
		return nil, fmt.Errorf("read %s: %w", p, fs.ErrNotExist)
	}
	return []byte(s), nil
}

func (f *files) WriteFile(_ context.Context, p string, data []byte) error {
	time.Sleep(f.delay) // makes a lost update likely when writes are not serialised
	f.mu.Lock()
	defer f.mu.Unlock()
	f.data[f.abs(p)] = string(data)
	return nil
}

func (f *files) List(_ context.Context, p string) ([]sandbox.Info, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	dir := strings.TrimSuffix(f.abs(p), "/") + "/"
	seen := map[string]sandbox.Info{}
	for name, s := range f.data {
		if rest, ok := strings.CutPrefix(name, dir); ok {
			first, _, deeper := strings.Cut(rest, "/")
			info := sandbox.Info{Name: first, Bytes: int64(len(s))}
			if deeper {
				info = sandbox.Info{Name: first, Mode: fs.ModeDir}
			}
			seen[first] = info
		}
	}
	var out []sandbox.Info
	for _, info := range seen {
		out = append(out, info)
	}
	slices.SortFunc(out, func(a, b sandbox.Info) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func (f *files) Stat(ctx context.Context, p string) (sandbox.Info, error) {
	if s, err := f.ReadFile(ctx, p); err == nil {
		return sandbox.Info{Name: path.Base(p), Bytes: int64(len(s))}, nil
	}
	if list, _ := f.List(ctx, p); len(list) > 0 || f.abs(p) == f.Dir() {
		return sandbox.Info{Name: path.Base(p), Mode: fs.ModeDir}, nil
	}
	return sandbox.Info{}, fmt.Errorf("stat %s: %w", p, fs.ErrNotExist)
}

func (f *files) Snapshot(context.Context) ([]byte, error) { return json.Marshal(f.data) }
func (f *files) Close() error                             { return nil }

// searcher is files with a search of its own.
type searcher struct {
	*files
	asked int
}

func (s *searcher) Grep(ctx context.Context, q sandbox.Query) (sandbox.Hits, error) {
	s.asked++
	return sandbox.GrepFiles(ctx, s.files, q)
}

func (s *searcher) Glob(ctx context.Context, root, pattern string, limit int) ([]string, bool, error) {
	s.asked++
	return sandbox.GlobFiles(ctx, s.files, root, pattern, limit)
}
