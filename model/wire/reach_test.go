package wire

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/heddlehq/heddle/model"
)

// Whoever reads the log must see why a server was not reached.
func TestReach(t *testing.T) {
	t.Parallel()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + gone.Addr().String()
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	for url, want := range map[string]string{closed: "connection_refused", secure.URL: "tls", "http://nowhere.invalid": "no_such_host"} {
		_, err := Open(context.Background(), Call{Provider: "p", Model: "m", URL: url, Header: http.Header{}, Client: NewClient()})
		var e *model.Error
		if !errors.As(err, &e) || e.Fault != model.Transient || e.Code != want {
			t.Errorf("%s: %v, want the code %s", url, err, want)
		}
	}
}
