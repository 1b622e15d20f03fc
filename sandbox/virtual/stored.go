package virtual

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/heddlehq/heddle/sandbox/virtual/memfs"
	"github.com/heddlehq/heddle/sandbox/virtual/shell"
)

// Stored reads the regular files of a snapshot without a sandbox, by their
// paths below the working directory of commands.
func Stored(snapshot []byte) (map[string][]byte, error) {
	tree, err := memfs.Restore(snapshot, time.Now)
	if err != nil {
		return nil, fmt.Errorf("stored files: %w", err)
	}
	files := map[string][]byte{}
	var walk func(dir string) error
	walk = func(dir string) error {
		infos, err := tree.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, info := range infos {
			name := path.Join(dir, info.Name())
			switch {
			case info.IsDir():
				err = walk(name)
			case info.Mode().IsRegular():
				files[strings.TrimPrefix(name, shell.Dir+"/")], err = tree.ReadFile(name)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	err = walk(shell.Dir)
	return files, err
}
