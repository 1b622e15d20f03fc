package harness_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/sandbox"
)

var goOn = regexp.MustCompile(`\[cut here; the file goes on: read it with offset (\d+)\]\n$`)

// Following the offsets that a cut names, every line of a file comes once.
func TestReadPages(t *testing.T) {
	t.Parallel()
	var short, wide strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&short, "line %d of a file of ten megabytes, all in all, more or less\n", i)
	}
	for i := range 300 {
		fmt.Fprintf(&wide, "%d %s\n", i, strings.Repeat("é", i*3))
	}
	for name, text := range map[string]string{
		"short lines": short.String(), "wide lines": wide.String(), "no newline at the end": "a\nb", "empty lines": strings.Repeat("\n", 5000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := withFiles(t)
			b.files.data["/box/f"] = text
			var all strings.Builder
			for offset := 1; offset > 0; {
				page := b.must("read", object{"path": "f", "offset": offset})
				offset = 0
				if m := goOn.FindStringSubmatch(page); m != nil {
					offset, _ = strconv.Atoi(m[1])
					page = strings.TrimSuffix(page, m[0])
				}
				if lines := strings.Count(page, "\n"); lines > 2000 || len(page) > 50<<10 {
					t.Fatalf("a page of %d lines and %d bytes", lines, len(page))
				}
				all.WriteString(page)
			}
			if strings.TrimSuffix(all.String(), "\n") != strings.TrimSuffix(text, "\n") {
				t.Error("the pages together are not the file")
			}
		})
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	b := withFiles(t)
	b.files.data["/box/five"] = "1\n2\n3\n4\n5\n"
	b.files.data["/box/long"] = "a\n" + strings.Repeat("x", 1999) + "é tail\nz\n"
	b.files.data["/box/empty"] = ""
	b.files.data["/box/binary"] = "PK\x00\x01"
	for _, tt := range []struct {
		args object
		want string // of the result, or of the error after "error: "
	}{
		{object{"path": "five", "offset": 2, "limit": 2}, "2\n3\n[cut here; the file goes on: read it with offset 4]\n"},
		{object{"path": "five", "offset": 4, "limit": 2}, "4\n5\n"},
		{object{"path": "/box/five", "offset": 5}, "5\n"},
		{object{"path": "five", "offset": 6}, "error: offset 6 is past the end: the file has 5 lines"},
		{object{"path": "empty"}, "[the file is empty]"},
		{object{"path": "binary"}, "error: binary is not a text file (4 bytes)"},
		{object{"path": "none"}, "error: read none: file does not exist"},
		{object{"path": "long"}, "a\n" + strings.Repeat("x", 1999) + "... [line 2 has 2006 bytes; see the rest with bash: sed -n 2p FILE | tail -c +2001]\nz\n"},
	} {
		if got := said(b.run("read", tt.args)); got != tt.want {
			t.Errorf("read %v: %q, want %q", tt.args, got, tt.want)
		}
	}
}

// said is a result as the model is told it, shortened.
func said(text string, err error) string {
	if err != nil {
		return "error: " + err.Error()
	}
	return text
}

func TestWrite(t *testing.T) {
	t.Parallel()
	b := withFiles(t)
	if got := b.must("write", object{"path": "deep/down/a.txt", "content": "one"}); got != "wrote 3 bytes to deep/down/a.txt, a new file" {
		t.Errorf("a new file: %q", got)
	}
	if got := b.must("write", object{"path": "/box/deep/down/a.txt", "content": "three"}); got != "wrote 5 bytes over /box/deep/down/a.txt" {
		t.Errorf("an old file: %q", got)
	}
	if got := b.must("read", object{"path": "deep/down/a.txt"}); got != "three\n" {
		t.Errorf("read %q", got)
	}
}

func TestEdit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args object
		want string // of the result, or of the error after "error: "
		file string
	}{
		{object{"old_text": "cat", "new_text": "dog"}, "replaced 1 in f", "one dog, two hens, two hens"},
		{object{"old_text": "cow", "new_text": "dog"}, "error: old_text does not occur in f; read the file and copy the text exactly", ""},
		{object{"old_text": "hens", "new_text": "dogs"}, "error: old_text occurs 2 times in f; give more of the text around it, or set replace_all", ""},
		{object{"old_text": "hens", "new_text": "dogs", "replace_all": true}, "replaced 2 in f", "one cat, two dogs, two dogs"},
		{object{"old_text": "one cat, ", "new_text": ""}, "replaced 1 in f", "two hens, two hens"},
		{object{"old_text": "", "new_text": "x"}, "error: old_text is empty; use write to make a file", ""},
	} {
		const before = "one cat, two hens, two hens"
		b := withFiles(t)
		b.files.data["/box/f"] = before
		tt.args["path"] = "f"
		if got := said(b.run("edit", tt.args)); got != tt.want {
			t.Errorf("edit %v: %q, want %q", tt.args, got, tt.want)
		}
		if tt.file == "" {
			tt.file = before
		}
		if got := b.files.data["/box/f"]; got != tt.file {
			t.Errorf("edit %v: the file holds %q, want %q", tt.args, got, tt.file)
		}
	}
}

// Edits of one file in one batch do not lose each other, by whatever name.
func TestSameFileEditsAreSerialised(t *testing.T) {
	t.Parallel()
	b := withFiles(t)
	b.files.delay = 2 * time.Millisecond
	var want []string
	for i := range 8 {
		want = append(want, fmt.Sprintf("new %d", i))
		b.files.data["/box/dir/f"] += fmt.Sprintf("<old %d>", i)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		p := []string{"dir/f", "./dir/f", "/box/dir/f", "dir/../dir/f"}[i%4]
		wg.Go(func() {
			b.must("edit", object{"path": p, "old_text": fmt.Sprintf("<old %d>", i), "new_text": fmt.Sprintf("<new %d>", i)})
		})
	}
	wg.Wait()
	if got := b.files.data["/box/dir/f"]; got != "<"+strings.Join(want, "><")+">" {
		t.Errorf("the file holds %q", got)
	}
}

func TestBash(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789\n", 6000)
	for _, tt := range []struct {
		name   string
		args   object
		result sandbox.Result
		wait   time.Duration // that the sandbox is given
		want   string
	}{
		{"output", object{}, sandbox.Result{Output: []byte("hi")}, 2 * time.Minute, "hi\n[exit code 0]"},
		{"silence", object{}, sandbox.Result{ExitCode: 3}, 2 * time.Minute, "[exit code 3]"},
		{
			"time",
			object{"timeout": 5},
			sandbox.Result{Output: []byte("half\n"), ExitCode: 124, TimedOut: true},
			5 * time.Second,
			"half\n[stopped after 5s; exit code 124; give a longer timeout or do less at once]",
		},
		{"most time", object{"timeout": 6000}, sandbox.Result{}, 10 * time.Minute, "[exit code 0]"},
		{
			"left out by the sandbox",
			object{},
			sandbox.Result{Output: []byte("a\nb\n"), Cut: 9},
			2 * time.Minute,
			"[9 bytes of output left out; write it to a file and read that in parts]\na\nb\n[exit code 0]",
		},
		{
			"many bytes",
			object{},
			sandbox.Result{Output: []byte(strings.Repeat("0123456789012345678901234567890123456789012345678\n", 1100))},
			2 * time.Minute,
			"[3850 bytes of output left out; write it to a file and read that in parts]\n" + strings.Repeat("0123456789012345678901234567890123456789012345678\n", 1023) + "[exit code 0]",
		},
		{
			"many lines",
			object{},
			sandbox.Result{Output: []byte(long)},
			2 * time.Minute,
			"[44000 bytes of output left out; write it to a file and read that in parts]\n" + long[:2000*11] + "[exit code 0]",
		},
		{
			"one line",
			object{},
			sandbox.Result{Output: []byte(strings.Repeat("é", 30<<10) + "\n")},
			2 * time.Minute,
			"[10242 bytes of output left out; write it to a file and read that in parts]\n" + strings.Repeat("é", 25<<10-1) + "\n[exit code 0]",
		},
		{"no text", object{}, sandbox.Result{Output: []byte("a\xffb")}, 2 * time.Minute, "a\uFFFDb\n[exit code 0]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := withFiles(t)
			b.files.exec = func(_ context.Context, c sandbox.Command) (sandbox.Result, error) {
				if c.Script != "make" || c.Timeout != tt.wait {
					t.Errorf("the sandbox was given %+v", c)
				}
				return tt.result, nil
			}
			tt.args["command"] = "make"
			if got := b.must("bash", tt.args); got != tt.want {
				t.Errorf("got %d bytes %.200q, want %d bytes %.200q", len(got), got, len(tt.want), tt.want)
			}
		})
	}
}

// A sandbox that stops its command at the time it was given makes a result; one
// that is stuck is left behind by the harness a minute after the longest time.
func TestBashTimeouts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := withFiles(t)
		stuck := make(chan struct{})
		b.files.exec = func(_ context.Context, c sandbox.Command) (sandbox.Result, error) {
			if c.Script == "stuck" {
				<-stuck // heeds nothing
				return sandbox.Result{}, nil
			}
			time.Sleep(c.Timeout)
			return sandbox.Result{Output: []byte("so far"), TimedOut: true, ExitCode: 124}, nil
		}
		began := time.Now()
		if got := b.must("bash", object{"command": "slow", "timeout": 7}); !strings.HasPrefix(got, "so far\n[stopped after 7s") {
			t.Errorf("the native timeout gave %q", got)
		}
		if took := time.Since(began); took != 7*time.Second {
			t.Errorf("it took %v", took)
		}
		began = time.Now()
		_, err := b.run("bash", object{"command": "stuck", "timeout": 7})
		if err == nil || err.Error() != "bash did not finish within 11m0s; its outcome is unknown" {
			t.Errorf("the backstop gave %v", err)
		}
		if took := time.Since(began); took != 11*time.Minute+time.Second {
			t.Errorf("the backstop took %v", took)
		}
		close(stuck)
	})
}

func TestBashFails(t *testing.T) {
	t.Parallel()
	b := withFiles(t)
	b.files.exec = func(context.Context, sandbox.Command) (sandbox.Result, error) {
		return sandbox.Result{}, fmt.Errorf("exec: %w", sandbox.ErrBroken)
	}
	if _, err := b.run("bash", object{"command": "x"}); !errors.Is(err, sandbox.ErrBroken) {
		t.Errorf("got %v", err)
	}
}

// The search of a sandbox and ours have the same hits, and what is cut says so.
func TestGrep(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args object
		want string
	}{
		{object{"pattern": "ne+dle"}, "a.go:2: a needle\nb.txt:1: neeedle b\n"},
		{object{"pattern": "ne+dle", "include": "*.go"}, "a.go:2: a needle\n"},
		{object{"pattern": "ne+dle", "path": "b.txt"}, "b.txt:1: neeedle b\n"},
		{object{"pattern": "ne+dle", "literal": true}, "[no match]"},
		{object{"pattern": "many", "path": "many"}, strings.Repeat("many:#: many\n", 100) + "[the first 100 matches; there are more: narrow the pattern, path or include]\n"},
		{object{"pattern": "long"}, "long:1: long " + strings.Repeat("x", 495) + "...\n"},
		{object{"pattern": "("}, "error: pattern: invalid argument: error parsing regexp: missing closing ): `(`"},
	} {
		b := withFiles(t)
		fast := &searcher{files: b.files}
		b.files.data["/box/a.go"] = "package a\na needle\n"
		b.files.data["/box/b.txt"] = "neeedle b"
		b.files.data["/box/many"] = strings.Repeat("many\n", 101)
		b.files.data["/box/long"] = "long " + strings.Repeat("x", 900)
		slow := said(b.run("grep", tt.args))
		b.scope = harness.NewScope(snapshot(), func(context.Context) (sandbox.Sandbox, error) { return fast, nil })
		quick := said(b.run("grep", tt.args))
		if slow != quick || fast.asked != 1 {
			t.Errorf("grep %v: %q by reading, %q by the sandbox's search, asked %d times", tt.args, slow, quick, fast.asked)
		}
		if got := regexp.MustCompile(`many:\d+:`).ReplaceAllString(slow, "many:#:"); got != tt.want {
			t.Errorf("grep %v: %q, want %q", tt.args, got, tt.want)
		}
	}
}

func TestGlob(t *testing.T) {
	t.Parallel()
	b := withFiles(t)
	for i := range 1001 {
		b.files.data[fmt.Sprintf("/box/many/%04d.txt", i)] = ""
	}
	b.files.data["/box/src/a.go"], b.files.data["/box/src/deep/b.go"] = "", ""
	out := b.must("glob", object{"pattern": "many/*.txt"})
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) != 1001 || lines[999] != "many/0999.txt" || lines[1000] != "[the first 1000 paths; there are more: narrow the pattern or path]" {
		t.Errorf("1001 files gave %d lines that end in %q", len(lines), lines[len(lines)-1])
	}
	delete(b.files.data, "/box/many/1000.txt")
	if out := b.must("glob", object{"pattern": "**/*.txt", "path": "many"}); strings.Count(out, "\n") != 1000 || strings.Contains(out, "[") {
		t.Errorf("1000 files gave %d lines", strings.Count(out, "\n"))
	}
	for pattern, want := range map[string]string{"**/*.go": "src/a.go\nsrc/deep/b.go\n", "*.go": "[no file matches]"} {
		if got := b.must("glob", object{"pattern": pattern}); got != want {
			t.Errorf("%s: %q, want %q", pattern, got, want)
		}
	}
	fast := &searcher{files: b.files}
	b.scope = harness.NewScope(snapshot(), func(context.Context) (sandbox.Sandbox, error) { return fast, nil })
	if got := b.must("glob", object{"pattern": "**/*.go"}); got != "src/a.go\nsrc/deep/b.go\n" || fast.asked != 1 {
		t.Errorf("the sandbox's search, asked %d times, gave %q", fast.asked, got)
	}
}

// The file tools are there with a sandbox and only then.
func TestFileToolsComeWithASandbox(t *testing.T) {
	t.Parallel()
	if got := names(withFiles(t).m); got != "read write edit bash grep glob" {
		t.Errorf("with a sandbox there are: %s", got)
	}
	without := render(t, func(c *harness.Context) string { harness.UseModel(c, "fast"); return "" }, snapshot())
	if got := names(without); got != "" {
		t.Errorf("without a sandbox there are: %s", got)
	}
}
