package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// An Update is a record of a stream, or the mark where the past ends.
type Update struct {
	Record
	CaughtUp bool // no record: all before it had happened when the stream was opened
}

// silence is how long a stream may say nothing before it counts as dead: a
// living one says something every 15 seconds.
const silence = 45 * time.Second

// Stream follows a conversation, which may not exist yet, from after a record,
// 0 for its beginning, until ctx ends or the gateway refuses. A connection that
// breaks is made again and goes on after the last record: none is lost and none
// comes twice. The past ends once, with the mark.
func (c *Client) Stream(ctx context.Context, r Ref, after int64, f Filter) iter.Seq2[Update, error] {
	return func(yield func(Update, error) bool) {
		marked := false
		for try := 1; ; try++ {
			err := c.follow(ctx, r, f, after, func(u Update) bool {
				try = 0 // it works
				if u.CaughtUp {
					again := marked
					marked = true
					return again || yield(u, nil)
				}
				after = u.Seq
				return yield(u, nil)
			})
			var e *Error
			switch {
			case errors.Is(err, errEnough):
				return
			case ctx.Err() != nil:
				err = context.Cause(ctx)
			case errors.As(err, &e) && !e.later():
			case pause(ctx, backoff(try+1)):
				continue
			default:
				err = context.Cause(ctx)
			}
			yield(Update{}, err)
			return
		}
	}
}

var errEnough = errors.New("the caller has enough")

// follow reads one connection to its end, which is an error.
func (c *Client) follow(ctx context.Context, r Ref, f Filter, after int64, take func(Update) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	alive := time.AfterFunc(silence, cancel)
	defer alive.Stop()
	header := http.Header{}
	if after > 0 {
		header.Set("Last-Event-ID", strconv.FormatInt(after, 10))
	}
	res, err := c.request(ctx, "GET", r.path()+"/stream", f.query(), nil, header)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	frames := reader{r: bufio.NewReader(res.Body), alive: func() { alive.Reset(silence) }}
	for {
		event, data, err := frames.next()
		if err != nil {
			return err
		}
		u := Update{CaughtUp: event == "caught_up"}
		if !u.CaughtUp {
			if err := json.Unmarshal([]byte(data), &u.Record); err != nil {
				return fmt.Errorf("heddle: record of the stream: %w", err)
			}
		}
		if !take(u) {
			return errEnough
		}
	}
}

// mostFrame bounds one event of a stream, in bytes.
const mostFrame = 16 << 20

// A reader reads server-sent events. Lines end in CR, LF or both.
type reader struct {
	r     *bufio.Reader
	alive func() // called for each line
	cr    bool   // the last line ended in CR: an LF after it is of the same end
}

// next reads an event that has data.
func (r *reader) next() (event, data string, err error) {
	var lines []string
	size := 0
	for {
		line, err := r.line()
		if err != nil {
			return "", "", err
		}
		r.alive()
		if size += len(line); size > mostFrame {
			return "", "", errors.New("heddle: an event of the stream is too large")
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "" && lines != nil:
			return event, strings.Join(lines, "\n"), nil
		case line == "":
			event, size = "", 0
		case name == "event":
			event = value
		case name == "data":
			lines = append(lines, value)
		}
	}
}

func (r *reader) line() (string, error) {
	var b strings.Builder
	for b.Len() <= mostFrame {
		c, err := r.r.ReadByte()
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF // a stream has no end of its own
		}
		if err != nil {
			return "", err
		}
		skip := r.cr && c == '\n'
		r.cr = c == '\r'
		switch {
		case skip:
		case c == '\r' || c == '\n':
			return b.String(), nil
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), nil // too long: next refuses it
}
