package shell

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/heddlehq/heddle/sandbox/virtual/memfs"
)

// TestCorpus runs scripts whose output was taken from bash and the GNU tools.
func TestCorpus(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../testdata/corpus/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i+1 < len(archive.Files); i += 2 {
			script, want := archive.Files[i], archive.Files[i+1]
			group := strings.TrimSuffix(filepath.Base(file), ".txtar")
			t.Run(group+"/"+strings.TrimSuffix(script.Name, ".sh"), func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				var out, errs bytes.Buffer
				s := &Shell{FS: memfs.New(time.Now), Now: time.Now}
				p := process{shell: s, dir: Dir, env: baseEnv(), stdout: &lockedWriter{w: &out}, stderr: &lockedWriter{w: &errs}}
				code := p.run(ctx, string(script.Data), "bash", nil)
				got := out.String()
				if got != "" && !strings.HasSuffix(got, "\n") {
					got += "\n"
				}
				got += fmt.Sprintf("exit %d\n", code)
				if diff := cmp.Diff(string(want.Data), got); diff != "" {
					t.Errorf("%s(-bash +ours):\n%s\nstderr: %s", script.Data, diff, errs.String())
				}
			})
		}
	}
}
