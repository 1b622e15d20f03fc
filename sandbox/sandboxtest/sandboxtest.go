// Package sandboxtest is the suite that every sandbox provider passes.
package sandboxtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/sandbox"
)

// Run tests a provider. open makes a fresh one and closes it with the test.
func Run(t *testing.T, open func(t *testing.T) sandbox.Provider) {
	t.Helper()
	p := open(t)
	for name, test := range map[string]func(*testing.T, sandbox.Provider){
		"files":       files,
		"exec":        execs,
		"strange":     strange,
		"timeout":     timeout,
		"cut":         cut,
		"cancel":      cancel,
		"snapshot":    snapshot,
		"isolation":   isolation,
		"environment": environment,
		"at once":     atOnce,
		"search":      search,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, p)
		})
	}
	t.Run("closed", func(t *testing.T) {
		t.Parallel()
		p := open(t)
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Open(t.Context(), "closed", nil); err == nil {
			t.Error("a closed provider opens sandboxes")
		}
	})
}

// start opens the sandbox of a conversation named after the test.
func start(t *testing.T, p sandbox.Provider, suffix string, snapshot []byte) sandbox.Sandbox {
	t.Helper()
	s, err := p.Open(t.Context(), t.Name()+suffix, snapshot)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// run runs a script that must be a Result.
func run(t *testing.T, s sandbox.Sandbox, script string) sandbox.Result {
	t.Helper()
	r, err := s.Exec(t.Context(), sandbox.Command{Script: script})
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return r
}

func want(t *testing.T, s sandbox.Sandbox, script, output string, code int) {
	t.Helper()
	r := run(t, s, script)
	if string(r.Output) != output || r.ExitCode != code || r.Cut != 0 || r.TimedOut {
		t.Errorf("%s: got %q, code %d, cut %d, timed out %t; want %q, code %d", script, r.Output, r.ExitCode, r.Cut, r.TimedOut, output, code)
	}
}

func write(t *testing.T, s sandbox.Sandbox, name, data string) {
	t.Helper()
	if err := s.WriteFile(t.Context(), name, []byte(data)); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, s sandbox.Sandbox, name, data string) {
	t.Helper()
	got, err := s.ReadFile(t.Context(), name)
	if err != nil || string(got) != data {
		t.Errorf("read %q: %q, %v; want %q", name, got, err, data)
	}
}

func files(t *testing.T, p sandbox.Provider) {
	s := start(t, p, "", nil)
	ctx := t.Context()
	if s.Describe() == "" || !path.IsAbs(s.Dir()) {
		t.Errorf("describe %q, dir %q", s.Describe(), s.Dir())
	}
	write(t, s, "a/b/c.txt", "one")
	read(t, s, "a/b/c.txt", "one")
	read(t, s, path.Join(s.Dir(), "a/b/c.txt"), "one")
	read(t, s, "a/../a/./b/c.txt", "one")
	write(t, s, "a/b/c.txt", "2")
	read(t, s, "a/b/c.txt", "2")
	binary := string([]byte{0, 255, 254, '\n', 0})
	write(t, s, "a/bin", binary)
	read(t, s, "a/bin", binary)
	write(t, s, "a/empty", "")
	read(t, s, "a/empty", "")

	infos, err := s.List(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, i := range infos {
		got = append(got, fmt.Sprintf("%s %t %d", i.Name, i.Mode.IsDir(), map[bool]int64{false: i.Bytes}[i.Mode.IsDir()]))
	}
	if diff := cmp.Diff([]string{"b true 0", "bin false 5", "empty false 0"}, got); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	info, err := s.Stat(ctx, "a/b/c.txt")
	if err != nil || info.Name != "c.txt" || info.Bytes != 1 || !info.Mode.IsRegular() || info.At.IsZero() {
		t.Errorf("stat: %+v, %v", info, err)
	}

	_, readErr := s.ReadFile(ctx, "none")
	_, listErr := s.List(ctx, "none")
	_, statErr := s.Stat(ctx, "none/none")
	for _, err := range []error{readErr, listErr, statErr} {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v does not wrap fs.ErrNotExist", err)
		}
	}
	_, dirErr := s.ReadFile(ctx, "a")
	_, fileErr := s.List(ctx, "a/bin")
	for _, err := range []error{dirErr, fileErr, s.WriteFile(ctx, "a", nil), s.WriteFile(ctx, "a/bin/x", nil)} {
		if !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%v does not wrap fs.ErrInvalid", err)
		}
	}
}

func execs(t *testing.T, p sandbox.Provider) {
	s := start(t, p, "", nil)
	for _, c := range []struct {
		script, output string
		code           int
	}{
		{"echo hi", "hi\n", 0},
		{"", "", 0},
		{"echo a; echo b >&2; echo c", "a\nb\nc\n", 0},
		{"exit 3", "", 3},
		{"false", "", 1},
		{"echo x | tr x y | cat", "y\n", 0},
		{"printf '3\\n1\\n2\\n' | sort | head -n 2", "1\n2\n", 0},
		{"echo one > f && echo two >> f && cat < f", "one\ntwo\n", 0},
		{"cat <<E\n$((1+1)) 'q'\nE", "2 'q'\n", 0},
		{"cat <<'E'\n$x\nE", "$x\n", 0},
		{"for i in 1 2 3; do printf $i; done", "123", 0},
		{"x=$(echo sub); echo \"[$x]\"", "[sub]\n", 0},
		{"if [ -f f ]; then echo yes; fi; rm f; [ -f f ] || echo no", "yes\nno\n", 0},
		{"cat", "", 0},
		{"echo a && (exit 4) || echo $?", "a\n4\n", 0},
	} {
		want(t, s, c.script, c.output, c.code)
	}
	want(t, s, "pwd", s.Dir()+"\n", 0)
	if r := run(t, s, "no-such-command-here"); r.ExitCode != 127 || len(r.Output) == 0 {
		t.Errorf("unknown command: %q, code %d", r.Output, r.ExitCode)
	}
	if r := run(t, s, "if then ("); r.ExitCode == 0 || len(r.Output) == 0 {
		t.Errorf("bad syntax: %q, code %d", r.Output, r.ExitCode)
	}
	run(t, s, "cd /; x=1; mkdir -p "+s.Dir()+"/kept")
	want(t, s, "pwd; echo \"[$x]\"; ls -d kept", s.Dir()+"\n[]\nkept\n", 0)
	write(t, s, "in", "from outside")
	want(t, s, "cat in; printf inside > out", "from outside", 0)
	read(t, s, "out", "inside")
}

// strange paths are neither options nor patterns.
func strange(t *testing.T, p sandbox.Provider) {
	s := start(t, p, "", nil)
	names := []string{"-rf", "a b", "new\nline", "ünï", "$HOME", "*", "'q'", "a;b", "[x]", "#c", `back\slash`}
	for _, name := range names {
		write(t, s, "d/"+name, name)
	}
	for _, name := range names {
		read(t, s, "d/"+name, name)
	}
	infos, err := s.List(t.Context(), "d")
	if err != nil || len(infos) != len(names) {
		t.Errorf("%d files, %v; want %d", len(infos), err, len(names))
	}
	want(t, s, `cd d; n=0; for f in *; do [ "$(cat "./$f")" = "$f" ] && n=$((n+1)); done; echo $n`, fmt.Sprintln(len(names)), 0)
	hits, err := sandbox.Grep(t.Context(), s, sandbox.Query{Pattern: "-rf", Literal: true, Root: "d"})
	if err != nil || len(hits.Lines) != 1 || hits.Lines[0].Path != "d/-rf" {
		t.Errorf("grep -rf: %+v, %v", hits, err)
	}
}

func timeout(t *testing.T, p sandbox.Provider) {
	s := start(t, p, "", nil)
	for _, script := range []string{"echo kept; sleep 60", "echo kept; while :; do :; done", "echo kept; sleep 60 | cat"} {
		begun := time.Now()
		r, err := s.Exec(t.Context(), sandbox.Command{Script: script, Timeout: 300 * time.Millisecond})
		if err != nil || !r.TimedOut || r.ExitCode != 124 || string(r.Output) != "kept\n" {
			t.Errorf("%s: %+v, %v", script, r, err)
		}
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("%s: took %s", script, took)
		}
	}
	want(t, s, "echo alive", "alive\n", 0)
}

func cut(t *testing.T, p sandbox.Provider) {
	s := start(t, p, "", nil)
	r := run(t, s, "echo begin; seq 1 2000000; echo end")
	total := int64(len("begin\nend\n"))
	for n := 1; n <= 2000000; n++ {
		total += int64(len(fmt.Sprintln(n)))
	}
	if r.Cut <= 0 || int64(len(r.Output)) > total-r.Cut+200 || int64(len(r.Output)) < total-r.Cut {
		t.Errorf("kept %d and cut %d of %d bytes", len(r.Output), r.Cut, total)
	}
	if !bytes.HasPrefix(r.Output, []byte("begin\n1\n")) || !bytes.HasSuffix(r.Output, []byte("2000000\nend\n")) {
		t.Error("head or tail is missing")
	}
}

func cancel(t *testing.T, p sandbox.Provider) {
	s := start(t, p, "", nil)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := s.Exec(ctx, sandbox.Command{Script: "echo begun > begun; sleep 1; while :; do :; done"})
		done <- err
	}()
	for begun := time.Now(); ; {
		if _, err := s.ReadFile(t.Context(), "begun"); err == nil {
			break
		}
		if time.Since(begun) > 20*time.Second {
			t.Fatal("the command does not begin")
		}
	}
	stop()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("still runs 20 s after its context ended")
	}
	want(t, s, "echo alive", "alive\n", 0)
}

func snapshot(t *testing.T, p sandbox.Provider) {
	s := start(t, p, "", nil)
	run(t, s, "mkdir -p d/e; printf x > d/e/f; printf '#!/bin/bash\necho ran' > s; chmod +x s; ln -s d/e/f l")
	first, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.Snapshot(t.Context())
	if err != nil || !bytes.Equal(first, again) {
		t.Errorf("equal files give different snapshots (%v)", err)
	}
	if first != nil {
		run(t, s, "echo lost > later; rm s")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = start(t, p, "", first)
	want(t, s, "./s; cat d/e/f l; ls", "ran\nxxd\nl\ns\n", 0)
	again, err = s.Snapshot(t.Context())
	if err != nil || !bytes.Equal(first, again) {
		t.Errorf("a restored sandbox gives a different snapshot (%v)", err)
	}
}

func isolation(t *testing.T, p sandbox.Provider) {
	a, b := start(t, p, "-a", nil), start(t, p, "-b", nil)
	write(t, a, "secret", "of a")
	run(t, a, "echo of a > /tmp/secret")
	if _, err := b.ReadFile(t.Context(), "secret"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("b reads a's file: %v", err)
	}
	want(t, b, "cat secret /tmp/secret 2>/dev/null; echo $?", "1\n", 0)
	read(t, a, "secret", "of a")
}

func environment(t *testing.T, p sandbox.Provider) {
	t.Helper()
	s := start(t, p, "", nil)
	r := run(t, s, "env")
	for line := range strings.Lines(string(r.Output)) {
		name, _, _ := strings.Cut(line, "=")
		for _, bad := range []string{"HEDDLE", "TOKEN", "SECRET", "KEY", "PASSWORD", "GOCACHE", "GOPATH"} {
			if strings.Contains(strings.ToUpper(name), bad) {
				t.Errorf("environment has %s", name)
			}
		}
	}
	want(t, s, `[ -n "$HOME" ] && [ -n "$PATH" ] && echo set`, "set\n", 0)
}

func atOnce(t *testing.T, p sandbox.Provider) {
	s := start(t, p, "", nil)
	errs := make(chan error)
	const n = 8
	for i := range n {
		go func() {
			r, err := s.Exec(t.Context(), sandbox.Command{Script: fmt.Sprintf("for j in 1 2 3; do echo %d >> f%d; done; cat f%d", i, i, i)})
			if expect := strings.Repeat(fmt.Sprintln(i), 3); err == nil && string(r.Output) != expect {
				err = fmt.Errorf("got %q, want %q", r.Output, expect)
			}
			errs <- err
		}()
	}
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// search compares a sandbox's own search with that of the port.
func search(t *testing.T, p sandbox.Provider) {
	s := start(t, p, "", nil)
	for name, data := range map[string]string{
		"a.go": "package a\nfunc A() {}\n", "b/c.go": "package c\n\nfunc c() {}", "b/d/e.txt": "func in text\n", "b.txt": "x\nFUNC\n",
		"bin": "func\x00", ".hidden/h.go": "func h() {}\n", "long": strings.Repeat("ü", 2000) + " func\n", "crlf": "func\r\n",
	} {
		write(t, s, name, data)
	}
	run(t, s, "ln -s a.go link.go; ln -s . loop")
	ctx := t.Context()
	for _, q := range []sandbox.Query{
		{Pattern: "func"},
		{Pattern: "func", Limit: 2},
		{Pattern: "^func [a-z]", Include: "*.go"},
		{Pattern: "(", Literal: true},
		{Pattern: "(?i)func", Root: "b"},
		{Pattern: "func", Root: "a.go"},
		{Pattern: "func", Root: s.Dir()},
		{Pattern: "func", Include: "*.{go,txt}"},
		{Pattern: "nothing"},
		{Pattern: ".", Root: "none"},
		{Pattern: "("},
		{Pattern: "x", Include: "["},
		{Pattern: "^"},
	} {
		got, gotErr := sandbox.Grep(ctx, s, q)
		expect, wantErr := sandbox.GrepFiles(ctx, s, q)
		if diff := cmp.Diff(expect, got); diff != "" || (gotErr == nil) != (wantErr == nil) || kind(gotErr) != kind(wantErr) {
			t.Errorf("%+v: %v, want %v (-want +got):\n%s", q, gotErr, wantErr, diff)
		}
	}
	hits, err := sandbox.Grep(ctx, s, sandbox.Query{Pattern: "func [A-Z]"})
	if diff := cmp.Diff([]sandbox.Hit{{Path: "a.go", Line: 2, Text: "func A() {}"}}, hits.Lines); err != nil || diff != "" {
		t.Errorf("grep: %v (-want +got):\n%s", err, diff)
	}
	for _, c := range []struct {
		root, pattern string
		limit         int
		want          []string
		more          bool
	}{
		{"", "*.go", 0, []string{"a.go"}, false},
		{"", "**/*.go", 0, []string{".hidden/h.go", "a.go", "b/c.go"}, false},
		{"", "**/*.{go,txt}", 2, []string{".hidden/h.go", "a.go"}, true},
		{"b", "**", 0, []string{"b/c.go", "b/d/e.txt"}, false},
		{"b", "*/?.txt", 0, []string{"b/d/e.txt"}, false},
		{s.Dir() + "/b", "[a-c].go", 0, []string{s.Dir() + "/b/c.go"}, false},
		{"", "none*", 0, nil, false},
	} {
		got, more, err := sandbox.Glob(ctx, s, c.root, c.pattern, c.limit)
		own, ownMore, ownErr := sandbox.GlobFiles(ctx, s, c.root, c.pattern, c.limit)
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" || more != c.more {
			t.Errorf("glob %q in %q: more %t, %v (-want +got):\n%s", c.pattern, c.root, more, err, diff)
		}
		if diff := cmp.Diff(own, got); diff != "" || ownMore != more || ownErr != nil {
			t.Errorf("glob %q in %q: the port's own differs: %v %s", c.pattern, c.root, ownErr, diff)
		}
	}
	for _, bad := range []string{"[", "{a", "../x"} {
		if _, _, err := sandbox.Glob(ctx, s, "", bad, 0); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("glob %q: %v does not wrap fs.ErrInvalid", bad, err)
		}
	}
}

// kind names the sentinel that an error wraps.
func kind(err error) error {
	for _, k := range []error{fs.ErrNotExist, fs.ErrInvalid, sandbox.ErrLimit} {
		if errors.Is(err, k) {
			return k
		}
	}
	return nil
}
