package channeltest

import (
	"testing"

	"github.com/heddlehq/heddle/channels"
)

// opened asks where people answer to posts: in a thread of the same room, which
// is that of the post unless the post began one, and the same whenever it is asked.
func (h Harness) opened(t *testing.T) {
	c := h.New(t, "http://127.0.0.1:1")
	o, ok := c.(channels.Opener)
	if !ok {
		t.Skip("this channel opens no threads")
	}
	p := h.Post
	p.Thread.Root, p.Open = "", true
	first := o.Opened(p, h.Ref)
	if err := first.Validate(); err != nil || first != o.Opened(p, h.Ref) {
		t.Errorf("a post to %v opens %v, %v", p.Thread, first, err)
	}
	if at := first; at != p.Thread {
		if at.Root = ""; at != p.Thread {
			t.Errorf("a post to %v opens %v, which is elsewhere", p.Thread, first)
		}
	}
	p.Thread, p.Open = first, false
	if again := o.Opened(p, "other"+h.Ref); first.Root != "" && again != first {
		t.Errorf("a post to %v, where people answer already, opens %v", first, again)
	}
}
