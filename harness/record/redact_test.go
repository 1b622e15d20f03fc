package record_test

import (
	"strings"
	"testing"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
)

// Words, changes of them and files are taken out; who said them and what others
// said stays, and parts that were shared before stay as they were.
func TestRedact(t *testing.T) {
	t.Parallel()
	at := chat.Thread{Channel: "slack", Account: "T1", Room: "C1", Root: "1"}
	ann := chat.Author{ID: "U1", Account: "T1"}
	event := func(id, ref string, k chat.Kind, text string, files ...chat.File) record.Heard {
		return record.Heard{Turn: "t", Event: chat.Event{ID: id, Thread: at, Ref: ref, Kind: k, Author: ann, Text: text, Files: files}}
	}
	f := &record.Fold{}
	f.Apply(event("E1", "1", chat.Message, "a secret", chat.File{ID: "F1", Name: "plan.txt"}))
	f.Apply(record.Fetched{Turn: "t", Event: "E1", Author: ann, Files: []record.Got{{Name: "plan.txt", Text: "another secret"}, {Name: "plan.png", Image: true, Blob: "file/1-x"}}})
	f.Apply(event("E2", "2", chat.Message, "a comment", chat.File{ID: "F2", Name: "b.txt"}))
	f.Apply(event("E3", "1", chat.Edited, "a changed secret"))
	before := f.Messages[0].Parts[0].Text
	shared := f.Messages[0].Parts
	f.Apply(event("E4", "1", chat.Deleted, ""))
	var all strings.Builder
	for _, m := range f.Messages {
		for _, p := range m.Parts {
			all.WriteString(string(p.Kind) + p.Text + p.Ref)
		}
	}
	if s := all.String(); strings.Contains(s, "secret") || strings.Contains(s, "plan") || strings.Contains(s, string(model.Image)) || strings.Contains(s, "file/1-x") {
		t.Errorf("the model still sees\n%s", s)
	} else if !strings.Contains(s, "a comment") || strings.Count(s, "[taken back]") != 5 || !strings.Contains(s, `from="U1"`) {
		t.Errorf("the model sees\n%s", s)
	}
	if shared[0].Text != before {
		t.Error("parts that others may hold were changed")
	}
	if len(f.Files) != 1 || !f.Files[0].Gone {
		t.Errorf("files %+v, want the one of the message, gone", f.Files)
	}
	if f.Turn.Event.Text != "" || len(f.Declared) != 1 {
		t.Errorf("the event is %+v, declared are %+v", f.Turn.Event, f.Declared)
	}
	f.Apply(event("E5", "2", chat.Deleted, ""))
	if f.Declared != nil {
		t.Errorf("declared are %+v", f.Declared)
	}
	f.Apply(event("E6", "", chat.Deleted, "")) // of nothing
}
