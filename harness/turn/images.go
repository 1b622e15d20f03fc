package turn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/state"
)

// A request holds at most so many bytes of images, each counting for at least
// leastView. When there are more, the oldest are left out, so many bytes at a
// time that the beginning of the requests, which providers cache, changes seldom.
const (
	mostView  = 12 << 20 // Gemini takes 20 MB in all, in base64
	stepView  = 6 << 20
	leastView = 256 << 10
)

// imageBytes is what an image counts for where tokens are estimated.
const imageBytes = 4800

// outOfView stands for an image that is left out.
const outOfView = "[an image was here; it is too long ago to be shown]"

// inView leaves out the oldest images where there are too many.
func inView(ms []model.Message) []model.Message {
	all := 0
	size := func(p model.Part) int { return max(record.BlobBytes(p.Ref), leastView) }
	record.ReplaceImages(ms, func(p model.Part) (model.Part, bool) {
		all += size(p)
		return p, false
	})
	if all <= mostView {
		return ms
	}
	out := (all - mostView + stepView - 1) / stepView * stepView
	at := 0
	return record.ReplaceImages(ms, func(p model.Part) (model.Part, bool) {
		begins := at
		at += size(p)
		return model.Part{Kind: model.Text, Text: outOfView}, begins < out
	})
}

// image reads an image of the conversation.
func (r *run) image(ctx context.Context, ref string) ([]byte, error) {
	data, ok := r.seen[ref]
	if ok {
		return data, nil
	}
	data, err := r.Log.Blob(ctx, r.conv.ID, ref)
	if err != nil {
		return nil, fmt.Errorf("read image: %w", err)
	}
	if r.seen == nil {
		r.seen = map[string][]byte{}
	}
	r.seen[ref] = data
	return data, nil
}

// hasImages says whether messages hold images.
func hasImages(ms []model.Message) bool {
	return slices.ContainsFunc(ms, func(m model.Message) bool {
		return slices.ContainsFunc(m.Parts, func(p model.Part) bool { return p.Kind == model.Image })
	})
}

// withoutImages asks once more, without images, when a provider has refused a
// request that holds some: one that it cannot read must not end a conversation.
func (r *run) withoutImages(ctx context.Context, n int, c model.Choice, request func() model.Request, refused error) (model.Response, time.Duration, error) {
	var me *model.Error
	if q := request(); !errors.As(refused, &me) || me.Fault != model.Invalid || q.Blind || !hasImages(q.Messages) {
		return model.Response{}, 0, refused
	}
	r.log.Warn("images refused", "turn", r.f.Turn.ID, "step", n, "err", me)
	resp, took, err := r.ask(ctx, n, c, func() model.Request {
		q := request()
		q.Messages = record.Hide(q.Messages)
		return q
	})
	if err != nil {
		return resp, took, refused
	}
	r.add(record.Unshown{Turn: r.f.Turn.ID, Step: n, Code: me.Code})
	return resp, took, nil
}

// pictures keeps the images of a call with the next commit.
func (r *run) pictures(images []harness.Image) []record.Picture {
	var out []record.Picture
	for _, i := range images {
		p := record.Picture{Media: i.Media, Blob: record.FileBlob(len(i.Data), digest(i.Data))}
		r.batch.Blobs = append(r.batch.Blobs, state.Blob{Name: p.Blob, Data: i.Data})
		out = append(out, p)
	}
	return out
}

// dropped says which images a summary stands for, "" for none.
func (r *run) dropped(ms []model.Message) string {
	var names []string
	record.ReplaceImages(ms, func(p model.Part) (model.Part, bool) {
		name := "one that a tool returned"
		if i := slices.IndexFunc(r.f.Files, func(k record.Kept) bool { return k.Blob == p.Ref }); i >= 0 {
			name = r.f.Files[i].Path
		}
		names = append(names, name)
		return p, false
	})
	if len(names) == 0 {
		return ""
	}
	return "\n\nImages that are not shown any more (those in the folder in are in the sandbox, where there is one): " + strings.Join(names, ", ") + "."
}
