package record

import (
	"slices"

	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/model"
)

// maxGone bounds the definitions that stay in the request though their tools are
// gone, in tokens: each is paid for with every call.
const maxGone = 4000

// Offered are the definitions of the request, in the order in which they first
// came, so that the provider's cache holds. A tool that is gone is among them
// where leaving it out would cost that cache; a call of it is refused.
func (f *Fold) Offered() []model.Tool {
	defs := make(map[string]model.Tool, len(f.View.Tools)+len(f.Gone))
	for _, t := range slices.Concat(f.Gone, f.View.Tools) {
		defs[t.Name] = t
	}
	out := make([]model.Tool, 0, len(f.Order))
	for _, name := range f.Order {
		out = append(out, defs[name])
	}
	return out
}

// rendered takes over the manifest of a step. What came is appended to the
// request. What is gone leaves it, unless the provider's cache was in use: the
// definitions stand before all messages, which would have to be paid in full.
func (f *Fold) rendered(b Rendered) {
	f.Digest = b.Digest
	if b.View != nil {
		before := f.Offered()
		warm := f.Warm && b.View.Model == f.View.Model // another model has a cache of its own
		f.View = *b.View
		mounted := f.mounted()
		f.Gone = nil
		for _, t := range before {
			if !mounted[t.Name] {
				f.Gone = append(f.Gone, t)
			}
		}
		if !warm || harness.TokensOf(f.Gone) > maxGone {
			f.dropGone()
		}
		for _, name := range f.View.Deferred {
			delete(mounted, name)
		}
		for _, t := range f.View.Tools {
			if mounted[t.Name] {
				f.offer(t.Name)
			}
		}
	}
	for _, name := range b.Loads {
		f.offer(name)
	}
}

// offer appends a mounted tool to the request.
func (f *Fold) offer(name string) {
	if !slices.Contains(f.Order, name) {
		f.Order = append(f.Order, name)
	}
}

// dropGone leaves out what is gone.
func (f *Fold) dropGone() {
	f.Gone = nil
	mounted := f.mounted()
	f.Order = slices.DeleteFunc(f.Order, func(name string) bool { return !mounted[name] })
}

func (f *Fold) mounted() map[string]bool {
	names := make(map[string]bool, len(f.View.Tools))
	for _, t := range f.View.Tools {
		names[t.Name] = true
	}
	return names
}
