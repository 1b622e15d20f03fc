package turn

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model/scripted"
	"github.com/heddlehq/heddle/state"
)

// Every end of a turn vouches for the log before it, also in another process
// that begins at a checkpoint; the line of the log holds the value to keep.
func TestLogIsChained(t *testing.T) {
	t.Parallel()
	look := act("look", func(context.Context, *harness.Call) (string, error) { return "seen", nil })
	w := worldOf(t, plain(look), scripted.Play(lastSays(map[string]scripted.Step{"please": call("look", "look")}), 0))
	const turns = 40
	for i := range turns {
		w.ask("U1", fmt.Sprintf("please <%d> \u2028 \x7f", i))
		if i%7 == 3 {
			w.restart()
		}
	}
	id := state.ConversationID("tested", thread)
	if blob, err := w.store.Blob(context.Background(), id, foldBlob); err != nil || blob == nil {
		t.Fatalf("no checkpoint: %v", err)
	}
	v, err := w.store.Load(context.Background(), id, 0)
	if err != nil {
		t.Fatal(err)
	}
	a, err := record.Verify(v.Records)
	if err != nil || a.Checked != turns {
		t.Fatalf("%+v, %v", a, err)
	}
	if !strings.Contains(w.logged.String(), "chain="+a.Last()) {
		t.Errorf("the log does not hold the last value %s", a.Last())
	}
}
