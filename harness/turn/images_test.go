package turn

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/model/scripted"
	"github.com/heddlehq/heddle/state"
)

// fileless is a log whose files cannot be read.
type fileless struct{ state.Log }

func (u fileless) Blob(ctx context.Context, id state.ID, name string) ([]byte, error) {
	if strings.HasPrefix(name, "file/") {
		return nil, errors.New("no disk")
	}
	return u.Log.Blob(ctx, id, name)
}

// An image that the store cannot give is no failure of the model: the turn is
// left open, and goes on when the store is well again.
func TestImageThatCannotBeRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain(), scripted.Say("seen"), scripted.Say("still there"))
	w.seeing(1_000_000)
	w.attach("look", chat.Message, map[string][]byte{"F1": dot(t, 1, 1)}, chat.File{ID: "F1", Name: "dot.png"})
	w.log = fileless{w.store}
	w.restart()
	w.say("U1", "again")
	if err := w.try(); err == nil || !strings.Contains(err.Error(), "read image: no disk") {
		t.Errorf("the turn ended with %v", err)
	}
	w.log = w.store
	w.restart()
	w.pass(time.Hour)
	w.run()
	if got := w.posts(); len(got) != 2 || got[1] != "still there" {
		t.Errorf("posts %q", got)
	}
	if got := images(w.request(-1)); len(got) != 1 || strings.HasSuffix(got[0], " 0") {
		t.Errorf("images %v", got)
	}
}
