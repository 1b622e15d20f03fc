package main

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heddlehq/heddle/config"
)

// checkListen notes why nothing can listen at the address, as far as one sees without trying.
func checkListen(s *config.Settings, v config.Var) {
	addr := s.Get(v)
	host, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	number := host != "" && strings.Trim(host, "0123456789.") == "" && net.ParseIP(host) == nil
	if err != nil || port == "" || number || strings.ContainsAny(host, "/@ ") {
		s.Refuse(v.Name, strconv.Quote(addr), "host:port or :port, such as 127.0.0.1:8080 or :8080, with a port from 0 (any) to 65535")
	}
}

// errTaken marks an address that will be free when another program ends.
var errTaken = errors.New("another program listens there; want a free address, or that program stopped")

// listen opens a listener.
func listen(s *config.Settings, v config.Var) (net.Listener, error) {
	addr := s.Get(v)
	ln, err := net.Listen("tcp", addr)
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		return nil, fmt.Errorf("%s: found %q: %w", v.Name, addr, errTaken)
	case err != nil:
		return nil, config.Problems{{Setting: v.Name, Found: fmt.Sprintf("%q: %v", addr, err), Want: "an address of this machine that this process may listen at"}}
	}
	return ln, nil
}
