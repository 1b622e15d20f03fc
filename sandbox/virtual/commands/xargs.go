package commands

import (
	"errors"
	"slices"
	"strings"
)

func xargs(c *Call, f *flags) int {
	data, code := c.slurpAll(nil)
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
	case f.has("I"):
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
	return c.xargsRun(f, command, items)
}

// xargsRun runs the command for items, as many at a time as the options say.
func (c *Call) xargsRun(f *flags, command, items []string) int {
	most := f.num("n", 5000)
	if f.has("I") {
		most = 1
	}
	if most == 0 {
		return c.usage("a number above 0 is needed")
	}
	var batches [][]string
	for batch := range slices.Chunk(items, most) {
		batches = append(batches, batch)
	}
	if len(items) == 0 && !f.has("r", "I") {
		batches = [][]string{nil}
	}
	code := 0
	for _, batch := range batches {
		args := slices.Concat(command, batch)
		if f.has("I") {
			args = replaceAll(command, f.str("I", ""), batch[0])
		}
		switch got := c.spawn(args); {
		case got == 255:
			code = 124
		case got >= 126:
			code = got
		case got != 0:
			code = 123
		}
		if code >= 124 || c.ctx.Err() != nil {
			break
		}
	}
	return code
}

// replaceAll replaces a mark in all arguments.
func replaceAll(args []string, mark, with string) []string {
	args = slices.Clone(args)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], mark, with)
	}
	return args
}

// xargsWords splits at blanks and newlines, minding quotes and backslashes.
func xargsWords(s string) ([]string, error) {
	var out []string
	var word strings.Builder
	in, quote := false, byte(0)
	s += "\n\n" // ends the last word, and is there for a last backslash
	for i := 0; i < len(s); i++ {
		ch := s[i]
		switch {
		case quote != 0 && ch == quote:
			quote = 0
		case quote != 0:
			word.WriteByte(ch)
		case ch == '\'' || ch == '"':
			in, quote = true, ch
		case ch != ' ' && ch != '\t' && ch != '\n':
			if ch == '\\' {
				i++
			}
			word.WriteByte(s[i])
			in = true
		case in:
			out = append(out, word.String())
			word.Reset()
			in = false
		}
	}
	if quote != 0 {
		return nil, errors.New("unmatched quote; use -0 or -d for odd names")
	}
	return out, nil
}
