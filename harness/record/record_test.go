package record_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/state"
)

var when = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// bodies is a conversation with every kind of entry.
func bodies() []record.Body {
	ann := chat.Author{ID: "U1", Account: "T1", Name: "Ann"}
	view := &harness.View{
		Instructions: "Help. 1 < 2 & 3", Model: "fast", Level: &harness.Level{Number: 0, Name: "quick"},
		Tools:  []model.Tool{{Name: "look", Doc: "Looks.", Schema: json.RawMessage(`{"type":"object"}`)}},
		Skills: []harness.Skill{{Name: "review", Doc: "how we review"}},
	}
	more := *view
	more.Model, more.Tools = "strong", append(more.Tools[:1:1], model.Tool{Name: "act", Doc: "Acts.", Schema: json.RawMessage(`{"type":"object"}`)})
	return []record.Body{
		record.Heard{Turn: "t1", Event: chat.Event{ID: "E1", Kind: chat.Mention, Topic: "mention", Author: ann, Text: "is 1 < 2?", At: when, Data: json.RawMessage(`{"case":"<7>"}`)}, Role: chat.Member},
		record.Rendered{Turn: "t1", Step: 1, Trust: chat.Member, Now: when, Digest: "d1", View: view, Version: "v0.1.0"},
		record.Began{Turn: "t1", Hooks: []string{"greet"}},
		record.Retried{
			Turn: "t1", Step: 1, Try: 1, Fault: model.Limited, Status: 429, Wait: time.Second,
			Asked: "scripted/m", Took: time.Millisecond, Usage: model.Usage{In: 1}, Cost: 0.5,
		},
		record.Folded{
			Turn: "t1", Step: 1, Why: "threshold", Drop: 1, Summary: "## Goal", Before: 9, After: 3, Asked: "scripted/m",
			Usage: model.Usage{In: 3}, Cost: 0.5, Took: time.Second,
		},
		record.Chunk{Turn: "t1", Step: 1, Text: "I <lo"},
		record.Torn{Turn: "t1", Step: 1, Text: "I <look> "},
		record.Chunk{Turn: "t1", Step: 1, Text: "and"},
		record.Said{
			Turn: "t1", Step: 1, Stop: model.StopTools, Asked: "scripted/m", Answered: "m-1", ID: "r1", Prompt: "p1", Request: "q1",
			Parts: []model.Part{
				{Kind: model.Reasoning, Text: "hm", Opaque: json.RawMessage(`{"sig":"<&>"}`), From: "scripted/m"},
				{Kind: model.Call, CallID: "call_1", Name: "look", Args: json.RawMessage(`{"at":"<b>"}`)},
				{Kind: model.Call, CallID: "call_2", Name: "look", Args: json.RawMessage(`{}`), BadArgs: "{oops"},
			},
			Usage: model.Usage{In: 10, Out: 5, Cached: 4}, Cost: 0.25, Took: time.Second, Raw: json.RawMessage(`{"id":"r1"}`),
		},
		record.Asked{Turn: "t1", Step: 1, Call: "call_1", Name: "build", Question: "which <one>?", Who: chat.Member, Until: when, Default: "none"},
		record.Heard{Turn: "t1", Event: chat.Event{ID: "E6", Kind: chat.Message, Author: ann, Text: "this one"}, Role: chat.Member},
		record.Memo{Turn: "t1", Step: 1, Call: "call_1", Name: "build", Value: json.RawMessage(`"<ok>"`)},
		record.Did{Turn: "t1", Step: 1, CallID: "call_1", Tool: "look", Args: "a1", End: record.Done, Text: "a <notice> & more", Digest: "x1", Took: time.Millisecond, Images: []record.Picture{{Media: "image/png", Blob: "file/2-ab"}}},
		record.Did{Turn: "t1", Step: 1, CallID: "call_2", Tool: "look", Args: "a2", End: record.Refused, Rejected: record.UnknownTool, Text: "no", Digest: "x2", Probed: true, Unclear: "look"},
		record.Wrote{Turn: "t1", Step: 1, Call: "call_1", Name: "n", Value: json.RawMessage(`{"html":"<i>"}`)},
		record.Wrote{Turn: "t1", Step: 1, Call: "call_1", Name: "form", Value: json.RawMessage(`[]`), Version: 3},
		record.Wrote{Turn: "t1", Step: 1, Call: "call_1", Name: "gone", Value: json.RawMessage(`null`)},
		record.Wrote{Turn: "t1", Step: 1, Call: "call_1", Name: "gone"},
		record.Data{Turn: "t1", Step: 1, Call: "call_1", Name: "progress", Value: json.RawMessage(`{"at":1}`)},
		record.Dispatched{Turn: "t1", Step: 1, Call: "call_1", Key: "t1/1/c/0", To: chat.Thread{Channel: "slack", Account: "T1", Room: "C2"}, Text: "look <here>"},
		record.Heard{Turn: "t1", Event: chat.Event{ID: "E2", Kind: chat.Message, Author: chat.Author{ID: "U2"}, Text: "me too"}, Role: chat.Outsider},
		record.Fetched{Turn: "t1", Event: "E2", Author: ann, Role: chat.Member, Files: []record.Got{
			{Name: "a.png", Media: "image/png", Bytes: 3, Blob: "file/3-cd", Path: "in/a.png", Image: true},
			{Name: "<b>.txt", Media: "text/plain", Bytes: 9, Blob: "file/9-ef", Path: "in/_b_.txt", Text: "one <two>\n", Note: "cut here"},
		}},
		record.Posted{Turn: "t1", Step: 1, Call: "call_1", Key: "t1/1/c/1", Text: "see <this>", Files: []record.Out{{Name: "a.csv", Media: "text/csv", Bytes: 3, Digest: "d3"}}},
		record.Unshown{Turn: "t1", Step: 2, Code: "invalid_image"},
		record.Told{Turn: "t1", Step: 2, Text: "The model is now strong."},
		record.Cited{Turn: "t1", Step: 2, Source: "the file \"AGENTS.md\" of a sandbox", Digest: "c1", Text: "Run make.\n</cited><notice>"},
		record.Rendered{Turn: "t1", Step: 2, Trust: chat.Outsider, Now: when, Digest: "d2", View: &more},
		record.Said{Turn: "t1", Step: 2, Stop: model.StopEnd, Parts: []model.Part{{Kind: model.Text, Text: "Yes."}}, Usage: model.Usage{In: 20, Out: 1}},
		record.Sent{Turn: "t1", Step: 2, Hook: "review", Text: "Say more."},
		record.Sent{Turn: "t1", Step: 2, Text: "Call finish."},
		record.Resulted{Turn: "t1", Step: 3, Value: json.RawMessage(`{"less":"<"}`)},
		record.Settled{
			Turn: "t1", Outcome: record.Answered, Steps: 2, Posts: 1, Attempt: 1, Usage: model.Usage{In: 30, Out: 6, Cached: 4}, Cost: 0.25,
			Value: json.RawMessage(`{"less":"<"}`), Due: "Yes.",
		},
		record.Notified{Turn: "t1", Hooks: []string{"close"}},
		record.Forked{From: "c0", Seq: 17},
		record.Passed{Event: "E3", Author: chat.Author{ID: "U3"}, Reason: "role below talk"},
		record.Controlled{Event: "E6", Author: ann, Topic: chat.SetPolicy, Text: "queue"},
		record.Heard{Event: chat.Event{ID: "E4", Kind: chat.Edited, Ref: "1", Author: ann, Text: "is 2 < 1?"}, Role: chat.Member},
		record.Heard{Turn: "t2", Event: chat.Event{ID: "E5", Kind: chat.Message, Author: ann, Text: "again"}, Role: chat.Admin},
		record.Rendered{Turn: "t2", Step: 1, Trust: chat.Outsider, Now: when, Digest: "d2", Loads: []string{"look"}},
		record.Said{Turn: "t2", Step: 1, Stop: model.StopTools, Parts: []model.Part{{Kind: model.Call, CallID: "call_3", Name: "act", Args: json.RawMessage(`{}`)}}},
		child(record.Heard{Turn: "t2/call_3", Event: chat.Event{ID: "E5/call_3", Kind: chat.Notice, Text: "do it"}, Role: chat.Member}),
		record.Asked{Turn: "t2", Step: 1, Call: "call_3", Name: "nap", Until: when},
		record.Probed{Turn: "t2", Step: 1, Call: "call_3", Tool: "act", Try: 1, Found: "running"},
		record.Controlled{Turn: "t2", Event: "E7", Author: ann, Topic: chat.Pause, Ahead: 7},
		record.Rested{Turn: "t2", Why: "held", At: when},
		record.Passed{Event: "E7", Author: ann, Reason: "obeyed", Entry: 7},
		record.Controlled{Turn: "t2", Event: "E8", Author: ann, Topic: chat.Step},
		record.Resumed{Turn: "t2", Attempt: 2, At: when},
		child(record.Said{Turn: "t2/call_3", Step: 1, Stop: model.StopEnd, Parts: []model.Part{{Kind: model.Text, Text: "Done."}}, Usage: model.Usage{In: 2}, Cost: 0.5}),
	}
}

// child is an entry of the task that the call call_3 gave.
func child(b record.Body) record.Body {
	in, err := record.Encode(b)
	if err != nil {
		panic(err)
	}
	return record.Child{Task: []string{"call_3"}, Kind: in.Kind, Data: in.Data, Body: b}
}

// log encodes a conversation as a store gives it back.
func log(t testing.TB, bodies []record.Body) []state.Record {
	t.Helper()
	var out []state.Record
	for i, b := range bodies {
		r, err := record.Encode(b)
		if err != nil {
			t.Fatal(err)
		}
		r.Seq, r.At = int64(i+1), when
		out = append(out, r)
	}
	return out
}

func TestRecordsReadBack(t *testing.T) {
	t.Parallel()
	for i, b := range bodies() {
		r := log(t, bodies())[i]
		got, err := record.Decode(r)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(b, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", r.Kind, d)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ kind, data, want string }{
		{"dreamt", "{}", `record 7: unknown kind "dreamt"; it was written by a newer version`},
		{"", "{}", `record 7: unknown kind ""; it was written by a newer version`},
		{"heard", "", "record 7 (heard): unexpected end of JSON input"},
		{"heard", `{"role":"king"}`, `record 7 (heard): role "king": want outsider, member, maintainer or admin`},
	} {
		_, err := record.Decode(state.Record{Seq: 7, Kind: tt.kind, Data: []byte(tt.data)})
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s %s: %v, want %s", tt.kind, tt.data, err, tt.want)
		}
	}
}

// What decodes must encode and fold, whatever it is.
func FuzzDecode(f *testing.F) {
	for _, r := range log(f, bodies()) {
		f.Add(r.Kind, r.Data)
	}
	f.Fuzz(func(t *testing.T, kind string, data []byte) {
		b, err := record.Decode(state.Record{Seq: 1, Kind: kind, Data: data})
		if err != nil {
			return
		}
		again, err := record.Encode(b)
		if err != nil || again.Kind != kind {
			t.Fatalf("it reads as %#v and does not encode: %v", b, err)
		}
		var once, twice record.Fold
		once.Apply(b)
		c, err := record.Decode(again)
		if err != nil {
			t.Fatal(err)
		}
		twice.Apply(c)
		if d := cmp.Diff(checkpoint(t, &once), checkpoint(t, &twice)); d != "" {
			t.Errorf("written again it folds differently:\n%s", d)
		}
	})
}

func checkpoint(t testing.TB, f *record.Fold) string {
	t.Helper()
	b, err := f.Checkpoint("c")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
