package commands

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A sortKey is -k: fields and characters from 1; to 0 is the end of the line.
type sortKey struct {
	from, fromChar, to, toChar int
	opts                       string
}

func sortLines(c *Call, f *flags) int {
	global := ""
	for _, o := range []string{"n", "g", "r", "f", "h", "b"} {
		if f.has(o) {
			global += o
		}
	}
	var keys []sortKey
	for _, spec := range f.vals["k"] {
		k, err := parseKey(spec, global)
		if err != nil {
			return c.usage("%v", err)
		}
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		keys = []sortKey{{from: 1, fromChar: 1, opts: global}}
	}
	sep, _ := unescape(f.str("t", ""), false)
	data, code := c.slurpAll(f.args)
	if code != 0 {
		return 2
	}
	list := splitLines(data)
	compare := func(a, b string) int {
		for _, k := range keys {
			if by := compareKeys(k.of(a, sep), k.of(b, sep), k.opts); by != 0 {
				return by
			}
		}
		return 0
	}
	full := func(a, b string) int {
		if by := compare(a, b); by != 0 || f.has("s", "u") {
			return by
		}
		if f.has("r") {
			a, b = b, a
		}
		return strings.Compare(a, b)
	}
	slices.SortStableFunc(list, full)
	if f.has("u") {
		list = slices.CompactFunc(list, func(a, b string) bool { return compare(a, b) == 0 })
	}
	w, err := io.Writer(c.out), error(nil)
	if f.has("o") {
		w, err = c.create(f.str("o", ""), false)
	}
	if err == nil && len(list) > 0 {
		_, err = io.WriteString(w, strings.Join(list, "\n")+"\n")
	}
	if err != nil {
		return c.usage("%s: %s", f.str("o", "output"), Why(err))
	}
	return 0
}

// parseKey reads F[.C][opts][,F[.C][opts]].
func parseKey(spec, global string) (sortKey, error) {
	k := sortKey{fromChar: 1}
	from, to, both := strings.Cut(spec, ",")
	part := func(s string) (field, char int, err error) {
		digits := strings.TrimRight(s, "bfghnr")
		k.opts += s[len(digits):]
		a, b, dotted := strings.Cut(digits, ".")
		if field, err = strconv.Atoi(a); err == nil && dotted {
			char, err = strconv.Atoi(b)
		}
		return field, char, err
	}
	var err error
	var char int
	if k.from, char, err = part(from); char > 0 {
		k.fromChar = char
	}
	if err == nil && both {
		k.to, k.toChar, err = part(to)
	}
	if err != nil || k.from < 1 {
		return k, fmt.Errorf("invalid key '%s'", spec)
	}
	if k.opts == "" {
		k.opts = global
	}
	return k, nil
}

// of cuts the key out of a line.
func (k sortKey) of(line, sep string) string {
	if k.from == 1 && k.fromChar == 1 && k.to == 0 {
		return line
	}
	starts, ends := fieldBounds(line, sep)
	if k.from > len(starts) {
		return ""
	}
	start := starts[k.from-1]
	if strings.Contains(k.opts, "b") {
		start += len(line[start:]) - len(strings.TrimLeft(line[start:], " \t"))
	}
	start += k.fromChar - 1
	end := len(line)
	if k.to > 0 && k.to <= len(starts) {
		if end = ends[k.to-1]; k.toChar > 0 {
			end = min(end, starts[k.to-1]+k.toChar)
		}
	}
	if start >= end {
		return ""
	}
	return line[start:end]
}

// fieldBounds finds the fields of a line. Without a separator each begins with
// the blanks before it.
func fieldBounds(line, sep string) (starts, ends []int) {
	if sep != "" {
		at := 0
		for {
			starts = append(starts, at)
			next := strings.Index(line[at:], sep)
			if next < 0 {
				return starts, append(ends, len(line))
			}
			ends = append(ends, at+next)
			at += next + len(sep)
		}
	}
	for at := 0; at < len(line); {
		starts = append(starts, at)
		for at < len(line) && (line[at] == ' ' || line[at] == '\t') {
			at++
		}
		for at < len(line) && line[at] != ' ' && line[at] != '\t' {
			at++
		}
		ends = append(ends, at)
	}
	return starts, ends
}

// compareKeys compares two keys by the options.
func compareKeys(a, b, opts string) int {
	by := 0
	has := func(o string) bool { return strings.Contains(opts, o) }
	trim := func(s string) string { return strings.TrimLeft(s, " \t") }
	switch {
	case has("n"), has("g"), has("h"):
		by = cmp.Compare(sortNumber(trim(a), opts), sortNumber(trim(b), opts))
	default:
		if has("b") {
			a, b = trim(a), trim(b)
		}
		if has("f") {
			a, b = strings.ToUpper(a), strings.ToUpper(b)
		}
		by = strings.Compare(a, b)
	}
	if has("r") {
		by = -by
	}
	return by
}

// sortNumber reads the number at the start: plain for -n, with an exponent for
// -g, with a unit for -h.
func sortNumber(s, opts string) float64 {
	digits := strings.TrimLeft(strings.TrimPrefix(s, "-"), "0123456789.")
	number := s[:len(s)-len(digits)]
	if strings.Contains(opts, "g") {
		number = s
	}
	v := leadingFloat(number)
	if strings.Contains(opts, "h") && digits != "" {
		v *= math.Pow(1024, float64(1+strings.IndexByte("KMGTPE", digits[0]&^0x20)))
	}
	return v
}

func leadingFloat(s string) float64 {
	for end := min(len(s), 40); end > 0; end-- {
		if v, err := strconv.ParseFloat(s[:end], 64); err == nil {
			return v
		}
	}
	return 0
}
