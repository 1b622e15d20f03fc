package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of a search.
const (
	DefaultHits   = 1000 // Limit when a search names none
	MaxLineBytes  = 1000 // of Hit.Text; longer lines are cut and end in "…"
	binaryPeek    = 8000 // a file with a NUL in so many first bytes is binary
	maxBraces     = 64   // patterns that one pattern with {a,b} may stand for
	maxWalkLevels = 100  // directories below each other
)

// Files is what a search needs of a sandbox.
type Files interface {
	ReadFile(ctx context.Context, path string) ([]byte, error)
	List(ctx context.Context, path string) ([]Info, error)
	Stat(ctx context.Context, path string) (Info, error)
}

// Grep finds the lines that match, by the sandbox's own search if it has one.
// Files come by the names along their paths, lines by number; binary files and
// symbolic links are passed over. A bad pattern wraps fs.ErrInvalid.
func Grep(ctx context.Context, s Sandbox, q Query) (Hits, error) {
	if own, ok := s.(Searcher); ok {
		return own.Grep(ctx, q)
	}
	return GrepFiles(ctx, s, q)
}

// Glob finds files by a pattern on their path below root: *, ?, [a-z] within a
// name, ** for any number of directories, {a,b} for either. The paths begin
// with root and are ordered as in Grep; more says that limit cut them off.
func Glob(ctx context.Context, s Sandbox, root, pattern string, limit int) (paths []string, more bool, err error) {
	if own, ok := s.(Searcher); ok {
		return own.Glob(ctx, root, pattern, limit)
	}
	return GlobFiles(ctx, s, root, pattern, limit)
}

// GrepFiles is Grep by reading every file.
func GrepFiles(ctx context.Context, f Files, q Query) (Hits, error) {
	expr := q.Pattern
	if q.Literal {
		expr = regexp.QuoteMeta(expr)
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return Hits{}, fmt.Errorf("pattern: %w: %w", fs.ErrInvalid, err)
	}
	include, err := braces(q.Include)
	if err != nil {
		return Hits{}, err
	}
	limit := q.Limit
	if limit <= 0 {
		limit = DefaultHits
	}
	var hits Hits
	err = walk(ctx, f, q.Root, func(name string) error {
		if q.Include != "" && !slices.ContainsFunc(include, func(p string) bool { return matches(p, path.Base(name)) }) {
			return nil
		}
		data, err := f.ReadFile(ctx, name)
		if err != nil || bytes.IndexByte(data[:min(len(data), binaryPeek)], 0) >= 0 {
			return gone(err)
		}
		number := 0
		for line := range bytes.Lines(data) {
			number++
			line = bytes.TrimSuffix(line, []byte("\n"))
			if !re.Match(line) {
				continue
			}
			if len(hits.Lines) == limit {
				hits.More = true
				return errEnough
			}
			hits.Lines = append(hits.Lines, Hit{Path: name, Line: number, Text: cutLine(line)})
		}
		return nil
	})
	return hits, err
}

// GlobFiles is Glob by listing every directory.
func GlobFiles(ctx context.Context, f Files, root, pattern string, limit int) (paths []string, more bool, err error) {
	patterns, err := braces(pattern)
	if err != nil {
		return nil, false, err
	}
	if limit <= 0 {
		limit = DefaultHits
	}
	if len(patterns) > 0 && path.IsAbs(patterns[0]) {
		root = "/"
	}
	base := path.Clean("/" + root)
	err = walk(ctx, f, root, func(name string) error {
		rel := strings.TrimPrefix(strings.TrimPrefix(path.Clean("/"+name), base), "/")
		if !slices.ContainsFunc(patterns, func(p string) bool { return matches(strings.Trim(p, "/"), rel) }) {
			return nil
		}
		if len(paths) == limit {
			more = true
			return errEnough
		}
		paths = append(paths, name)
		return nil
	})
	return paths, more, err
}

var errEnough = errors.New("enough")

// walk calls visit for each regular file at or below root, directories in the
// order of their names. What vanishes meanwhile is passed over.
func walk(ctx context.Context, f Files, root string, visit func(name string) error) error {
	if root == "" {
		root = "."
	}
	root = path.Clean(root)
	info, err := f.Stat(ctx, root)
	if err != nil {
		return err
	}
	if info.Mode.IsRegular() {
		err = visit(root)
	} else {
		err = walkDir(ctx, f, root, maxWalkLevels, visit)
	}
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

func walkDir(ctx context.Context, f Files, dir string, levels int, visit func(string) error) error {
	if levels == 0 {
		return nil
	}
	infos, err := f.List(ctx, dir)
	if err != nil {
		return gone(err)
	}
	for _, info := range infos {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		name := path.Join(dir, info.Name)
		if info.Mode.IsDir() {
			err = walkDir(ctx, f, name, levels-1, visit)
		} else if info.Mode.IsRegular() {
			err = visit(name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// matches reports whether a pattern matches a path, name by name. Bad patterns
// were refused by braces.
func matches(pattern, name string) bool {
	return matchNames(strings.Split(pattern, "/"), strings.Split(name, "/"))
}

func matchNames(pattern, names []string) bool {
	for len(pattern) > 0 {
		if pattern[0] == "**" {
			for len(pattern) > 1 && pattern[1] == "**" {
				pattern = pattern[1:]
			}
			if len(pattern) == 1 {
				return true
			}
			for i := range names {
				if matchNames(pattern[1:], names[i:]) {
					return true
				}
			}
			return false
		}
		if len(names) == 0 {
			return false
		}
		if ok, _ := path.Match(pattern[0], names[0]); !ok {
			return false
		}
		pattern, names = pattern[1:], names[1:]
	}
	return len(names) == 0
}

// braces expands {a,b}, not nested, and refuses patterns that are not well formed.
func braces(pattern string) ([]string, error) {
	out := []string{pattern}
	for i := 0; i < len(out); i++ {
		for {
			open := strings.IndexByte(out[i], '{')
			if open < 0 {
				break
			}
			end := strings.IndexByte(out[i][open:], '}')
			if end < 0 {
				return nil, fmt.Errorf("pattern with { but no }: %w", fs.ErrInvalid)
			}
			head, tail := out[i][:open], out[i][open+end+1:]
			choices := strings.Split(out[i][open+1:open+end], ",")
			if len(out)+len(choices) > maxBraces {
				return nil, fmt.Errorf("pattern stands for more than %d: %w", maxBraces, fs.ErrInvalid)
			}
			out[i] = head + choices[0] + tail
			for _, c := range choices[1:] {
				out = append(out, head+c+tail)
			}
		}
	}
	for _, p := range out {
		if strings.Count(p, "**") > 8 {
			return nil, fmt.Errorf("pattern with more than 8 **: %w", fs.ErrInvalid)
		}
		for name := range strings.SplitSeq(p, "/") {
			if _, err := path.Match(name, ""); err != nil || name == ".." {
				return nil, fmt.Errorf("pattern is not well formed: %w", fs.ErrInvalid)
			}
		}
	}
	return out, nil
}

func cutLine(line []byte) string {
	if len(line) <= MaxLineBytes {
		return string(line)
	}
	line = line[:MaxLineBytes]
	for i := 0; i < utf8.UTFMax && len(line) > 0; i++ {
		if r, _ := utf8.DecodeLastRune(line); r != utf8.RuneError {
			break
		}
		line = line[:len(line)-1]
	}
	return string(line) + "…"
}
