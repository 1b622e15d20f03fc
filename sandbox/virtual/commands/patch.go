package commands

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var hunkHead = regexp.MustCompile(`^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@`)

// patch applies unified differences.
func patch(c *Call) int {
	f, ok := c.flags("p|strip: i|input: R|reverse dry-run s|quiet|silent N|forward u E")
	if !ok {
		return 2
	}
	strip, ok := f.num("p", -1)
	if !ok {
		return c.usage("-p needs a number")
	}
	source := []string{f.str("i", "-")}
	if len(f.args) > 1 {
		source = f.args[1:2]
	}
	data, code := c.slurpAll(source)
	if code != 0 {
		return 2
	}
	list := splitLines(data)
	for i := 0; i+1 < len(list); i++ {
		if !strings.HasPrefix(list[i], "--- ") || !strings.HasPrefix(list[i+1], "+++ ") {
			continue
		}
		from, to := patchName(list[i][4:], strip), patchName(list[i+1][4:], strip)
		if f.has("R") {
			from, to = to, from
		}
		i += 2
		start := i
		for i < len(list) && !strings.HasPrefix(list[i], "--- ") && (i == start || !strings.HasPrefix(list[i], "diff ")) {
			i++
		}
		name := to
		if to == "/dev/null" || from != "/dev/null" && !c.exists(to) {
			name = from
		}
		if len(f.args) > 0 {
			name = f.args[0]
		}
		if !f.has("s") {
			c.printf("patching file %s\n", name)
		}
		if err := c.patchFile(f, name, list[start:i], to == "/dev/null"); err != nil {
			c.errorf("%s: %s", name, why(err))
			code = 1
		}
		i--
	}
	return code
}

func (c *Call) exists(name string) bool {
	_, err := c.FS.Stat(c.abs(name))
	return err == nil
}

// patchName takes the name out of a header; strip -1 keeps its last part.
func patchName(s string, strip int) string {
	s, _, _ = strings.Cut(s, "\t")
	s = strings.TrimSpace(s)
	if s == "/dev/null" {
		return s
	}
	parts := strings.Split(s, "/")
	if strip < 0 || strip >= len(parts) {
		strip = len(parts) - 1
	}
	return strings.Join(parts[strip:], "/")
}

// patchFile applies the hunks of one file, all or none.
func (c *Call) patchFile(f *flags, name string, hunks []string, remove bool) error {
	var file []string
	var data []byte
	if c.exists(name) {
		var err error
		if data, err = c.FS.ReadFile(c.abs(name)); err != nil {
			return err
		}
		file = splitLines(data)
	}
	ended := len(data) == 0 || bytes.HasSuffix(data, []byte("\n"))
	shift, number := 0, 0
	for i := 0; i < len(hunks); {
		m := hunkHead.FindStringSubmatch(hunks[i])
		if m == nil {
			i++
			continue
		}
		number++
		at, _ := strconv.Atoi(m[1]) // digits
		if f.has("R") {
			at, _ = strconv.Atoi(m[3])
		}
		var old, with []string
		last := byte(0)
		for i++; i < len(hunks) && !strings.HasPrefix(hunks[i], "@@"); i++ {
			line := hunks[i]
			if line == "" {
				line = " "
			}
			mark := line[0]
			if f.has("R") {
				mark = map[byte]byte{'-': '+', '+': '-'}[mark] | mark&^('-'|'+')
				if line[0] == '-' {
					mark = '+'
				} else if line[0] == '+' {
					mark = '-'
				} else {
					mark = line[0]
				}
			}
			switch mark {
			case ' ':
				old, with = append(old, line[1:]), append(with, line[1:])
			case '-':
				old = append(old, line[1:])
			case '+':
				with = append(with, line[1:])
				ended = true
			case '\\':
				ended = ended && last == '-'
			}
			last = mark
		}
		where := findLines(file, old, max(0, at-1+shift))
		if where < 0 {
			return fmt.Errorf("hunk #%d FAILED at %d", number, at)
		}
		file = slices.Concat(file[:where], with, file[where+len(old):])
		shift += len(with) - len(old)
	}
	if number == 0 {
		return errors.New("no hunks")
	}
	if f.has("dry-run") {
		return nil
	}
	if remove && len(file) == 0 {
		return c.FS.Remove(c.abs(name))
	}
	text := strings.Join(file, "\n")
	if ended && len(file) > 0 {
		text += "\n"
	}
	return c.FS.WriteFile(c.abs(name), []byte(text), 0o644)
}

// findLines finds old in file nearest to a place.
func findLines(file, old []string, near int) int {
	for off := 0; off <= len(file); off++ {
		for _, at := range []int{near - off, near + off} {
			if at >= 0 && at+len(old) <= len(file) && slices.Equal(file[at:at+len(old)], old) {
				return at
			}
		}
	}
	return -1
}
