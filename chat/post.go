package chat

// A Post is one message to send. Its Key is the same on every attempt, so a
// channel can find out whether it was made already.
type Post struct {
	Key    string       `json:"key"`             // "<turn>/<step>/<n>", see state.PostKey
	Thread Thread       `json:"thread"`          // where
	Text   string       `json:"text"`            // in the channel's dialect and within its limits: one part made by Sender.Compose
	Files  []Attachment `json:"files,omitempty"` // shown below the text, in order; at most MaxAttached bytes together

	ReplyTo string `json:"reply_to,omitempty"` // Ref of the event that it answers, "" if none
	Open    bool   `json:"open,omitempty"`     // in the thread that its conversation has opened at Thread or, if there is none yet, by opening one there
	After   string `json:"after,omitempty"`    // Key of the part before it of the same text, "" if none: it dies with that
	Handle  Handle `json:"-"`                  // of that event, while it lasts; zero if there is none
}

// MaxAttached is how many bytes the files of one post may have together: a
// channel rejects a post with more.
const MaxAttached = 1 << 20

// An Attachment is a file with what is in it: one that was fetched, or that goes
// out with a post.
type Attachment struct {
	Name      string `json:"name"` // "answer.md", without folders
	MediaType string `json:"media_type"`
	Data      []byte `json:"data"` // not empty
}
