package record_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/state"
)

func fold(t testing.TB, records []state.Record) *record.Fold {
	t.Helper()
	f := &record.Fold{}
	if err := f.Add(records); err != nil {
		t.Fatal(err)
	}
	return f
}

// random is a conversation of n entries in an order that a turn could give them.
func random(r *rand.Rand, n int) []record.Body {
	all := bodies()
	var out []record.Body
	for i := range n {
		b := all[r.IntN(len(all))]
		if s, ok := b.(record.Said); ok {
			s.Step, s.Cost = i, float64(r.IntN(8))/4
			b = s
		}
		out = append(out, b)
	}
	return out
}

// A checkpoint and the records after it give what all records give.
func TestCheckpointAndRestEqualAll(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		records := log(t, random(r, 1+r.IntN(60)))
		whole := fold(t, records)
		cut := r.IntN(len(records) + 1)
		head := fold(t, records[:cut])
		f := record.Restore([]byte(checkpoint(t, head)), "c")
		if err := f.Add(records[cut:]); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(whole, f, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("checkpoint after %d of %d (-all +resumed):\n%s", cut, len(records), d)
		}
	}
}

// The fold of a record that was never written equals that of the stored one, so
// that a restart changes nothing a model sees.
func TestFoldAppliesWhatTheLogHolds(t *testing.T) {
	t.Parallel()
	direct := &record.Fold{}
	for i, r := range log(t, bodies()) {
		direct.Append(r, bodies()[i])
	}
	if d := cmp.Diff(direct, fold(t, log(t, bodies()))); d != "" {
		t.Errorf("(-direct +stored):\n%s", d)
	}
}

func TestRestoreGarbage(t *testing.T) {
	t.Parallel()
	good := checkpoint(t, fold(t, log(t, bodies())))
	for name, data := range map[string]string{
		"nothing": "", "no JSON": "{", "another form": `[1]`, "null": "null", "no fold": good[:strings.Index(good, `,"fold"`)] + "}", "another conversation": strings.Replace(good, `"of":"c"`, `"of":"d"`, 1),
		"another version": strings.Replace(good, `"version":`, `"version":9`, 1), "half": good[:len(good)/2],
	} {
		if d := cmp.Diff(&record.Fold{}, record.Restore([]byte(data), "c")); d != "" {
			t.Errorf("%s: not the empty fold:\n%s", name, d)
		}
	}
	if record.Restore([]byte(good), "c").Seq == 0 {
		t.Error("a good checkpoint gave the empty fold")
	}
}

func TestGapInTheLog(t *testing.T) {
	t.Parallel()
	records := log(t, bodies())
	for name, rs := range map[string][]state.Record{
		"missing": append(records[:3:3], records[4:]...), "repeated": append(records[:3:3], records[2]), "late": records[1:],
	} {
		if err := new(record.Fold).Add(rs); err == nil || !strings.Contains(err.Error(), "the log has a gap") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Records of a kind that is open to grow keep what they do not know.
func TestUnknownFieldsAreIgnored(t *testing.T) {
	t.Parallel()
	b, err := record.Decode(state.Record{Seq: 1, Kind: "told", Data: []byte(`{"text":"x","mood":"good"}`)})
	if err != nil || b.(record.Told).Text != "x" {
		t.Errorf("got %+v, %v", b, err)
	}
}

func TestVoicesKeepTheWeakestRole(t *testing.T) {
	t.Parallel()
	f := &record.Fold{}
	say := func(id, account string, r chat.Role) {
		f.Apply(record.Heard{Turn: "t", Event: chat.Event{Author: chat.Author{ID: id, Account: account}}, Role: r})
	}
	say("U1", "T1", chat.Admin)
	say("U1", "T1", chat.Member)
	say("U1", "T1", chat.Maintainer)
	say("U1", "T2", chat.Maintainer)
	want := []record.Voice{{Author: chat.Author{ID: "U1", Account: "T1"}, Role: chat.Member}, {Author: chat.Author{ID: "U1", Account: "T2"}, Role: chat.Maintainer}}
	if d := cmp.Diff(want, f.Voices); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// The same author in another channel or account is another voice, which is
// looked up there.
func TestVoicesOfOtherChannels(t *testing.T) {
	t.Parallel()
	f := &record.Fold{}
	for _, at := range []chat.Thread{
		{Channel: "stripe", Account: "a", Root: "cus"},
		{Channel: "slack", Account: "T1", Room: "C1", Root: "1"},
		{Channel: "slack", Account: "T1", Room: "C2", Root: "2"},
		{Channel: "stripe", Account: "a", Root: "other"},
	} {
		f.Apply(record.Heard{Turn: "t", Event: chat.Event{Thread: at, Author: chat.Author{ID: "U1"}}, Role: chat.Member})
	}
	want := []record.Voice{
		{Author: chat.Author{ID: "U1"}, Role: chat.Member},
		{Author: chat.Author{ID: "U1"}, Role: chat.Member, Thread: chat.Thread{Channel: "slack", Account: "T1"}},
	}
	if d := cmp.Diff(want, f.Voices); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func long(b *testing.B) []state.Record {
	some := slices.DeleteFunc(bodies(), func(b record.Body) bool { _, is := b.(record.Folded); return is })
	var all []record.Body
	for len(all) < 10_000 {
		all = append(all, some...)
	}
	return log(b, all[:10_000])
}

func BenchmarkFold10kCold(b *testing.B) {
	records := long(b)
	for b.Loop() {
		fold(b, records)
	}
}

func BenchmarkFold10kFromCheckpoint(b *testing.B) {
	records := long(b)
	data := []byte(checkpoint(b, fold(b, records[:9_990])))
	for b.Loop() {
		if err := record.Restore(data, "c").Add(records[9_990:]); err != nil {
			b.Fatal(err)
		}
	}
}

// A state is as its last write left it; one that was deleted is not there.
func TestFoldOfWrites(t *testing.T) {
	t.Parallel()
	f := &record.Fold{}
	for _, w := range []record.Wrote{
		{Name: "a", Value: json.RawMessage("1")},
		{Name: "b", Value: json.RawMessage("2"), Version: 2},
		{Name: "c", Value: json.RawMessage("3"), Version: 2},
		{Name: "d", Value: json.RawMessage("4"), Version: 2},
		{Name: "c", Value: json.RawMessage("null")}, // by older code, as if it could
		{Name: "d"},
		{Name: "e"},
	} {
		f.Apply(w)
	}
	want := map[string]json.RawMessage{"a": json.RawMessage("1"), "b": json.RawMessage("2"), "c": json.RawMessage("null")}
	if d := cmp.Diff(want, f.State) + cmp.Diff(map[string]int{"b": 2}, f.Versions); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// The data that a conversation began with is that of its first event, for ever.
func TestFoldOfInitialData(t *testing.T) {
	t.Parallel()
	hear := func(data ...string) *record.Fold {
		f := &record.Fold{}
		f.Apply(record.Passed{Event: "E0"})
		for _, d := range data {
			e := chat.Event{Author: chat.Author{ID: "U1"}}
			if d != "" {
				e.Data = json.RawMessage(d)
			}
			f.Apply(record.Heard{Turn: "t", Event: e})
		}
		f.Apply(record.Folded{Drop: 1})
		return f
	}
	for want, data := range map[string][]string{"1": {"1", "2"}, "": {"", "2"}, "[]": {"[]"}} {
		if got := string(hear(data...).Initial); got != want {
			t.Errorf("%q began with %q, want %q", data, got, want)
		}
	}
}
