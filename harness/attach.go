package harness

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"path"
	"slices"

	"github.com/heddlehq/heddle/chat"
)

// attachTool names the tool that UseAttach mounts beside a sandbox.
const attachTool = "attach"

// maxCaption bounds the text above files, in bytes.
const maxCaption = 4 << 10

// Attach posts files.
type Attach struct{}

// UseAttach lets calls post files in the thread. Where this render declares a
// sandbox and the thread's channel takes files, the model has the tool attach,
// which posts a file of the sandbox.
func UseAttach(c *Context) Attach {
	c.use("UseAttach")
	c.attach = true
	return Attach{}
}

// Post decides that files are posted in the thread, below a text in Markdown that
// may be empty. They are queued with the result of the call and posted once. It
// fails where the channel takes no files, and for files without a name, empty
// ones and more than chat.MaxAttached bytes.
func (Attach) Post(call *Call, text string, files ...chat.Attachment) error {
	s := call.scope
	size := 0
	for _, f := range files {
		size += len(f.Data)
		if len(f.Data) == 0 || f.Name == "" || f.Name != path.Base(f.Name) || f.Name == "/" || f.Name == "." {
			return fmt.Errorf("attach: the file %q is empty, or has no name", f.Name)
		}
	}
	switch {
	case !s.snap.Files:
		return errors.New("attach: no files can be posted in this thread")
	case len(files) == 0 || len(files) > chat.MaxFiles:
		return fmt.Errorf("attach: want 1 to %d files", chat.MaxFiles)
	case len(text) > maxCaption:
		return fmt.Errorf("attach: the text has %d bytes, at most %d are posted", len(text), maxCaption)
	case size > chat.MaxAttached:
		return fmt.Errorf("attach: the files have %s together, and %s is the most", Size(int64(size)), Size(chat.MaxAttached))
	}
	trust := s.snap.Trust
	for _, v := range call.Voices() {
		trust = min(trust, v.Role)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.posted = append(s.posted, Posted{Call: call.ID, Event: s.snap.Event, Trust: trust, Text: text, Files: slices.Clone(files)})
	return nil
}

// Posted is a post with files that a call has decided.
type Posted struct {
	Call  string     // its id
	Event chat.Event // that it answers
	Trust chat.Role  // of the text
	Text  string     // Markdown
	Files []chat.Attachment
}

// Posted returns the posts with files decided so far, in order.
func (s *Scope) Posted() []Posted {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.posted)
}

// mountAttach mounts the tool attach.
func (c *Context) mountAttach() {
	if !c.attach || c.m.Sandbox == "" || !c.snap.Files {
		return
	}
	type in struct {
		Path string `json:"path" jsonschema:"file to post"`
		Text string `json:"text,omitempty" jsonschema:"what to say about it, in Markdown"`
	}
	doc := fmt.Sprintf("Posts a file of the sandbox in the thread, for the people there; at most %s.", Size(chat.MaxAttached))
	c.mount("UseAttach", NewTool(attachTool, doc, func(ctx context.Context, call *Call, a in) (string, error) {
		sb, err := call.Sandbox(ctx)
		if err != nil {
			return "", err
		}
		data, err := sb.ReadFile(ctx, a.Path)
		if err != nil {
			return "", err
		}
		f := chat.Attachment{Name: path.Base(a.Path), MediaType: mime.TypeByExtension(path.Ext(a.Path)), Data: data}
		if f.MediaType == "" {
			f.MediaType = http.DetectContentType(data)
		}
		if err := (Attach{}).Post(call, a.Text, f); err != nil {
			return "", err
		}
		return fmt.Sprintf("%s (%s) is posted with this step", f.Name, Size(int64(len(data)))), nil
	}).Quiet())
}
