package record

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/model"
)

// Fetched says what became of the files of an event that was heard. They are
// words of its author.
type Fetched struct {
	Turn   string      `json:"turn"`
	Event  string      `json:"event"` // its id
	Author chat.Author `json:"author"`
	Role   chat.Role   `json:"role"` // of its author when it was heard
	Files  []Got       `json:"files"`
}

// Got is one file and what the model sees of it.
type Got struct {
	Name  string `json:"name"`
	Media string `json:"media,omitempty"` // as it was declared, or of an image that is shown, as it is
	Bytes int64  `json:"bytes,omitempty"`
	Blob  string `json:"blob,omitempty"`  // where it is kept, see FileBlob; "" if it is not
	Path  string `json:"path,omitempty"`  // where it lies in a sandbox, below the working directory
	Image bool   `json:"image,omitempty"` // the model sees it as an image
	Text  string `json:"text,omitempty"`  // the model sees it as text: the beginning of it
	Note  string `json:"note,omitempty"`  // what the model does not see of it, and why
}

// Unshown says that a provider has refused a request with images and answered
// the same without. The model sees none of them any more.
type Unshown struct {
	Turn string `json:"turn"`
	Step int    `json:"step"`
	Code string `json:"code,omitempty"` // the provider's
}

// A Picture is an image in the result of a call.
type Picture struct {
	Media string `json:"media"`
	Blob  string `json:"blob"` // where it is kept, see FileBlob
}

// Posted is a post with files that a call has decided, besides the answer; the
// posts whose keys begin with this one bring them out.
type Posted struct {
	Turn  string `json:"turn"`
	Step  int    `json:"step"`
	Call  string `json:"call"`
	Key   string `json:"key"`
	Text  string `json:"text,omitempty"` // Markdown
	Files []Out  `json:"files"`
}

// Out is a file that went out.
type Out struct {
	Name   string `json:"name"`
	Media  string `json:"media,omitempty"`
	Bytes  int    `json:"bytes"`
	Digest string `json:"digest"`
}

func (Fetched) kind() string { return "fetched" }
func (Unshown) kind() string { return "unshown" }
func (Posted) kind() string  { return "posted" }

// Declared are the files of an event that was heard: not fetched yet, and no
// model has answered since.
type Declared struct {
	Event  string      `json:"event"`
	Ref    string      `json:"ref,omitempty"`
	Thread chat.Thread `json:"thread"`
	Author chat.Author `json:"author"`
	Role   chat.Role   `json:"role"`
	Files  []chat.File `json:"files"`
}

// Kept is a file that people attached and that is kept beside the log.
type Kept struct {
	Path string `json:"path"` // in a sandbox, below the working directory
	Blob string `json:"blob"`
	Of   string `json:"of,omitempty"`   // its message, see Mark
	Gone bool   `json:"gone,omitempty"` // that was taken back: nobody gets the file any more
}

// FileBlob names the blob of a file by what is in it: its size and digest.
func FileBlob(bytes int, digest string) string {
	return "file/" + strconv.Itoa(bytes) + "-" + digest
}

// BlobBytes is the size of what a FileBlob names.
func BlobBytes(name string) int {
	size, _, _ := strings.Cut(strings.TrimPrefix(name, "file/"), "-")
	n, _ := strconv.Atoi(size) // 0 for a name of another kind
	return n
}

// declare notes the files of an event. An edit brings those of the message that
// it changes once more.
func (f *Fold) declare(b Heard) {
	e := b.Event
	if len(e.Files) == 0 || e.Kind == chat.Edited || e.Kind == chat.Deleted {
		return
	}
	f.Declared = append(f.Declared, Declared{Event: e.ID, Ref: e.Ref, Thread: e.Thread, Author: e.Author, Role: b.Role, Files: e.Files})
}

// filed applies what is noted of files.
func (f *Fold) filed(b Body) {
	switch b := b.(type) {
	case Fetched:
		f.fetched(b)
	case Unshown:
		f.Messages = Hide(f.Messages)
	}
}

func (f *Fold) fetched(b Fetched) {
	of := ""
	f.Declared = slices.DeleteFunc(f.Declared, func(d Declared) bool {
		if d.Event == b.Event {
			of = Mark(d.Thread, d.Ref)
		}
		return d.Event == b.Event
	})
	if len(f.Declared) == 0 {
		f.Declared = nil
	}
	m := model.Message{Role: model.User}
	for _, g := range b.Files {
		m.Parts = append(m.Parts, model.Part{Kind: model.Text, Text: quoteFile(b, g), Of: of})
		if g.Image {
			m.Parts = append(m.Parts, model.Part{Kind: model.Image, Media: g.Media, Ref: g.Blob, Of: of})
		}
		if k := (Kept{Path: g.Path, Blob: g.Blob, Of: of}); g.Blob != "" && !slices.Contains(f.Files, k) {
			f.Files = append(f.Files, k)
		}
	}
	if len(m.Parts) > 0 {
		f.Messages = append(f.Messages, m)
	}
}

// quoteFile wraps what the model sees of a file, with whose words it is.
func quoteFile(b Fetched, g Got) string {
	var s strings.Builder
	s.WriteString("<heard")
	attr(&s, "from", b.Author.ID)
	attr(&s, "role", b.Role.String())
	attr(&s, "file", g.Name)
	attr(&s, "media", g.Media)
	attr(&s, "sandbox-path", g.Path)
	s.WriteString(">\n")
	if g.Image {
		s.WriteString("[the image follows]\n")
	}
	if g.Text != "" {
		s.WriteString(Defuse(strings.TrimSuffix(g.Text, "\n")) + "\n")
	}
	if g.Note != "" {
		s.WriteString("[" + Defuse(g.Note) + "]\n")
	}
	s.WriteString("</heard>")
	return s.String()
}

// hidden stands where an image was that a provider has refused.
const hidden = "[an image was here; the provider refused it]"

// Hide returns the messages with a text in the place of every image. What did
// not change is shared.
func Hide(ms []model.Message) []model.Message {
	return ReplaceImages(ms, func(model.Part) (model.Part, bool) { return model.Part{Kind: model.Text, Text: hidden}, true })
}

// ReplaceImages returns the messages with another part in the place of those
// images for which one is given. What did not change is shared.
func ReplaceImages(ms []model.Message, with func(model.Part) (model.Part, bool)) []model.Message {
	shared := true
	for i := range ms {
		m, same := ms[i], true
		for k := range m.Parts {
			if m.Parts[k].Kind != model.Image {
				continue
			}
			other, ok := with(m.Parts[k])
			if !ok {
				continue
			}
			if shared {
				ms, shared = slices.Clone(ms), false
			}
			if same {
				m.Parts, same = slices.Clone(m.Parts), false
				ms[i] = m
			}
			m.Parts[k] = other
		}
	}
	return ms
}

// mostName bounds the name of a file in a sandbox, in runes.
const mostName = 80

// PathOf is where a file of a name is to lie in a sandbox: "in/NAME", with a
// number where that is taken by a file with something else in it.
func (f *Fold) PathOf(name, blob string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-+()", r) {
			return r
		}
		return '_'
	}, path.Base(strings.ReplaceAll(strings.ToValidUTF8(name, "_"), `\`, "/")))
	if name = strings.TrimLeft(name, ".-"); strings.Trim(name, "_") == "" {
		name = "file"
	}
	end := path.Ext(name)
	if len(end) > 16 {
		end = ""
	}
	stem := clip(strings.TrimSuffix(name, end), mostName)
	at := "in/" + stem + end
	for n := 2; slices.ContainsFunc(f.Files, func(k Kept) bool { return k.Path == at && k.Blob != blob }); n++ {
		at = "in/" + stem + "-" + strconv.Itoa(n) + end
	}
	return at
}
