package virtual_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heddlehq/heddle/sandbox"
	"github.com/heddlehq/heddle/sandbox/sandboxtest"
	"github.com/heddlehq/heddle/sandbox/virtual"
)

// worker is the binary of the workers, "" for this one. TestMain sets it.
var worker string

func TestMain(m *testing.M) {
	if virtual.IsWorker(os.Args) {
		os.Exit(virtual.Worker(os.Stdin, os.Stdout))
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	if raced {
		dir, err := os.MkdirTemp("", "heddle-worker")
		if err != nil {
			panic(err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		worker = filepath.Join(dir, "worker")
		if out, err := exec.Command("go", "test", "-c", "-o", worker, ".").CombinedOutput(); err != nil {
			panic(fmt.Sprintf("%v: %s", err, out))
		}
	}
	return m.Run()
}

func provider(t testing.TB, o virtual.Options) *virtual.Provider {
	t.Helper()
	if o.Exe == "" {
		o.Exe = worker
	}
	p := virtual.New(o)
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func open(t testing.TB, p *virtual.Provider, conversation string, snapshot []byte) sandbox.Sandbox {
	t.Helper()
	s, err := p.Open(t.Context(), conversation, snapshot)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func run(t testing.TB, s sandbox.Sandbox, script string) string {
	t.Helper()
	r, err := s.Exec(t.Context(), sandbox.Command{Script: script})
	if err != nil {
		t.Fatal(err)
	}
	return string(r.Output)
}

func TestSuite(t *testing.T) {
	t.Parallel()
	sandboxtest.Run(t, func(t *testing.T) sandbox.Provider { return provider(t, virtual.Options{}) })
}

// TestContained runs scripts that take what they can. Each ends by itself, at
// its timeout, or takes the worker with it; then the last snapshot is there.
func TestContained(t *testing.T) {
	t.Parallel()
	p := provider(t, virtual.Options{})
	deep := func(open string) string { return strings.Repeat(open, 16<<10/len(open)) }
	for name, c := range map[string]struct {
		script string
		broken bool   // may end the worker
		says   string // in the output, if it does not
	}{
		"doubling":       {`x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done`, true, ""},
		"awk doubling":   {`awk 'BEGIN{s="aaaaaaaa"; while(1) s=s s}'`, true, ""},
		"jq doubling":    {`jq -n '"aaaaaaaa"|until(false; .+.)'`, true, ""},
		"sed doubling":   {`echo aaaaaaaa | sed ':a;s/.*/&&/;ba'`, true, "Input of more than"},
		"array":          {`while :; do a+=(xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx); done`, true, ""},
		"variable":       {`x=$(yes)`, true, ""},
		"deep subst":     {deep(`$(`), false, "brackets open"},
		"deep parens":    {deep(`(`), false, "brackets open"},
		"deep if":        {deep(`if `), true, ""},
		"deep not":       {deep(`! `), true, ""},
		"deep eval":      {`x='('; for i in 1 2 3 4 5 6 7 8 9 10; do x=$x$x; done; eval "$x"`, false, "brackets open"},
		"deep awk":       {`x='('; for i in 1 2 3 4 5 6 7 8 9 10; do x=$x$x; done; awk "BEGIN{$x"`, false, "brackets open"},
		"deep jq":        {`x='['; for i in 1 2 3 4 5 6 7 8 9 10; do x=$x$x; done; jq -n "$x"`, false, "brackets open"},
		"deep json":      {`awk 'BEGIN{for(i=0;i<1000000;i++) printf "["}' > f; jq . f`, true, "parse error"},
		"deep source":    {`awk 'BEGIN{for(i=0;i<1000;i++) printf "("}' > f; . ./f; bash f`, false, "brackets open"},
		"deep trap":      {`x='('; for i in 1 2 3 4 5 6 7 8 9 10; do x=$x$x; done; trap "$x" EXIT`, false, "brackets open"},
		"long script":    {strings.Repeat("#", 17<<10), false, "more than 16 KiB"},
		"recursion":      {`f(){ f; }; f`, false, "nested too deeply"},
		"recursion eval": {`f(){ eval f; }; f`, false, "nested too deeply"},
		"recursion bash": {`echo 'bash s' > s; bash s`, false, "nested too deeply"},
		"source itself":  {`echo '. ./s' > s; . ./s`, true, "nested too deeply"},
		"awk recursion":  {`awk 'function f(){f()} BEGIN{f()}'`, true, "call depth"},
		"jq recursion":   {`jq -n 'def f: f|f; f'`, true, ""},
		"fork":           {`f(){ f & f & }; f; wait`, true, ""},
		"fork pipe":      {`f(){ f | f; }; f`, true, ""},
		"loop":           {`while :; do :; done`, false, ""},
		"output":         {`yes`, false, "left out"},
		"output loop":    {`while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done`, false, ""},
		"sort endless":   {`yes | sort`, false, "Input of more than"},
		"one line":       {`yes | tr -d '\n' | sed s/y/n/`, true, ""},
		"many files":     {`for i in {1..5000}; do echo > f$i; done; ls | wc -l`, false, "limit of the sandbox is reached: 4096 files"},
		"big file":       {`yes > f; ls -s f`, false, "limit of the sandbox is reached: 8 MiB"},
		"big files":      {`for i in 1 2 3; do head -c 7000000 /dev/null; yes | head -c 7000000 > f$i; done`, false, "limit of the sandbox is reached: 16 MiB"},
		"deep dirs":      {`while mkdir d && cd d; do :; done 2>&1 | tail -1`, false, "File name too long"},
		"brace":          {`echo {1..9}{1..9}{1..9}{1..9}{1..9}{1..9}{1..9} | wc -c`, true, ""},
		"regex":          {`echo | grep -E '((a{1,100}){1,100}){1,100}'`, false, "bad pattern"},
		"printf width":   {`printf '%999999999s' x`, false, "width"},
		"seq":            {`for i in $(seq 100000000); do :; done`, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, p, t.Name(), nil)
			defer func() { _ = s.Close() }()
			run(t, s, "echo kept > kept")
			if _, err := s.Snapshot(t.Context()); err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			r, err := s.Exec(t.Context(), sandbox.Command{Script: c.script, Timeout: 2 * time.Second})
			took := time.Since(begun)
			switch {
			case err != nil && (!c.broken || !errors.Is(err, sandbox.ErrBroken)):
				t.Errorf("got %v after %s", err, took)
			case err == nil && !r.TimedOut && !strings.Contains(string(r.Output), c.says):
				t.Errorf("output %.300q does not say %q", r.Output, c.says)
			}
			t.Logf("%s: %v, code %d, timed out %t, %d bytes: %.100q", took, err, r.ExitCode, r.TimedOut, len(r.Output), r.Output)
			if took > 20*time.Second {
				t.Errorf("took %s", took)
			}
			if got := run(t, s, "cat kept"); got != "kept\n" {
				t.Errorf("kept file reads %q", got)
			}
		})
	}
}

func TestWorkers(t *testing.T) {
	t.Parallel()
	p := provider(t, virtual.Options{Most: 2, Idle: 50 * time.Millisecond})
	a, b := open(t, p, "a", nil), open(t, p, "b", nil)
	if _, err := p.Open(t.Context(), "c", nil); !errors.Is(err, sandbox.ErrLimit) {
		t.Errorf("third sandbox: %v", err)
	}
	again := open(t, p, "a", []byte("not looked at: the sandbox is open"))
	run(t, a, "echo x > f")
	if got := run(t, again, "cat f"); got != "x\n" {
		t.Errorf("second opening reads %q", got)
	}
	for _, s := range []sandbox.Sandbox{a, a, again} { // closing twice is closing once
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	c := open(t, p, "c", nil) // takes the place of a
	run(t, c, "echo c > f")
	if got := run(t, b, "cat f 2>/dev/null; echo none"); got != "none\n" {
		t.Errorf("b reads %q", got)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if got := run(t, open(t, p, "b", nil), "ls"); got != "" {
		t.Errorf("a fresh opening has %q", got)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	s := open(t, provider(t, virtual.Options{}), "x", nil)
	if err := s.WriteFile(t.Context(), "big", make([]byte, 9<<20)); !errors.Is(err, sandbox.ErrLimit) {
		t.Errorf("9 MiB: %v", err)
	}
	for i := range 3 {
		err := s.WriteFile(t.Context(), fmt.Sprint(i), make([]byte, 7<<20))
		if (err == nil) != (i < 2) || err != nil && !errors.Is(err, sandbox.ErrLimit) {
			t.Errorf("file %d: %v", i, err)
		}
	}
	run(t, s, "rm -f 0 1 2; awk 'BEGIN{srand(1); for(i=0;i<800000;i++) printf \"%05d\", rand()*100000}' | base64 -d > r; cp r r2; cp r r3")
	if _, err := s.Snapshot(t.Context()); !errors.Is(err, sandbox.ErrLimit) {
		t.Errorf("snapshot of random bytes: %v", err)
	}
	if err := s.WriteFile(t.Context(), "nul\x00name", nil); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("name with NUL: %v", err)
	}
}

// TestBadSnapshot opens what is no snapshot.
func TestBadSnapshot(t *testing.T) {
	t.Parallel()
	p := provider(t, virtual.Options{})
	s := open(t, p, "x", nil)
	run(t, s, "echo hello > f")
	good, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range [][]byte{[]byte("rubbish"), good[:len(good)-3], append([]byte("heddlefs2\n"), good[10:]...)} {
		if _, err := p.Open(t.Context(), "y", bad); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%.20q: %v", bad, err)
		}
	}
}

func TestClock(t *testing.T) {
	t.Parallel()
	s := open(t, provider(t, virtual.Options{Clock: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}), "x", nil)
	if got := run(t, s, "date; touch f; stat -c %y f; awk 'BEGIN{print strftime(\"%F\")}'"); got != "Wed Mar  4 05:06:07 UTC 2026\n2026-03-04 05:06:07.000000000 +0000\n2026-03-04\n" {
		t.Errorf("got %q", got)
	}
}

// BenchmarkAttach opens a warm sandbox of 20 files; p99-ms is of that alone.
func BenchmarkAttach(b *testing.B) {
	p := provider(b, virtual.Options{})
	s := open(b, p, "x", nil)
	run(b, s, "for i in {1..20}; do seq 500 > f$i; done")
	snapshot, err := s.Snapshot(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	_ = s.Close()
	var took []time.Duration
	for b.Loop() {
		begun := time.Now()
		s := open(b, p, "x", snapshot)
		took = append(took, time.Since(begun))
		run(b, s, "cat f1 | head -1")
		_ = s.Close()
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}

// BenchmarkStart opens a sandbox in a new worker and runs one command.
func BenchmarkStart(b *testing.B) {
	p := provider(b, virtual.Options{})
	for i := 0; b.Loop(); i++ {
		s := open(b, p, fmt.Sprint(i), nil)
		run(b, s, "echo hi")
		_ = s.Close()
	}
}
