package commands

import (
	"fmt"
	"strconv"
	"strings"
)

// raw stands for the flags of a command that reads its arguments itself.
const raw = "raw"

// flags are the parsed options of a call, under the first name of each.
type flags struct {
	vals map[string][]string
	args []string // operands
}

// parseFlags parses options. spec lists them, separated by spaces: "n|number"
// is a switch with a long name, "A:" takes a value, "n#" a number, "arg;" two
// values, "i?" takes one only if attached. A leading "+" ends options at the
// first operand, which may be a negative number; a leading "-" lets -5 stand
// for -n5.
func parseFlags(spec string, args []string) (*flags, error) {
	f := &flags{vals: map[string][]string{}}
	if spec == raw {
		f.args = args
		return f, nil
	}
	rest, inOrder := strings.CutPrefix(spec, "+")
	rest, numbers := strings.CutPrefix(rest, "-")
	known := map[string]string{} // name -> key and kind
	for item := range strings.FieldsSeq(rest) {
		bare := strings.TrimRight(item, ":#;?")
		names := strings.Split(bare, "|")
		for _, n := range names {
			known[n] = names[0] + item[len(bare):]
		}
	}
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		option := len(arg) > 1 && arg[0] == '-'
		number := option && arg[1] >= '0' && arg[1] <= '9' && known[arg[1:2]] == ""
		if arg == "--" || inOrder && (!option || number) {
			if arg != "--" {
				f.args = append(f.args, arg)
			}
			f.args = append(f.args, args...)
			return f, nil
		}
		var err error
		switch {
		case !option:
			f.args = append(f.args, arg)
		case arg[1] == '-':
			args, err = f.long(known, arg[2:], args)
		case number && numbers:
			f.vals["n"] = append(f.vals["n"], arg[1:])
		default:
			args, err = f.short(known, arg[1:], args)
		}
		if err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (f *flags) long(known map[string]string, arg string, args []string) (rest []string, err error) {
	name, val, attached := strings.Cut(arg, "=")
	key, ok := known[name]
	if !ok || len(name) == 1 {
		return args, fmt.Errorf("unsupported option --%s", name)
	}
	kind := key[len(key)-1]
	if attached && strings.IndexByte(":#?", kind) < 0 {
		return args, fmt.Errorf("option --%s takes no value", name)
	}
	if kind == ';' && len(args) > 1 {
		val, args = args[0]+"\x00"+args[1], args[2:]
		attached = true
	}
	return f.set("--"+name, key, val, attached, args)
}

func (f *flags) short(known map[string]string, cluster string, args []string) (rest []string, err error) {
	for i := 0; i < len(cluster) && err == nil; i++ {
		name, val := cluster[i:i+1], ""
		key, ok := known[name]
		if !ok {
			return args, fmt.Errorf("unsupported option -%s", name)
		}
		if strings.IndexByte(":#?", key[len(key)-1]) >= 0 {
			val, i = cluster[i+1:], len(cluster)
		}
		args, err = f.set("-"+name, key, val, val != "", args)
	}
	return args, err
}

// set adds an option with its value, which may be the next argument.
func (f *flags) set(name, key, val string, attached bool, args []string) (rest []string, err error) {
	kind := key[len(key)-1]
	key = strings.TrimRight(key, ":#;?")
	if !attached && strings.IndexByte(":#;", kind) >= 0 {
		if len(args) == 0 || kind == ';' {
			return args, fmt.Errorf("option %s needs a value", name)
		}
		val, args = args[0], args[1:]
	}
	if kind == '#' {
		if n, err := strconv.Atoi(val); err != nil || n < 0 {
			return args, fmt.Errorf("option %s needs a number, not '%s'", name, val)
		}
	}
	f.vals[key] = append(f.vals[key], val)
	return args, nil
}

// has reports whether any of some options was given.
func (f *flags) has(keys ...string) bool {
	for _, key := range keys {
		if len(f.vals[key]) > 0 {
			return true
		}
	}
	return false
}

// str returns the last value of an option.
func (f *flags) str(key, missing string) string {
	if v := f.vals[key]; len(v) > 0 {
		return v[len(v)-1]
	}
	return missing
}

// num returns the value of an option of kind #.
func (f *flags) num(key string, missing int) int {
	if !f.has(key) {
		return missing
	}
	n, _ := strconv.Atoi(f.str(key, "")) // parseFlags tried it
	return n
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
