package commands

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// maxEdits bounds the search for the shortest difference; beyond it, what is
// between the first and the last equal lines counts as replaced.
const maxEdits = 1500

// A hunk says that lines from a to b of the old became lines of the new.
type hunk struct{ a0, a1, b0, b1 int }

// compareLists finds the differences of two lists.
func compareLists(a, b []string, key func(string) string) []hunk {
	ka, kb := slices.Clone(a), slices.Clone(b)
	for _, list := range [][]string{ka, kb} {
		for i, line := range list {
			list[i] = key(line)
		}
	}
	head := 0
	for head < len(ka) && head < len(kb) && ka[head] == kb[head] {
		head++
	}
	tail := 0
	for tail < len(ka)-head && tail < len(kb)-head && ka[len(ka)-1-tail] == kb[len(kb)-1-tail] {
		tail++
	}
	hunks := shortest(ka[head:len(ka)-tail], kb[head:len(kb)-tail])
	for i := range hunks {
		hunks[i] = hunk{hunks[i].a0 + head, hunks[i].a1 + head, hunks[i].b0 + head, hunks[i].b1 + head}
	}
	return hunks
}

// shortest is the greedy algorithm of Myers.
func shortest(a, b []string) []hunk {
	n, m := len(a), len(b)
	if n == 0 && m == 0 {
		return nil
	}
	var trace [][]int32
	v := map[int]int{1: 0}
	for d := 0; d <= n+m && d <= maxEdits; d++ {
		row := make([]int32, 2*d+1)
		for k := -d; k <= d; k += 2 {
			x := v[k-1] + 1
			if k == -d || k != d && v[k-1] < v[k+1] {
				x = v[k+1]
			}
			for x < n && x-k < m && a[x] == b[x-k] {
				x++
			}
			v[k] = x
			row[k+d] = int32(x)
			if x >= n && x-k >= m {
				return walkBack(append(trace, row), n, m)
			}
		}
		trace = append(trace, row)
	}
	return []hunk{{0, n, 0, m}}
}

// walkBack reads the hunks out of the trace.
func walkBack(trace [][]int32, x, y int) []hunk {
	var out []hunk
	for d := len(trace) - 1; d > 0; d-- {
		k := x - y
		prev := trace[d-1]
		at := func(k int) int {
			if i := k + d - 1; i >= 0 && i < len(prev) {
				return int(prev[i])
			}
			return -1
		}
		down := k == -d || k != d && at(k-1) < at(k+1)
		px := at(k - 1)
		pk := k - 1
		if down {
			px, pk = at(k+1), k+1
		}
		py := px - pk
		h := hunk{px, px + 1, py, py}
		if down {
			h = hunk{px, px, py, py + 1}
		}
		if n := len(out); n > 0 && out[n-1].a0 == h.a1 && out[n-1].b0 == h.b1 {
			out[n-1].a0, out[n-1].b0 = h.a0, h.b0
		} else {
			out = append(out, h)
		}
		x, y = px, py
	}
	slices.Reverse(out)
	return out
}

type diffRun struct {
	c *Call
	f *flags
}

func diff(c *Call, f *flags) int {
	if len(f.args) != 2 {
		return c.usage("two files are needed")
	}
	var texts [2][]byte
	for i, name := range f.args {
		var err error
		if texts[i], err = c.load(name); err != nil {
			c.fail(name, err)
			return 2
		}
	}
	return (&diffRun{c, f}).files(texts[0], texts[1])
}

var blanks = regexp.MustCompile(`[ \t]+`)

// key is what two lines must share to be equal.
func (d *diffRun) key(s string) string {
	if d.f.has("w") {
		s = strings.Join(strings.Fields(s), "")
	}
	if d.f.has("b") {
		s = blanks.ReplaceAllString(strings.TrimRight(s, " \t"), " ")
	}
	if d.f.has("i") {
		s = strings.ToLower(s)
	}
	return s
}

// files prints how two files differ and returns 1 if they do.
func (d *diffRun) files(dataA, dataB []byte) int {
	nameA, nameB := d.f.args[0], d.f.args[1]
	a, b := diffLines(dataA), diffLines(dataB)
	binary := !d.f.has("a") && (bytes.IndexByte(dataA, 0) >= 0 || bytes.IndexByte(dataB, 0) >= 0)
	var hunks []hunk
	if !bytes.Equal(dataA, dataB) && !binary {
		hunks = compareLists(a, b, d.key)
	}
	switch {
	case bytes.Equal(dataA, dataB), len(hunks) == 0 && !binary:
		return 0
	case binary:
		d.c.printf("Binary files %s and %s differ\n", nameA, nameB)
		return 1
	case d.f.has("q"):
		d.c.printf("Files %s and %s differ\n", nameA, nameB)
		return 1
	case !d.f.has("u", "U"):
		d.normal(a, b, hunks)
		return 1
	}
	for i, name := range d.f.args {
		at := d.c.Now()
		if info, err := d.c.FS.Stat(d.c.abs(name)); err == nil {
			at = info.ModTime()
		}
		label := name + "\t" + at.UTC().Format("2006-01-02 15:04:05.000000000 -0700")
		if l := d.f.vals["L"]; len(l) > i {
			label = l[i]
		}
		d.c.printf("%s %s\n", []string{"---", "+++"}[i], label)
	}
	writeUnified(d.c.out, a, b, hunks, d.f.num("U", 3))
	return 1
}

// noNewline marks a last line that has no newline; no text line ends so.
const noNewline = "\n\\ No newline at end of file"

func diffLines(data []byte) []string {
	list := splitLines(data)
	if len(data) > 0 && data[len(data)-1] != '\n' {
		list[len(list)-1] += noNewline
	}
	return list
}

func (d *diffRun) normal(a, b []string, hunks []hunk) {
	at := func(from, to int) string {
		if to-from <= 1 {
			return fmt.Sprint(to)
		}
		return fmt.Sprintf("%d,%d", from+1, to)
	}
	for _, h := range hunks {
		verb := "c"
		switch {
		case h.a0 == h.a1:
			verb = "a"
		case h.b0 == h.b1:
			verb = "d"
		}
		d.c.printf("%s%s%s\n", at(h.a0, h.a1), verb, at(h.b0, h.b1))
		for _, line := range a[h.a0:h.a1] {
			d.c.printf("< %s\n", line)
		}
		if verb == "c" {
			d.c.printf("---\n")
		}
		for _, line := range b[h.b0:h.b1] {
			d.c.printf("> %s\n", line)
		}
	}
}

// writeUnified writes hunks with lines of context around them.
func writeUnified(w io.Writer, a, b []string, hunks []hunk, context int) {
	for len(hunks) > 0 {
		n := 1
		for n < len(hunks) && hunks[n].a0-hunks[n-1].a1 <= 2*context {
			n++
		}
		group := hunks[:n]
		hunks = hunks[n:]
		first, last := group[0], group[n-1]
		lead := min(context, first.a0)
		trail := min(context, len(a)-last.a1)
		fmt.Fprintf(w, "@@ -%s +%s @@\n", unifiedRange(first.a0-lead, last.a1+trail), unifiedRange(first.b0-lead, last.b1+trail))
		at := first.a0 - lead
		show := func(mark string, list []string) {
			for _, line := range list {
				fmt.Fprintf(w, "%s%s\n", mark, line)
			}
		}
		for _, h := range group {
			show(" ", a[at:h.a0])
			show("-", a[h.a0:h.a1])
			show("+", b[h.b0:h.b1])
			at = h.a1
		}
		show(" ", a[at:last.a1+trail])
	}
}

func unifiedRange(from, to int) string {
	switch to - from {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return fmt.Sprint(from + 1)
	}
	return fmt.Sprintf("%d,%d", from+1, to-from)
}
