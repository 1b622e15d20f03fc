package main

import (
	"slices"
	"strings"

	"github.com/heddlehq/heddle/config"
)

// isTopic says whether a route may name on. A topic of a channel that ends in a
// word in capitals, such as "stripe.TYPE", stands for everything below it.
func isTopic(topics []string, on string) bool {
	if slices.Contains(topics, on) {
		return true
	}
	return slices.ContainsFunc(topics, func(t string) bool {
		dot := strings.LastIndexByte(t, '.') + 1
		rest, ok := strings.CutPrefix(on, t[:dot])
		return ok && t[dot:] != "*" && t[dot:] == strings.ToUpper(t[dot:]) && rest != "" && !strings.ContainsAny(strings.TrimSuffix(rest, ".*"), " *")
	})
}

// unrouted warns of channels whose events no route names.
func (p *parts) unrouted(s *config.Settings) {
	for _, c := range p.channels {
		named := false
		for _, r := range p.routes {
			named = named || slices.ContainsFunc(r.On, func(on string) bool { return strings.HasPrefix(on, c.Name()+".") })
		}
		if !named {
			s.Warn("routes", "none names "+c.Name()+": nothing that comes from there is answered")
		}
	}
}
