package record

import (
	"bytes"
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
// request. What is gone leaves it, unless only that would cost the provider's
// cache: definitions stand before all messages, which would be paid in full.
func (f *Fold) rendered(b Rendered) {
	f.Digest = b.Digest
	if f.Turn != nil {
		f.Work.Time, f.Work.Mark = f.Work.Spent(b.Now), b.Now
	}
	if b.View != nil {
		before, gone := f.Offered(), f.Gone
		warm := f.Warm && b.View.Model == f.View.Model // another model has a cache of its own
		f.View, f.Gone = *b.View, nil
		kept := warm && len(b.Loads) == 0 && f.within(before)
		mounted := f.mounted()
		for _, t := range before {
			again := slices.ContainsFunc(gone, func(o model.Tool) bool { return o.Name == t.Name })
			if !mounted[t.Name] && (kept || warm && again) {
				f.Gone = append(f.Gone, t)
			}
		}
		if harness.TokensOf(f.Gone) > maxGone {
			f.Gone = nil
		}
		f.trim()
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

// within says whether a request that defined these tools needs no definition
// more for the present ones, and no other.
func (f *Fold) within(defined []model.Tool) bool {
	have := make(map[string]model.Tool, len(defined))
	for _, t := range defined {
		have[t.Name] = t
	}
	return !slices.ContainsFunc(f.View.Tools, func(t model.Tool) bool {
		old, ok := have[t.Name]
		if !ok {
			return !slices.Contains(f.View.Deferred, t.Name)
		}
		return old.Doc != t.Doc || !bytes.Equal(old.Schema, t.Schema)
	})
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
	f.trim()
}

// trim takes out of the order what is neither mounted nor kept.
func (f *Fold) trim() {
	names := f.mounted()
	for _, t := range f.Gone {
		names[t.Name] = true
	}
	f.Order = slices.DeleteFunc(f.Order, func(name string) bool { return !names[name] })
}

func (f *Fold) mounted() map[string]bool {
	names := make(map[string]bool, len(f.View.Tools))
	for _, t := range f.View.Tools {
		names[t.Name] = true
	}
	return names
}
