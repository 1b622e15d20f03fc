package commands

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// A sortKey is -k: fields and characters from 1; to 0 is the end of the line.
type sortKey struct {
	from, fromChar, to, toChar int
	opts                       string
}

func sortLines(c *Call) int {
	f, ok := c.flags("n|numeric-sort g|general-numeric-sort r|reverse u|unique k|key: t|field-separator: f|ignore-case h|human-numeric-sort " +
		"V|version-sort s|stable c|check b|ignore-leading-blanks o|output: d|dictionary-order M|month-sort z R m S: T:")
	if !ok {
		return 2
	}
	global := ""
	for _, o := range []string{"n", "g", "r", "f", "h", "V", "b", "d", "M"} {
		if f.has(o) {
			global += o
		}
	}
	if f.has("R") || f.has("z") {
		return c.usage("-R and -z are not supported")
	}
	var keys []sortKey
	for _, spec := range f.vals["k"] {
		k, err := parseKey(spec, global)
		if err != nil {
			return c.usage("%v", err)
		}
		keys = append(keys, k)
	}
	whole := len(keys) == 0
	if whole {
		keys = []sortKey{{from: 1, fromChar: 1, opts: global}}
	}
	sep := f.str("t", "")
	if sep == `\t` {
		sep = "\t"
	}
	if sep == `\0` {
		sep = "\x00"
	}
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
		by := compare(a, b)
		if by == 0 && !f.has("s") && !f.has("u") {
			if by = strings.Compare(a, b); f.has("r") {
				by = -by
			}
		}
		return by
	}
	if f.has("c") {
		for i := 1; i < len(list); i++ {
			if by := full(list[i-1], list[i]); by > 0 || by == 0 && f.has("u") {
				c.errorf("%s:%d: disorder: %s", append(f.args, "-")[0], i+1, list[i])
				return 1
			}
		}
		return 0
	}
	slices.SortStableFunc(list, full)
	if f.has("u") {
		list = slices.CompactFunc(list, func(a, b string) bool { return compare(a, b) == 0 })
	}
	return c.sorted(f, list)
}

// sorted writes the result, to the file of -o if that is given.
func (c *Call) sorted(f *flags, list []string) int {
	text := strings.Join(list, "\n")
	if len(list) > 0 {
		text += "\n"
	}
	if !f.has("o") {
		c.printf("%s", text)
		return 0
	}
	w, err := c.create(f.str("o", ""), false)
	if err == nil {
		_, err = io.WriteString(w, text)
	}
	if err != nil {
		return c.usage("%s: %s", f.str("o", ""), why(err))
	}
	return 0
}

// parseKey reads F[.C][opts][,F[.C][opts]].
func parseKey(spec, global string) (sortKey, error) {
	k := sortKey{fromChar: 1}
	from, to, both := strings.Cut(spec, ",")
	part := func(s string) (field, char int, err error) {
		digits := strings.TrimRight(s, "bdfghiMnRrV")
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
	trim := func(s string) string { return strings.TrimLeft(s, " \t") }
	switch {
	case strings.Contains(opts, "n"):
		by = compareNumbers(trim(a), trim(b))
	case strings.Contains(opts, "g"):
		by = compareFloats(leadingFloat(trim(a)), leadingFloat(trim(b)))
	case strings.Contains(opts, "h"):
		by = compareFloats(humanValue(trim(a)), humanValue(trim(b)))
	case strings.Contains(opts, "V"):
		by = compareVersions(a, b)
	case strings.Contains(opts, "M"):
		by = month(a) - month(b)
	default:
		if strings.Contains(opts, "b") {
			a, b = trim(a), trim(b)
		}
		if strings.Contains(opts, "d") {
			keep := func(r rune) rune {
				if r == ' ' || r == '\t' || r < 0x80 && wordByte(byte(r)) && r != '_' {
					return r
				}
				return -1
			}
			a, b = strings.Map(keep, a), strings.Map(keep, b)
		}
		if strings.Contains(opts, "f") {
			a, b = strings.ToUpper(a), strings.ToUpper(b)
		}
		by = strings.Compare(a, b)
	}
	if strings.Contains(opts, "r") {
		by = -by
	}
	return by
}

// compareNumbers compares leading decimal numbers of any length.
func compareNumbers(a, b string) int {
	na, ia, fa := decimal(a)
	nb, ib, fb := decimal(b)
	if na != nb {
		if na {
			return -1
		}
		return 1
	}
	by := len(ia) - len(ib)
	if by == 0 {
		by = strings.Compare(ia, ib)
	}
	if by == 0 {
		by = strings.Compare(fa, fb)
	}
	if na {
		by = -by
	}
	return by
}

func decimal(s string) (negative bool, whole, fraction string) {
	s, negative = strings.CutPrefix(s, "-")
	digits := func() string {
		end := 0
		for end < len(s) && s[end] >= '0' && s[end] <= '9' {
			end++
		}
		d := s[:end]
		s = s[end:]
		return d
	}
	whole = strings.TrimLeft(digits(), "0")
	if strings.HasPrefix(s, ".") {
		s = s[1:]
		fraction = strings.TrimRight(digits(), "0")
	}
	return negative && whole+fraction != "", whole, fraction
}

func compareFloats(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func leadingFloat(s string) float64 {
	for end := min(len(s), 40); end > 0; end-- {
		if v, err := strconv.ParseFloat(s[:end], 64); err == nil {
			return v
		}
	}
	return 0
}

func humanValue(s string) float64 {
	v := leadingFloat(strings.TrimRight(s, "KMGTPEkB"))
	rest := strings.TrimLeft(s, "-0123456789.")
	if rest == "" {
		return v
	}
	for i, unit := range "KMGTPE" {
		if rune(rest[0]) == unit || rest[0] == 'k' && i == 0 {
			for range i + 1 {
				v *= 1024
			}
			return v
		}
	}
	return v
}

// compareVersions compares runs of digits as numbers, the rest as text.
func compareVersions(a, b string) int {
	for a != "" && b != "" {
		isDigit := func(s string) bool { return s[0] >= '0' && s[0] <= '9' }
		if isDigit(a) && isDigit(b) {
			_, wa, _ := decimal(strings.SplitN(a, ".", 2)[0])
			_, wb, _ := decimal(strings.SplitN(b, ".", 2)[0])
			if by := len(wa) - len(wb); by != 0 {
				return by
			}
			if by := strings.Compare(wa, wb); by != 0 {
				return by
			}
			a, b = strings.TrimLeft(a, "0123456789"), strings.TrimLeft(b, "0123456789")
			continue
		}
		if a[0] != b[0] {
			return int(a[0]) - int(b[0])
		}
		a, b = a[1:], b[1:]
	}
	return len(a) - len(b)
}

func month(s string) int {
	s = strings.ToUpper(strings.TrimLeft(s, " \t"))
	if len(s) < 3 {
		return 0
	}
	return strings.Index("JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC", s[:3])/3 + 1
}
