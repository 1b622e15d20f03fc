package mcp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Bounds on what comes over the wire.
const (
	maxMessage   = 4 << 20  // bytes of one message
	maxStream    = 64 << 20 // bytes of all messages that answer one request
	maxRedirects = 3
)

var (
	errSilent   = errors.New("it did not answer in time")
	errTooLarge = errors.New("it sent too much in one answer")
	errEnded    = errors.New("the stream of notifications ended")
)

// A wire makes the requests of one session. All of them end with it.
type wire struct {
	base    http.RoundTripper
	headers map[string]string
	over    context.Context // ends with the session
	silence time.Duration   // most that the opening of a stream may take
	broken  func(error)     // told when the session is of no use any more
}

func (w *wire) client() *http.Client {
	return &http.Client{Transport: w, CheckRedirect: sameOrigin}
}

// sameOrigin refuses redirects that would carry credentials or words elsewhere.
func sameOrigin(r *http.Request, via []*http.Request) error {
	if first := via[0].URL; r.URL.Scheme != first.Scheme || r.URL.Host != first.Host {
		return errors.New("it redirects to another host")
	}
	if len(via) > maxRedirects {
		return errors.New("it redirects again and again")
	}
	return nil
}

// RoundTrip makes one request of the session.
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	unhook := context.AfterFunc(w.over, func() { cancel(context.Cause(w.over)) })
	end := func() { unhook(); cancel(nil) }
	listen := req.Method == http.MethodGet || req.Header.Get("Mcp-Method") == "subscriptions/listen"
	if listen { // nobody else sets a limit to it
		silent := time.AfterFunc(w.silence, func() { cancel(errSilent) })
		defer silent.Stop()
	}
	req = req.Clone(ctx)
	for k, v := range w.headers {
		req.Header.Set(k, v)
	}
	resp, err := w.base.RoundTrip(req)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		end()
		return nil, err
	}
	if resp.StatusCode == http.StatusNotFound && req.Header.Get("Mcp-Session-Id") != "" {
		w.broken(sdk.ErrSessionMissing)
	}
	b := &body{ReadCloser: resp.Body, left: maxMessage, end: end}
	if stream := strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream"); stream {
		b.left = maxStream
		if listen {
			b.left = -1 // as long as the session; each event is bounded
		}
		if listen && req.Method == http.MethodPost {
			b.ended = func() { w.broken(errEnded) } // no notification would come any more
		}
	}
	resp.Body = b
	return resp, nil
}

// A body ends its request when it is closed, and fails when it is too long.
type body struct {
	io.ReadCloser
	left  int // bytes, negative without limit
	end   func()
	ended func() // at the end of a stream, may be nil
}

func (b *body) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, errTooLarge
	}
	if b.left > 0 && len(p) > b.left {
		p = p[:b.left]
	}
	n, err := b.ReadCloser.Read(p)
	if b.left > 0 {
		b.left -= n
	}
	if err != nil && b.ended != nil {
		b.ended()
	}
	return n, err
}

func (b *body) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}
