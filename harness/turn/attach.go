package turn

import (
	"fmt"
	"strings"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
)

// takesFiles says whether files can be posted where an event is answered.
func (r *run) takesFiles(e chat.Event) bool {
	at, _ := r.where(r.origin(e))
	_, files := r.Compose(at, "", chat.Admin)
	return files
}

// origin is the event that people wait for the answer of, when that of a run is e.
func (r *run) origin(e chat.Event) chat.Event {
	for r.task != nil {
		r = r.task.up
		e = r.f.Turn.Event
	}
	return e
}

// posted records a post with files and puts it into the outbox of the same
// commit. The last part of its key is the place of the record in its log, as of a
// dispatch.
func (r *run) posted(turn string, n int, p harness.Posted) {
	key := fmt.Sprintf("%s/%d/%s/%d", turn, n, digest([]byte(p.Call)), r.f.Seq+1)
	rec := record.Posted{Turn: turn, Step: n, Call: p.Call, Key: key, Text: p.Text}
	var names []string
	for _, f := range p.Files {
		names = append(names, f.Name)
		rec.Files = append(rec.Files, record.Out{Name: f.Name, Media: f.MediaType, Bytes: len(f.Data), Digest: digest(f.Data)})
	}
	r.add(rec)
	e := r.origin(p.Event)
	at, open := r.where(e)
	posts := r.posts(at, p.Text, p.Trust)
	if open && len(posts) == 0 { // files open no thread
		posts = r.posts(at, strings.Join(names, ", "), p.Trust)
	}
	if open || len(posts) == 0 || posts[len(posts)-1].Files != nil { // the text became a file itself
		posts = append(posts, chat.Post{})
	}
	posts[len(posts)-1].Files = p.Files
	r.queue(e, posts, func(i int) string { return fmt.Sprintf("%s/%d", key, i) })
}
