package ui

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/scripted"
	"github.com/heddlehq/heddle/state"
)

// all are the records of a conversation, the oldest first.
func (w *world) all(id string) []state.Record {
	w.t.Helper()
	v, err := w.store.Load(w.t.Context(), state.ID(id), 0)
	if err != nil {
		w.t.Fatal(err)
	}
	return v.Records
}

// turns are the ids of the turns that a log heard something in, in order.
func turns(t *testing.T, records []state.Record) (ids []string) {
	t.Helper()
	for _, r := range records {
		var b struct{ Turn string }
		if err := json.Unmarshal(r.Data, &b); err != nil {
			t.Fatal(err)
		}
		if r.Kind == "heard" {
			ids = append(ids, b.Turn)
		}
	}
	return ids
}

// A fork at turn N has the same records up to there, says where it comes from,
// goes its own way, and leaves the original as it was. The records of both are
// one tree.
func TestForkAtATurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	// The model answers with all that people have said.
	w.plays(func(ctx context.Context, r model.Request) (model.Response, error) {
		var words []string
		for _, m := range r.Messages {
			if m.Role == model.User {
				_, text, _ := strings.Cut(m.Parts[0].Text, ">\n")
				text, _, _ = strings.Cut(text, "\n</heard>")
				words = append(words, text)
			}
		}
		return scripted.Say(strings.Join(words, " "))(ctx, r)
	})
	w.work()
	var id string
	for _, text := range []string{"one", "two", "three"} {
		id = w.begin("a", text)
	}
	original := w.all(id)
	second := turns(t, original)[1]
	forked := w.want(201, "POST", at+"a/fork", obj{"id": "b", "turn": second})
	fid := forked["id"].(string)
	branch := w.all(fid)
	n := len(branch) - 1
	if diff := cmp.Diff(original[:n], branch[:n]); diff != "" || original[n-1].Kind != "settled" || len(turns(t, branch)) != 2 {
		t.Errorf("the fork has %d records: %s", n, diff)
	}
	parent := obj{"from": id, "seq": float64(n), "thread": obj{"channel": "api", "account": "assistant", "room": "a"}}
	if head := w.want(200, "GET", at+"b", nil); !cmp.Equal(head["parent"], any(parent)) || head["turns"] != 2.0 || head["status"] != "idle" {
		t.Errorf("head of the fork: %v", head)
	}
	if head := w.want(200, "GET", at+"a", nil); head["parent"] != nil || head["turns"] != 3.0 {
		t.Errorf("head of the original: %v", head)
	}
	// Both go on; each knows what was said on its own branch.
	w.begin("b", "other")
	w.begin("a", "four")
	for branch, want := range map[string]string{"a": "one two three four", "b": "one two other"} {
		p := w.page(at + branch + "/records?limit=500&kind=all")
		var said struct{ Parts []struct{ Text string } }
		for i, r := range p.Records {
			if r.Kind == "said" && said.Parts == nil {
				if err := json.Unmarshal(r.Data, &said); err != nil {
					t.Fatal(err)
				}
			}
			if i > 0 && p.Records[i-1].Parent != r.Seq {
				t.Errorf("%s: the parent of record %d is %d", branch, p.Records[i-1].Seq, p.Records[i-1].Parent)
			}
		}
		if len(said.Parts) != 1 || said.Parts[0].Text != want {
			t.Errorf("%s: the last answer is %v, want %q", branch, said.Parts, want)
		}
	}
	if diff := cmp.Diff(original, w.all(id)[:len(original)]); diff != "" {
		t.Errorf("the original: %s", diff)
	}
	// Asked again, the fork is the same; a fork of the fork knows its parent.
	if again := w.want(201, "POST", at+"a/fork", obj{"id": "b", "turn": second}); again["id"] != fid {
		t.Errorf("again: %v", again)
	}
	last := w.want(201, "POST", "/api/v1/conversations/"+fid+"/fork", obj{"id": "c"})
	w.begin("b", "meanwhile")
	if again := w.want(201, "POST", at+"b/fork", obj{"id": "c"}); again["id"] != last["id"] {
		t.Errorf("again, after the original went on: %v", again)
	}
	w.want(409, "POST", at+"a/fork", obj{"id": "c"})
	if head := w.want(200, "GET", at+"c", nil); head["parent"].(obj)["from"] != fid || head["turns"] != 3.0 {
		t.Errorf("fork of the fork: %v", head)
	}
}

// A fork says whether its files may be of a later time than its turn, also when
// it is asked for again. It is not paused with the original.
func TestForkSaysWhatItsFilesAre(t *testing.T) {
	t.Parallel()
	look := harness.NewTool("look", "Looks.", func(context.Context, *harness.Call, struct{}) (string, error) { return "seen", nil })
	w := newWorld(t, func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		harness.UseTool(c, look)
		return "Help."
	})
	w.plays(func(ctx context.Context, r model.Request) (model.Response, error) {
		if last := r.Messages[len(r.Messages)-1]; strings.Contains(last.Parts[0].Text, "look") {
			return scripted.Call("look", "{}")(ctx, r)
		}
		return scripted.Say("ok")(ctx, r)
	})
	w.work()
	w.begin("a", "one")
	id := w.begin("a", "two")
	first := turns(t, w.all(id))[0]
	w.files["virtual/notes.txt"] = []byte("x")
	newer := func(fork obj) any { return fork["parent"].(obj)["newer_files"] }
	if got := newer(w.want(201, "POST", at+"a/fork", obj{"id": "b", "turn": first})); got != nil {
		t.Errorf("nothing ran since, yet the files are newer: %v", got)
	}
	w.begin("a", "look")
	w.want(202, "POST", at+"a/pause", nil)
	for range 2 {
		if got := newer(w.want(201, "POST", at+"a/fork", obj{"id": "c", "turn": first})); got != true {
			t.Errorf("a tool ran since, newer files: %v", got)
		}
		if got := newer(w.want(201, "POST", at+"a/fork", obj{"id": "b", "turn": first})); got != nil {
			t.Errorf("the fork from before: %v", got)
		}
		if got := newer(w.want(201, "POST", at+"a/fork", obj{"id": "d"})); got != nil {
			t.Errorf("the newest turn: %v", got)
		}
	}
	if head := w.want(200, "GET", at+"d", nil); head["status"] != "idle" {
		t.Errorf("the fork of a paused one: %v", head)
	}
}

// A fork is made at the end of a turn that has ended, to an id that is free.
func TestForkRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop := w.work()
	id := w.begin("a", "one")
	w.begin("taken", "else")
	stop()
	records := w.all(id)
	last, turn := len(records), turns(t, records)[0]
	for name, tc := range map[string]struct {
		path   string
		body   obj
		status int
		code   Code
	}{
		"in a turn":       {at + "a/fork", obj{"seq": last - 1}, 409, turnOpen},
		"after the last":  {at + "a/fork", obj{"seq": last + 1}, 404, noSuchTurn},
		"unknown turn":    {at + "a/fork", obj{"turn": "t"}, 404, noSuchTurn},
		"turn and record": {at + "a/fork", obj{"turn": turn, "seq": last}, 400, badRequest},
		"negative":        {at + "a/fork", obj{"seq": -1}, 400, badRequest},
		"to itself":       {at + "a/fork", obj{"id": "a"}, 409, conversationExists},
		"to another":      {at + "a/fork", obj{"id": "taken"}, 409, conversationExists},
		"a bad id":        {at + "a/fork", obj{"id": "a\x00b"}, 400, badRequest},
		"of none":         {at + "unknown/fork", obj{}, 404, noSuchConversation},
	} {
		if got := code(w.want(tc.status, "POST", tc.path, tc.body)); got != string(tc.code) {
			t.Errorf("%s: %s, want %s", name, got, tc.code)
		}
	}
	w.want(202, "POST", at+"empty/messages", obj{"text": "x"})
	if got := code(w.want(409, "POST", at+"empty/fork", obj{})); got != string(turnOpen) {
		t.Errorf("without a turn: %s", got)
	}
	if made := w.want(201, "POST", at+"a/fork", obj{"seq": last}); made["seq"] != float64(last+1) || made["thread"].(obj)["room"] == "" {
		t.Errorf("%v", made)
	}
}
