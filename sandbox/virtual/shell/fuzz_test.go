package shell

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/heddlehq/heddle/sandbox/virtual/memfs"
)

// FuzzExec runs any script: no fault of ours may show, and its time must end it.
func FuzzExec(f *testing.F) {
	for _, seed := range []string{
		"echo hi | sed s/h/j/ | awk '{print $1}'", "cat <(echo a) ${x:-$$}; type cd", "for i in {1..3}; do find . -name \"*$i\"; done",
		"printf '%-5.2f%b%q' 1 '\\x41' 'a b'; seq 3 | sort -rk1,1n | tail -n +2", "diff <(seq 3) <(seq 4); echo '{}' | jq '.a=1'",
		"date -d '@0 +1 day' +%s; seq -f %g 2", "[[ -O x ]]; eval 'trap \"echo $?\" EXIT'; source x",
		"tr a-z '[:upper:]' <<<x; cut -c2- <<<xy; paste - - <<<z; xargs -n1 <<<'a b'", "awk 'BEGIN{print \"x\" > \"f\"; while((getline l)>0) print l >> \"f\"}'",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, script string) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var out bytes.Buffer
		s := &Shell{FS: memfs.New(time.Now), Now: time.Now}
		begun := time.Now()
		s.Run(ctx, script, &limited{w: &out})
		if took := time.Since(begun); took > 8*time.Second {
			t.Errorf("ran for %s", took)
		}
		if strings.Contains(out.String(), "internal error\n") && !strings.Contains(script, "internal") {
			t.Errorf("a command failed: %.500s", out.String())
		}
	})
}

// limited keeps the first MiB.
type limited struct{ w *bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if l.w.Len() < 1<<20 {
		l.w.Write(p)
	}
	return len(p), nil
}
