package openai

import (
	"net"
	"net/url"
	"strings"
)

// OllamaURL is the base URL of the Ollama server that OLLAMA_HOST names: a host,
// a host and port, or a URL. "" is the server on this machine. As that variable
// also says where the server listens, an address that means "everywhere" is
// read as this machine.
func OllamaURL(host string) string {
	port := map[string]string{"http": "80", "https": "443"}
	scheme, rest, ok := strings.Cut(strings.TrimSpace(host), "://")
	if !ok {
		scheme, rest = "http", scheme
		port = map[string]string{"http": "11434"}
	}
	rest, path, _ := strings.Cut(rest, "/")
	name, p, err := net.SplitHostPort(rest)
	if err != nil {
		name, p = strings.Trim(rest, "[]"), port[scheme]
	}
	if ip := net.ParseIP(name); name == "" || ip != nil && ip.IsUnspecified() {
		name = "127.0.0.1"
	}
	u := url.URL{Scheme: scheme, Host: net.JoinHostPort(name, p), Path: "/" + path}
	return strings.TrimRight(u.String(), "/") + "/v1"
}
