package wire

import (
	"net"
	"net/http"
	"time"
)

// NewClient returns the client of a provider that was given none. Connections
// are kept for many calls at once to one host. It follows no redirect, because
// a key must not travel to a host nobody named, and it ignores the proxy
// variables of the environment: who wants a proxy hands in a client with one.
// Only dialling is bounded here, since an answer may stream for minutes.
func NewClient() *http.Client {
	dial := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Client{
		Transport: &http.Transport{
			DialContext:         dial.DialContext,
			TLSHandshakeTimeout: 10 * time.Second,
			ForceAttemptHTTP2:   true,
			HTTP2:               &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second},
			MaxIdleConns:        256,
			MaxIdleConnsPerHost: 128,
			IdleConnTimeout:     90 * time.Second,
			DisableCompression:  true,     // a compressed stream arrives in lumps
			WriteBufferSize:     16 << 10, // most requests in one piece
		},
		CheckRedirect: noRedirect,
	}
}

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
