package dispatch

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/heddlehq/heddle/channels"
)

// admitTime bounds the wait for the store: providers give up after 3 seconds.
const admitTime = 2500 * time.Millisecond

// Whoever sends has shown nothing yet when the body is read: it may take so
// long, and all bodies together so many bytes.
const (
	bodyTime   = 3 * time.Second
	mostBodies = 64 << 20
)

// Handler is the public listener: the webhooks of the channels and the health checks.
func (g *Gateway) Handler() http.Handler {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.IPExtractor = echo.ExtractIPDirect()
	e.HTTPErrorHandler = func(err error, c echo.Context) {
		code := http.StatusInternalServerError
		var he *echo.HTTPError
		if errors.As(err, &he) {
			code = he.Code
		}
		_ = refuse(c, code)
	}
	for _, c := range g.Channels {
		if p, ok := c.(channels.Pages); ok {
			for suffix, h := range p.Pages() {
				e.GET("/"+c.Name()+"/"+suffix, echo.WrapHandler(h))
			}
		}
		w, ok := c.(channels.Webhook)
		if !ok {
			continue
		}
		for _, r := range w.Routes() {
			// Registered for what no method matches, so for all: receive refuses by method itself.
			e.RouteNotFound("/"+w.Name()+"/"+r.Name, func(c echo.Context) error { return g.receive(c, w, r) })
		}
	}
	e.GET("/livez", func(c echo.Context) error { return c.String(http.StatusOK, "ok\n") })
	e.GET("/readyz", g.readyz)
	return e
}

// receive takes one delivery: cheap checks first, the signature before any
// parsing, and the answer only after the events are on disk.
func (g *Gateway) receive(c echo.Context, w channels.Webhook, r channels.Route) error {
	req := c.Request()
	if req.Method != http.MethodPost {
		c.Response().Header().Set("Allow", http.MethodPost)
		return g.refuse(c, w, http.StatusMethodNotAllowed, "method")
	}
	media, _, err := mime.ParseMediaType(req.Header.Get("Content-Type"))
	if err != nil || !slices.Contains(r.MediaTypes, media) || len(req.Header.Values("Content-Type")) != 1 {
		return g.refuse(c, w, http.StatusUnsupportedMediaType, "media type")
	}
	if enc := strings.Join(req.Header.Values("Content-Encoding"), ","); enc != "" && enc != "identity" {
		return g.refuse(c, w, http.StatusUnsupportedMediaType, "content encoding")
	}
	// Not every ResponseWriter can; the server's own time-out then bounds it.
	_ = http.NewResponseController(c.Response().Writer).SetReadDeadline(time.Now().Add(bodyTime))
	counted := &countedBody{next: req.Body, all: &g.bodies}
	defer counted.release()
	body, err := readBody(counted, req.ContentLength, r.MaxBytes)
	switch {
	case errors.Is(err, errCrowded):
		c.Response().Header().Set("Retry-After", "1")
		c.Response().Header().Set("Connection", "close")
		return g.refuse(c, w, http.StatusServiceUnavailable, "too many bodies at once")
	case errors.Is(err, errTooLarge):
		c.Response().Header().Set("Connection", "close")
		return g.refuse(c, w, http.StatusRequestEntityTooLarge, "too large")
	case err != nil:
		return g.refuse(c, w, http.StatusBadRequest, "body not read")
	}
	in, err := guard(g.Logger, func() (channels.Inbound, error) { return w.Receive(r.Name, req.Header, body, g.Clock()) })
	if err != nil {
		g.Logger.Debug("delivery refused", "channel", w.Name(), "err", err)
	}
	switch {
	case errors.Is(err, channels.ErrUnverified):
		return g.refuse(c, w, http.StatusUnauthorized, "not verified")
	case errors.Is(err, channels.ErrStale):
		return g.refuse(c, w, http.StatusUnauthorized, "outside the time window")
	case errors.Is(err, errPanic):
		return g.refuse(c, w, http.StatusInternalServerError, "panicked")
	case err != nil:
		return g.refuse(c, w, http.StatusBadRequest, "malformed")
	}
	if err := g.take(req.Context(), w.Name(), in); err != nil {
		c.Response().Header().Set("Retry-After", "1")
		return g.refuse(c, w, http.StatusServiceUnavailable, "store failed")
	}
	if in.Empty {
		return c.NoContent(http.StatusNoContent)
	}
	if in.Reply == nil {
		return c.NoContent(http.StatusOK)
	}
	return c.Blob(http.StatusOK, in.ReplyType, in.Reply)
}

// refuse answers without a hint of the reason and counts it.
func (g *Gateway) refuse(c echo.Context, w channels.Webhook, code int, reason string) error {
	g.tally.add(w.Name(), "refused: "+reason)
	return refuse(c, code)
}

func refuse(c echo.Context, code int) error {
	return c.String(code, http.StatusText(code)+"\n")
}

var errTooLarge = errors.New("body too large")

var errCrowded = errors.New("all bodies together are too large")

// A countedBody counts what has come of a body among all that are held: what is
// only announced takes no room from others.
type countedBody struct {
	next io.Reader
	all  *atomic.Int64
	own  int64
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.next.Read(p)
	b.own += int64(n)
	if b.all.Add(int64(n)) > mostBodies {
		return 0, errCrowded
	}
	return n, err
}

func (b *countedBody) release() { b.all.Add(-b.own) }

// readBody reads the raw body, at most limit bytes.
func readBody(r io.Reader, announced, limit int64) ([]byte, error) {
	if announced > limit {
		return nil, errTooLarge
	}
	body, err := io.ReadAll(io.LimitReader(r, limit+1))
	if int64(len(body)) > limit {
		return nil, errTooLarge
	}
	return body, err
}

// health remembers for a moment whether the store works.
type health struct {
	mu sync.Mutex
	ok bool
	at time.Time // of the last check
}

// fail notes that the store did not commit; the next question checks it.
func (h *health) fail() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ok, h.at = false, time.Time{}
}

// readyz says whether deliveries are wanted: the store commits and no drain
// has begun. A provider that does not answer is no reason.
func (g *Gateway) readyz(c echo.Context) error {
	if g.soft.Err() != nil {
		return c.String(http.StatusServiceUnavailable, "stopping\n")
	}
	h := &g.health
	h.mu.Lock()
	ok, fresh := h.ok, g.Clock().Sub(h.at) < time.Second
	h.mu.Unlock()
	if !fresh {
		// Who hangs up must not make the store look broken to others.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request().Context()), time.Second)
		defer cancel()
		err := g.Store.Check(ctx)
		if ok = err == nil; !ok {
			g.Logger.Error("store check failed", "err", err)
		}
		h.mu.Lock()
		h.ok, h.at = ok, g.Clock()
		h.mu.Unlock()
	}
	if !ok {
		c.Response().Header().Set("Retry-After", strconv.Itoa(1))
		return c.String(http.StatusServiceUnavailable, "store does not commit\n")
	}
	return c.String(http.StatusOK, "ready\n")
}
