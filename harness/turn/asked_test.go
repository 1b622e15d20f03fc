package turn

import (
	"fmt"
	"slices"
	"testing"

	"github.com/heddlehq/heddle/model"
)

// The digest of a request is the same whatever was digested before it, and in
// every version: logs hold it.
func TestAskedDependsOnTheRequestOnly(t *testing.T) {
	t.Parallel()
	message := func(i int) model.Message {
		return model.Message{Role: model.User, Parts: []model.Part{{Kind: model.Text, Text: fmt.Sprint("text ", i)}}}
	}
	q := model.Request{System: "Help.", Thinking: model.ThinkLow, Tools: []model.Tool{{Name: "look", Doc: "Looks.", Schema: []byte(`{}`)}}}
	var s summer
	check := func(when string) {
		t.Helper()
		if got, want := s.asked(q), new(summer).asked(q); got != want {
			t.Errorf("%s: %s, want %s", when, got, want)
		}
	}
	check("nothing said")
	for i := range 5 {
		q.Messages = append(q.Messages, message(i))
		check("one more")
	}
	check("asked again")
	if got, want := s.asked(q), "68408c0b2b9e5f33-0c6eb20533dd4b91-c09e6088e8eff6cd"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	last := &q.Messages[4]
	last.Parts = append(last.Parts, model.Part{Kind: model.Result, CallID: "c", Failed: true})
	check("the last has grown")
	q.Messages = slices.Concat([]model.Message{message(9)}, q.Messages[3:])
	check("a summary stands for the first")
	q.Messages = q.Messages[:1]
	check("fewer")
	q.Messages = append(q.Messages, model.Message{Role: model.Assistant}, message(10))
	check("one without parts")
	q.Messages[1].Role = model.User
	check("of another role")
}
