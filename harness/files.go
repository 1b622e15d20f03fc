package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/heddlehq/heddle/sandbox"
)

// Limits of the file tools. What is cut says so and how to go on.
const (
	maxLines     = 2000
	maxBytes     = 50 << 10
	maxLineBytes = 2000
	maxHits      = 100
	maxHitBytes  = 500
	maxPaths     = 1000
	maxWait      = 10 * time.Minute
)

type (
	readArgs struct {
		Path   string `json:"path" jsonschema:"file to read"`
		Offset int    `json:"offset,omitempty" jsonschema:"first line to read, from 1"`
		Limit  int    `json:"limit,omitempty" jsonschema:"most lines to read"`
	}
	writeArgs struct {
		Path    string `json:"path" jsonschema:"file to write; parents are made"`
		Content string `json:"content" jsonschema:"the whole new content"`
	}
	editArgs struct {
		Path       string `json:"path" jsonschema:"file to change"`
		OldText    string `json:"old_text" jsonschema:"text to replace, exactly as it stands in the file; must occur once"`
		NewText    string `json:"new_text" jsonschema:"what to put in its place"`
		ReplaceAll bool   `json:"replace_all,omitempty" jsonschema:"replace every occurrence"`
	}
	bashArgs struct {
		Command string `json:"command" jsonschema:"shell script to run"`
		Timeout int    `json:"timeout,omitempty" jsonschema:"seconds after which it is stopped, 120 by default, at most 600"`
	}
	grepArgs struct {
		Pattern string `json:"pattern" jsonschema:"regular expression"`
		Path    string `json:"path,omitempty" jsonschema:"file or directory to search, the working directory by default"`
		Include string `json:"include,omitempty" jsonschema:"only files whose name matches, such as *.go"`
		Literal bool   `json:"literal,omitempty" jsonschema:"the pattern is plain text"`
	}
	globArgs struct {
		Pattern string `json:"pattern" jsonschema:"path pattern, such as **/*.go"`
		Path    string `json:"path,omitempty" jsonschema:"directory to search, the working directory by default"`
	}
)

// fileTools are the six tools that come with a sandbox.
func fileTools() []Tool {
	return []Tool{
		NewTool("read", "Reads a text file, with line numbers left out, or looks at an image.", read).Quiet(),
		NewTool("write", "Writes a whole file.", write),
		NewTool("edit", "Replaces text in a file.", edit),
		NewTool("bash", "Runs a shell script and returns its output and exit code.", bash).Timeout(maxWait + time.Minute),
		NewTool("grep", "Searches file contents.", grep).Quiet(),
		NewTool("glob", "Finds files by name.", glob).Quiet(),
	}
}

func read(ctx context.Context, call *Call, in readArgs) (string, error) {
	sb, err := call.Sandbox(ctx)
	if err != nil {
		return "", err
	}
	data, err := sb.ReadFile(ctx, in.Path)
	if err != nil {
		return "", err
	}
	if IsImage(data) {
		if err := call.Show(data); err != nil {
			return "", fmt.Errorf("%s: %w", in.Path, err)
		}
		return fmt.Sprintf("[%s is an image of %s; it is shown after the results]", in.Path, Size(int64(len(data)))), nil
	}
	if bytes.IndexByte(data[:min(len(data), 8000)], 0) >= 0 {
		return "", fmt.Errorf("%s is not a text file (%d bytes)", in.Path, len(data))
	}
	return page(data, in)
}

// page cuts the wanted lines out of a file: every line is returned once when
// the reader follows the offsets that it is told.
func page(data []byte, in readArgs) (string, error) {
	from, limit := max(in.Offset, 1), maxLines
	if in.Limit > 0 {
		limit = min(in.Limit, maxLines)
	}
	var b strings.Builder
	line := 0
	for raw := range bytes.Lines(data) {
		line++
		if line < from {
			continue
		}
		text := string(bytes.TrimSuffix(raw, []byte("\n")))
		if n := len(text); n > maxLineBytes {
			text = fmt.Sprintf("%s [line %d has %d bytes; see the rest with bash: sed -n %dp FILE | tail -c +%d]",
				cutText(text, maxLineBytes), line, n, line, maxLineBytes+1)
		}
		if line >= from+limit || b.Len()+len(text) >= maxBytes {
			fmt.Fprintf(&b, "[cut here; the file goes on: read it with offset %d]\n", line)
			return b.String(), nil
		}
		b.WriteString(text + "\n")
	}
	if line == 0 {
		return "[the file is empty]", nil
	}
	if from > line {
		return "", fmt.Errorf("offset %d is past the end: the file has %d lines", from, line)
	}
	return b.String(), nil
}

func write(ctx context.Context, call *Call, in writeArgs) (string, error) {
	sb, err := call.Sandbox(ctx)
	if err != nil {
		return "", err
	}
	defer call.scope.paths.lock(resolve(sb, in.Path))()
	_, missing := sb.Stat(ctx, in.Path)
	if err := sb.WriteFile(ctx, in.Path, []byte(in.Content)); err != nil {
		return "", err
	}
	if missing == nil {
		return fmt.Sprintf("wrote %d bytes over %s", len(in.Content), in.Path), nil
	}
	return fmt.Sprintf("wrote %d bytes to %s, a new file", len(in.Content), in.Path), nil
}

func edit(ctx context.Context, call *Call, in editArgs) (string, error) {
	if in.OldText == "" {
		return "", errors.New("old_text is empty; use write to make a file")
	}
	sb, err := call.Sandbox(ctx)
	if err != nil {
		return "", err
	}
	defer call.scope.paths.lock(resolve(sb, in.Path))()
	data, err := sb.ReadFile(ctx, in.Path)
	if err != nil {
		return "", err
	}
	n := bytes.Count(data, []byte(in.OldText))
	switch {
	case n == 0:
		return "", fmt.Errorf("old_text does not occur in %s; read the file and copy the text exactly", in.Path)
	case n > 1 && !in.ReplaceAll:
		return "", fmt.Errorf("old_text occurs %d times in %s; give more of the text around it, or set replace_all", n, in.Path)
	}
	next := bytes.ReplaceAll(data, []byte(in.OldText), []byte(in.NewText))
	if err := sb.WriteFile(ctx, in.Path, next); err != nil {
		return "", err
	}
	return fmt.Sprintf("replaced %d in %s", n, in.Path), nil
}

func bash(ctx context.Context, call *Call, in bashArgs) (string, error) {
	sb, err := call.Sandbox(ctx)
	if err != nil {
		return "", err
	}
	wait := sandbox.DefaultTimeout
	if in.Timeout > 0 {
		wait = min(time.Duration(in.Timeout)*time.Second, maxWait)
	}
	r, err := sb.Exec(ctx, sandbox.Command{Script: in.Command, Timeout: wait})
	if err != nil {
		return "", err
	}
	out := tail(r.Output, r.Cut)
	switch {
	case r.TimedOut:
		out += fmt.Sprintf("[stopped after %v; exit code %d; give a longer timeout or do less at once]", wait, r.ExitCode)
	default:
		out += fmt.Sprintf("[exit code %d]", r.ExitCode)
	}
	return out, nil
}

// tail keeps the end of an output, where the news is, and says what is missing.
func tail(out []byte, cut int64) string {
	text := strings.ToValidUTF8(string(out), "\uFFFD")
	kept := text
	if len(kept) > maxBytes {
		kept = strings.ToValidUTF8(kept[len(kept)-maxBytes:], "")
		if _, whole, ok := strings.Cut(kept, "\n"); ok && whole != "" {
			kept = whole
		}
	}
	for range strings.Count(kept, "\n") - maxLines {
		kept = kept[strings.IndexByte(kept, '\n')+1:]
	}
	if missing := int64(len(text)-len(kept)) + cut; missing > 0 {
		kept = fmt.Sprintf("[%d bytes of output left out; write it to a file and read that in parts]\n", missing) + kept
	}
	if kept != "" && !strings.HasSuffix(kept, "\n") {
		kept += "\n"
	}
	return kept
}

func grep(ctx context.Context, call *Call, in grepArgs) (string, error) {
	sb, err := call.Sandbox(ctx)
	if err != nil {
		return "", err
	}
	hits, err := sandbox.Grep(ctx, sb, sandbox.Query{
		Pattern: in.Pattern, Literal: in.Literal, Root: orDir(in.Path), Include: in.Include, Limit: maxHits,
	})
	if err != nil {
		return "", err
	}
	if len(hits.Lines) == 0 {
		return "[no match]", nil
	}
	var b strings.Builder
	for _, h := range hits.Lines {
		fmt.Fprintf(&b, "%s:%d: %s\n", h.Path, h.Line, cutText(h.Text, maxHitBytes))
	}
	if hits.More {
		fmt.Fprintf(&b, "[the first %d matches; there are more: narrow the pattern, path or include]\n", len(hits.Lines))
	}
	return b.String(), nil
}

func glob(ctx context.Context, call *Call, in globArgs) (string, error) {
	sb, err := call.Sandbox(ctx)
	if err != nil {
		return "", err
	}
	paths, more, err := sandbox.Glob(ctx, sb, orDir(in.Path), in.Pattern, maxPaths)
	if err != nil {
		return "", err
	}
	if len(paths) == 0 {
		return "[no file matches]", nil
	}
	out := strings.Join(paths, "\n") + "\n"
	if more {
		out += fmt.Sprintf("[the first %d paths; there are more: narrow the pattern or path]\n", len(paths))
	}
	return out, nil
}

func orDir(p string) string {
	if p == "" {
		return "."
	}
	return p
}

// resolve names a file for locking.
func resolve(sb sandbox.Sandbox, p string) string {
	if !path.IsAbs(p) {
		p = path.Join(sb.Dir(), p)
	}
	return path.Clean(p)
}

// cutText keeps at most n bytes, whole runes.
func cutText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}
