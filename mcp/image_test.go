package mcp

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
)

// Images that a server answers with are shown, whatever it says they are; what
// is no image is only named, and so are all of an answer that is a failure.
func TestImagesAreShown(t *testing.T) {
	t.Parallel()
	s := openOne(t, at(serve(t, demo("d"), true).URL))
	for tool, want := range map[string]int{"media": 2, "fail": 0} {
		m := mounted(t, s, "E1", chat.Member)
		call := harness.NewScope(rendered("E1", chat.Member), nil).Call("call1", tool)
		mount, _ := m.Tool("mcp__demo__" + tool)
		_, _ = mount.Run(t.Context(), call, json.RawMessage("{}")) // its text is another test's
		got := call.Images()
		if len(got) != want {
			t.Fatalf("%s: %d images, want %d", tool, len(got), want)
		}
		for _, i := range got {
			if i.Media != "image/png" || !bytes.Equal(i.Data, dot) {
				t.Errorf("%s: an image %s of %d bytes", tool, i.Media, len(i.Data))
			}
		}
	}
}
