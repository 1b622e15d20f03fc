package wire

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"time"

	"github.com/heddlehq/heddle/model"
)

// A Call is one streamed request.
type Call struct {
	Provider string // for errors
	Model    string // for errors
	Client   *http.Client
	URL      string
	Header   http.Header // with the key
	Body     Body
	First    time.Duration
	Idle     time.Duration
	On       func(model.Delta) // may be nil
}

// Timeouts used where a provider is given none.
const (
	DefaultFirst = 120 * time.Second // to the first content: a model may think before it speaks
	DefaultIdle  = 60 * time.Second  // between two pieces of content
)

// total is the most time that one answer may take, however lively it is: an
// endless one must not hold a turn to its end. The longest that models give
// take less.
const total = 30 * time.Minute

// A Stream is an answer being read. It is used by one goroutine and closed by it.
type Stream struct {
	call    Call
	ctx     context.Context // the caller's, to tell its end from a stall
	inner   context.Context
	cancel  context.CancelCauseFunc
	watch   *time.Timer // between pieces of content
	whole   *time.Timer // of the answer
	body    io.ReadCloser
	events  *events
	partial bool
}

var (
	errStalled = errors.New("no content for too long")
	errEndless = errors.New("the answer takes too long")
)

// Open posts the request and returns its stream once the provider has accepted
// it. A failure is an *model.Error; nothing needs closing then.
func Open(ctx context.Context, c Call) (*Stream, error) {
	s := &Stream{call: c, ctx: ctx}
	if s.call.First <= 0 {
		s.call.First = DefaultFirst
	}
	if s.call.Idle <= 0 {
		s.call.Idle = DefaultIdle
	}
	s.inner, s.cancel = context.WithCancelCause(ctx)
	s.watch = time.AfterFunc(s.call.First, func() { s.cancel(errStalled) })
	s.whole = time.AfterFunc(total, func() { s.cancel(errEndless) })
	if err := s.open(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Stream) open() error {
	req, err := http.NewRequestWithContext(s.inner, http.MethodPost, s.call.URL, s.call.Body.reader())
	if err != nil {
		return s.Fail(model.Invalid, errors.New("endpoint is no URL")) // the parser's error would repeat it, with a password in it
	}
	req.ContentLength = s.call.Body.length()
	req.GetBody = func() (io.ReadCloser, error) { return s.call.Body.reader(), nil }
	req.Header = s.call.Header.Clone()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("User-Agent", "heddle")
	resp, err := s.call.Client.Do(req)
	if err != nil {
		e := s.broken(model.Transient, err)
		if e.Fault == model.Transient {
			e.Code = reach(err)
		}
		return e
	}
	s.body = resp.Body
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode != http.StatusOK || kind == "application/json" || kind == "text/html" {
		return s.refused(resp)
	}
	s.events = newEvents(resp.Body)
	return nil
}

// refused makes the error of an answer that is no stream. Some servers put an
// error object under status 200.
func (s *Stream) refused(resp *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBodyBytes))
	if err != nil && len(body) == 0 && resp.StatusCode == http.StatusOK {
		return s.broken(model.Truncated, err)
	}
	e := s.Fail(model.Garbled, nil)
	e.Status, e.Body = resp.StatusCode, string(body)
	e.RetryAfter = RetryAfter(resp.Header, body, time.Now())
	if f, code, ok := Classify(resp.StatusCode, body); ok {
		e.Fault, e.Code = f, code
	}
	return e
}

// Next returns the data of the next event, valid until the call after. At the
// end of the stream, torn or not, the error has the fault Truncated: the codec
// knows whether it has seen the terminator.
func (s *Stream) Next() ([]byte, error) {
	data, err := s.events.next()
	switch {
	case err == nil:
		return data, nil
	case errors.Is(err, errTooLong):
		return nil, s.Fail(model.Garbled, err)
	}
	return nil, s.broken(model.Truncated, err)
}

// Alive says that the event just read held content. Comments, pings and empty
// events do not count: a hung model behind a lively proxy is hung.
func (s *Stream) Alive() { s.watch.Reset(s.call.Idle) }

// Emit hands out a piece of the answer; it implies Alive.
func (s *Stream) Emit(d model.Delta) {
	s.partial = true
	if s.call.On != nil {
		s.call.On(d)
	}
	s.Alive()
}

// Fail makes the error of this call.
func (s *Stream) Fail(f model.Fault, cause error) *model.Error {
	return &model.Error{Provider: s.call.Provider, Model: s.call.Model, Fault: f, Partial: s.partial, Err: cause}
}

// Reported makes the error of an event in which the provider reports one.
func (s *Stream) Reported(body []byte) *model.Error {
	e := s.Fail(model.Transient, nil)
	e.Body = string(body[:min(len(body), maxBodyBytes)])
	if f, code, ok := Classify(0, body); ok {
		e.Fault, e.Code = f, code
	}
	return e
}

// broken makes the error of a connection that failed, by what ended it.
func (s *Stream) broken(otherwise model.Fault, err error) *model.Error {
	if s.ctx.Err() != nil {
		return s.Fail(model.Canceled, context.Cause(s.ctx))
	}
	if cause := context.Cause(s.inner); errors.Is(cause, errStalled) || errors.Is(cause, errEndless) {
		return s.Fail(model.Stalled, cause)
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // without the URL
	}
	return s.Fail(otherwise, err)
}

// Drain reads to the end of a stream whose terminator was seen, so that its
// connection can serve the next call. It takes at most a quarter of a second.
func (s *Stream) Drain() {
	s.watch.Reset(250 * time.Millisecond)
	_, _ = io.CopyN(io.Discard, s.events.in, 4<<10)
}

// Close ends the request and frees what it held. It may be called twice.
func (s *Stream) Close() {
	s.watch.Stop()
	s.whole.Stop()
	s.cancel(nil)
	if s.body != nil {
		_ = s.body.Close()
	}
}
