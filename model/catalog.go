package model

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"charm.land/catwalk/pkg/catwalk"
	"charm.land/catwalk/pkg/embedded"
)

// Figures of a model that nothing is known about: any model of today has these.
// Its prices are 0, so its cost is not counted unless settings give prices.
const (
	safeWindow = 32_000
	safeMaxOut = 4096
)

// Lookup returns the embedded figures of a model, or safe defaults with Known
// false. A dated id finds its undated entry and the other way round. The table
// is read at the first call.
func Lookup(provider, id string) Spec {
	specs := catalog()
	if s, ok := specs[provider+"/"+id]; ok {
		return s
	}
	if s, ok := specs[provider+"/"+undated(id)]; ok {
		return s
	}
	return Spec{Window: safeWindow, MaxOut: safeMaxOut}
}

// catalog holds a copy of the few figures we use, so that the rest of the
// embedded data is garbage once this was built.
var catalog = sync.OnceValue(func() map[string]Spec {
	specs := map[string]Spec{}
	for _, p := range embedded.GetAll() {
		for _, m := range p.Models {
			s := Spec{
				Window: int(m.ContextWindow),
				MaxOut: int(m.DefaultMaxTokens),
				In:     m.CostPer1MIn,
				Out:    m.CostPer1MOut,
				// The names are misleading: "in cached" is the price of writing
				// to the cache, "out cached" that of reading from it.
				CacheWrite: m.CostPer1MInCached,
				CacheRead:  m.CostPer1MOutCached,
				Thinking:   levels(p.Type, m),
				Images:     m.SupportsImages,
				Known:      true,
			}
			if s.Window <= 0 {
				s.Window = safeWindow
			}
			if s.MaxOut <= 0 {
				s.MaxOut = safeMaxOut
			}
			if s.CacheWrite == 0 { // without a price of their own, cached tokens cost what others do
				s.CacheWrite = s.In
			}
			if s.CacheRead == 0 {
				s.CacheRead = s.In
			}
			full := string(p.ID) + "/" + m.ID
			specs[full] = s
			if u := undated(full); u != full {
				if _, taken := specs[u]; !taken {
					specs[u] = s
				}
			}
		}
	}
	return specs
})

// levels are those of ours that a model takes. Without a list of its own, a
// model that thinks is given a budget, which knows all of them. Off is a word of
// the provider's that its list must hold, but Anthropic's models think only if
// they are asked to.
func levels(provider catwalk.Type, m catwalk.Model) string {
	all := []string{string(ThinkOff), string(ThinkLow), string(ThinkMedium), string(ThinkHigh)}
	switch {
	case !m.CanReason:
		return ""
	case len(m.ReasoningLevels) == 0:
		return strings.Join(all, " ")
	}
	off := provider == catwalk.TypeAnthropic || slices.Contains(m.ReasoningLevels, "none") ||
		provider == catwalk.TypeGoogle && slices.Contains(m.ReasoningLevels, "minimal")
	return strings.Join(slices.DeleteFunc(all, func(l string) bool {
		return !slices.Contains(m.ReasoningLevels, l) && (l != string(ThinkOff) || !off)
	}), " ")
}

var date = regexp.MustCompile(`-20\d\d-?\d\d-?\d\d$`)

// undated is an id without the date of its release.
func undated(id string) string { return date.ReplaceAllString(id, "") }
