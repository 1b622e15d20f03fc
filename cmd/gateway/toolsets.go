package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/channels/stripe"
	"github.com/heddlehq/heddle/config"
	"github.com/heddlehq/heddle/harness"
	stripetools "github.com/heddlehq/heddle/toolkit/stripe"
)

// A toolSet is tools that agents name in their settings as one.
type toolSet struct {
	needs string // what it cannot do without
	// use makes what mounts them, nil if what they need is not there.
	use func([]channels.Channel) func(*harness.Context)
}

// stripeRead reads Stripe with the channel's key.
func stripeRead(cs []channels.Channel) func(*harness.Context) {
	for _, c := range cs {
		if s, ok := c.(*stripe.Channel); ok && s.Asks() {
			return func(c *harness.Context) { stripetools.UseRead(c, s) }
		}
	}
	return nil
}

// notYet is for what this version must not mount.
func notYet([]channels.Channel) func(*harness.Context) { return nil }

// findTools is the hook that mounts the tools called name.
func findTools(s *config.Settings, at, name string, cs []channels.Channel) func(*harness.Context) {
	set, ok := toolSets[name]
	if !ok {
		s.Refuse(at, fmt.Sprintf("%q", name), "one of "+strings.Join(slices.Sorted(maps.Keys(toolSets)), ", "))
		return func(*harness.Context) {}
	}
	use := set.use(cs)
	if use == nil {
		s.Refuse(at, fmt.Sprintf("%q", name), set.needs)
		return func(*harness.Context) {}
	}
	return use
}
