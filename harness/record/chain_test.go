package record_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/state"
)

// chained is a log of so many turns of four records, with their chain.
func chained(t testing.TB, turns int) []state.Record {
	t.Helper()
	var out []state.Record
	chain := ""
	for range turns {
		for _, b := range []record.Body{
			record.Heard{Turn: "t"}, record.Told{Text: "1"}, record.Told{Text: "2"}, record.Settled{Turn: "t"},
		} {
			if s, ok := b.(record.Settled); ok {
				s.Chain = chain
				b = s
			}
			r := log(t, []record.Body{b})[0]
			r.Seq = int64(len(out) + 1)
			chain = record.Link(chain, r)
			out = append(out, r)
		}
	}
	return out
}

// Whatever is done to a record of a finished turn is found and located.
func TestTamperIsFound(t *testing.T) {
	t.Parallel()
	numbered := func(rs []state.Record) []state.Record {
		for i := range rs {
			rs[i].Seq = int64(i + 1)
		}
		return rs
	}
	const second = "one of the records 4 to 8 is not what was written: the turn that ends with record 8 says so"
	for name, tt := range map[string]struct {
		change func(rs []state.Record) []state.Record
		want   string // in the error, "" for none
	}{
		"nothing": {func(rs []state.Record) []state.Record { return rs }, ""},
		"a byte": {func(rs []state.Record) []state.Record {
			rs[5].Data = bytes.Replace(rs[5].Data, []byte(`"1"`), []byte(`"3"`), 1)
			return rs
		}, second},
		"a kind":       {func(rs []state.Record) []state.Record { rs[5].Kind = "sent"; return rs }, second},
		"two swapped":  {func(rs []state.Record) []state.Record { rs[5], rs[6] = rs[6], rs[5]; return numbered(rs) }, second},
		"one left out": {func(rs []state.Record) []state.Record { return numbered(slices.Delete(rs, 5, 6)) }, "one of the records 4 to 7"},
		"one added":    {func(rs []state.Record) []state.Record { return numbered(slices.Insert(rs, 5, rs[1])) }, "one of the records 4 to 9"},
		"one missing":  {func(rs []state.Record) []state.Record { return slices.Delete(rs, 5, 6) }, "record 7 follows record 5: the log has a gap"},
		"an end": {func(rs []state.Record) []state.Record {
			rs[3].Data = bytes.Replace(rs[3].Data, []byte(`"turn":"t"`), []byte(`"turn":"u"`), 1)
			return rs
		}, "one of the records 4 to 8"},
		"a first one":     {func(rs []state.Record) []state.Record { rs[0].Data = []byte(`{}`); return rs }, "one of the records 1 to 4"},
		"what has no end": {func(rs []state.Record) []state.Record { rs[12].Data = []byte(`{}`); return rs }, ""},
	} {
		rs := tt.change(append(chained(t, 3), chained(t, 1)[:2]...))
		if name == "nothing" || name == "what has no end" {
			rs = numbered(rs)
		}
		a, err := record.Verify(rs)
		switch {
		case tt.want == "" && (err != nil || a.Records != 14 || a.Checked != 3 || a.NotSure != 3 || a.Last() != a.Links[13]):
			t.Errorf("%s: %+v, %v", name, a, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: found %v, want %s", name, err, tt.want)
		}
	}
}

// Who rewrites the log up to its end is found by a value that was kept elsewhere.
func TestChainNeedsAValueElsewhere(t *testing.T) {
	t.Parallel()
	was, err := record.Verify(chained(t, 2))
	if err != nil {
		t.Fatal(err)
	}
	rs := chained(t, 2)
	rs[1].Data = []byte(`{"turn":"","step":0,"text":"forged"}`)
	chain := ""
	for i, r := range rs {
		if b, _ := record.Decode(r); r.Kind == "settled" {
			s := b.(record.Settled)
			s.Chain = chain
			r = log(t, []record.Body{s})[0]
			r.Seq = int64(i + 1)
		}
		rs[i], chain = r, record.Link(chain, r)
	}
	now, err := record.Verify(rs)
	if err != nil {
		t.Fatalf("the limit is stated wrongly: %v", err)
	}
	if slices.Contains(now.Links, was.Last()) {
		t.Error("the value that was kept is in the forged log")
	}
}

// The chain of a fold is that of its log, also over a checkpoint.
func TestFoldKeepsTheChain(t *testing.T) {
	t.Parallel()
	records := chained(t, 5)
	a, err := record.Verify(records)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range records {
		f := record.Restore([]byte(checkpoint(t, fold(t, records[:cut]))), "c")
		if err := f.Add(records[cut:]); err != nil {
			t.Fatal(err)
		}
		if f.Chain != a.Last() {
			t.Errorf("checkpoint after %d: the chain is %s, want %s", cut, f.Chain, a.Last())
		}
	}
}

func BenchmarkLink(b *testing.B) {
	r := state.Record{Kind: "said", Data: bytes.Repeat([]byte("x"), 2<<10)}
	chain := ""
	b.SetBytes(int64(len(r.Data)))
	for b.Loop() {
		chain = record.Link(chain, r)
	}
}
