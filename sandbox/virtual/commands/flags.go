package commands

import (
	"fmt"
	"strconv"
	"strings"
)

// flags are the parsed options of a call, under the first name of each.
type flags struct {
	vals map[string][]string
	args []string // operands
}

// flags parses options. spec lists them, separated by spaces: "n|number" is a
// switch with a long name, "A:" takes a value, "i?" takes one only if attached.
// A leading "+" ends options at the first operand. A bad option is reported.
func (c *Call) flags(spec string) (*flags, bool) {
	f := &flags{vals: map[string][]string{}}
	rest, inOrder := strings.CutPrefix(spec, "+")
	known := map[string]string{} // name -> key and kind
	for item := range strings.FieldsSeq(rest) {
		kind := ""
		if strings.HasSuffix(item, ":") || strings.HasSuffix(item, "?") {
			item, kind = item[:len(item)-1], item[len(item)-1:]
		}
		names := strings.Split(item, "|")
		for _, n := range names {
			known[n] = names[0] + kind
		}
	}
	args := c.Args[1:]
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		switch {
		case arg == "--":
			f.args = append(f.args, args...)
			return f, true
		case len(arg) < 2 || arg[0] != '-':
			f.args = append(f.args, arg)
			if inOrder {
				f.args = append(f.args, args...)
				return f, true
			}
			continue
		}
		var bad string
		if strings.HasPrefix(arg, "--") {
			args, bad = f.long(known, arg[2:], args)
		} else {
			args, bad = f.short(known, arg[1:], args)
		}
		if bad != "" {
			c.errorf("%s", bad)
			return nil, false
		}
	}
	return f, true
}

func (f *flags) long(known map[string]string, arg string, args []string) (rest []string, bad string) {
	name, val, attached := strings.Cut(arg, "=")
	key, ok := known[name]
	if !ok || len(name) == 1 {
		return args, "unsupported option --" + name
	}
	switch kind := key[len(key)-1]; {
	case kind == ':' && !attached && len(args) == 0:
		return args, "option --" + name + " needs a value"
	case kind == ':' && !attached:
		val, args = args[0], args[1:]
	case kind != ':' && kind != '?' && attached:
		return args, "option --" + name + " takes no value"
	}
	key = strings.TrimRight(key, ":?")
	f.vals[key] = append(f.vals[key], val)
	return args, ""
}

func (f *flags) short(known map[string]string, cluster string, args []string) (rest []string, bad string) {
	for i := 0; i < len(cluster); i++ {
		name, val := cluster[i:i+1], ""
		key, ok := known[name]
		if !ok {
			return args, "unsupported option -" + name
		}
		kind := key[len(key)-1]
		if kind == ':' || kind == '?' {
			val, i = cluster[i+1:], len(cluster)
			if kind == ':' && val == "" {
				if len(args) == 0 {
					return args, "option -" + name + " needs a value"
				}
				val, args = args[0], args[1:]
			}
		}
		key = strings.TrimRight(key, ":?")
		f.vals[key] = append(f.vals[key], val)
	}
	return args, ""
}

func (f *flags) has(key string) bool { return len(f.vals[key]) > 0 }

// str returns the last value of an option.
func (f *flags) str(key, missing string) string {
	if v := f.vals[key]; len(v) > 0 {
		return v[len(v)-1]
	}
	return missing
}

// num is str for a number; ok is false if it is none.
func (f *flags) num(key string, missing int) (n int, ok bool) {
	if !f.has(key) {
		return missing, true
	}
	n, err := strconv.Atoi(f.str(key, ""))
	return n, err == nil
}

// dashNumber turns a leading "-5" into "-n5".
func dashNumber(args []string, option string) []string {
	if len(args) > 1 && len(args[1]) > 1 && args[1][0] == '-' && args[1][1] >= '0' && args[1][1] <= '9' {
		return append([]string{args[0], option + args[1][1:]}, args[2:]...)
	}
	return args
}

// Bounds of a program in any of the languages here.
const (
	maxProgram = 16 << 10 // bytes
	maxNested  = 200      // brackets open at once
)

// CheckSource refuses a program that is too long or nested too deeply: the
// parsers behind it recurse without bounds.
func CheckSource(src string) error {
	if len(src) > maxProgram {
		return fmt.Errorf("program of more than %d KiB; put long text into files", maxProgram>>10)
	}
	open := 0
	for i := range len(src) {
		switch src[i] {
		case '(', '{', '[':
			if open++; open > maxNested {
				return fmt.Errorf("program with more than %d brackets open", maxNested)
			}
		case ')', '}', ']':
			open = max(0, open-1)
		}
	}
	return nil
}
