// Package wire is what the codecs of model providers share: one streamed HTTP
// request with its timeouts, the reading of server-sent events, the classing of
// errors, and the rules for ids, names and arguments of calls. It knows no
// provider's format.
package wire
