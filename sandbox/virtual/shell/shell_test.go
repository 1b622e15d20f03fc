package shell

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/heddlehq/heddle/sandbox/virtual/memfs"
)

func TestPipe(t *testing.T) {
	for _, script := range []string{
		`while :; do echo y; done | { read x; echo got $x; }`,
		`while :; do echo y; done | cat | { read x; echo got $x; }`,
		`f(){ f; }; f`,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		var out bytes.Buffer
		s := &Shell{FS: memfs.New(time.Now), Now: time.Now}
		start := time.Now()
		code := s.Run(ctx, script, &out)
		cancel()
		t.Logf("%d %s %s", code, out.String(), time.Since(start))
	}
}
