package model

import (
	"slices"
	"strings"
)

// NoImages stands where an image was that the model cannot look at.
const NoImages = "[an image was here; this model cannot see images]"

// Fit returns the request as this model takes it: the level of thinking is one
// it knows, or left out where none is known, and a model that cannot look at
// images, or that nothing is known about, is sent none.
func (s Spec) Fit(r Request) Request {
	r.Thinking = s.clamp(r.Thinking)
	r.Blind = !s.Images
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
