package channels

import (
	"net/http"
	"time"
)

// NewClient returns a client for the API of one provider, with timeouts. It
// follows no redirects: one may carry a token elsewhere, or make a post twice.
func NewClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 32 // all calls go to one host
	t.ResponseHeaderTimeout = 10 * time.Second
	return &http.Client{
		Transport:     t,
		Timeout:       15 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
