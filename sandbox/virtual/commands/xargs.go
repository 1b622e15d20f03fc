package commands

import (
	"errors"
	"slices"
	"strings"
)

func xargs(c *Call) int {
	f, ok := c.flags("+n|max-args: I: i? L|max-lines: 0|null d|delimiter: r|no-run-if-empty P|max-procs: t|verbose s: a|arg-file: x")
	if !ok {
		return 2
	}
	most, ok1 := f.num("n", 0)
	perLine, ok2 := f.num("L", 0)
	if !ok1 || !ok2 || most < 0 || perLine < 0 {
		return c.usage("not a number")
	}
	in := []string(nil)
	if f.has("a") {
		in = f.vals["a"]
	}
	data, code := c.slurpAll(in)
	if code != 0 {
		return code
	}
	command := f.args
	if len(command) == 0 {
		command = []string{"echo"}
	}
	var items []string
	var err error
	switch {
	case f.has("0"), f.has("d"):
		delim := "\x00"
		if f.has("d") {
			delim, _ = unescape(f.str("d", ""), false)
		}
		if text := strings.TrimSuffix(string(data), delim); text != "" {
			items = strings.Split(text, delim)
		}
	case f.has("I") || f.has("L"):
		for _, line := range splitLines(data) {
			if line = strings.TrimLeft(line, " \t"); line != "" {
				items = append(items, line)
			}
		}
	default:
		items, err = xargsWords(string(data))
	}
	if err != nil {
		return c.usage("%v", err)
	}
	return c.xargsRun(f, command, items, most, perLine)
}

func (c *Call) xargsRun(f *flags, command, items []string, most, perLine int) int {
	code := 0
	run := func(args []string) bool {
		if f.has("t") {
			c.errorf("%s", strings.Join(args, " "))
		}
		_ = c.out.Flush() // before what the command prints
		sub := *c
		sub.Args, sub.Stdin = args, strings.NewReader("")
		switch got := c.Exec(c.ctx, sub); {
		case got == 255:
			code = 124
		case got >= 126:
			code = got
		case got != 0:
			code = 123
		}
		return c.ctx.Err() == nil && code < 124
	}
	if f.has("I") {
		for _, item := range items {
			args := slices.Clone(command)
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], f.str("I", "{}"), item)
			}
			if !run(args) {
				break
			}
		}
		return code
	}
	if perLine > 0 {
		for len(items) > 0 {
			n := min(perLine, len(items))
			words, err := xargsWords(strings.Join(items[:n], " "))
			if err != nil {
				return c.usage("%v", err)
			}
			items = items[n:]
			if !run(slices.Concat(command, words)) {
				break
			}
		}
		return code
	}
	if len(items) == 0 && !f.has("r") {
		run(command)
	}
	if most == 0 {
		most = 5000
	}
	for len(items) > 0 {
		n := min(most, len(items))
		if !run(slices.Concat(command, items[:n])) {
			break
		}
		items = items[n:]
	}
	return code
}

// xargsWords splits at blanks and newlines, minding quotes and backslashes.
func xargsWords(s string) ([]string, error) {
	var out []string
	var word strings.Builder
	in := false
	for i := 0; i < len(s); i++ {
		switch ch := s[i]; {
		case ch == '\'' || ch == '"':
			end := strings.IndexByte(s[i+1:], ch)
			if end < 0 {
				return nil, errors.New("unmatched quote; use -0 or -d for odd names")
			}
			word.WriteString(s[i+1 : i+1+end])
			i += end + 1
			in = true
		case ch == '\\' && i+1 < len(s):
			i++
			word.WriteByte(s[i])
			in = true
		case ch == ' ' || ch == '\t' || ch == '\n':
			if in {
				out = append(out, word.String())
				word.Reset()
				in = false
			}
		default:
			word.WriteByte(ch)
			in = true
		}
	}
	if in {
		out = append(out, word.String())
	}
	return out, nil
}
