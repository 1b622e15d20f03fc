package model

import (
	"slices"
	"strings"
)

// NoImages stands where an image was that the model cannot look at.
const NoImages = "[an image was here; this model cannot see images]"

// Fit returns the request as this model takes it: the level of thinking is one
// it knows, or left out where none is known, and images it cannot look at are
// replaced by NoImages; of a model that nothing is known about, neither is sent.
// It shares what did not change with r.
func (s Spec) Fit(r Request) Request {
	r.Thinking = s.clamp(r.Thinking)
	if s.Images {
		return r
	}
	image := func(p Part) bool { return p.Kind == Image }
	for i, m := range r.Messages {
		if !slices.ContainsFunc(m.Parts, image) {
			continue
		}
		m.Parts = slices.Clone(m.Parts)
		for k, p := range m.Parts {
			if image(p) {
				m.Parts[k] = Part{Kind: Text, Text: NoImages}
			}
		}
		r.Messages = slices.Clone(r.Messages)
		r.Messages[i] = m
	}
	return r
}

// clamp is the highest level of the model's that is not above the wanted one,
// or else its lowest.
func (s Spec) clamp(want Thinking) Thinking {
	if want == "" || s.Thinking == "" {
		return ""
	}
	rank := func(t Thinking) int { return slices.Index([]Thinking{ThinkOff, ThinkLow, ThinkMedium, ThinkHigh}, t) }
	has := strings.Fields(s.Thinking)
	got := Thinking(has[0])
	for _, l := range has {
		if t := Thinking(l); rank(t) <= rank(want) {
			got = t
		}
	}
	return got
}
