package virtual

import (
	"fmt"
	"slices"
)

// An output keeps the head and the tail of what is written to it.
type output struct {
	head, tail []byte
	total      int64
}

const halfOutput = maxOutput / 2

func (o *output) Write(p []byte) (int, error) {
	n := len(p)
	o.total += int64(n)
	room := min(halfOutput-len(o.head), len(p))
	o.head = append(o.head, p[:room]...)
	p = p[room:]
	if len(p) > halfOutput {
		p = p[len(p)-halfOutput:]
	}
	o.tail = append(o.tail, p...)
	if len(o.tail) > 2*halfOutput {
		o.tail = slices.Clone(o.tail[len(o.tail)-halfOutput:])
	}
	return n, nil
}

// bytes returns what was kept, with a line where it was cut, and how many bytes
// were left out.
func (o *output) bytes() (kept []byte, cut int64) {
	tail := o.tail[max(0, len(o.tail)-halfOutput):]
	cut = o.total - int64(len(o.head)+len(tail))
	if cut == 0 {
		return append(o.head, tail...), 0
	}
	return slices.Concat(o.head, fmt.Appendf(nil, "\n[%d bytes left out]\n", cut), tail), cut
}
