package turn

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/state"
)

// Bounds of what people attach.
const (
	mostOfMessage = 20 << 20  // bytes of all files of one message
	mostOfAll     = 100 << 20 // bytes of all files of one conversation
	mostKept      = 500       // files of one conversation
	mostShown     = 16 << 10  // bytes of one text that the model sees at once
	mostShownAll  = 48 << 10  // and of all texts of one message
	fetchTime     = time.Minute
)

// A Wanted is a file that an event declared.
type Wanted struct {
	Thread chat.Thread
	Author chat.Author // of the event
	File   chat.File
	Most   int64 // bytes
}

// fetch gets the files of what was heard since the last answer, and records what
// became of them: a file that was recorded is never fetched again.
func (r *run) fetch(ctx context.Context) error {
	for r.task == nil && r.Fetch != nil && len(r.f.Declared) > 0 {
		rec, err := r.fetchOf(ctx, r.f.Declared[0])
		if err != nil {
			return err
		}
		r.add(rec)
		if err := r.commit(ctx); err != nil {
			return err
		}
	}
	return nil
}

// fetchOf gets the files of one event. It fails only when ctx ends.
func (r *run) fetchOf(ctx context.Context, d record.Declared) (record.Fetched, error) {
	rec := record.Fetched{Turn: r.f.Turn.ID, Event: d.Event, Author: d.Author, Role: d.Role}
	limited, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	left, texts := int64(mostOfMessage), mostShownAll
	for i, f := range d.Files {
		g := record.Got{Name: f.Name, Media: f.MediaType, Bytes: f.Bytes}
		if g.Name == "" {
			g.Name = f.ID
		}
		if i == chat.MaxFiles {
			g.Name, g.Media, g.Bytes = "", "", 0
			g.Note = fmt.Sprintf("%d more files are not fetched: of one message %d are the most", len(d.Files)-i, chat.MaxFiles)
			rec.Files = append(rec.Files, g)
			break
		}
		data := r.get(limited, d, f, left, rec.Files, &g)
		if ctx.Err() != nil {
			return rec, context.Cause(ctx)
		}
		if data != nil {
			left -= int64(len(data))
			r.keepFile(data, rec.Files, &g)
			show(data, &texts, &g)
		}
		r.log.Info("file fetched", "event", d.Event, "bytes", g.Bytes, "kept", g.Blob != "")
		rec.Files = append(rec.Files, g)
	}
	return rec, nil
}

// get reads one file, or notes why not; others of the same message come before it.
func (r *run) get(ctx context.Context, d record.Declared, f chat.File, left int64, others []record.Got, g *record.Got) []byte {
	kept, bytes := r.kept(others)
	most := min(left, chat.MaxFileBytes, mostOfAll-bytes)
	switch {
	case kept >= mostKept || most <= 0 && left > 0:
		g.Note = "not fetched: the files of this conversation have reached their limit"
		return nil
	case f.Bytes > chat.MaxFileBytes:
		g.Note = fmt.Sprintf("too large: %s, and %s is the most", harness.Size(f.Bytes), harness.Size(chat.MaxFileBytes))
		return nil
	case most <= 0 || f.Bytes > most:
		g.Note = fmt.Sprintf("not fetched: the files of one message may have %s together", harness.Size(mostOfMessage))
		return nil
	}
	got, err := r.Fetch(ctx, Wanted{Thread: d.Thread, Author: d.Author, File: f, Most: most})
	switch {
	case ctx.Err() != nil:
		g.Note = fmt.Sprintf("not fetched: that took more than %v", fetchTime)
	case err != nil:
		r.log.Warn("file not fetched", "event", d.Event, "err", err)
		g.Note = "not fetched: " + strings.ToValidUTF8(err.Error(), "")
	}
	if err != nil || ctx.Err() != nil {
		return nil
	}
	if got.Name != "" {
		g.Name = got.Name
	}
	if got.MediaType != "" {
		g.Media = got.MediaType
	}
	g.Bytes = int64(len(got.Data))
	return got.Data
}

// kept counts the files of the conversation, with those of the message so far.
func (r *run) kept(others []record.Got) (files int, bytes int64) {
	add := func(blob string) {
		if blob != "" {
			files, bytes = files+1, bytes+int64(record.BlobBytes(blob))
		}
	}
	for _, k := range r.f.Files {
		add(k.Blob)
	}
	for _, g := range others {
		add(g.Blob)
	}
	return files, bytes
}

// keepFile puts a file into the next commit; others of the same record come before it.
func (r *run) keepFile(data []byte, others []record.Got, g *record.Got) {
	g.Blob = record.FileBlob(len(data), digest(data))
	r.batch.Blobs = append(r.batch.Blobs, state.Blob{Name: g.Blob, Data: data})
	with := record.Fold{Files: slices.Clone(r.f.Files)}
	for _, o := range others {
		with.Files = append(with.Files, record.Kept{Path: o.Path, Blob: o.Blob})
	}
	g.Path = with.PathOf(g.Name, g.Blob)
}

// show says what the model sees of a file.
func show(data []byte, texts *int, g *record.Got) {
	switch i, err := harness.ImageOf(data); {
	case err == nil:
		g.Image, g.Media = true, i.Media
	case harness.IsImage(data):
		g.Note = err.Error()
	case !isText(data):
		g.Note = fmt.Sprintf("attached, not shown: %s that are neither text nor an image", harness.Size(g.Bytes))
	default:
		text := string(bytes.TrimPrefix(data, []byte("\uFEFF")))
		if most := min(mostShown, *texts); len(text) > most {
			text = text[:most]
			for !utf8.ValidString(text) {
				text = text[:len(text)-1]
			}
			g.Note = fmt.Sprintf("cut here: %d of %d bytes", len(text), len(data))
		}
		*texts -= len(text)
		g.Text = text
	}
}

// isText says whether data are text that can be shown.
func isText(data []byte) bool {
	return utf8.Valid(data) && !bytes.ContainsFunc(data, func(r rune) bool { return r < ' ' && !strings.ContainsRune("\t\n\r\f\v", r) || r == 0x7F })
}

// forwarded finds attached files by their paths in the sandbox, for a task.
func (r *run) forwarded(paths []string) ([]record.Kept, error) {
	for r.task != nil {
		r = r.task.up
	}
	var out []record.Kept
	for _, p := range paths {
		i := slices.IndexFunc(r.f.Files, func(k record.Kept) bool { return k.Path == p && !k.Gone })
		if i < 0 {
			return nil, fmt.Errorf("%w: nobody attached a file %q", harness.ErrArgs, p)
		}
		out = append(out, r.f.Files[i])
	}
	return out, nil
}

// shown shows attached files to a task that begins.
func (r *run) shown(ctx context.Context, files []record.Kept, trust chat.Role) error {
	if len(files) == 0 {
		return nil
	}
	rec, texts := record.Fetched{Turn: r.f.Turn.ID, Event: r.f.Turn.Event.ID, Role: trust}, mostShownAll
	for _, k := range files {
		data, err := r.Log.Blob(ctx, r.conv.ID, k.Blob)
		if err != nil {
			return fmt.Errorf("read attached file: %w", err)
		}
		g := record.Got{Name: path.Base(k.Path), Path: k.Path, Blob: k.Blob, Bytes: int64(len(data))}
		show(data, &texts, &g)
		rec.Files = append(rec.Files, g)
	}
	r.add(rec)
	return nil
}
