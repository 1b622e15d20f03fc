package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// Limits of what is read from a provider.
const (
	maxEventBytes  = 8 << 20  // one event: an argument of a call may be a whole file
	maxStreamBytes = 64 << 20 // one answer
	maxBodyBytes   = 64 << 10 // what is kept of an error's body
)

var errTooLong = errors.New("event or answer is longer than allowed")

// events reads server-sent events. Names, ids and comments are passed over:
// every format we speak has the kind of an event in its data.
type events struct {
	in    *bufio.Reader
	data  []byte // of the event being read, reused
	total int    // bytes read so far
}

func newEvents(r io.Reader) *events {
	return &events{in: bufio.NewReaderSize(r, 8<<10)}
}

// next returns the data of the next event, valid until the call after. An event
// without its closing blank line was torn off and is not returned: the error is
// then io.EOF, or what ended the reading.
func (e *events) next() ([]byte, error) {
	e.data = e.data[:0]
	started := false
	for {
		field := len(e.data)
		if started {
			e.data = append(e.data, '\n') // several data lines are joined by a line feed
		}
		mark := len(e.data)
		if err := e.line(); err != nil {
			return nil, err
		}
		line := e.data[mark:]
		if len(line) == 0 {
			e.data = e.data[:field]
			if len(e.data) > 0 {
				return e.data, nil
			}
			started = false
			continue
		}
		value, ok := bytes.CutPrefix(line, []byte("data:"))
		if !ok {
			e.data = e.data[:field]
			continue
		}
		value = bytes.TrimPrefix(value, []byte(" "))
		e.data = e.data[:mark+copy(e.data[mark:], value)]
		started = true
	}
}

// line appends the next line to data, without its end.
func (e *events) line() error {
	for {
		part, err := e.in.ReadSlice('\n')
		if e.total == 0 {
			part = bytes.TrimPrefix(part, []byte("\xef\xbb\xbf"))
		}
		e.total += len(part)
		e.data = append(e.data, part...)
		switch {
		case len(e.data) > maxEventBytes || e.total > maxStreamBytes:
			return errTooLong
		case err == bufio.ErrBufferFull:
			continue
		case err != nil:
			return err
		}
		e.data = bytes.TrimSuffix(e.data[:len(e.data)-1], []byte("\r"))
		return nil
	}
}
